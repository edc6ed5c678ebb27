use crate::lock::{Order, Taken};
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The lanes that a task locks for a stretch (see [`Lock`](crate::Lock)): it takes all of them
/// first, in rising order, and gives all of them back when this drops.
#[derive(Debug)]
pub struct Section<'a, T> {
    // The locks are given back before the stretch ends.
    held: Held<'a, T>,
    _taken: Taken,
}

/// Locks with their numbers.
#[derive(Debug)]
enum Held<'a, T> {
    One(usize, MutexGuard<'a, T>),
    Several(Vec<(usize, MutexGuard<'a, T>)>),
}

impl<'a, T> Section<'a, T> {
    /// Takes the locks with these numbers, in any order; a number may occur several times.
    ///
    /// # Panics
    /// When the task holds a lock already.
    #[track_caller]
    pub fn of(locks: &'a [Mutex<T>], numbers: impl Iterator<Item = usize>) -> Self {
        let taken = Taken::new(Order::Lane);
        let numbers: BTreeSet<usize> = numbers.collect();
        let lock =
            |number: usize| (number, locks[number].lock().unwrap_or_else(PoisonError::into_inner));
        Self { held: Held::Several(numbers.into_iter().map(lock).collect()), _taken: taken }
    }

    /// Takes one lock.
    ///
    /// # Panics
    /// When the task holds a lock already.
    #[inline]
    #[track_caller]
    pub fn one(locks: &'a [Mutex<T>], number: usize) -> Self {
        let taken = Taken::new(Order::Lane);
        let guard = locks[number].lock().unwrap_or_else(PoisonError::into_inner);
        Self { held: Held::One(number, guard), _taken: taken }
    }

    /// Calls `visit` with what each of the locks guards.
    pub fn each(&mut self, mut visit: impl FnMut(&mut T)) {
        match &mut self.held {
            Held::One(_, guard) => visit(guard),
            Held::Several(held) => held.iter_mut().for_each(|(_, guard)| visit(guard)),
        }
    }

    /// Returns what the lock with this number guards.
    ///
    /// # Panics
    /// When the section does not have that lock.
    #[inline]
    pub fn get(&mut self, number: usize) -> &mut T {
        let guard = match &mut self.held {
            Held::One(held, guard) => (*held == number).then_some(guard),
            Held::Several(held) => {
                held.iter_mut().find(|(held, _)| *held == number).map(|(_, guard)| guard)
            }
        };
        guard.expect("a section holds the locks of what it changes")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locks() -> [Mutex<u32>; 4] {
        [0, 1, 2, 3].map(Mutex::new)
    }

    #[test]
    fn a_section_holds_the_locks_that_it_was_made_of_until_it_drops() {
        let locks = locks();
        let mut section = Section::of(&locks, [3, 1, 3].into_iter());
        *section.get(1) += 10;
        assert_eq!((*section.get(1), *section.get(3)), (11, 3));
        let is_free = |number: usize| locks[number].try_lock().is_ok();
        assert_eq!([0, 1, 2, 3].map(is_free), [true, false, true, false]);
        drop(section);
        assert_eq!(*Section::one(&locks, 1).get(1), 11);
        assert!((0..4).all(is_free));
    }

    #[test]
    #[should_panic(expected = "a section holds the locks of what it changes")]
    fn what_a_section_did_not_lock_it_does_not_get() {
        Section::one(&locks(), 1).get(2);
    }

    #[test]
    #[should_panic(expected = "locks are taken in order: Lane was not")]
    fn a_task_has_one_section_at_a_time() {
        let locks = locks();
        let _first = Section::one(&locks, 0);
        let _ = Section::one(&locks, 1);
    }
}

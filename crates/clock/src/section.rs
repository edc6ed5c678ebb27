use crate::lock_waits::lock_mutex;
use crate::stretch::{Order, Taken};
use crate::sync::{Mutex, MutexGuard};
use std::collections::BTreeSet;

/// Locks of one [`Order`] that a task takes together for a stretch (see [`Lock`](crate::Lock)), in
/// rising order of their numbers. It gives all of them back when this drops.
#[derive(Debug)]
pub struct Section<'a, T> {
    // The locks are given back before the stretch ends.
    held: Held<'a, T>,
    _taken: Taken,
}

const NOT_LOCKED: &str = "a section holds the locks of what it changes";

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
    /// When the task holds a lock of this order or of a higher one, or has given one back.
    #[track_caller]
    pub fn of(order: Order, locks: &'a [Mutex<T>], numbers: impl Iterator<Item = usize>) -> Self {
        let taken = Taken::new(order);
        let numbers: BTreeSet<usize> = numbers.collect();
        let lock = |number: usize| (number, lock_mutex(&locks[number]));
        Self { held: Held::Several(numbers.into_iter().map(lock).collect()), _taken: taken }
    }

    /// Takes one lock.
    ///
    /// # Panics
    /// As [`Self::of`].
    #[inline]
    #[track_caller]
    pub fn one(order: Order, locks: &'a [Mutex<T>], number: usize) -> Self {
        let taken = Taken::new(order);
        Self { held: Held::One(number, lock_mutex(&locks[number])), _taken: taken }
    }

    /// Takes all of the locks.
    ///
    /// # Panics
    /// As [`Self::of`].
    #[inline]
    #[track_caller]
    pub fn all(order: Order, locks: &'a [Mutex<T>]) -> Self {
        if locks.len() == 1 {
            return Self::one(order, locks, 0);
        }
        let taken = Taken::new(order);
        let held = locks.iter().map(lock_mutex).enumerate().collect();
        Self { held: Held::Several(held), _taken: taken }
    }

    /// Returns what each of the locks guards, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        let (one, several) = match &self.held {
            Held::One(_, guard) => (Some(guard), &[][..]),
            Held::Several(held) => (None, &held[..]),
        };
        one.into_iter().chain(several.iter().map(|(_, guard)| guard)).map(|guard| &**guard)
    }

    /// As [`Self::iter`], to change it.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        let (one, several) = match &mut self.held {
            Held::One(_, guard) => (Some(guard), &mut [][..]),
            Held::Several(held) => (None, &mut held[..]),
        };
        one.into_iter().chain(several.iter_mut().map(|(_, guard)| guard)).map(|guard| &mut **guard)
    }

    /// Returns what the lock with this number guards, to read it.
    ///
    /// # Panics
    /// As [`Self::get`].
    #[inline]
    pub fn peek(&self, number: usize) -> &T {
        let guard = match &self.held {
            Held::One(held, guard) => (*held == number).then_some(guard),
            Held::Several(held) => place(held, number).map(|at| &held[at].1),
        };
        guard.expect(NOT_LOCKED)
    }

    /// Returns what the lock with this number guards.
    ///
    /// # Panics
    /// When the section does not have that lock.
    #[inline]
    pub fn get(&mut self, number: usize) -> &mut T {
        let guard = match &mut self.held {
            Held::One(held, guard) => (*held == number).then_some(guard),
            Held::Several(held) => place(held, number).map(|at| &mut held[at].1),
        };
        guard.expect(NOT_LOCKED)
    }
}

/// Returns the place of a lock: that of its number, if all are held.
#[inline]
fn place<G>(held: &[(usize, G)], number: usize) -> Option<usize> {
    let is_there = |(held, _): &(usize, G)| *held == number;
    if held.get(number).is_some_and(is_there) {
        return Some(number);
    }
    held.iter().position(is_there)
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
        let mut section = Section::of(Order::Lane, &locks, [3, 1, 3].into_iter());
        *section.get(1) += 10;
        assert_eq!((*section.get(1), *section.get(3)), (11, 3));
        let is_free = |number: usize| locks[number].try_lock().is_ok();
        assert_eq!([0, 1, 2, 3].map(is_free), [true, false, true, false]);
        drop(section);
        assert_eq!(*Section::one(Order::Lane, &locks, 1).get(1), 11);
        assert!((0..4).all(is_free));
    }

    #[test]
    #[should_panic(expected = "a section holds the locks of what it changes")]
    fn what_a_section_did_not_lock_it_does_not_get() {
        Section::one(Order::Lane, &locks(), 1).get(2);
    }

    #[test]
    #[should_panic(expected = "locks are taken in order: Lane was not")]
    fn a_task_has_one_section_at_a_time() {
        let locks = locks();
        let _first = Section::one(Order::Lane, &locks, 0);
        let _ = Section::one(Order::Lane, &locks, 1);
    }
}

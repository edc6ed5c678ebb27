use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

thread_local! {
    static IS_OPEN: Cell<bool> = const { Cell::new(false) };
}

/// The locks that a task holds between two of its waits: it takes all of them first, in rising
/// order, and gives all of them back when this drops.
///
/// Locks that are only taken and given back so are two-phase: what sections on several threads do
/// to what the locks guard equals a run in which they follow each other (Eswaran, Gray, Lorie and
/// Traiger, "The notions of consistency and predicate locks in a database system", 1976). A task
/// has one section at a time, and none while it waits; anything else panics.
#[derive(Debug)]
pub struct Section<'a, T> {
    // The locks are given back before the section ends.
    held: Held<'a, T>,
    _open: Open,
}

/// Locks with their numbers.
#[derive(Debug)]
enum Held<'a, T> {
    One(usize, MutexGuard<'a, T>),
    Several(Vec<(usize, MutexGuard<'a, T>)>),
}

#[derive(Debug)]
struct Open;

impl Open {
    #[inline]
    fn new() -> Self {
        assert!(!IS_OPEN.replace(true), "a section takes all its locks at once");
        Self
    }
}

impl Drop for Open {
    #[inline]
    fn drop(&mut self) {
        IS_OPEN.set(false);
    }
}

impl<'a, T> Section<'a, T> {
    /// Takes the locks with these numbers, in any order; a number may occur several times.
    ///
    /// # Panics
    /// When the task has a section already.
    pub fn of(locks: &'a [Mutex<T>], numbers: impl Iterator<Item = usize>) -> Self {
        let open = Open::new();
        let numbers: BTreeSet<usize> = numbers.collect();
        let lock =
            |number: usize| (number, locks[number].lock().unwrap_or_else(PoisonError::into_inner));
        Self { held: Held::Several(numbers.into_iter().map(lock).collect()), _open: open }
    }

    /// Takes one lock.
    ///
    /// # Panics
    /// When the task has a section already.
    #[inline]
    pub fn one(locks: &'a [Mutex<T>], number: usize) -> Self {
        let open = Open::new();
        let guard = locks[number].lock().unwrap_or_else(PoisonError::into_inner);
        Self { held: Held::One(number, guard), _open: open }
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

/// Panics when the current task has a section.
#[inline]
pub(crate) fn assert_no_section() {
    assert!(!IS_OPEN.get(), "a task gives its locks back before it waits");
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
    #[should_panic(expected = "a section takes all its locks at once")]
    fn a_task_has_one_section_at_a_time() {
        let locks = locks();
        let _first = Section::one(&locks, 0);
        let _ = Section::one(&locks, 1);
    }
}

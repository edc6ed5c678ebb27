use crate::lock_waits::lock_mutex;
use crate::stretch::{Order, Taken};
use crate::sync::{Mutex, MutexGuard};
use std::fmt;
use std::ops::{Deref, DerefMut};

/// A lock around what tasks on several threads change.
///
/// From the first lock that a task takes to the last that it gives back is a *stretch*. A stretch
/// takes all its locks before it gives one back, in their [`Order`], and does not wait. So the
/// stretches of all threads do together what they do in some order one after the other (Eswaran,
/// Gray, Lorie and Traiger, "The notions of consistency and predicate locks in a database system",
/// 1976). Anything else panics, in every build.
///
/// Virtual time can therefore have every order that threads can have: before a stretch it may run
/// stretches of other reactors (see [`preempt_by`](crate::preempt_by)).
pub struct Lock<T> {
    order: Order,
    value: Mutex<T>,
}

/// What a [`Lock`] guards, until this drops.
pub struct Guard<'a, T> {
    // The lock is given back before the stretch ends.
    value: MutexGuard<'a, T>,
    _taken: Taken,
}

impl<T> Lock<T> {
    /// Makes a lock around `value`.
    pub fn new(order: Order, value: T) -> Self {
        Self { order, value: Mutex::new(value) }
    }

    /// Takes the lock.
    ///
    /// # Panics
    /// When this thread holds a lock that is not below it, or has given one of the stretch back.
    #[inline]
    #[track_caller]
    pub fn lock(&self) -> Guard<'_, T> {
        let taken = Taken::new(self.order);
        Guard { value: lock_mutex(&self.value), _taken: taken }
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T: fmt::Debug> fmt::Debug for Lock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

impl<T: fmt::Debug> fmt::Debug for Guard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preempt_by;
    use std::cell::Cell;
    use std::rc::Rc;

    fn locks() -> (Lock<u32>, Lock<u32>, Lock<u32>) {
        (Lock::new(Order::Lane, 1), Lock::new(Order::Log, 2), Lock::new(Order::Medium, 3))
    }

    #[test]
    fn a_stretch_takes_locks_in_order_and_an_object_again() {
        let (lane, log, medium) = locks();
        for _ in 0..2 {
            let guards = (lane.lock(), log.lock());
            *medium.lock() += 1;
            *medium.lock() += *guards.1;
        }
        assert_eq!(*medium.lock(), 3 + 2 * 3);
        assert!(lane.value.try_lock().is_ok() && log.value.try_lock().is_ok());
    }

    #[test]
    #[should_panic(expected = "locks are taken in order: Lane was not")]
    fn a_lower_lock_is_not_taken_after_a_higher_one() {
        let (lane, log, _) = locks();
        let _log = log.lock();
        drop(lane.lock());
    }

    #[test]
    #[should_panic(expected = "a stretch takes all its locks before it gives one back")]
    fn no_lock_is_taken_after_one_was_given_back() {
        let (lane, log, _) = locks();
        let _lane = lane.lock();
        drop(log.lock());
        drop(Lock::new(Order::Cleaner, ()).lock());
    }

    #[test]
    fn other_work_is_done_before_a_stretch_and_never_within() {
        let (lane, log, _) = locks();
        let calls = Rc::new(Cell::new(0));
        let counted = calls.clone();
        preempt_by(Some(Rc::new(move || counted.set(counted.get() + 1))));
        let guards = (lane.lock(), log.lock());
        assert_eq!(calls.get(), 1);
        drop(guards);
        drop(log.lock());
        assert_eq!(calls.get(), 2);
        preempt_by(None);
        drop(log.lock());
        assert_eq!(calls.get(), 2);
    }
}

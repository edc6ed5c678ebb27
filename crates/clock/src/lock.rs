use std::cell::{Cell, RefCell};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The order in which a thread takes locks: only a lock above all that it holds. So no two threads
/// wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Order {
    /// A lane of keys. A [`Section`](crate::Section) takes several together, in rising order.
    Lane = 1,
    /// A writer of a log: its open pages, and what it has counted. A section may take all of them.
    Writer,
    /// What the writers of a log share: extents, space, sums of counts.
    Log,
    /// The tasks that wait for the cleaner.
    Cleaner,
    /// The state of index tables and checkpoints.
    Tables,
    /// A medium: how its extents are used, and what is on its way to it.
    Medium,
}

impl Order {
    /// True for what is correct by itself, one call after the other: a stretch may lock it several
    /// times.
    const fn is_of_object(self) -> bool {
        matches!(self, Self::Medium)
    }
}

/// The number of locks that this thread holds, in [`HELD`].
const COUNT: u32 = 0xFF;
/// The highest order of them, shifted.
const HIGHEST: u32 = 8;
/// One lock of the stretch was given back.
const GIVES_BACK: u32 = 1 << 16;
/// [`preempt_by`] was called.
const IS_PREEMPTED: u32 = 1 << 17;

thread_local! {
    static HELD: Cell<u32> = const { Cell::new(0) };
    static PREEMPTION: RefCell<Option<Rc<dyn Fn()>>> = const { RefCell::new(None) };
}

/// A lock around what tasks on several threads change.
///
/// From the first lock that a task takes to the last that it gives back is a *stretch*. A stretch
/// takes all its locks before it gives one back, in their [`Order`], and does not wait. So the
/// stretches of all threads do together what they do in some order one after the other (Eswaran,
/// Gray, Lorie and Traiger, "The notions of consistency and predicate locks in a database system",
/// 1976). Anything else panics, in every build.
///
/// Virtual time can therefore have every order that threads can have: before a stretch it may run
/// stretches of other reactors (see [`preempt_by`]).
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

/// A lock that counts as held until this drops.
#[derive(Debug)]
pub(crate) struct Taken {
    order: Order,
    /// The highest order of the locks that were held before.
    before: u32,
}

impl Taken {
    #[inline]
    #[track_caller]
    pub(crate) fn new(order: Order) -> Self {
        let held = HELD.get();
        if held == 0 {
            HELD.set(1 | (order as u32) << HIGHEST);
            return Self { order, before: 0 };
        }
        if held == IS_PREEMPTED {
            preempt();
        } else if !may_take(order, held) {
            refuse(order, held);
        }
        let before = highest(held);
        HELD.set(((held & !(0xFF << HIGHEST)) + 1) | (order as u32) << HIGHEST);
        Self { order, before }
    }
}

/// The highest order of the locks that are held, 0 for none.
#[inline]
const fn highest(held: u32) -> u32 {
    held >> HIGHEST & 0xFF
}

#[inline]
const fn may_take(order: Order, held: u32) -> bool {
    order as u32 > highest(held) && (held & GIVES_BACK == 0 || order.is_of_object())
}

/// Panics, but for destructors of a task that panics.
#[cold]
#[track_caller]
fn refuse(order: Order, held: u32) {
    if std::thread::panicking() {
        return;
    }
    assert!(held & GIVES_BACK != 0, "locks are taken in order: {order:?} was not");
    panic!("a stretch takes all its locks before it gives one back: {order:?} was taken after");
}

impl Drop for Taken {
    #[inline]
    fn drop(&mut self) {
        let held = HELD.get();
        if held == 1 | (self.order as u32) << HIGHEST {
            return HELD.set(0);
        }
        let left = (held & !(0xFF << HIGHEST)) - 1;
        HELD.set(if left & COUNT == 0 {
            held & IS_PREEMPTED
        } else if self.order.is_of_object() {
            left | self.before << HIGHEST
        } else {
            left | self.before << HIGHEST | GIVES_BACK
        });
    }
}

impl<T> Lock<T> {
    /// Makes a lock around `value`.
    pub const fn new(order: Order, value: T) -> Self {
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
        let value = self.value.lock().unwrap_or_else(PoisonError::into_inner);
        Guard { value, _taken: taken }
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

/// Calls `run` on this thread before each stretch, while the task that begins it is polled: `run`
/// may do what other threads could do then. `None` ends that.
pub fn preempt_by(run: Option<Rc<dyn Fn()>>) {
    assert_nothing_locked();
    HELD.set(if run.is_some() { IS_PREEMPTED } else { 0 });
    PREEMPTION.set(run);
}

#[cold]
fn preempt() {
    if !std::thread::panicking() {
        let run = PREEMPTION.with_borrow(Option::clone);
        if let Some(run) = run {
            run();
        }
    }
}

/// Panics when this thread holds a lock.
#[inline]
pub(crate) fn assert_nothing_locked() {
    assert!(HELD.get() & COUNT == 0, "a task gives its locks back before it waits");
}

#[cfg(test)]
mod tests {
    use super::*;

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

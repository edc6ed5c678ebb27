//! The stretch of locks that the task on this thread holds.

use crate::sync::thread_local;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

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
    /// Pieces of work that any reactor may do, or their results. Taken alone.
    Pool,
    /// An extent of a medium: how it is used, and what is on its way to it.
    Extent,
    /// What the extents of a medium share.
    Medium,
}

impl Order {
    /// True for what is correct by itself, one call after the other: a stretch may lock it several
    /// times.
    const fn is_of_object(self) -> bool {
        matches!(self, Self::Extent | Self::Medium)
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

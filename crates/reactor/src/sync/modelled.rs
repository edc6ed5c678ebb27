//! Flags as loom can check them. Also stands in for rtrb and for an eventfd, which loom does not
//! see into: the same calls, with the same memory orders.

use loom::cell::UnsafeCell;
use loom::sync::atomic::{self, AtomicUsize, Ordering};
use loom::sync::{Condvar, Mutex};
use std::cell::Cell;
use std::io;
use std::os::fd::RawFd;
use std::sync::{Arc, PoisonError};

/// A flag of which all stores are in one order.
///
/// loom keeps the order of a store and of another thread's swap open where nothing else orders
/// them, even if the swap has read the value before that store. A load could then miss a store that
/// happens before it. So a store is a swap here. It is in order with all others, as it is in fact;
/// but it also carries on what an earlier store has released.
#[derive(Debug)]
pub(crate) struct AtomicBool(atomic::AtomicBool);

impl AtomicBool {
    pub(crate) fn new(value: bool) -> Self {
        Self(atomic::AtomicBool::new(value))
    }

    pub(crate) fn load(&self, order: Ordering) -> bool {
        self.0.load(order)
    }

    pub(crate) fn store(&self, value: bool, order: Ordering) {
        self.0.swap(value, order);
    }

    pub(crate) fn swap(&self, value: bool, order: Ordering) -> bool {
        self.0.swap(value, order)
    }
}

impl Default for AtomicBool {
    fn default() -> Self {
        Self::new(false)
    }
}

/// As [`rtrb::PushError`].
pub(crate) enum PushError<T> {
    Full(T),
}

/// As [`rtrb::RingBuffer`].
pub(crate) struct RingBuffer<T> {
    head: AtomicUsize,
    tail: AtomicUsize,
    is_abandoned: atomic::AtomicBool,
    slots: Vec<Slot<T>>,
}

/// A place for a message. The lock is one that loom does not know, so it orders nothing in the
/// model; loom reports accesses that nothing else orders.
struct Slot<T>(std::sync::Mutex<(UnsafeCell<()>, Option<T>)>);

impl<T> Slot<T> {
    fn replace(&self, message: Option<T>) -> Option<T> {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        slot.0.with_mut(|_| ());
        std::mem::replace(&mut slot.1, message)
    }
}

impl<T> RingBuffer<T> {
    #[expect(clippy::new_ret_no_self, reason = "that of rtrb is so")]
    pub(crate) fn new(capacity: usize) -> (Producer<T>, Consumer<T>) {
        let slot = |_| Slot(std::sync::Mutex::new((UnsafeCell::new(()), None)));
        let ring = Arc::new(Self {
            head: AtomicUsize::new(0),
            tail: AtomicUsize::new(0),
            is_abandoned: atomic::AtomicBool::new(false),
            slots: (0..capacity).map(slot).collect(),
        });
        let end = || End(ring.clone());
        let producer = Producer { end: end(), head: Cell::new(0), tail: Cell::new(0) };
        (producer, Consumer { end: end(), head: Cell::new(0), tail: Cell::new(0) })
    }

    fn slot(&self, at: usize) -> &Slot<T> {
        &self.slots[at % self.slots.len()]
    }
}

/// What either end has of a ring. The other sees when it is gone.
struct End<T>(Arc<RingBuffer<T>>);

impl<T> Drop for End<T> {
    fn drop(&mut self) {
        self.0.is_abandoned.fetch_or(true, Ordering::Release);
    }
}

/// As [`rtrb::Producer`].
pub(crate) struct Producer<T> {
    end: End<T>,
    head: Cell<usize>,
    tail: Cell<usize>,
}

impl<T> Producer<T> {
    pub(crate) fn is_abandoned(&self) -> bool {
        self.end.0.is_abandoned.load(Ordering::Acquire)
    }

    pub(crate) fn slots(&self) -> usize {
        self.head.set(self.end.0.head.load(Ordering::Acquire));
        self.end.0.slots.len() - (self.tail.get() - self.head.get())
    }

    pub(crate) fn is_full(&self) -> bool {
        let is_full = self.tail.get() - self.head.get() == self.end.0.slots.len();
        is_full && self.slots() == 0
    }

    pub(crate) fn push(&mut self, message: T) -> Result<(), PushError<T>> {
        if self.is_full() {
            return Err(PushError::Full(message));
        }
        let tail = self.tail.get();
        let before = self.end.0.slot(tail).replace(Some(message));
        assert!(before.is_none(), "a slot that has been read is filled");
        self.end.0.tail.store(tail + 1, Ordering::Release);
        self.tail.set(tail + 1);
        Ok(())
    }
}

/// As [`rtrb::Consumer`].
pub(crate) struct Consumer<T> {
    end: End<T>,
    head: Cell<usize>,
    tail: Cell<usize>,
}

impl<T> Consumer<T> {
    pub(crate) fn is_abandoned(&self) -> bool {
        self.end.0.is_abandoned.load(Ordering::Acquire)
    }

    pub(crate) fn slots(&self) -> usize {
        self.tail.set(self.end.0.tail.load(Ordering::Acquire));
        self.tail.get() - self.head.get()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tail.get() == self.head.get() && self.slots() == 0
    }

    pub(crate) fn pop(&mut self) -> Result<T, ()> {
        if self.is_empty() {
            return Err(());
        }
        let head = self.head.get();
        let message = self.end.0.slot(head).replace(None).expect("it was filled");
        self.end.0.head.store(head + 1, Ordering::Release);
        self.head.set(head + 1);
        Ok(message)
    }
}

/// As an eventfd of the reactor's own ring: what was written is there until it is cleared, and lets
/// the reactor's sleep end.
#[derive(Debug)]
pub(crate) struct Event {
    is_set: Mutex<bool>,
    changed: Condvar,
}

impl Event {
    #[expect(clippy::unnecessary_wraps, reason = "an eventfd may not be had")]
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { is_set: Mutex::new(false), changed: Condvar::new() })
    }

    pub(crate) fn set(&self) {
        *self.is_set() = true;
        self.changed.notify_one();
    }

    /// Returns whether it was set.
    pub(crate) fn clear(&self) -> bool {
        std::mem::take(&mut *self.is_set())
    }

    /// No ring watches it.
    #[expect(clippy::unused_self, reason = "an eventfd has a descriptor")]
    pub(crate) const fn descriptor(&self) -> RawFd {
        -1
    }

    /// Sleeps until it is set.
    #[cfg(test)]
    pub(crate) fn wait(&self) {
        let mut is_set = self.is_set();
        while !*is_set {
            is_set = self.changed.wait(is_set).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn is_set(&self) -> loom::sync::MutexGuard<'_, bool> {
        self.is_set.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

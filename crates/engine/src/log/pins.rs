//! Which extents have readers, so that the cleaner does not reset them.

use crate::sync::{AtomicU32, Mutex, MutexGuard};
use clock::TaskId;
use media::{ExtentId, Shape};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

/// The pins of each extent, and the cleaner while it waits for the last one.
///
/// A task pins an extent in the stretch in which the index leads it there or in which it appends to
/// it, or while the extent is pinned already, or while the whole log is locked. So the cleaner
/// finds each pin that there will be: it has been in the lanes of all live records of its victim,
/// and each write that made a record dead was in its lane before.
#[derive(Debug)]
pub(crate) struct Pins {
    extents: Vec<AtomicU32>,
    /// The extent, plus 1, whose last reader the cleaner waits for; 0 for none.
    awaited: AtomicU32,
    cleaner: Mutex<Option<TaskId>>,
}

impl Pins {
    pub(crate) fn new(shape: &Shape) -> Self {
        Self {
            extents: (0..shape.extents).map(|_| AtomicU32::new(0)).collect(),
            awaited: AtomicU32::new(0),
            cleaner: Mutex::default(),
        }
    }

    /// Keeps `extent` from being reset.
    #[inline]
    pub(crate) fn add(&self, extent: ExtentId) {
        self.of(extent).fetch_add(1, Ordering::SeqCst);
    }

    /// Takes one pin off an extent, and wakes the cleaner if it waits for that.
    #[inline]
    pub(crate) fn remove(&self, extent: ExtentId) {
        let before = self.of(extent).fetch_sub(1, Ordering::SeqCst);
        assert!(before > 0, "each pin is taken off once");
        // In the one order of these operations either this finds the cleaner, or the cleaner finds
        // the pin gone: see `await_last`.
        if before == 1 && self.awaited.load(Ordering::SeqCst) == extent.0 + 1 {
            self.wake_cleaner();
        }
    }

    /// Returns whether a reader is in `extent`.
    #[inline]
    pub(crate) fn has(&self, extent: ExtentId) -> bool {
        self.of(extent).load(Ordering::SeqCst) > 0
    }

    /// Returns whether a reader is in any extent.
    pub(crate) fn has_any(&self) -> bool {
        self.extents.iter().any(|pins| pins.load(Ordering::SeqCst) > 0)
    }

    /// Wakes the current task, the cleaner, when the last reader has left `extent`. Returns false
    /// if there is none.
    pub(crate) fn await_last(&self, extent: ExtentId) -> bool {
        let mut cleaner = self.cleaner();
        self.awaited.store(extent.0 + 1, Ordering::SeqCst);
        let is_pinned = self.has(extent);
        if is_pinned {
            *cleaner = Some(clock::current());
        } else {
            self.awaited.store(0, Ordering::SeqCst);
        }
        is_pinned
    }

    fn wake_cleaner(&self) {
        let task = {
            let mut cleaner = self.cleaner();
            self.awaited.store(0, Ordering::SeqCst);
            cleaner.take()
        };
        task.into_iter().for_each(clock::wake);
    }

    #[inline]
    fn of(&self, extent: ExtentId) -> &AtomicU32 {
        &self.extents[extent.0 as usize]
    }

    fn cleaner(&self) -> MutexGuard<'_, Option<TaskId>> {
        self.cleaner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

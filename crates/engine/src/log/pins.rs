//! Which extents are in use, so that the cleaner does not reset them.

use crate::sync::{Apart, AtomicBool, AtomicU32, AtomicU64, Mutex, MutexGuard};
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
    /// By extent: all pins in the lower half, and those of records that may have to be undone in
    /// the upper half too.
    extents: Vec<Apart<AtomicU64>>,
    /// By extent: whether the cleaner has it as a victim. It changes while the whole log is locked,
    /// so it is read under the lock of a writer.
    victims: Vec<AtomicBool>,
    /// The extent, plus 1, whose last pin the cleaner waits for; 0 for none.
    awaited: AtomicU32,
    cleaner: Mutex<Option<TaskId>>,
}

/// What pins an extent, and what that counts.
#[derive(Clone, Copy, Debug)]
#[repr(u64)]
pub(crate) enum PinOf {
    /// A task that reads it, or waits for its pages.
    Reader = 1,
    /// A record that may have to be undone.
    Revocable = (1 << u32::BITS) + 1,
}

impl Pins {
    pub(crate) fn new(shape: &Shape) -> Self {
        Self {
            extents: (0..shape.extents).map(|_| Apart(AtomicU64::new(0))).collect(),
            victims: (0..shape.extents).map(|_| AtomicBool::new(false)).collect(),
            awaited: AtomicU32::new(0),
            cleaner: Mutex::default(),
        }
    }

    /// Keeps `extent` from being reset.
    #[inline]
    pub(crate) fn add(&self, extent: ExtentId, of: PinOf) {
        self.of(extent).fetch_add(of as u64, Ordering::SeqCst);
    }

    /// Takes one pin off an extent, and wakes the cleaner if it waits for that.
    #[inline]
    pub(crate) fn remove(&self, extent: ExtentId, of: PinOf) {
        let before = self.of(extent).fetch_sub(of as u64, Ordering::SeqCst);
        assert!(before >= of as u64, "each pin is taken off once");
        // In the one order of these operations either this finds the cleaner, or the cleaner finds
        // the pin gone: see `await_last`.
        if before == of as u64 && self.awaited.load(Ordering::SeqCst) == extent.0 + 1 {
            self.wake_cleaner();
        }
    }

    /// Returns whether `extent` is pinned.
    #[inline]
    pub(crate) fn has(&self, extent: ExtentId) -> bool {
        self.of(extent).load(Ordering::SeqCst) > 0
    }

    /// Returns whether the cleaner has `extent` as a victim.
    #[inline]
    pub(crate) fn is_victim(&self, extent: ExtentId) -> bool {
        self.victims[extent.0 as usize].load(Ordering::Relaxed)
    }

    /// Sets what [`Self::is_victim`] returns.
    pub(super) fn set_victim(&self, extent: ExtentId, is_victim: bool) {
        self.victims[extent.0 as usize].store(is_victim, Ordering::Relaxed);
    }

    /// Returns whether any extent is pinned.
    pub(crate) fn has_any(&self) -> bool {
        self.extents.iter().any(|pins| pins.load(Ordering::SeqCst) > 0)
    }

    /// Returns whether records of `extent` may have to be undone.
    pub(crate) fn has_revocable(&self, extent: ExtentId) -> bool {
        self.of(extent).load(Ordering::SeqCst) >= PinOf::Revocable as u64
    }

    /// Returns whether any record may have to be undone.
    pub(crate) fn has_any_revocable(&self) -> bool {
        self.extents.iter().any(|pins| pins.load(Ordering::SeqCst) >= PinOf::Revocable as u64)
    }

    /// Wakes the current task, the cleaner, when the last pin is taken off `extent`. Returns false
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
    fn of(&self, extent: ExtentId) -> &AtomicU64 {
        &self.extents[extent.0 as usize]
    }

    fn cleaner(&self) -> MutexGuard<'_, Option<TaskId>> {
        self.cleaner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! Work for the cleaner that it has not been woken for yet.

use crate::extent::Extent;
use crate::sync::AtomicBool;
use std::sync::atomic::Ordering;

/// See the module's documentation.
///
/// It is noted while the state of the log is locked, and read by each store without a lock.
// It shares no line of the processor's cache with what changes more often.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct CleaningDue {
    /// Free extents may be few: one was opened since they were last counted, or they are.
    may_be_low: AtomicBool,
    /// An extent is to be cleaned before others.
    is_urgent: AtomicBool,
    /// The medium is memory: a dead extent is best reset at once, because its space serves others.
    shares_space: bool,
}

impl CleaningDue {
    pub(crate) fn new(shares_space: bool) -> Self {
        let (may_be_low, is_urgent) = (AtomicBool::new(true), AtomicBool::new(false));
        Self { may_be_low, is_urgent, shares_space }
    }

    /// Returns whether there may be such work.
    #[inline]
    pub(crate) fn is_any(&self) -> bool {
        self.may_be_low() || self.is_urgent.load(Ordering::Relaxed)
    }

    /// Notes that free extents have become fewer, or are about to.
    pub(crate) fn note_fewer(&self) {
        self.note_low(true);
    }

    /// Notes that an extent of hosts was opened. In memory others may be dead by now. That is known
    /// once all that writers have counted is added, which the cleaner does.
    pub(crate) fn note_opened(&self) {
        if self.shares_space {
            self.note_urgent();
        }
        self.note_fewer();
    }

    #[inline]
    pub(crate) fn may_be_low(&self) -> bool {
        self.may_be_low.load(Ordering::Relaxed)
    }

    /// Notes whether free extents are few.
    pub(crate) fn note_low(&self, is_low: bool) {
        if self.may_be_low() != is_low {
            self.may_be_low.store(is_low, Ordering::Relaxed);
        }
    }

    fn note_urgent(&self) {
        // With what has made it urgent, for the store that takes it.
        self.is_urgent.store(true, Ordering::Release);
    }

    /// Notes that a value of `extent` is dead.
    #[inline]
    pub(crate) fn note_dead_value(&self, extent: &Extent) {
        if self.shares_space && extent.is_sealed() && extent.is_dead() {
            self.note_urgent();
        }
    }

    /// Notes that all pages of `extent` have landed.
    #[inline]
    pub(crate) fn note_landed(&self, extent: &Extent) {
        if extent.has_lost {
            self.note_urgent();
        }
    }

    /// Returns whether an extent is to be cleaned before others, and takes the note away.
    pub(crate) fn take_urgent(&self) -> bool {
        self.is_urgent.load(Ordering::Relaxed) && self.is_urgent.swap(false, Ordering::Acquire)
    }
}

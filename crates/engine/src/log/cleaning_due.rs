//! Work for the cleaner that it has not seen yet.

use crate::extent::Extent;
use crate::sync::AtomicBool;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct CleaningDue {
    /// Free extents may be few: one was opened since they were last counted, or they are.
    may_be_low: bool,
    /// An extent is to be cleaned before others.
    is_urgent: bool,
    /// The medium is memory: a dead extent is best reset at once, because its space serves others.
    shares_space: bool,
    /// One of the first two: read without a lock.
    is_any: Arc<AtomicBool>,
}

impl CleaningDue {
    pub(crate) fn new(shares_space: bool) -> Self {
        let is_any = Arc::new(AtomicBool::new(true));
        Self { may_be_low: true, is_urgent: false, shares_space, is_any }
    }

    /// Returns what says whether there is such work.
    pub(crate) fn is_any(&self) -> Arc<AtomicBool> {
        self.is_any.clone()
    }

    fn note_any(&self) {
        self.is_any.store(self.may_be_low || self.is_urgent, Ordering::Relaxed);
    }

    /// Notes that free extents have become fewer, or are about to.
    pub(crate) fn note_fewer(&mut self) {
        self.may_be_low = true;
        self.note_any();
    }

    /// Notes that an extent of hosts was opened. In memory others may be dead by now. That is known
    /// once all that writers have counted is added, which the cleaner does.
    pub(crate) fn note_opened(&mut self) {
        self.is_urgent |= self.shares_space;
        self.note_fewer();
    }

    #[inline]
    pub(crate) const fn may_be_low(&self) -> bool {
        self.may_be_low
    }

    /// Notes whether free extents are few.
    pub(crate) fn note_low(&mut self, is_low: bool) {
        self.may_be_low = is_low;
        self.note_any();
    }

    /// Notes that a value of `extent` is dead.
    #[inline]
    pub(crate) fn note_dead_value(&mut self, extent: &Extent) {
        if self.shares_space && extent.is_sealed() && extent.is_dead() {
            self.is_urgent = true;
            self.note_any();
        }
    }

    /// Notes that all pages of `extent` have landed.
    #[inline]
    pub(crate) fn note_landed(&mut self, extent: &Extent) {
        if extent.has_lost {
            self.is_urgent = true;
            self.note_any();
        }
    }

    /// Returns true when the cleaner is to be woken.
    #[inline]
    pub(crate) fn take(&mut self) -> bool {
        let is_any = std::mem::take(&mut self.is_urgent) || self.may_be_low;
        self.note_any();
        is_any
    }
}

//! Work for the cleaner that it has not seen yet.

use crate::extent::Extent;

/// See the module's documentation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CleaningDue {
    /// Free extents may be few: one was opened since they were last counted, or they are.
    may_be_low: bool,
    /// An extent is to be cleaned before others.
    is_urgent: bool,
    /// The medium is memory: a dead extent is best reset at once, because its space serves others.
    shares_space: bool,
}

impl CleaningDue {
    pub(crate) const fn new(shares_space: bool) -> Self {
        Self { may_be_low: true, is_urgent: false, shares_space }
    }

    /// Notes that free extents have become fewer, or are about to.
    pub(crate) fn note_fewer(&mut self) {
        self.may_be_low = true;
    }

    #[inline]
    pub(crate) const fn may_be_low(self) -> bool {
        self.may_be_low
    }

    /// Notes whether free extents are few.
    pub(crate) fn note_low(&mut self, is_low: bool) {
        self.may_be_low = is_low;
    }

    /// Notes that a value of `extent` is dead.
    #[inline]
    pub(crate) fn note_dead_value(&mut self, extent: &Extent) {
        self.is_urgent |= self.shares_space && extent.is_sealed() && extent.is_dead();
    }

    /// Notes that a page of `extent` has landed.
    #[inline]
    pub(crate) fn note_landed(&mut self, extent: &Extent) {
        self.is_urgent |= extent.has_lost && extent.has_landed();
    }

    /// Returns true when the cleaner is to be woken.
    #[inline]
    pub(crate) fn take(&mut self) -> bool {
        std::mem::take(&mut self.is_urgent) || self.may_be_low
    }
}

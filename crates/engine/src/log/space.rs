//! Extents that hosts' records do not get: those that are being erased, and those kept for tables.

use super::room::RESERVED_EXTENTS;
use media::{ExtentId, Label, Stream};
use std::collections::VecDeque;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Space {
    /// Extents that are out of use and not erased yet.
    erasing: Vec<(ExtentId, Label)>,
    /// Those of them that a disk could not erase, in the order of the next tries: it may be able to
    /// later.
    failed: VecDeque<ExtentId>,
    /// Extents that are kept for the index's table pages.
    tables_kept: u32,
    /// Extents that hold table pages.
    tables_used: u32,
    /// Of the extents to be kept for table pages, those that hold records until the cleaner has
    /// freed others: see [`Self::owe`].
    tables_owed: u32,
}

impl Space {
    /// Begins with `tables_used` extents that hold table pages.
    pub(crate) const fn new(tables_used: u32) -> Self {
        Self {
            erasing: Vec::new(),
            failed: VecDeque::new(),
            tables_kept: 0,
            tables_used,
            tables_owed: 0,
        }
    }

    /// Keeps this many extents for table pages.
    pub(crate) fn keep(&mut self, extents: u32) {
        self.tables_kept = extents;
    }

    /// Leaves the cleaner an extent to copy to, where records take extents that are kept for table
    /// pages: the store was filled by an index that keeps fewer. The index gets its extents back
    /// once the cleaner has its reserve, before hosts open an extent.
    pub(crate) fn owe(&mut self, free: u32) {
        self.tables_owed = self.unused().saturating_add(1).saturating_sub(free);
    }

    /// Gives the index extents back as far as the cleaner has its reserve. Returns false when none
    /// were owed.
    pub(crate) fn pay(&mut self, free: u32) -> bool {
        let owes = self.tables_owed > 0;
        if owes {
            let wanted = self.unused().saturating_add(RESERVED_EXTENTS);
            self.tables_owed = self.tables_owed.min(wanted.saturating_sub(free));
        }
        owes
    }

    /// Returns how many of the extents kept for table pages are unused, without those owed.
    pub(crate) fn kept(&self) -> u32 {
        self.unused().saturating_sub(self.tables_owed)
    }

    /// Returns the same with those owed. An extent that is being erased is not free yet.
    fn unused(&self) -> u32 {
        let erasing = self.erasing.iter().filter(|(_, label)| label.stream == Stream::Index);
        let erasing = u32::try_from(erasing.count()).expect("counted in 32 bits");
        self.tables_kept.saturating_sub(self.tables_used + erasing)
    }

    /// Counts an extent that `stream` has opened.
    pub(crate) fn open(&mut self, stream: Stream) {
        self.tables_used += u32::from(stream == Stream::Index);
    }

    /// Notes that an extent is out of use.
    pub(crate) fn forget(&mut self, id: ExtentId, label: Label) {
        let used = u32::from(label.stream == Stream::Index);
        assert!(self.tables_used >= used, "each extent of table pages is counted");
        self.tables_used -= used;
        self.erasing.push((id, label));
    }

    /// Notes that an extent is erased.
    pub(crate) fn erased(&mut self, extent: ExtentId) {
        let before = self.erasing.len();
        self.erasing.retain(|(id, _)| *id != extent);
        assert!(self.erasing.len() < before, "an extent is erased once it is out of use");
    }

    /// Notes that a disk could not erase an extent.
    pub(crate) fn not_erased(&mut self, extent: ExtentId) {
        let is_out_of_use = self.erasing.iter().any(|(id, _)| *id == extent);
        assert!(is_out_of_use, "an extent fails to be erased once it is out of use");
        self.failed.push_back(extent);
    }

    /// Returns the next extent that a disk could not erase, for another try. One that fails again
    /// is tried after all others.
    pub(crate) fn next_failed(&mut self) -> Option<ExtentId> {
        self.failed.pop_front()
    }

    /// Returns the extents that are out of use and not erased yet.
    pub(crate) fn erasing(&self) -> &[(ExtentId, Label)] {
        &self.erasing
    }

    pub(crate) const fn tables_used(&self) -> u32 {
        self.tables_used
    }

    pub(crate) const fn owes(&self) -> bool {
        self.tables_owed > 0
    }

    /// Takes over what a saved state kept.
    pub(crate) fn restore(&mut self, erasing: Vec<(ExtentId, Label)>, tables_used: u32) {
        (self.erasing, self.tables_used) = (erasing, tables_used);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extent_that_can_never_be_erased_keeps_no_other_from_being_tried() {
        let label = Label { stream: Stream::Host, epoch: 0 };
        let mut space = Space::new(0);
        for extent in [1, 2].map(ExtentId) {
            space.forget(extent, label);
            space.not_erased(extent);
        }
        assert_eq!(space.next_failed(), Some(ExtentId(1)));
        space.not_erased(ExtentId(1));
        assert_eq!(space.next_failed(), Some(ExtentId(2)));
        space.erased(ExtentId(2));
        assert_eq!(space.next_failed(), Some(ExtentId(1)));
        assert_eq!((space.next_failed(), space.erasing()), (None, &[(ExtentId(1), label)][..]));
    }
}

//! Which records of the log are in the index while a store is being opened.

use crate::format::address::Address;
use media::{ExtentId, PageId};
use std::collections::BTreeSet;

/// The records of the log that have been entered into the index while the store is being opened.
#[derive(Debug, Default)]
pub(crate) struct Entered {
    /// The store is opened by a checkpoint. Extents that it knew may have been reset since, so its
    /// table pages cannot be made again.
    pub(crate) has_checkpoint: bool,
    /// Listings of extents with a summary are kept too.
    pub(crate) keeps_all: bool,
    extents: BTreeSet<ExtentId>,
    /// The extent that is being entered, and which of its records have been.
    next: Option<ExtentId>,
    records: BTreeSet<Address>,
    /// Pages that could not be read when they were to be entered.
    lost: BTreeSet<PageId>,
    /// Some entries could not be made again: the index is incomplete, and opening is tried in
    /// another way.
    pub(crate) is_damaged: bool,
}

impl Entered {
    /// Begins to enter an extent, without the pages in `lost`.
    pub(crate) fn begin(&mut self, extent: ExtentId, lost: &[PageId]) {
        self.next = Some(extent);
        self.lost.extend(lost);
    }

    pub(crate) fn note(&mut self, record: Address) {
        self.records.insert(record);
    }

    pub(crate) fn end(&mut self) {
        self.extents.extend(self.next.take());
        self.records.clear();
    }

    /// Notes that a page of the index is lost. True when it cannot be made again.
    pub(crate) fn note_page_lost(&mut self) -> bool {
        self.is_damaged |= self.has_checkpoint;
        self.has_checkpoint
    }

    /// Notes pages that cannot be read. The index is damaged if records on them were entered.
    pub(crate) fn note_lost(&mut self, pages: &[PageId]) {
        self.is_damaged |= !pages.iter().all(|page| self.lost.contains(page));
    }

    pub(crate) fn may_have(&self, extent: ExtentId) -> bool {
        self.next == Some(extent) || self.extents.contains(&extent)
    }

    pub(crate) fn has(&self, extent: ExtentId, record: Address) -> bool {
        self.extents.contains(&extent) || self.records.contains(&record)
    }
}

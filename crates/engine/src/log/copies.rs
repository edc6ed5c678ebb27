//! The cleaner's copies of victims, and the tombstones that may have to hide them.

use crate::extent::Live;
use crate::format::address::Address;
use crate::format::record::Sequence;
use crate::key_space::TableId;
use base::Key;
use media::ExtentId;
use std::collections::BTreeMap;

/// The place of the cleaner's stream while it copies, and the tombstones in the index.
#[derive(Debug)]
pub(crate) struct Copies {
    /// When the cleaner last began to copy.
    since: Sequence,
    /// The place of the cleaner's stream when it began to copy.
    copying: Option<Copying>,
    /// Tombstones that the index holds, by their addresses.
    deleting: BTreeMap<Address, (TableId, Key)>,
    /// Tombstones that it held when the cleaner began to copy, or later, and does not hold now.
    deleted: Vec<(TableId, Key, Address)>,
}

/// The state of the cleaner's open extent, at the start of a page, when the cleaner begins to copy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copying {
    /// `None` when none is open.
    pub(crate) open: Option<(ExtentId, u32)>,
    /// The tombstones in it.
    pub(crate) tombstones: Live,
}

impl Copies {
    pub(crate) fn new(since: Sequence) -> Self {
        Self { since, copying: None, deleting: BTreeMap::new(), deleted: Vec::new() }
    }

    /// Returns when the cleaner last began to copy.
    pub(crate) const fn since(&self) -> Sequence {
        self.since
    }

    /// Returns the place of the cleaner's stream when copying began; `None` when it does not copy.
    pub(crate) const fn copying(&self) -> Option<Copying> {
        self.copying
    }

    /// Begins copying: the cleaner has taken victims.
    pub(crate) fn begin(&mut self, since: Sequence, copying: Copying) {
        assert!(self.copying.is_none(), "victims are copied one after the other, or together");
        assert!(since > self.since, "victims are taken later than those before");
        (self.since, self.copying) = (since, Some(copying));
    }

    /// Ends copying: all copies are indexed or dead.
    pub(crate) fn end(&mut self) {
        assert!(self.copying.is_some(), "copying ends once each time");
        self.copying = None;
        self.deleted.clear();
    }

    /// Notes a tombstone that the index is about to hold, or holds.
    pub(crate) fn begin_deleting(&mut self, at: Address, table: TableId, key: Key) {
        self.deleting.insert(at, (table, key));
    }

    /// Notes that this tombstone has left the index. While the cleaner copies, a copy of the
    /// deleted record may exist, so the tombstone is kept in `deleted`.
    pub(crate) fn end_deleting(&mut self, at: Address) {
        let ended = self.deleting.remove(&at);
        let ended = ended.filter(|_| self.copying.is_some());
        self.deleted.extend(ended.map(|(table, key)| (table, key, at)));
    }

    /// Forgets a tombstone whose delete was undone.
    pub(crate) fn undo_deleting(&mut self, at: Address) {
        self.deleting.remove(&at);
    }

    pub(crate) fn is_deleting(&self, at: Address) -> bool {
        self.deleting.contains_key(&at)
    }

    /// Returns the tombstones that the index holds.
    pub(crate) const fn deleting(&self) -> &BTreeMap<Address, (TableId, Key)> {
        &self.deleting
    }

    /// Returns those that have left it since the cleaner began to copy.
    pub(crate) fn deleted(&self) -> &[(TableId, Key, Address)] {
        &self.deleted
    }

    /// Makes what a saved state kept.
    pub(crate) const fn restored(
        since: Sequence,
        deleting: BTreeMap<Address, (TableId, Key)>,
        deleted: Vec<(TableId, Key, Address)>,
    ) -> Self {
        Self { since, copying: None, deleting, deleted }
    }
}

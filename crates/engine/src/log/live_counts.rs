//! Counts of the records that live in all extents.

use crate::clean::expiring::Expiring;
use crate::extent::{Counted, Extent, Live};
use crate::key_space::TableId;

/// The sums over all extents.
#[derive(Debug, Default)]
pub(crate) struct LiveCounts {
    /// Live values of all tables.
    values: Live,
    /// All tombstones.
    tombstones: Live,
    /// The footprints of those that are known to be needless.
    needless_bytes: u64,
    /// The values that expire.
    pub(crate) expiring: Expiring,
}

impl LiveCounts {
    #[inline]
    pub(crate) const fn values(&self) -> Live {
        self.values
    }

    pub(crate) const fn tombstones(&self) -> Live {
        self.tombstones
    }

    /// Counts a new live value of `bytes` in `extent`, whose key has `key_len` bytes.
    #[inline]
    pub(crate) fn add_value(
        &mut self,
        extent: &mut Extent,
        table: TableId,
        key_len: usize,
        bytes: u64,
    ) {
        extent.count_value(table, key_len, bytes);
        self.values.add_value(key_len, bytes);
    }

    /// Counts a value of `bytes` in `extent` as dead; its key has `key_len` bytes.
    #[inline]
    pub(crate) fn remove_value(
        &mut self,
        extent: &mut Extent,
        table: TableId,
        key_len: usize,
        bytes: u64,
    ) {
        extent.uncount_value(table, key_len, bytes);
        self.values.remove_value(key_len, bytes);
    }

    /// Adds what a writer has counted of an extent.
    pub(crate) fn settle(&mut self, change: &Counted) {
        for (_, change) in change.values() {
            self.values.change(*change);
        }
        self.tombstones.change(change.tombstones);
    }

    /// Counts all values of `table` in `extent` as dead.
    pub(crate) fn remove_table(&mut self, extent: &mut Extent, table: TableId) {
        self.values.remove_all(extent.drop_table(table));
    }

    /// Counts a new tombstone of `bytes` in `extent`.
    pub(crate) fn add_tombstone(&mut self, extent: &mut Extent, bytes: u64) {
        extent.count_tombstone(bytes);
        self.tombstones.add(bytes);
    }

    /// Takes a tombstone of `bytes` in `extent` off: its delete was undone.
    pub(crate) fn remove_tombstone(&mut self, extent: &mut Extent, bytes: u64) {
        extent.uncount_tombstone(bytes);
        self.tombstones.remove(bytes);
    }

    /// Counts `bytes` of the tombstones as needless.
    pub(crate) fn add_needless(&mut self, bytes: u64) {
        self.needless_bytes += bytes;
        let is_part = self.needless_bytes <= self.tombstones.bytes;
        assert!(is_part, "needless tombstones are some of all tombstones");
    }

    /// Adds the counts of an extent that a checkpoint has restored.
    pub(crate) fn add_extent(&mut self, extent: &Extent) {
        for (_, live) in extent.values() {
            self.values.add_all(*live);
        }
        self.tombstones.add_all(extent.tombstones());
        self.add_needless(extent.needless_bytes());
    }

    /// Takes off the counts of an extent that is out of use. It has no live value.
    pub(crate) fn remove_extent(&mut self, extent: &Extent) {
        self.tombstones.remove_all(extent.tombstones());
        let is_part = self.needless_bytes >= extent.needless_bytes();
        assert!(is_part, "needless tombstones that are taken off were counted");
        self.needless_bytes -= extent.needless_bytes();
    }

    /// Returns the footprints of the tombstones that are known to be needless.
    pub(crate) const fn needless_bytes(&self) -> u64 {
        self.needless_bytes
    }

    /// Takes over the counts of a saved state.
    pub(crate) fn restore(&mut self, values: Live, tombstones: Live, needless_bytes: u64) {
        let is_part = needless_bytes <= tombstones.bytes;
        assert!(is_part, "saved needless tombstones are some of all tombstones");
        (self.values, self.tombstones) = (values, tombstones);
        self.needless_bytes = needless_bytes;
    }
}

//! What a writer has counted since all writers were last locked together.

use super::cleaning_due::CleaningDue;
use super::live_counts::LiveCounts;
use super::state::CountedValue;
use crate::extent::{Counted, Extents};
use crate::format::layout::Layout;
use media::ExtentId;

/// The counts that a writer has changed, of any extent. They are added to the extents under the
/// locks of all writers, so each writer counts behind its own lock alone.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// By extent.
    counts: Vec<Counted>,
    /// The extents whose counts have changed.
    changed: Vec<ExtentId>,
    /// The size of a record, by its header and its value, and its footprint.
    footprint: ((usize, u32), u64),
}

impl Tally {
    /// Returns the change of an extent's counts.
    #[inline]
    pub(crate) fn of(&mut self, id: ExtentId) -> &mut Counted {
        let at = id.0 as usize;
        if self.counts.len() <= at {
            self.counts.resize_with(at + 1, Counted::default);
        }
        let counted = &mut self.counts[at];
        if !counted.is_changed {
            counted.is_changed = true;
            self.changed.push(id);
        }
        counted
    }

    /// Returns the footprint of a record of this size. Records that follow each other often have
    /// the same, so the last result is kept. No record has a header of 0 bytes.
    #[inline]
    pub(crate) fn footprint(&mut self, layout: &Layout, size: (usize, u32)) -> u64 {
        if self.footprint.0 != size {
            self.footprint = (size, layout.footprint(size.0, size.1));
        }
        self.footprint.1
    }

    /// Counts a new live value, with the `sign` 1, or one as dead, with -1.
    #[inline]
    pub(crate) fn count(&mut self, value: &CountedValue, sign: i64) {
        let CountedValue { extent, table, key_len, bytes, .. } = *value;
        self.of(extent).values_of(table).add(sign, key_len, bytes);
    }

    /// Counts a new tombstone of `bytes`.
    pub(crate) fn add_tombstone(&mut self, extent: ExtentId, bytes: u64) {
        self.of(extent).tombstones.add(1, 0, bytes);
    }

    /// Takes over what another writer has counted.
    pub(crate) fn take(&mut self, other: &mut Self) {
        for id in other.changed.drain(..) {
            let change = std::mem::take(&mut other.counts[id.0 as usize]);
            self.of(id).add(&change);
        }
    }

    /// Adds all changes to the counts of the extents and to their sums, and forgets them.
    pub(crate) fn settle(
        &mut self,
        extents: &mut Extents,
        live: &mut LiveCounts,
        due: &CleaningDue,
    ) {
        for id in self.changed.drain(..) {
            let change = std::mem::take(&mut self.counts[id.0 as usize]);
            let extent = extents.get(id);
            extent.settle(&change);
            live.settle(&change);
            due.note_dead_value(extent);
        }
    }
}

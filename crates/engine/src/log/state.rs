//! The mutable state of the log.

use super::cleaning_due::CleaningDue;
use super::copies::{Copies, Copying};
use super::frontier::Frontiers;
use super::host_buffer::HostBuffer;
use super::live_counts::LiveCounts;
use super::recalls::Recalls;
use super::sealing::Sealing;
use super::space::Space;
use super::unlanded::UnlandedPages;
use crate::extent::Extents;
use crate::format::address::Address;
use crate::format::record::Sequence;
use crate::key_space::TableId;
use clock::UnixMillis;
use media::{ExtentId, Stream};

/// Never locked over an await.
pub(crate) struct State {
    pub(crate) extents: Extents,
    pub(crate) frontiers: Frontiers,
    pub(crate) sequence: Sequence,
    pub(crate) live: LiveCounts,
    pub(crate) unlanded: UnlandedPages,
    pub(crate) buffer: HostBuffer,
    pub(crate) copies: Copies,
    pub(crate) cleaning: CleaningDue,
    pub(crate) space: Space,
    pub(crate) sealing: Sealing,
    pub(crate) recalls: Recalls,
}

/// A value, as the counts of live values know it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CountedValue {
    /// The extent of `at`.
    pub(crate) extent: ExtentId,
    /// The address of its record.
    pub(crate) at: Address,
    pub(crate) table: TableId,
    pub(crate) key_len: usize,
    /// Its footprint.
    pub(crate) bytes: u64,
    pub(crate) expires: Option<UnixMillis>,
}

impl State {
    /// Makes the state of a log with these extents. On a medium in memory it `shares_space`.
    pub(crate) fn new(
        extents: Extents,
        sequence: Sequence,
        shares_space: bool,
        pages_per_extent: u32,
    ) -> Self {
        let tables = extents.iter().filter(|(_, extent)| extent.label.stream == Stream::Index);
        let tables_used = u32::try_from(tables.count()).expect("counted in 32 bits");
        Self {
            extents,
            frontiers: Frontiers::default(),
            sequence,
            live: LiveCounts::default(),
            unlanded: UnlandedPages::new(pages_per_extent),
            buffer: HostBuffer::default(),
            copies: Copies::new(sequence),
            cleaning: CleaningDue::new(shares_space),
            space: Space::new(tables_used),
            sealing: Sealing::default(),
            recalls: Recalls::default(),
        }
    }

    /// Returns the next sequence number.
    #[inline]
    pub(crate) fn next_sequence(&mut self) -> Sequence {
        self.sequence.0 += 1;
        self.sequence
    }

    /// Counts a new live value.
    #[inline]
    pub(crate) fn count_value(&mut self, value: CountedValue) {
        let CountedValue { extent, table, key_len, bytes, .. } = value;
        self.live.add_value(self.extents.get(extent), table, key_len, bytes);
        if let Some(date) = self.counted_date(value) {
            self.live.expiring.add(table, date);
        }
    }

    /// Counts a live value as dead.
    #[inline]
    pub(crate) fn uncount_value(&mut self, value: CountedValue) {
        let CountedValue { extent, table, key_len, bytes, .. } = value;
        let extent = self.extents.get(extent);
        self.live.remove_value(extent, table, key_len, bytes);
        self.cleaning.note_dead_value(extent);
        if let Some(date) = self.counted_date(value) {
            self.live.expiring.remove(table, date);
        }
    }

    /// Returns the value's date, if it has one and the dates of its extent are counted that far.
    #[inline]
    fn counted_date(&mut self, value: CountedValue) -> Option<UnixMillis> {
        let date = value.expires?;
        (self.extents.get(value.extent).expiring_until >= Some(value.at)).then_some(date)
    }

    /// Counts a new tombstone of `bytes` in `extent`.
    pub(crate) fn count_tombstone(&mut self, extent: ExtentId, bytes: u64) {
        self.live.add_tombstone(self.extents.get(extent), bytes);
    }

    /// Takes a tombstone of `bytes` in `extent` off the counts: its delete was undone.
    pub(crate) fn uncount_tombstone(&mut self, extent: ExtentId, bytes: u64) {
        self.live.remove_tombstone(self.extents.get(extent), bytes);
    }

    /// Notes a counted tombstone that cleaning may drop.
    pub(crate) fn note_needless(&mut self, address: Address, extent: ExtentId, bytes: u64) {
        self.extents.get(extent).note_needless(address, bytes);
        self.live.add_needless(bytes);
    }

    /// Counts all values of `table` as dead.
    pub(crate) fn uncount_table(&mut self, table: TableId) {
        for extent in self.extents.iter_mut() {
            self.live.remove_table(extent, table);
        }
        self.live.expiring.forget_table(table);
    }

    /// Takes `victim` for cleaning. Extents that the cleaner opens for it get the current sequence
    /// number as epoch: the copied records were live now, so a tombstone written later may delete a
    /// copy.
    pub(crate) fn begin_cleaning(&mut self, victim: ExtentId) {
        self.extents.get(victim).begin_cleaning();
        let since = self.next_sequence();
        let open = self.frontiers.of(Stream::Gc);
        let open = open.map(|frontier| (frontier.extent, frontier.page()));
        let tombstones = open.map(|(extent, _)| self.extents.get(extent).tombstones());
        let tombstones = tombstones.unwrap_or_default();
        self.copies.begin(since, Copying { open, tombstones });
    }

    /// Returns whether any record may have to be undone by its writer.
    pub(crate) fn may_take_back(&self) -> bool {
        self.extents.iter().any(|(_, extent)| extent.is_revocable())
    }

    /// Takes one pin off an extent, and wakes the cleaner if it waits for that.
    pub(crate) fn unpin(&mut self, id: ExtentId) {
        if let Some(cleaner) = self.extents.get(id).unpin() {
            clock::wake(cleaner);
        }
    }

    /// Takes an extent without needed records out of the log.
    pub(crate) fn forget(&mut self, id: ExtentId) {
        let extent = self.extents.remove(id);
        self.space.forget(id, extent.label);
        self.live.remove_extent(&extent);
    }
}

//! The state that all writers of the log share.

use super::cleaning_due::CleaningDue;
use super::copies::Copies;
use super::live_counts::LiveCounts;
use super::pins::Pins;
use super::recalls::Recalls;
use super::sealing::Sealing;
use super::space::Space;
use crate::extent::Extents;
use crate::format::address::Address;
use crate::format::record::Sequence;
use crate::key_space::TableId;
use clock::{TaskId, UnixMillis};
use media::{ExtentId, Stream};
use std::sync::Arc;

/// Counts and numbers are exact while all writers are locked too: see [`Whole`].
// Aligned so that the lock shares no line of the processor's cache with what is read without it.
#[repr(align(128))]
pub(crate) struct State {
    pub(crate) extents: Extents,
    pub(crate) pins: Arc<Pins>,
    /// No writer has given a record a later number.
    pub(crate) sequence: Sequence,
    pub(crate) live: LiveCounts,
    /// Tasks that wait until a page lands or a record is undone.
    pub(crate) undecided: Vec<TaskId>,
    pub(crate) copies: Copies,
    pub(crate) cleaning: Arc<CleaningDue>,
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
        pins: Arc<Pins>,
    ) -> Self {
        let tables = extents.iter().filter(|(_, extent)| extent.label.stream == Stream::Index);
        let tables_used = u32::try_from(tables.count()).expect("counted in 32 bits");
        Self {
            extents,
            pins,
            sequence,
            live: LiveCounts::default(),
            undecided: Vec::new(),
            copies: Copies::new(sequence),
            cleaning: Arc::new(CleaningDue::new(shares_space)),
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
        self.count_date(value);
    }

    /// Counts the date of a new live value, if it has one.
    pub(crate) fn count_date(&mut self, value: CountedValue) {
        if let Some(date) = self.counted_date(value) {
            self.live.expiring.add(value.table, date);
        }
    }

    /// Counts a live value as dead.
    #[inline]
    pub(crate) fn uncount_value(&mut self, value: CountedValue) {
        let CountedValue { extent, table, key_len, bytes, .. } = value;
        let extent = self.extents.get(extent);
        self.live.remove_value(extent, table, key_len, bytes);
        self.cleaning.note_dead_value(extent);
        self.uncount_date(value);
    }

    /// Takes the date of a value that is dead off, if it has one.
    pub(crate) fn uncount_date(&mut self, value: CountedValue) {
        if let Some(date) = self.counted_date(value) {
            self.live.expiring.remove(value.table, date);
        }
    }

    /// Returns the value's date, if it has one and the dates of its extent are counted that far.
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

    /// Takes an extent for cleaning.
    pub(crate) fn begin_cleaning(&mut self, id: ExtentId) {
        assert!(!self.pins.is_victim(id), "a victim is taken once");
        self.extents.get(id).begin_cleaning();
        self.pins.set_victim(id, true);
    }

    /// Puts a victim that was not reset back into use.
    pub(crate) fn give_back(&mut self, id: ExtentId) {
        assert!(self.pins.is_victim(id), "writers know each victim");
        self.extents.get(id).give_back();
        self.pins.set_victim(id, false);
    }

    /// Takes an extent without needed records out of the log.
    pub(crate) fn forget(&mut self, id: ExtentId) {
        assert!(!self.pins.has(id), "an extent is reset when nothing has it pinned");
        self.pins.set_victim(id, false);
        let extent = self.extents.remove(id);
        self.space.forget(id, extent.label);
        self.live.remove_extent(&extent);
    }
}

//! How many live values expire, and how many of them have.
//!
//! A value that has expired lies in the log until the cleaner meets it. The counts are in memory
//! alone. A checkpoint does not have them, so for extents that it restored they are made from the
//! extents' summaries when the caller asks for it: [`Store::count_expiring`].

use crate::address::Address;
use crate::clean::Record;
use crate::error::Error;
use crate::index::HashedKey;
use crate::key_space::{KeySpaceId, TableId};
use crate::log::State;
use crate::recover::Replay;
use crate::store::Store;
use clock::{Class, UnixMillis};
use media::{ExtentId, Stream};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Milliseconds that dates are rounded up to.
const TICK_MS: u64 = 100;

/// Records that are counted before other tasks have a turn.
const RECORDS_A_TURN: usize = 64;

/// Values of a table that expire.
#[derive(Debug, Default)]
struct OfTable {
    /// Those whose dates come after `until`, by date.
    waiting: BTreeMap<u64, u64>,
    /// Their number.
    waiting_count: u64,
    expired: u64,
    until: u64,
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct Expiring {
    tables: BTreeMap<TableId, OfTable>,
    /// Values that have expired since the store was opened.
    expired: u64,
}

/// Values of a key space that expire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpiringCounts {
    /// Those that have not expired.
    pub waiting: u64,
    /// Those that have.
    pub expired: u64,
}

impl Expiring {
    /// The table, with what has expired by now told apart.
    fn table(&mut self, table: TableId) -> &mut OfTable {
        let now = clock::unix_now().0 / TICK_MS;
        let of_table = self.tables.entry(table).or_default();
        while let Some(first) = of_table.waiting.first_entry().filter(|it| *it.key() <= now) {
            let count = first.remove();
            of_table.waiting_count -= count;
            of_table.expired += count;
            self.expired += count;
        }
        of_table.until = now.max(of_table.until);
        of_table
    }

    /// Counts a value.
    pub(crate) fn add(&mut self, table: TableId, date: UnixMillis) {
        let (of_table, tick) = (self.table(table), date.0.div_ceil(TICK_MS));
        if tick <= of_table.until {
            of_table.expired += 1;
        } else {
            *of_table.waiting.entry(tick).or_default() += 1;
            of_table.waiting_count += 1;
        }
    }

    /// Takes a value off. A value on a page that [`Store::count_expiring`] could not read was not
    /// counted.
    pub(crate) fn remove(&mut self, table: TableId, date: UnixMillis) {
        let (of_table, tick) = (self.table(table), date.0.div_ceil(TICK_MS));
        if tick <= of_table.until {
            of_table.expired = of_table.expired.saturating_sub(1);
            return;
        }
        let Some(count) = of_table.waiting.get_mut(&tick) else { return };
        *count -= 1;
        if *count == 0 {
            of_table.waiting.remove(&tick);
        }
        of_table.waiting_count -= 1;
    }

    /// All values of `table` are dead.
    pub(crate) fn forget_table(&mut self, table: TableId) {
        self.table(table);
        self.tables.remove(&table);
    }
}

impl State {
    /// Changes the counts by a value at `at` in `extent`, if it has a date and those of its extent
    /// are counted that far: `change` is [`Expiring::add`] or [`Expiring::remove`].
    pub(crate) fn count_expiring(
        &mut self,
        change: fn(&mut Expiring, TableId, UnixMillis),
        (extent, at): (ExtentId, Address),
        table: TableId,
        date: Option<UnixMillis>,
    ) {
        if let Some(date) = date
            && self.extents.get(extent).expiring_until >= Some(at)
        {
            change(&mut self.expiring, table, date);
        }
    }
}

impl Store {
    /// Live values of `space` that expire, counted up to 0.1 seconds late. Those that were there
    /// when the store was opened are left out before [`Self::count_expiring`] has counted them.
    pub fn expiring_in(&self, space: KeySpaceId) -> Result<ExpiringCounts, Error> {
        let table = self.table(space)?;
        let mut state = self.log.state();
        let of_table = state.expiring.table(table);
        Ok(ExpiringCounts { waiting: of_table.waiting_count, expired: of_table.expired })
    }

    /// Values that have expired since the store was opened.
    pub fn expired_since_opening(&self) -> u64 {
        let mut state = self.log.state();
        let tables: Vec<TableId> = state.expiring.tables.keys().copied().collect();
        for table in tables {
            state.expiring.table(table);
        }
        state.expiring.expired
    }

    /// Counts the values that expire in the next extent that a checkpoint has restored and that may
    /// have any: reads its summary. False when there is no such extent.
    pub async fn count_expiring(self: &Arc<Self>) -> bool {
        let Some(extent) = self.next_uncounted() else { return false };
        let Some(_pin) = self.log.pin_used(extent) else { return true };
        let (records, _) = self.records_from(Replay { extent, from: 0 }, Class::Gc).await;
        for records in records.chunks(RECORDS_A_TURN) {
            self.count_expiring_records(extent, records);
            clock::give_way().await;
        }
        self.log.state().extents.get(extent).expiring_until = Some(Address::MAX);
        true
    }

    /// Counts those of the next records of an extent that live and expire.
    fn count_expiring_records(&self, extent: ExtentId, records: &[Record]) {
        let mut state = self.log.state();
        for record in records {
            let (header, at) = (&record.header, record.address);
            let key = HashedKey::new(&header.key);
            if let Some(date) = header.expires
                && header.kind.is_value()
                && let Some(found) = self.index.lookup(header.table, key).at_once()
                && found.contains(&at)
            {
                state.expiring.add(header.table, date);
            }
            state.extents.get(extent).expiring_until = Some(at);
        }
    }

    /// The next extent whose values that expire are to be counted. An index that has to read the
    /// medium is not asked for them.
    fn next_uncounted(&self) -> Option<ExtentId> {
        if !self.index.is_by_hash() || self.index.table_extents(&self.log.shape) > 0 {
            return None;
        }
        let state = self.log.state();
        let may_expire = state.extents.iter().filter(|(_, extent)| {
            extent.label.stream != Stream::Index
                && extent.expiring_until.is_none()
                && extent.expires_first.is_some()
                && extent.is_cleanable()
        });
        may_expire.map(|(id, _)| id).next()
    }
}

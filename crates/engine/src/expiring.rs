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

/// Milliseconds that dates are rounded up to, at first.
const TICK_MS: u64 = 100;

/// Maximum dates of a table. With more, the tick of the table doubles: a host may store each key
/// with a date of its own.
const DATES_MAX: usize = 1 << 16;

/// Records that are counted before other tasks have a turn.
const RECORDS_A_TURN: usize = 64;

/// Values of a table that expire. Dates are in ticks.
#[derive(Debug)]
struct OfTable {
    /// Milliseconds of a tick.
    tick_ms: u64,
    /// Those whose dates come after `until`, by date.
    waiting: BTreeMap<u64, u64>,
    /// Their number.
    waiting_count: u64,
    expired: u64,
    until: u64,
}

impl OfTable {
    const EMPTY: Self =
        Self { tick_ms: TICK_MS, waiting: BTreeMap::new(), waiting_count: 0, expired: 0, until: 0 };

    fn tick(&self, date: UnixMillis) -> u64 {
        date.0.div_ceil(self.tick_ms)
    }

    /// Counts the values with dates up to `until` as expired. Returns the number of new ones.
    fn expire(&mut self, until: u64) -> u64 {
        let mut count = 0;
        while let Some(first) = self.waiting.first_entry().filter(|it| *it.key() <= until) {
            count += first.remove();
        }
        self.waiting_count -= count;
        self.expired += count;
        self.until = self.until.max(until);
        count
    }

    /// Doubles the tick while there are more than [`DATES_MAX`] dates. Returns the number of values
    /// that have expired by that.
    fn coarsen(&mut self) -> u64 {
        let mut count = 0;
        while self.waiting.len() > DATES_MAX {
            // The two halves of a new tick expire together: the second one early.
            count += self.expire(self.until.next_multiple_of(2));
            self.until /= 2;
            self.tick_ms *= 2;
            for (tick, count) in std::mem::take(&mut self.waiting) {
                *self.waiting.entry(tick.div_ceil(2)).or_default() += count;
            }
        }
        count
    }
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
        let of_table = self.tables.entry(table).or_insert(OfTable::EMPTY);
        self.expired += of_table.expire(clock::unix_now().0 / of_table.tick_ms);
        of_table
    }

    /// Counts a value.
    pub(crate) fn add(&mut self, table: TableId, date: UnixMillis) {
        let of_table = self.table(table);
        let tick = of_table.tick(date);
        if tick <= of_table.until {
            of_table.expired += 1;
            return;
        }
        *of_table.waiting.entry(tick).or_default() += 1;
        of_table.waiting_count += 1;
        let expired = of_table.coarsen();
        self.expired += expired;
    }

    /// Takes a value off. A value on a page that [`Store::count_expiring`] could not read was not
    /// counted.
    pub(crate) fn remove(&mut self, table: TableId, date: UnixMillis) {
        let of_table = self.table(table);
        let tick = of_table.tick(date);
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
    /// Live values of `space` that expire, counted up to a tick late: 0.1 seconds, or more where
    /// there are many dates ([`DATES_MAX`]). Those that were there when the store was opened are
    /// left out before [`Self::count_expiring`] has counted them.
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

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Nanos, Rng};
    use clock::{Stage, unix_now};
    use reactor::Reactor;

    const TABLE: TableId = TableId { space: KeySpaceId(1), generation: 0 };

    /// `count` dates, one each 0.1 seconds, in a random order.
    fn dates(count: u64, rng: &mut Rng) -> Vec<UnixMillis> {
        let now = unix_now().0;
        let date = |at: u64, rng: &mut Rng| UnixMillis(now + at * TICK_MS + rng.below(TICK_MS));
        let mut dates: Vec<_> = (0..count).map(|at| (rng.next_u64(), date(at, rng))).collect();
        dates.sort_unstable_by_key(|(order, _)| *order);
        dates.into_iter().map(|(_, date)| date).collect()
    }

    async fn pass(millis: u64) {
        clock::sleep(Nanos::from_millis(millis), Stage::Queue).await;
    }

    fn check(expiring: &mut Expiring, dates: &[UnixMillis]) {
        let of_table = expiring.table(TABLE);
        assert!(of_table.waiting.len() <= DATES_MAX);
        assert_eq!(of_table.waiting.values().sum::<u64>(), of_table.waiting_count);
        assert_eq!(of_table.waiting_count + of_table.expired, dates.len() as u64);
        let (now, tick) = (unix_now().0, of_table.tick_ms);
        let after = |millis| dates.iter().filter(|date| date.0 > millis).count() as u64;
        let possible = after(now + tick)..=after(now - tick);
        assert!(possible.contains(&of_table.waiting_count), "{possible:?}, tick {tick}");
    }

    #[test]
    fn many_dates_are_counted_in_bounded_memory_up_to_a_tick_early_or_late() {
        for seed in 0..4 {
            Reactor::new(None).run(async {
                let (mut rng, mut expiring) = (Rng::new(seed), Expiring::default());
                let dates = dates(5 * DATES_MAX as u64, &mut rng);
                for (at, date) in dates.iter().enumerate() {
                    let of_table = expiring.table(TABLE);
                    let tick = of_table.tick_ms;
                    // The tick doubles at even or at odd times.
                    if of_table.waiting.len() == DATES_MAX && of_table.until % 2 != seed % 2 {
                        pass(tick).await;
                    }
                    expiring.add(TABLE, *date);
                    if expiring.table(TABLE).tick_ms > tick {
                        // Each is found where it was counted before the tick doubled.
                        dates[..=at].iter().for_each(|date| expiring.remove(TABLE, *date));
                        check(&mut expiring, &[]);
                        dates[..=at].iter().for_each(|date| expiring.add(TABLE, *date));
                    }
                    if at % 1_000 == 0 {
                        pass(rng.below(10_000)).await;
                    }
                    if at % 10_000 == 0 {
                        check(&mut expiring, &dates[..=at]);
                    }
                }
                assert_eq!(expiring.table(TABLE).tick_ms, 8 * TICK_MS);
                assert!(expiring.expired <= expiring.table(TABLE).expired);
            });
        }
    }
}

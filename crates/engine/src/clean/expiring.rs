//! How many live values expire, and how many of them have.
//!
//! A value that has expired lies in the log until the cleaner meets it. The counts are in memory
//! alone. A checkpoint does not have them, so for extents that it restored they are made from the
//! extents' summaries when the caller asks for it: [`Store::count_expiring`].

use crate::key_space::TableId;
use clock::UnixMillis;
use std::collections::BTreeMap;

/// Milliseconds that dates are rounded up to, at first.
const TICK_MS: u64 = 100;

/// Maximum dates of a table. With more, the tick of the table doubles: a host may store each key
/// with a date of its own.
const DATES_MAX: usize = 1 << 16;

/// Values of a table that expire. Dates are in ticks.
#[derive(Debug)]
struct OfTable {
    /// Milliseconds of a tick.
    tick_ms: u64,
    /// Number of values by date, for dates after `until`.
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
        assert!(self.waiting_count >= count, "values that expire were counted as waiting");
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
    /// Returns the table, after counting the values that have expired by now.
    fn table(&mut self, table: TableId) -> &mut OfTable {
        let of_table = self.tables.entry(table).or_insert(OfTable::EMPTY);
        self.expired += of_table.expire(clock::unix_now().0 / of_table.tick_ms);
        of_table
    }

    /// Returns the values of `table` that expire.
    pub(crate) fn counts(&mut self, table: TableId) -> ExpiringCounts {
        let of_table = self.table(table);
        ExpiringCounts { waiting: of_table.waiting_count, expired: of_table.expired }
    }

    /// Returns the number of values of all tables that have expired since the store was opened.
    pub(crate) fn expired(&mut self) -> u64 {
        let tables: Vec<TableId> = self.tables.keys().copied().collect();
        for table in tables {
            self.table(table);
        }
        self.expired
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

    /// Takes a value off. A value on a page that `count_expiring` could not read was not
    /// counted.
    pub(crate) fn remove(&mut self, table: TableId, date: UnixMillis) {
        let of_table = self.table(table);
        let tick = of_table.tick(date);
        if tick <= of_table.until {
            of_table.expired = of_table.expired.saturating_sub(1);
            return;
        }
        let Some(count) = of_table.waiting.get_mut(&tick) else { return };
        assert!(of_table.waiting_count > 0, "a value that is taken off was counted as waiting");
        *count -= 1;
        if *count == 0 {
            of_table.waiting.remove(&tick);
        }
        of_table.waiting_count -= 1;
    }

    /// Breaks the count of values of `table` that wait, to see that a change of it fails.
    #[cfg(test)]
    pub(crate) fn break_count(&mut self, table: TableId) {
        self.table(table).waiting_count = 0;
    }

    /// All values of `table` are dead.
    pub(crate) fn forget_table(&mut self, table: TableId) {
        self.table(table);
        self.tables.remove(&table);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key_space::KeySpaceId;
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

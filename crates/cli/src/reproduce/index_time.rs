//! Measures the CPU time of an index on this machine.

use crate::output::Failure;
use crate::progress::{Bar, Progress, Unit};
use base::{Key, Rng};
use engine::{
    Address, HashedKey, Index, IndexConfig, KeySpaceId, Lanes, MakeIndex, TableId, Tables,
};
use media::{Memory, Shape};
use reactor::Reactor;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;
use workload::Keys;

/// Latencies of one kind of operation, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cost {
    pub(super) mean: f64,
    /// 99th percentile.
    pub(super) p99: f64,
}

/// Latencies of an index's operations, including the hash of the key.
#[derive(Clone, Copy, Debug)]
pub(super) struct IndexCosts {
    /// A lookup of a key with an entry.
    pub(super) read: Cost,
    /// A lookup without a result, then a new entry.
    pub(super) insert: Cost,
    /// A lookup, then another address in the entry.
    pub(super) overwrite: Cost,
}

/// An index under measurement, and its keys.
struct Bench {
    index: Box<dyn Index>,
    lanes: Arc<Lanes>,
    entries: Vec<(Key, Address)>,
    rng: Rng,
    bar: Bar,
}

const TABLE: TableId = TableId { space: KeySpaceId(1), generation: 0 };

/// Operations between two updates of the progress: some milliseconds.
const PROGRESS_STEP: usize = 1 << 14;

/// Random seed of the order of keys.
const SEED: u64 = 1;

/// Measures the index that `make` returns, with `count` keys of `key_bytes`.
pub(super) fn measure(
    make: MakeIndex,
    key_bytes: usize,
    count: u64,
    progress: Progress,
) -> Result<IndexCosts, Failure> {
    let keys = Keys::new(key_bytes, count).map_err(Failure::refused)?;
    let entries = (0..count).map(|number| (keys.key(number), Address::from_bits(number)));
    let bar = progress.bar("timing index", Unit::Count);
    // A memory limit is large enough for the whole index: this measures no flash.
    let config = IndexConfig { dram_bytes: 64 * count, keys_max: count };
    let lanes = Arc::default();
    let index = make(&config, &lanes);
    let mut bench = Bench { index, lanes, entries: entries.collect(), rng: Rng::new(SEED), bar };
    let costs = Reactor::new(None).run(bench.run());
    costs.ok_or_else(|| Failure::Broken("an index does not find what it was given".to_owned()))
}

/// Returns the time between two clock reads, which each figure includes once.
pub(super) fn of_timer() -> Cost {
    let mut times: Vec<u32> =
        (0..100_000).map(|_| nanos_since(black_box(Instant::now()))).collect();
    Cost::of(&mut times)
}

impl Bench {
    /// Returns `None` if the index is wrong.
    async fn run(&mut self) -> Option<IndexCosts> {
        let shape = Shape {
            page_bytes: 16_384,
            spare_bytes: 1_024,
            pages_per_extent: 1_024,
            extents: 64,
            parallelism: 8,
            frames: None,
        };
        let kept = self.index.table_extents(&shape);
        self.index.attach(&Tables::on(Arc::new(Memory::new(shape)), kept));
        let insert = self.insert().await?;
        let read = self.read().await?;
        let overwrite = self.overwrite().await?;
        Some(IndexCosts { read, insert, overwrite })
    }

    async fn insert(&mut self) -> Option<Cost> {
        self.shuffle();
        let mut times = vec![0; self.entries.len()];
        for (at, (key, address)) in self.entries.iter().enumerate() {
            let started = Instant::now();
            let key = HashedKey::new(key);
            let permit = self.index.admit(1).await;
            self.index.load(TABLE, key, &permit).await;
            let mut lanes = self.lanes.lock(key.hash);
            let lane = lanes.of(key.hash);
            let found = self.index.lookup(lane, TABLE, key).at_once()?;
            self.index.insert(lane, TABLE, key, *address);
            drop(lanes);
            times[at] = nanos_since(started);
            // The entry of another key may match too, but not this address.
            if found.contains(address) {
                return None;
            }
            progress(&mut self.bar, at, self.entries.len());
        }
        Some(Cost::of(&mut times))
    }

    async fn read(&mut self) -> Option<Cost> {
        self.shuffle();
        let mut times = vec![0; self.entries.len()];
        for (at, (key, address)) in self.entries.iter().enumerate() {
            let started = Instant::now();
            let key = HashedKey::new(key);
            let mut lanes = self.lanes.lock(key.hash);
            let found = self.index.lookup(lanes.of(key.hash), TABLE, key);
            drop(lanes);
            let found = found.await;
            times[at] = nanos_since(started);
            if !found.contains(address) {
                return None;
            }
            progress(&mut self.bar, at, self.entries.len());
        }
        Some(Cost::of(&mut times))
    }

    async fn overwrite(&mut self) -> Option<Cost> {
        self.shuffle();
        let mut times = vec![0; self.entries.len()];
        let count = self.entries.len() as u64;
        for (at, (key, address)) in self.entries.iter().enumerate() {
            let new = Address::from_bits(address.to_bits() + count);
            let started = Instant::now();
            let key = HashedKey::new(key);
            let permit = self.index.admit(1).await;
            self.index.load(TABLE, key, &permit).await;
            let mut lanes = self.lanes.lock(key.hash);
            let lane = lanes.of(key.hash);
            let found = self.index.lookup(lane, TABLE, key).at_once()?;
            let is_replaced = self.index.replace(lane, TABLE, key, *address, new);
            drop(lanes);
            times[at] = nanos_since(started);
            if !(is_replaced && found.contains(address)) {
                return None;
            }
            progress(&mut self.bar, at, self.entries.len());
        }
        Some(Cost::of(&mut times))
    }

    /// Shuffles the entries, so that the next one is unpredictable. They are read in order, as a
    /// command brings its key along.
    fn shuffle(&mut self) {
        for last in (1..self.entries.len()).rev() {
            let other = self.rng.below(last as u64 + 1);
            self.entries.swap(last, usize::try_from(other).expect("an index of a slice"));
        }
    }
}

fn progress(bar: &mut Bar, done: usize, total: usize) {
    if done.is_multiple_of(PROGRESS_STEP) {
        bar.set(done as u64, total as u64);
    }
}

/// Returns nanoseconds since `started`, at most 4 s.
fn nanos_since(started: Instant) -> u32 {
    u32::try_from(started.elapsed().as_nanos()).unwrap_or(u32::MAX)
}

impl Cost {
    /// Summarises `times` of operations, at least one.
    fn of(times: &mut [u32]) -> Self {
        times.sort_unstable();
        let sum: u64 = times.iter().copied().map(u64::from).sum();
        let rank = (times.len() * 99).div_ceil(100);
        #[expect(clippy::cast_precision_loss, reason = "sums of nanoseconds are far below 2^53")]
        let mean = sum as f64 / times.len() as f64;
        Self { mean, p99: times[rank - 1].into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::HashIndex;

    #[test]
    fn the_99th_percentile_is_what_99_of_100_do_not_exceed() {
        let mut times: Vec<u32> = (1..=200).rev().collect();
        assert_eq!(Cost::of(&mut times), Cost { mean: 100.5, p99: 198.0 });
        assert_eq!(Cost::of(&mut [7]), Cost { mean: 7.0, p99: 7.0 });
        assert_eq!(Cost::of(&mut [1, 9]), Cost { mean: 5.0, p99: 9.0 });
    }

    #[test]
    fn every_operation_is_timed() {
        let progress = Progress::new(true);
        let costs =
            measure(|_, lanes| Box::new(HashIndex::new(lanes)), 16, 10_000, progress).unwrap();
        for cost in [costs.read, costs.insert, costs.overwrite] {
            // Hashing 16 bytes and reading a table takes nanoseconds, well below a second.
            assert!(cost.mean > 1.0 && cost.mean < 1e9 && cost.p99 > 0.0, "{cost:?}");
        }
    }

    #[test]
    fn an_index_that_forgets_is_found_out() {
        let lanes = Arc::default();
        let mut bench = Bench {
            index: Box::new(HashIndex::new(&lanes)),
            lanes,
            entries: vec![(Key::new(b"key").unwrap(), Address::from_bits(1))],
            rng: Rng::new(1),
            bar: Progress::new(true).bar("timing index", Unit::Count),
        };
        let found = Reactor::new(None).run(async {
            let read = bench.read().await;
            let overwrite = bench.overwrite().await;
            let first = bench.insert().await;
            (read, overwrite, first.is_some(), bench.insert().await)
        });
        assert_eq!(found, (None, None, true, None), "and one that knows too much");
    }
}

//! Bytes that listing all keys of a drive reads, where headers are not in memory, and the keys that
//! it finds while others change.

use crate::records::rig::{SPACES, config, value};
use base::{Key, Nanos, Rng};
use clock::{Class, LocalFuture, Stage};
use drive::{Durability, Format, Medium};
use engine::{Ack, Announced, Config, Store, Write};
use media::{Blocks, BlocksShape, Error, Media, MemoryBlocks, Segments};
use reactor::Reactor;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const BLOCK_BYTES: u64 = 4_096;
const EXTENT_BYTES: u64 = 256 << 10;
const EXTENTS: u64 = 40;
const KEYS: u64 = 20_000;
const VALUE_BYTES: u32 = 30;
/// A header of a key of 16 bytes.
const HEADER_BYTES: u64 = 48;
/// Number of headers that share a page, and then the bytes that are read for the headers of a page.
const SHARED: u64 = 83;
const HEAD_BYTES: u64 = 2 * BLOCK_BYTES;
/// Memory that a key takes in a window: 22 bytes, and its own 16.
const ENTRY_BYTES: u64 = 38;

/// Blocks that count the bytes read. Each read takes some time.
struct Counted {
    blocks: MemoryBlocks,
    /// The time of each write.
    write_time: Nanos,
    read_bytes: AtomicU64,
}

impl Counted {
    fn new(write_time: Nanos) -> Self {
        let blocks = (EXTENTS * EXTENT_BYTES + (64 << 10)) / BLOCK_BYTES;
        let block_bytes = u32::try_from(BLOCK_BYTES).expect("it is 4 KiB");
        let blocks = MemoryBlocks::new(BlocksShape { block_bytes, blocks, parallelism: 4 });
        Self { blocks, write_time, read_bytes: AtomicU64::new(0) }
    }
}

impl Blocks for Counted {
    fn shape(&self) -> BlocksShape {
        self.blocks.shape()
    }

    fn read(
        &self,
        first: u64,
        count: u32,
        class: Class,
    ) -> LocalFuture<'_, Result<Segments, Error>> {
        self.read_bytes.fetch_add(u64::from(count) * BLOCK_BYTES, Relaxed);
        Box::pin(async move {
            clock::sleep(Nanos(10_000 + first % 7 * 1_000), Stage::Queue).await;
            self.blocks.read(first, count, class).await
        })
    }

    fn write(
        &self,
        first: u64,
        data: Segments,
        class: Class,
    ) -> LocalFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            clock::sleep(self.write_time, Stage::Queue).await;
            self.blocks.write(first, data, class).await
        })
    }

    fn trim(&self, first: u64, count: u64, class: Class) -> LocalFuture<'_, Result<(), Error>> {
        self.blocks.trim(first, count, class)
    }

    fn flush(&self) -> LocalFuture<'_, Result<(), Error>> {
        self.blocks.flush()
    }
}

fn key(number: u64) -> Key {
    Key::new(format!("key:{number:012}").as_bytes()).expect("16 bytes are a key")
}

async fn put_announced(store: &Arc<Store>, number: u64, announced: Announced) {
    let (key, value) = (key(number), value(VALUE_BYTES, number + 1));
    let put = store.put(SPACES[0], &key, &value, Write::default(), announced);
    put.await.expect("there is room");
}

async fn put(store: &Arc<Store>, number: u64) {
    put_announced(store, number, store.announce()).await;
}

async fn medium(blocks: &Arc<Counted>) -> Arc<Medium> {
    let blocks: Arc<Counted> = blocks.clone();
    Arc::new(Medium::open(blocks, Durability::Capacitor).await.expect("it is a drive"))
}

fn with_headers(medium: &Medium, headers_bytes: u64) -> Config {
    Config { headers_bytes, ..config(medium.shape(), Ack::Program) }
}

async fn format(blocks: &Arc<Counted>, headers_bytes: u64) -> Arc<Store> {
    let format = Format { id: [1; 16], secret: [2; 16], extent_bytes: Some(EXTENT_BYTES) };
    Medium::format(blocks.clone(), format).await.expect("nothing fails");
    let medium = medium(blocks).await;
    let config = with_headers(&medium, headers_bytes);
    let store = Store::format(medium, config);
    store.create_key_space(SPACES[0]).await.expect("there is room");
    store
}

/// Returns a drive with [`KEYS`] keys that has just been opened.
async fn opened(blocks: &Arc<Counted>, headers_bytes: u64) -> Arc<Store> {
    let store = format(blocks, headers_bytes).await;
    for first in (0..KEYS).step_by(200) {
        // All are announced before the first is done, so that they share pages.
        let puts = (first..first + 200).map(|number| {
            let (store, announced) = (store.clone(), store.announce());
            async move { put_announced(&store, number, announced).await }
        });
        clock::join_all(puts.collect()).await;
    }
    store.checkpoint().await.expect("there is room");
    store.flush().await.expect("nothing fails");
    drop(store);
    let medium = medium(blocks).await;
    let config = with_headers(&medium, headers_bytes);
    Store::open(medium, config).await.expect("it opens").0
}

/// Returns the bytes that it takes at most to read the summaries of all extents of records, and the
/// headers of each page of the last extent, which has no summary.
fn pass_bytes() -> u64 {
    let pages = KEYS.div_ceil(SHARED);
    let extents = (pages * HEAD_BYTES).div_ceil(EXTENT_BYTES) + 1;
    let rounding = extents * 2 * BLOCK_BYTES;
    let last = EXTENT_BYTES / HEAD_BYTES * (HEAD_BYTES - SHARED * HEADER_BYTES);
    KEYS * HEADER_BYTES + (pages + extents) * 16 + rounding + last
}

async fn every_key(store: &Arc<Store>) -> Vec<Key> {
    let mut keys = Vec::new();
    let take = |key: &[u8]| keys.push(Key::new(key).expect("it was a key"));
    store.every_key(SPACES[0], take).await.expect("all can be read");
    keys
}

/// Walks in steps of `count` keys, with a pause between them.
async fn walk(store: &Arc<Store>, count: usize, pause: Nanos) -> Vec<Key> {
    let (mut keys, mut after) = (Vec::new(), None);
    loop {
        let walked = store.walk(SPACES[0], after, count).await.expect("all can be read");
        keys.extend(walked.keys);
        after = walked.last;
        if after.is_none() {
            return keys;
        }
        clock::sleep(pause, Stage::Queue).await;
    }
}

fn sorted(keys: impl IntoIterator<Item = Key>) -> Vec<Key> {
    let mut keys: Vec<_> = keys.into_iter().collect();
    keys.sort_unstable();
    keys
}

#[test]
fn all_keys_take_one_read_of_each_summary() {
    let blocks = Arc::new(Counted::new(Nanos::ZERO));
    Reactor::new(None).run(async {
        for headers_bytes in [0, 64 << 10] {
            let store = opened(&blocks, headers_bytes).await;
            let before = blocks.read_bytes.load(Relaxed);
            let keys = every_key(&store).await;
            let read = blocks.read_bytes.load(Relaxed) - before;
            assert_eq!(sorted(keys), sorted((0..KEYS).map(key)));
            assert!(read <= pass_bytes(), "{read} bytes, {} at most", pass_bytes());
            drop(store);
        }
    });
}

#[test]
fn headers_in_memory_are_not_read() {
    let blocks = Arc::new(Counted::new(Nanos::ZERO));
    Reactor::new(None).run(async {
        let store = format(&blocks, 4 << 20).await;
        for number in 0..2_000 {
            put(&store, number).await;
        }
        let before = blocks.read_bytes.load(Relaxed);
        let (keys, walked) = (every_key(&store).await, walk(&store, 10, Nanos::ZERO).await);
        assert_eq!(sorted(keys), sorted((0..2_000).map(key)));
        assert_eq!(sorted(walked), sorted((0..2_000).map(key)));
        assert_eq!(blocks.read_bytes.load(Relaxed), before);
    });
}

/// Key by key it would be a page for each: 160 MB.
#[test]
fn a_walk_reads_the_summaries_once_for_each_window() {
    const WINDOW_BYTES: u64 = 256 << 10;
    let blocks = Arc::new(Counted::new(Nanos::ZERO));
    Reactor::new(None).run(async {
        let store = opened(&blocks, WINDOW_BYTES).await;
        for count in [10, 1_000] {
            let before = blocks.read_bytes.load(Relaxed);
            let keys = walk(&store, count, Nanos::ZERO).await;
            let read = blocks.read_bytes.load(Relaxed) - before;
            assert_eq!(sorted(keys), sorted((0..KEYS).map(key)));
            // As much is read before the first window, and behind each a few keys are read one by
            // one.
            let windows = KEYS.div_ceil(WINDOW_BYTES / ENTRY_BYTES);
            let most = (windows + 3) * pass_bytes();
            assert!(read <= most, "{read} bytes, {most} at most");
        }
    });
}

#[test]
fn short_walk_reads_a_page_for_each_key() {
    const WALKED: u64 = 50;
    let blocks = Arc::new(Counted::new(Nanos::ZERO));
    Reactor::new(None).run(async {
        let store = opened(&blocks, 256 << 10).await;
        let before = blocks.read_bytes.load(Relaxed);
        let (mut keys, mut after) = (0, None);
        while keys < WALKED {
            let walked = store.walk(SPACES[0], after, 10).await.expect("all can be read");
            keys += walked.keys.len() as u64;
            after = walked.last;
        }
        let read = blocks.read_bytes.load(Relaxed) - before;
        assert!(read <= keys * HEAD_BYTES, "{read} bytes for {keys} keys");
    });
}

/// Walks in steps of 10 keys, until reading key by key would take `bytes`. Returns all bytes that
/// the walk read, and the most bytes beyond those of the keys at the end of a step.
async fn walk_for(store: &Arc<Store>, blocks: &Counted, bytes: u64) -> (u64, u64) {
    let before = blocks.read_bytes.load(Relaxed);
    let (mut keys, mut after, mut read, mut beyond) = (0, None, 0, 0);
    for step in 1.. {
        let walked = store.walk(SPACES[0], after, 10).await.expect("all can be read");
        keys += walked.keys.len() as u64;
        after = walked.last;
        read = blocks.read_bytes.load(Relaxed) - before;
        // A step may scan the index twice, each time from the last key on.
        let key_by_key = (keys + 2 * step) * BLOCK_BYTES;
        beyond = beyond.max(read.saturating_sub(key_by_key));
        if key_by_key >= bytes {
            break;
        }
    }
    (read, beyond)
}

/// A window is read only if its keys would take at least twice the bytes of all summaries one by
/// one. Those of the first store would take 1.5 times as many, those of the second 3 times.
#[test]
fn windows_too_small_to_pay_are_not_read() {
    let keys_of_a_pass = pass_bytes() / BLOCK_BYTES;
    let blocks = Arc::new(Counted::new(Nanos::ZERO));
    Reactor::new(None).run(async {
        let store = opened(&blocks, keys_of_a_pass * 3 / 2 * ENTRY_BYTES).await;
        let (_, beyond) = walk_for(&store, &blocks, 4 * pass_bytes()).await;
        assert_eq!(beyond, 0, "bytes read for a window");
        drop(store);
        let store = opened(&blocks, keys_of_a_pass * 3 * ENTRY_BYTES).await;
        let (read, _) = walk_for(&store, &blocks, 4 * pass_bytes()).await;
        let most = 3 * pass_bytes();
        assert!(read <= most, "{read} bytes, {most} at most with a window");
    });
}

/// Overwrites, creates and deletes keys until it is told to end.
async fn change(store: Arc<Store>, seed: u64, ends: Arc<AtomicU64>) {
    let mut rng = Rng::new(seed);
    while ends.load(Relaxed) == 0 {
        for _ in 0..40 {
            match rng.below(4) {
                0 => drop(
                    store.delete(SPACES[0], &key(STAY + rng.below(STAY)), store.announce()).await,
                ),
                1 => put(&store, STAY + rng.below(STAY)).await,
                _ => put(&store, rng.below(STAY)).await,
            }
        }
        clock::sleep(Nanos(rng.below(30_000)), Stage::Queue).await;
    }
}

/// Keys that stay; as many come and go.
const STAY: u64 = 3_000;

#[test]
fn keys_that_stay_are_met_once_while_others_change() {
    let mut resets = 0;
    for seed in 0..4 {
        // Slow writes leave records that have not landed, fast ones fill more extents.
        let write_time = Nanos::from_micros([0, 20][usize::try_from(seed / 2).unwrap()]);
        let blocks = Arc::new(Counted::new(write_time));
        Reactor::new(Some(seed)).run(async {
            // Windows of up to 300 keys, and of up to 4,000.
            let store =
                format(&blocks, [9 << 10, 120 << 10][usize::try_from(seed % 2).unwrap()]).await;
            for number in 0..STAY {
                put(&store, number).await;
            }
            let ends = Arc::new(AtomicU64::new(0));
            clock::spawn(change(store.clone(), seed, ends.clone()));
            for round in 0..6 {
                // During the pauses other records fill extents that a window has keys of.
                let keys = match round % 2 {
                    0 => every_key(&store).await,
                    _ => walk(&store, 1 + 7 * round, Nanos::from_micros(100)).await,
                };
                let mut times: BTreeMap<Key, u64> = BTreeMap::new();
                for key in keys {
                    *times.entry(key).or_default() += 1;
                }
                assert!((0..STAY).all(|number| times.contains_key(&key(number))), "seed {seed}");
                assert!(times.values().all(|times| *times == 1), "seed {seed}: one was met twice");
                let known: BTreeSet<Key> = (0..2 * STAY).map(key).collect();
                assert!(times.keys().all(|key| known.contains(key)), "seed {seed}");
            }
            ends.store(1, Relaxed);
            resets += store.counters().victims;
        });
    }
    assert!(resets > 0, "extents were cleaned during the walks");
}

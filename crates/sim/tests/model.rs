//! The engine against an ordered map, one operation at a time, with each index on each medium.

use base::{Buf, Key, Nanos, Rng, mix};
use engine::{
    Ack, Condition, Config, Error, Iteration, KeyFilter, KeySpaceId, Live, MakeIndex, Store,
};
use ftl::{AppendFtl, Region, Stripe};
use media::{BlocksShape, LogOnBlocks, Media, Memory, MemoryBlocks, Shape, Victims};
use nand::{Cells, Geometry, Model as Timekeeping, Nand, Registers, Timing};
use node::INDEXES;
use reactor::Reactor;
use sim::{Tally, sweep};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const GEOMETRY: Geometry = Geometry {
    channels: 2,
    dies_per_channel: 2,
    planes_per_die: 1,
    blocks_per_plane: 12,
    pages_per_block: 16,
    page_bytes: 2_048,
    spare_bytes: 128,
};

const TIMING: Timing = Timing::uniform(
    Timekeeping::Staged,
    Registers::Single,
    Nanos::from_micros(45),
    Nanos::from_micros(660),
    Nanos::from_micros(3_500),
    800_000_000,
);

/// Power cuts in each run, and steps between them.
const LIVES: usize = 4;
const STEPS: u32 = 400;
const KEYS: usize = 250;
const SPACES: u64 = 4;

/// Less than what the longest values take, so that stores wait for it.
const BUFFER: Ack = Ack::Buffer { bytes: 16 << 10 };

/// What a power cut leaves.
enum Remains {
    Memory(Arc<Memory>),
    Blocks(Arc<MemoryBlocks>),
    Flash(Arc<Cells>, Stripe),
}

impl Remains {
    fn memory(spare_bytes: u32) -> Self {
        let shape = Shape {
            page_bytes: GEOMETRY.page_bytes,
            spare_bytes,
            pages_per_extent: 32,
            extents: 20,
            parallelism: 4,
        };
        Self::Memory(Arc::new(Memory::new(shape)))
    }

    /// Twenty extents of 32 pages of eight blocks.
    fn blocks() -> Self {
        let shape = BlocksShape { block_bytes: 4_096, blocks: 20 * 32 * 8, parallelism: 4 };
        Self::Blocks(Arc::new(MemoryBlocks::new(shape)))
    }

    fn flash(stripe: Stripe) -> Self {
        Self::Flash(Arc::new(Cells::new(GEOMETRY, 0, 0, 0)), stripe)
    }

    async fn medium(&self) -> Arc<dyn Media> {
        match self {
            Self::Memory(memory) => memory.clone(),
            Self::Blocks(blocks) => {
                Arc::new(LogOnBlocks::open(blocks.clone()).await.expect("nothing fails"))
            }
            Self::Flash(cells, stripe) => {
                let nand = Nand::new(cells.clone(), TIMING, clock::Group::new());
                Arc::new(AppendFtl::open(Arc::new(nand), Region::all(&GEOMETRY), *stripe).await)
            }
        }
    }
}

/// A value, told apart from others: its length and its checksum or tag.
type Content = (u32, u64);

/// The keys of a space.
type Keys = BTreeMap<Key, Content>;

/// What the store should hold.
#[derive(Default)]
struct Model {
    spaces: BTreeMap<u16, Keys>,
    /// Those that ever were: the store keeps a record of each.
    known: BTreeSet<u16>,
}

/// One run.
struct Run {
    /// The index of the present life.
    index: (&'static str, MakeIndex),
    rng: Rng,
    model: Model,
    keys: Vec<Key>,
    full_payload: bool,
    ack: Ack,
    versions: u64,
    tally: Tally,
}

impl Run {
    fn new(seed: u64, index: (&'static str, MakeIndex)) -> Self {
        let mut rng = Rng::new(seed);
        let keys = (0..KEYS).map(|_| random_key(&mut rng)).collect();
        let full_payload = rng.below(2) == 0;
        let ack = if rng.below(4) == 0 { BUFFER } else { Ack::Program };
        let (model, tally) = (Model::default(), Tally::default());
        Self { index, rng, model, keys, full_payload, ack, versions: 0, tally }
    }

    fn below(&mut self, bound: u64) -> usize {
        usize::try_from(self.rng.below(bound)).expect("small bounds")
    }

    fn config(&mut self, shape: Shape) -> Config {
        let victims = [
            Victims::Greedy,
            Victims::CostBenefit,
            Victims::Random,
            Victims::Fifo,
            Victims::DChoices,
        ];
        Config {
            // Extents that are being filled, cleaned or kept for cleaning hold no data, and those
            // that do lose some to padding.
            capacity_bytes: u64::from(shape.extents - 6) * shape.extent_bytes() * 60 / 100,
            ack: self.ack,
            victims: victims[self.below(5)],
            index: self.index.1,
            group: clock::Group::new(),
            seed: self.rng.next_u64(),
        }
    }

    /// A key, and the number of a space that exists four times of five.
    fn target(&mut self) -> (u16, Key) {
        let key = self.below(KEYS as u64);
        let key = self.keys[key].clone();
        let existing: Vec<u16> = self.model.spaces.keys().copied().collect();
        let space = if existing.is_empty() || self.below(40) == 0 {
            1 + self.below(SPACES)
        } else {
            usize::from(existing[self.below(existing.len() as u64)])
        };
        (u16::try_from(space).expect("there are few"), key)
    }

    async fn step(&mut self, store: &Arc<Store>) {
        self.tally.operations += 1;
        match self.below(100) {
            0..45 => self.put(store).await,
            45..63 => self.get(store).await,
            63..78 => self.delete(store).await,
            78..88 => self.exist(store).await,
            88..92 => self.list(store).await,
            92..96 => self.iterate(store).await,
            96 => self.change_space(store).await,
            97 => store.flush().await.expect("nothing fails"),
            _ => self.check_usage(store),
        }
    }

    async fn put(&mut self, store: &Arc<Store>) {
        let (space, key) = self.target();
        let condition =
            [Condition::Always, Condition::Always, Condition::MustExist, Condition::MustNotExist]
                [self.below(4)];
        let value = self.value(store.value_bytes_max());
        let usage = store.usage().values;
        let put = store.put(KeySpaceId(space), &key, &value, condition, store.announce()).await;
        let keys = self.model.spaces.get_mut(&space);
        let exists = keys.as_ref().is_some_and(|keys| keys.contains_key(&key));
        let expected = match (keys, condition) {
            (None, _) => Err(Error::NoKeySpace),
            (_, Condition::MustExist) if !exists => Err(Error::KeyNotFound),
            (_, Condition::MustNotExist) if exists => Err(Error::KeyExists),
            (Some(_), _) if put == Err(Error::CapacityExceeded) => {
                // A header, its copy in the summary, and a page's share of padding come on top. Of
                // values of half an extent only one fits an extent that also keeps a summary.
                let is_long = value.len() > GEOMETRY.page_bytes;
                let share = if is_long { 5 } else { 2 };
                let wanted =
                    u64::from(value.len()) * share / 2 + 2 * 320 + u64::from(GEOMETRY.page_bytes);
                assert!(
                    usage.bytes + wanted > store.capacity_bytes(),
                    "no space for {value:?} beside {usage:?}"
                );
                return;
            }
            (Some(keys), _) => {
                keys.insert(key.clone(), (value.len(), value.checksum()));
                self.tally.stored_bytes += u64::from(value.len()) + key.as_bytes().len() as u64;
                Ok(())
            }
        };
        assert_eq!(put, expected, "putting {key:?} with {condition:?}");
    }

    fn value(&mut self, max: u32) -> Buf {
        let bound = match self.below(20) {
            0 => 1,
            1..4 => 9,
            4..8 => 300,
            8..15 => 3_000,
            15..19 => 6_500,
            _ => u64::from(max) + 1,
        };
        let len = u32::try_from(self.below(bound)).expect("shorter than an extent");
        self.versions += 1;
        let tag = mix(self.versions);
        if len == 0 || !self.full_payload {
            // A value without bytes has no place for a tag.
            return Buf::phantom(len, if len == 0 { 0 } else { tag });
        }
        let mut bytes = vec![0; len as usize];
        Rng::new(tag).fill(&mut bytes);
        Buf::copy_from(&bytes)
    }

    async fn get(&mut self, store: &Arc<Store>) {
        let (space, key) = self.target();
        let got = store.get(KeySpaceId(space), &key).await;
        let expected = match self.model.spaces.get(&space) {
            None => Err(Error::NoKeySpace),
            Some(keys) => keys.get(&key).copied().ok_or(Error::KeyNotFound),
        };
        assert_eq!(got.map(|value| content(&value)), expected, "getting {key:?}");
    }

    async fn delete(&mut self, store: &Arc<Store>) {
        let (space, key) = self.target();
        let deleted = store.delete(KeySpaceId(space), &key, store.announce()).await;
        let expected = match self.model.spaces.get_mut(&space) {
            None => Err(Error::NoKeySpace),
            Some(keys) => keys.remove(&key).map(|_| ()).ok_or(Error::KeyNotFound),
        };
        assert_eq!(deleted, expected, "deleting {key:?}");
    }

    async fn exist(&mut self, store: &Arc<Store>) {
        let (space, key) = self.target();
        let exists = store.exist(KeySpaceId(space), &key).await;
        let keys = self.model.spaces.get(&space).ok_or(Error::NoKeySpace);
        assert_eq!(exists, keys.map(|keys| keys.contains_key(&key)), "asking for {key:?}");
    }

    async fn list(&mut self, store: &Arc<Store>) {
        let (space, key) = self.target();
        let start = (self.below(4) > 0).then_some(key);
        let max = 1 + self.below(40);
        let mut listed = Vec::new();
        let result = store
            .list(KeySpaceId(space), start.as_ref(), |key| {
                listed.push(key.clone());
                listed.len() < max
            })
            .await;
        let Some(keys) = self.model.spaces.get(&space) else {
            return assert_eq!(result, Err(Error::NoKeySpace));
        };
        let index = self.index.1();
        let is_before =
            |key: &Key| start.as_ref().is_some_and(|start| index.compare(key, start).is_lt());
        let mut expected = self.in_order(keys);
        expected.retain(|key| !is_before(key));
        expected.truncate(max);
        assert_eq!((result, listed), (Ok(()), expected), "listing from {start:?}");
    }

    async fn iterate(&mut self, store: &Arc<Store>) {
        let (space, _) = self.target();
        let (mask, pattern) = random_filter(&mut self.rng);
        let mut iteration = Iteration::new(KeySpaceId(space), KeyFilter { mask, pattern });
        let mut met = Vec::new();
        while !iteration.is_ended() {
            let count = 1 + self.below(50);
            match store.iterate(&mut iteration, count).await {
                Ok(keys) => {
                    assert!(keys.len() <= count, "no more keys than asked for");
                    met.extend(keys);
                }
                Err(error) => {
                    assert!(!self.model.spaces.contains_key(&space), "{error} in space {space}");
                    return;
                }
            }
        }
        let keys = &self.model.spaces[&space];
        let fits = |key: &Key| {
            let bits = key.as_bytes().iter().chain([0; 4].iter()).take(4);
            bits.fold(0_u32, |word, byte| word << 8 | u32::from(*byte)) & mask == pattern & mask
        };
        let mut expected = self.in_order(keys);
        expected.retain(fits);
        assert_eq!(met, expected, "iterating with mask {mask:08x} and pattern {pattern:08x}");
    }

    /// `keys` in the order of the index.
    fn in_order(&self, keys: &Keys) -> Vec<Key> {
        let index = self.index.1();
        let mut keys: Vec<Key> = keys.keys().cloned().collect();
        keys.sort_unstable_by(|a, b| index.compare(a, b));
        keys
    }

    async fn change_space(&mut self, store: &Arc<Store>) {
        let space = u16::try_from(1 + self.below(SPACES)).expect("there are few");
        if self.below(3) == 0 {
            let deleted = store.delete_key_space(KeySpaceId(space)).await;
            let existed = self.model.spaces.remove(&space).map(|_| ());
            assert_eq!(deleted, existed.ok_or(Error::NoKeySpace), "deleting space {space}");
        } else {
            let created = store.create_key_space(KeySpaceId(space)).await;
            let new = !self.model.spaces.contains_key(&space);
            assert_eq!(created, new.then_some(()).ok_or(Error::KeySpaceExists));
            self.model.spaces.entry(space).or_default();
            self.model.known.insert(space);
        }
    }

    /// Live records are counted exactly, in all and for each extent.
    fn check_usage(&self, store: &Store) {
        let usage = store.usage().values;
        let keys: usize = self.model.spaces.values().map(BTreeMap::len).sum();
        let records = keys + 2 * self.model.known.len();
        assert_eq!(usage.records, records as u64, "values that live");
        let by_extent =
            store.live_by_extent().into_iter().fold(Live::default(), |sum, (_, live)| Live {
                records: sum.records + live.records,
                bytes: sum.bytes + live.bytes,
            });
        assert_eq!(by_extent, usage, "what lives in all extents is what lives in all");
    }

    /// Everything that the store holds is what it should hold.
    async fn check_content(&mut self, store: &Arc<Store>) {
        let spaces: Vec<_> = store.key_spaces().iter().map(|space| space.0).collect();
        assert_eq!(spaces, self.model.spaces.keys().copied().collect::<Vec<_>>());
        for (space, keys) in &self.model.spaces {
            let space = KeySpaceId(*space);
            let mut listed = Vec::new();
            let result = store.list(space, None, |key| {
                listed.push(key.clone());
                true
            });
            result.await.expect("nothing fails");
            assert_eq!(listed, self.in_order(keys), "keys of {space:?}");
            for key in &listed {
                let value = store.get(space, key).await.expect("a listed key is there");
                assert_eq!(content(&value), keys[key], "{key:?} of {space:?}");
            }
        }
        self.check_usage(store);
    }
}

impl Drop for Run {
    /// Says which index a seed failed with.
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the index is {}", self.index.0);
        }
    }
}

fn content(value: &Buf) -> Content {
    // Nothing tells one empty value from another.
    if value.len() == 0 {
        (0, Buf::phantom(0, 0).checksum())
    } else {
        (value.len(), value.checksum())
    }
}

/// Keys of every length that share their first bytes with others.
fn random_key(rng: &mut Rng) -> Key {
    let len = match rng.below(10) {
        0 => 1 + rng.below(4),
        1..6 => 5 + rng.below(12),
        6..9 => 17 + rng.below(40),
        _ => 57 + rng.below(199),
    };
    let mut bytes = vec![0; usize::try_from(len).expect("at most 255")];
    rng.fill(&mut bytes);
    for byte in bytes.iter_mut().take(4) {
        *byte = [0x00, 0x41, 0x80, 0xFF][usize::try_from(rng.below(4)).expect("below 4")];
    }
    Key::new(&bytes).expect("1 to 255 bytes")
}

/// No bits, some of the first, whole bytes, or any.
fn random_filter(rng: &mut Rng) -> (u32, u32) {
    let [any, low] = [rng.next_u64(), rng.next_u64()].map(|word| (word >> 32) as u32);
    let mask = match rng.below(4) {
        0 => 0,
        1 => !0 << (any % 32),
        2 => [0xFF00_0000, 0x00FF_0000, 0xFFFF, 0xFF][(any % 4) as usize],
        _ => any,
    };
    (mask, low & 0xFFC1_80FF)
}

/// Half of the lives are with the index of this number in the registry, the others with the next: a
/// store is opened by the index that filled it, and by another.
fn run(seed: u64, first: usize, remains: &Remains) -> Tally {
    let mut run = Run::new(seed, INDEXES[first]);
    let mut before = None;
    for life in 0..LIVES {
        run.index = INDEXES[(first + life / (LIVES / 2)) % INDEXES.len()];
        let shuffle = (seed % 2 == 1).then_some(seed ^ life as u64);
        Reactor::new(shuffle).run(async {
            let medium = remains.medium().await;
            let config = run.config(medium.shape());
            let store = if life == 0 {
                Store::format(medium, config)
            } else {
                run.tally.reopenings += 1;
                Store::open(medium, config).await.expect("nothing fails").0
            };
            run.check_content(&store).await;
            assert_eq!(before.unwrap_or_default(), store.usage().values, "what lives");
            for _ in 0..STEPS {
                run.step(&store).await;
            }
            run.check_content(&store).await;
            if run.ack == BUFFER {
                store.flush().await.expect("nothing fails");
            }
            before = Some(store.usage().values);
            run.tally.victims += store.counters().victims;
        });
    }
    run.tally
}

/// Runs the seeds on one medium, each from every index on; some cleaning must have been part of it.
fn check(remains: impl Fn() -> Remains) {
    let sum = sweep("model", 50, |seed| {
        let mut sum = Tally::default();
        for first in 0..INDEXES.len() {
            sum += run(seed, first, &remains());
        }
        sum
    });
    // A single seed may be one that does not.
    let cleans = sum.victims > sum.reopenings || sum.reopenings < 20;
    assert!(cleans, "hardly anything was cleaned: {sum}");
}

#[test]
fn a_store_in_memory_with_a_spare_area_is_a_map() {
    check(|| Remains::memory(128));
}

#[test]
fn a_store_in_memory_without_a_spare_area_is_a_map() {
    check(|| Remains::memory(0));
}

#[test]
fn a_store_on_blocks_is_a_map() {
    check(Remains::blocks);
}

#[test]
fn a_store_on_extents_of_one_die_is_a_map() {
    check(|| Remains::flash(Stripe::Die));
}

#[test]
fn a_store_on_extents_of_a_channel_is_a_map() {
    check(|| Remains::flash(Stripe::Channel));
}

#[test]
fn a_store_on_extents_of_all_dies_is_a_map() {
    check(|| Remains::flash(Stripe::All));
}

//! The engine against an ordered map, one operation at a time, with each index on each medium:
//! single writes and batches over several key spaces, values that stay and values that expire.

use base::{Buf, Key, Nanos, Rng, mix};
use clock::{Stage, UnixMillis, set_unix_now, unix_now};
use drive::{Durability, Format, Medium};
use engine::{
    Ack, BatchOp, BatchWrite, Condition, Config, Error, How, Index, IndexConfig, Iteration,
    KeyFilter, KeySpaceId, Live, MakeIndex, SPARE_EXTENTS_MIN, Store, Write,
};
use ftl::{AppendFtl, Region, Stripe};
use media::{BlocksShape, Frames, LogOnBlocks, Media, Memory, MemoryBlocks, Shape, Victims};
use nand::{Cells, Geometry, Model as Timekeeping, Nand, Registers, Timing};
use node::INDEXES;
use reactor::Reactor;
use sim::{DiskConditions, SimDisk, Tally, put, sweep};
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

/// Values expire at multiples of this, and nothing else happens close to one: so what expires does
/// it between two operations.
const EPOCH: u64 = 20_000;
const CLOSE: u64 = 5_000;

/// Less than what the longest values take, so that stores wait for it.
const BUFFER: Ack = Ack::Buffer { bytes: 16 << 10 };

/// What a power cut leaves.
enum Remains {
    Memory(Arc<Memory>),
    Blocks(Arc<MemoryBlocks>),
    /// A drive on a disk.
    Drive(Arc<SimDisk>),
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
            frames: None,
        };
        Self::Memory(Arc::new(Memory::new(shape)))
    }

    /// Extents of frames, as on a disk with logical blocks of this size.
    fn frames(unit_bytes: u32, extent_bytes: u32) -> Self {
        let (head_bytes, block_units) = (64, 4_096 / unit_bytes);
        let shape = Shape {
            page_bytes: extent_bytes / 4,
            spare_bytes: 4_096 - head_bytes,
            pages_per_extent: extent_bytes / unit_bytes,
            extents: 20,
            parallelism: 4,
            frames: Some(Frames { unit_bytes, block_units, head_bytes }),
        };
        Self::Memory(Arc::new(Memory::new(shape)))
    }

    /// Twenty extents of 32 pages of eight blocks.
    fn blocks() -> Self {
        let shape = BlocksShape { block_bytes: 4_096, blocks: 20 * 32 * 8, parallelism: 4 };
        Self::Blocks(Arc::new(MemoryBlocks::new(shape)))
    }

    /// A drive of twenty extents on a disk with logical blocks of this size.
    fn drive(block_bytes: u32) -> Self {
        let extent_bytes: u64 = 128 << 10;
        let blocks = (20 * extent_bytes + (12 << 10)) / u64::from(block_bytes);
        let shape = BlocksShape { block_bytes, blocks, parallelism: 4 };
        let disk = Arc::new(SimDisk::new(shape, DiskConditions::new(512), 1));
        let format = Format { id: [1; 16], secret: [2; 16], extent_bytes: Some(extent_bytes) };
        let blocks = disk.clone();
        let formatted = async move { Medium::format(blocks, format).await };
        Reactor::new(None).run(formatted).expect("nothing fails");
        Self::Drive(disk)
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
            Self::Drive(disk) => {
                let drive = Medium::open(disk.clone(), Durability::Group).await;
                Arc::new(drive.expect("nothing fails"))
            }
            Self::Flash(cells, stripe) => {
                let nand = Nand::new(
                    cells.clone(),
                    TIMING,
                    nand::FaultPlan::default(),
                    clock::Group::new(),
                );
                Arc::new(AppendFtl::open(Arc::new(nand), Region::all(&GEOMETRY), *stripe).await)
            }
        }
    }
}

/// A value, told apart from others: its length and its checksum or tag.
type Content = (u32, u64);

/// What was stored under a key.
#[derive(Clone, Copy)]
struct Stored {
    content: Content,
    expires: Option<UnixMillis>,
}

impl Stored {
    fn new(value: &Buf, write: Write) -> Self {
        Self { content: content(value), expires: write.expires }
    }

    fn is_there(&self) -> bool {
        self.expires.is_none_or(|date| unix_now() < date)
    }
}

/// The keys of a space. What has expired is one of them until it is overwritten.
type Keys = BTreeMap<Key, Stored>;

fn there(keys: &Keys, key: &Key) -> Option<Content> {
    keys.get(key).filter(|stored| stored.is_there()).map(|stored| stored.content)
}

/// What a condition says of a key that is there, or not.
fn refusal(condition: Condition, exists: bool) -> Result<(), Error> {
    match condition {
        Condition::MustExist if !exists => Err(Error::KeyNotFound),
        Condition::MustNotExist if exists => Err(Error::KeyExists),
        _ => Ok(()),
    }
}

/// Bytes that a value may need beyond its own, at most: a header, its copy in the summary, and a
/// page's share of padding, which is `grain`. Of values of half an extent only one fits an extent
/// that also keeps a summary.
fn wanted(value: &Buf, grain: u64) -> u64 {
    let share = if value.len() > GEOMETRY.page_bytes { 5 } else { 2 };
    u64::from(value.len()) * share / 2 + 2 * 320 + grain
}

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
    /// Some of the values expire.
    expires: bool,
    ack: Ack,
    versions: u64,
    /// Bytes that a record may need for padding.
    grain: u64,
    tally: Tally,
}

impl Run {
    fn new(seed: u64, index: (&'static str, MakeIndex)) -> Self {
        let mut rng = Rng::new(seed);
        let keys = (0..KEYS).map(|_| random_key(&mut rng)).collect();
        let full_payload = rng.below(2) == 0;
        let ack = if rng.below(4) == 0 { BUFFER } else { Ack::Program };
        let expires = rng.below(2) == 0;
        let (model, tally) = (Model::default(), Tally::default());
        Self { index, rng, model, keys, full_payload, expires, ack, versions: 0, grain: 0, tally }
    }

    fn below(&mut self, bound: u64) -> usize {
        usize::try_from(self.rng.below(bound)).expect("small bounds")
    }

    /// The present index, with as little memory as it can do with, and how it is made.
    fn index(&self) -> (IndexConfig, Box<dyn Index>) {
        let keys_max = (KEYS as u64 + 2) * (SPACES + 1);
        let empty = IndexConfig { dram_bytes: 0, keys_max };
        let dram_bytes = self.index.1(&empty, &Arc::default()).dram_bytes_min();
        let config = IndexConfig { dram_bytes, keys_max };
        (config, self.index.1(&config, &Arc::default()))
    }

    fn config(&mut self, shape: Shape) -> Config {
        let victims = [
            Victims::Greedy,
            Victims::CostBenefit,
            Victims::Random,
            Victims::Fifo,
            Victims::DChoices,
        ];
        let (index_config, _) = self.index();
        // What one index has stored is opened with another one.
        let kept =
            |(_, make): &(_, MakeIndex)| make(&index_config, &Arc::default()).table_extents(&shape);
        let spare = SPARE_EXTENTS_MIN + INDEXES.iter().map(kept).max().unwrap_or(0);
        Config {
            // Extents that are being filled, cleaned or kept for cleaning hold no data, and those
            // that do lose some to padding.
            capacity_bytes: u64::from(shape.extents - spare) * shape.extent_bytes() * 60 / 100,
            ack: self.ack,
            victims: victims[self.below(5)],
            index: self.index.1,
            index_config,
            checkpoint_bytes: [0, 300_000][self.below(2)],
            headers_bytes: [0, 20_000][self.below(2)],
            cache_bytes: [0, 20_000][self.below(2)],
            saves_buffer: true,
            reactors: 1,
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
        self.keep_clear_of_epochs().await;
        match self.below(100) {
            0..37 => self.put(store).await,
            37..45 => self.batch(store).await,
            45..63 => self.get(store).await,
            63..78 => self.delete(store).await,
            78..88 => self.exist(store).await,
            88..92 => self.list(store).await,
            92..96 => self.iterate(store).await,
            96 => self.change_space(store).await,
            97 if self.expires => clock::sleep(millis(EPOCH), Stage::Core).await,
            97 => store.flush().await.expect("nothing fails"),
            98 => match store.checkpoint().await {
                Ok(_) | Err(Error::NoCheckpoint | Error::CapacityExceeded) => {}
                Err(error) => panic!("{error}"),
            },
            _ => self.check_usage(store),
        }
    }

    /// Passes by when things expire.
    async fn keep_clear_of_epochs(&self) {
        let left = EPOCH - unix_now().0 % EPOCH;
        if left < CLOSE {
            clock::sleep(millis(left), Stage::Core).await;
        }
    }

    fn how(&mut self) -> Write {
        let condition =
            [Condition::Always, Condition::Always, Condition::MustExist, Condition::MustNotExist]
                [self.below(4)];
        let epoch = unix_now().0 / EPOCH + self.rng.below(4);
        let expires = self.expires && self.below(4) == 0;
        Write { condition, expires: expires.then_some(UnixMillis(epoch * EPOCH)) }
    }

    async fn put(&mut self, store: &Arc<Store>) {
        let (space, key) = self.target();
        let write = self.how();
        let value = self.value(store.value_bytes_max());
        let usage = store.usage().values;
        let id = KeySpaceId(space);
        let (put, was_immediate) = match self.below(2) {
            0 => put(store, id, &key, &value, write).await,
            _ => (store.put(id, &key, &value, write, store.announce()).await, false),
        };
        let put = put.map(drop);
        self.tally.immediate_puts += u64::from(was_immediate);
        let keys = self.model.spaces.get_mut(&space);
        let exists = keys.as_ref().is_some_and(|keys| there(keys, &key).is_some());
        let expected = match (keys, refusal(write.condition, exists)) {
            (None, _) => Err(Error::NoKeySpace),
            (Some(_), _) if put == Err(Error::CapacityExceeded) => {
                let room = store.capacity_bytes().saturating_sub(usage.bytes);
                assert!(
                    wanted(&value, self.grain) > room,
                    "no space for {value:?} beside {usage:?}"
                );
                return;
            }
            (_, Err(refused)) => Err(refused),
            (Some(keys), _) => {
                keys.insert(key.clone(), Stored::new(&value, write));
                self.tally.stored_bytes += u64::from(value.len()) + key.as_bytes().len() as u64;
                Ok(())
            }
        };
        assert_eq!(put, expected, "putting {key:?} with {write:?}");
    }

    async fn batch(&mut self, store: &Arc<Store>) {
        let writes = self.members(store);
        let usage = store.usage().values;
        let done = store.write_batch(writes.clone(), store.announce()).await;
        let expected = match self.expected_of(&writes, store) {
            Ok(()) | Err(Error::KeyNotFound | Error::KeyExists)
                if done == Err(Error::CapacityExceeded) =>
            {
                let grain = self.grain;
                let values = writes.iter().filter_map(|write| match &write.op {
                    BatchOp::Put { value, .. } => Some(wanted(value, grain)),
                    BatchOp::Delete { .. } | BatchOp::Keep { .. } => None,
                });
                let more: u64 = values.sum();
                assert!(usage.bytes + more > store.capacity_bytes(), "no space beside {usage:?}");
                return;
            }
            expected => expected,
        };
        assert_eq!(done, expected, "writing {writes:?}");
        if done.is_err() {
            return;
        }
        for BatchWrite { space, key, op } in writes {
            let keys = self.model.spaces.get_mut(&space.0).expect("it was there");
            match op {
                BatchOp::Put { value, write } => {
                    let bytes = u64::from(value.len()) + key.as_bytes().len() as u64;
                    self.tally.stored_bytes += bytes;
                    keys.insert(key, Stored::new(&value, write));
                }
                BatchOp::Delete { .. } => {
                    // What has expired needs no tombstone, and stays for the cleaner to find.
                    if there(keys, &key).is_some() {
                        keys.remove(&key);
                    }
                }
                BatchOp::Keep { .. } => {}
            }
        }
    }

    /// Of all sizes, mostly without conditions, mostly of different keys.
    fn members(&mut self, store: &Store) -> Vec<BatchWrite> {
        let conditions = self.below(4) == 0;
        let max = (store.batch_bytes_max() / 4).min(3_000);
        let members = 1 + self.below(12);
        let mut writes: Vec<BatchWrite> = Vec::new();
        for _ in 0..members {
            let (space, key) = self.target();
            let space = KeySpaceId(space);
            if writes.iter().any(|write| (write.space, &write.key) == (space, &key))
                && self.below(30) > 0
            {
                continue;
            }
            let mut write = self.how();
            if !conditions {
                write.condition = Condition::Always;
            }
            let max = if self.below(100) == 0 {
                store.value_bytes_max()
            } else {
                u32::try_from(max).expect("at most 3,000")
            };
            let op = match self.below(4) {
                0 => BatchOp::DELETE,
                _ => BatchOp::Put { value: self.value(max), write },
            };
            writes.push(BatchWrite { space, key, op });
        }
        writes
    }

    /// What a batch must come to, unless there is no space.
    fn expected_of(&self, writes: &[BatchWrite], store: &Store) -> Result<(), Error> {
        let (mut bytes, mut longest) = (0, 0);
        let mut names = BTreeSet::new();
        let max = store.value_bytes_max();
        for BatchWrite { key, op, .. } in writes {
            let (len, write) = match op {
                BatchOp::Put { value, write } => (value.len(), *write),
                BatchOp::Delete { .. } | BatchOp::Keep { .. } => (0, Write::default()),
            };
            if len > max {
                return Err(Error::ValueTooLong { max });
            }
            let fixed = if write.expires.is_some() { 40 } else { 32 };
            let header = (fixed + key.as_bytes().len() as u64).next_multiple_of(8);
            bytes += header + u64::from(len);
            longest = longest.max(u64::from(len));
        }
        let (max_bytes, max_records) = (store.batch_bytes_max(), store.batch_records_max());
        let is_short = writes.len() <= max_records as usize;
        // What a long value leaves of an extent is for the store to know.
        let too_long = !store.takes_batch(writes);
        if bytes <= max_bytes && is_short {
            assert!(!too_long, "a batch of {bytes} bytes fits any extent");
        } else if bytes - longest > max_bytes || !is_short {
            assert!(too_long, "a batch has {bytes} bytes of which one value has {longest}");
        }
        if writes.len() > 1 && too_long {
            return Err(Error::BatchTooLong { max_bytes, max_records });
        }
        if !writes.iter().all(|write| names.insert((write.space, &write.key))) {
            return Err(Error::BatchRepeatsKey);
        }
        if !writes.iter().all(|write| self.model.spaces.contains_key(&write.space.0)) {
            return Err(Error::NoKeySpace);
        }
        for BatchWrite { space, key, op } in writes {
            if let BatchOp::Put { write, .. } = op {
                let exists = there(&self.model.spaces[&space.0], key).is_some();
                refusal(write.condition, exists)?;
            }
        }
        Ok(())
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
        let mut taken = None;
        let now = store.begin_get(KeySpaceId(space), &key, |value| taken = Some(value.into_buf()));
        let got = store.get(KeySpaceId(space), &key).await;
        let keys = self.model.spaces.get(&space).ok_or(Error::NoKeySpace);
        let expected = keys.and_then(|keys| there(keys, &key).ok_or(Error::KeyNotFound));
        assert_eq!(got.map(|value| content(&value)), expected, "getting {key:?}");
        if let Some(now) = now {
            let got = now.map(|()| content(&taken.expect("it has a value")));
            assert_eq!(got, expected, "{key:?} without waiting");
            self.tally.immediate_gets += 1;
        }
    }

    async fn delete(&mut self, store: &Arc<Store>) {
        let (space, key) = self.target();
        let deleted = store.delete(KeySpaceId(space), &key, store.announce()).await;
        let expected = match self.model.spaces.get_mut(&space) {
            None => Err(Error::NoKeySpace),
            Some(keys) => match there(keys, &key) {
                Some(_) => keys.remove(&key).map(drop).ok_or(Error::KeyNotFound),
                None => Err(Error::KeyNotFound),
            },
        };
        assert_eq!(deleted, expected, "deleting {key:?}");
    }

    async fn exist(&mut self, store: &Arc<Store>) {
        let (space, key) = self.target();
        let exists = store.exist(KeySpaceId(space), &key).await;
        let keys = self.model.spaces.get(&space).ok_or(Error::NoKeySpace);
        let expected = keys.map(|keys| there(keys, &key).is_some());
        assert_eq!(exists, expected, "asking for {key:?}");
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
        let (_, index) = self.index();
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

    /// Those of `keys` that are there, in the order of the index.
    fn in_order(&self, keys: &Keys) -> Vec<Key> {
        let (_, index) = self.index();
        let there = keys.iter().filter(|(_, stored)| stored.is_there());
        let mut keys: Vec<Key> = there.map(|(key, _)| key.clone()).collect();
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

    /// Live records are counted exactly, in all and for each extent. What has expired counts until
    /// it was cleaned away.
    fn check_usage(&self, store: &Store) {
        let usage = store.usage().values;
        let stored = || self.model.spaces.values().flat_map(BTreeMap::values);
        let own = 2 * self.model.known.len();
        let there = own + stored().filter(|stored| stored.is_there()).count();
        let expected = there as u64..=(own + stored().count()) as u64;
        assert!(expected.contains(&usage.records), "{expected:?} live, not {}", usage.records);
        for (space, keys) in &self.model.spaces {
            let long = || keys.iter().filter(|(key, _)| key.as_bytes().len() > 16);
            let there = long().filter(|(_, stored)| stored.is_there()).count() as u64;
            let counted = store.live_in(KeySpaceId(*space)).expect("it is there").long_keys;
            assert!((there..=long().count() as u64).contains(&counted), "{counted} long keys");
        }
        let by_extent = store.live_by_extent().into_iter().map(|(_, live)| live).sum::<Live>();
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
                assert_eq!(content(&value), keys[key].content, "{key:?} of {space:?}");
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

fn millis(millis: u64) -> Nanos {
    Nanos::from_micros(1_000 * millis)
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
    // A disk holds bytes, and nothing that stands for some.
    run.full_payload |= matches!(remains, Remains::Drive(_));
    let mut before = None;
    let mut date = UnixMillis::START;
    for life in 0..LIVES {
        run.index = INDEXES[(first + life / (LIVES / 2)) % INDEXES.len()];
        let shuffle = (seed % 2 == 1).then_some(seed ^ life as u64);
        Reactor::new(shuffle).run(async {
            set_unix_now(UnixMillis(date.0 + run.rng.below(2 * EPOCH)));
            let medium = remains.medium().await;
            let shape = medium.shape();
            let padded = shape.frames.map_or(shape.page_bytes, |frames| 2 * frames.unit_bytes);
            run.grain = u64::from(padded);
            let config = run.config(shape);
            let store = if life == 0 {
                Store::format(medium, config)
            } else {
                let (store, recovery) = Store::open(medium, config).await.expect("nothing fails");
                match recovery.how {
                    How::Scan => run.tally.scans += 1,
                    How::Checkpoint => run.tally.checkpoints += 1,
                }
                store
            };
            run.keep_clear_of_epochs().await;
            run.check_content(&store).await;
            if !run.expires {
                assert_eq!(before.unwrap_or_default(), store.usage().values, "what lives");
            }
            for _ in 0..STEPS {
                run.step(&store).await;
            }
            run.check_content(&store).await;
            if run.ack == BUFFER {
                store.flush().await.expect("nothing fails");
            }
            before = Some(store.usage().values);
            date = unix_now();
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
    let cleans = sum.victims > sum.reopenings() || sum.reopenings() < 20;
    assert!(cleans, "hardly anything was cleaned: {sum}");
    let finds = sum.immediate_gets > 0 && sum.immediate_puts > 0 || sum.reopenings() < 20;
    assert!(finds, "no value was read, or none stored, without waiting: {sum}");
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
fn a_store_of_short_frames_is_a_map() {
    check(|| Remains::frames(512, 64 << 10));
}

#[test]
fn a_store_of_long_frames_is_a_map() {
    check(|| Remains::frames(4_096, 128 << 10));
}

#[test]
fn a_store_on_a_disk_is_a_map() {
    check(|| Remains::drive(4_096));
}

#[test]
fn a_store_on_a_disk_of_small_blocks_is_a_map() {
    check(|| Remains::drive(512));
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

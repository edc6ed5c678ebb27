//! What every registered index must do, against a sorted map of entries.

use base::{Buf, Key, Rng};
use controller::Submission;
use engine::{
    Address, CachedHashIndex, HashedKey, Index, IndexConfig, KeySpaceId, Lane, Lanes, MakeIndex,
    TableId, Tables,
};
use media::{Memory, Shape};
use node::{Device, FaultPlan, INDEXES, Profile, profile};
use reactor::Reactor;
use spec::{Command, ListReader, Status, StoreOptions};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::sync::Arc;

/// Tables that the steps are on: two lives of a key space, and another.
const TABLES: [TableId; 3] = [
    TableId { space: KeySpaceId(1), generation: 0 },
    TableId { space: KeySpaceId(1), generation: 1 },
    TableId { space: KeySpaceId(2), generation: 0 },
];

fn key(bytes: &[u8]) -> Key {
    Key::new(bytes).expect("1 to 255 bytes")
}

/// Keys of all lengths, some of which begin alike, in the order of their bytes.
fn keys(count: usize) -> Vec<Key> {
    let mut rng = Rng::new(1);
    let mut keys = BTreeSet::new();
    while keys.len() < count {
        let len = 1 + rng.below([4, 16, 40, 255][keys.len() % 4]);
        let mut bytes = vec![0; usize::try_from(len).expect("at most 255")];
        rng.fill(&mut bytes);
        bytes[0] = [0x00, 0x41, 0xFF][keys.len() % 3];
        keys.insert(key(&bytes));
    }
    keys.into_iter().collect()
}

/// An index and its lanes.
struct Indexed {
    index: Box<dyn Index>,
    lanes: Arc<Lanes>,
}

impl Deref for Indexed {
    type Target = dyn Index;

    fn deref(&self) -> &Self::Target {
        &*self.index
    }
}

impl Indexed {
    async fn lookup(&self, table: TableId, key: &Key) -> BTreeSet<Address> {
        let key = HashedKey::new(key);
        let found = self.index.lookup(self.lanes.lock(key.hash).of(key.hash), table, key);
        found.await.into_iter().collect()
    }

    /// Changes the entries of `key` as a store does: it loads them before.
    async fn change<T>(
        &self,
        table: TableId,
        key: &Key,
        change: impl FnOnce(&dyn Index, &mut Lane, HashedKey<'_>) -> T,
    ) -> T {
        let key = HashedKey::new(key);
        let permit = self.index.admit(1).await;
        self.index.load(table, key, &permit).await;
        change(&*self.index, self.lanes.lock(key.hash).of(key.hash), key)
    }

    async fn insert(&self, table: TableId, key: &Key, new: Address) {
        self.change(table, key, |index, lane, key| index.insert(lane, table, key, new)).await;
    }

    async fn replace(&self, table: TableId, key: &Key, old: Address, new: Address) -> bool {
        self.change(table, key, |index, lane, key| index.replace(lane, table, key, old, new)).await
    }

    async fn remove(&self, table: TableId, key: &Key, old: Address) -> bool {
        self.change(table, key, |index, lane, key| index.remove(lane, table, key, old)).await
    }
}

/// Runs `test` on an empty index of each kind.
fn each(test: &impl AsyncFn(&str, &Indexed)) {
    assert!(INDEXES.len() > 1, "the registry holds the indexes of the engine and of the examples");
    for (name, make) in all() {
        Reactor::new(None).run(async {
            let lanes = Arc::default();
            let index = make(&CONFIG, &lanes);
            let shape = Shape {
                page_bytes: 4_096,
                spare_bytes: 0,
                pages_per_extent: 64,
                extents: 64,
                parallelism: 4,
                frames: None,
            };
            let tables = Tables::on(Arc::new(Memory::new(shape)), index.table_extents(&shape));
            index.attach(&tables);
            test(name, &Indexed { index, lanes }).await;
        });
    }
}

/// A budget that is less than any index with one needs, and as many keys as these tests have.
const CONFIG: IndexConfig = IndexConfig { dram_bytes: 0, keys_max: 12_000 };

/// Every registered index, and one on flash whose leaves are so short that most are not in memory.
fn all() -> impl Iterator<Item = (&'static str, MakeIndex)> {
    let short: MakeIndex = |config, _| Box::new(CachedHashIndex::with_leaves_of(4, config));
    INDEXES.iter().copied().chain([("cached-hash with short leaves", short)])
}

/// The addresses of each key's entries, in each table.
type Entries = BTreeMap<Key, BTreeSet<Address>>;

/// An index and what it should hold.
struct Run<'a> {
    name: &'a str,
    index: &'a Indexed,
    model: BTreeMap<TableId, Entries>,
    keys: Vec<Key>,
    rng: Rng,
    /// No address is given twice.
    addresses: u64,
}

impl<'a> Run<'a> {
    fn new(name: &'a str, index: &'a Indexed, keys: usize, seed: u64) -> Self {
        let (rng, model) = (Rng::new(seed), BTreeMap::new());
        Self { name, index, model, keys: self::keys(keys), rng, addresses: 0 }
    }

    fn choose<T: Clone>(&mut self, from: &[T]) -> T {
        let at = usize::try_from(self.rng.below(from.len() as u64));
        from[at.expect("an index of a slice")].clone()
    }

    fn new_address(&mut self) -> Address {
        self.addresses += 1;
        Address::from_bits(base::mix(self.addresses) >> (64 - Address::BITS))
    }

    /// Returns the address of one of the key's entries. In three of ten calls it returns an
    /// address of another key or table, or an unused one.
    fn old_address(&mut self, table: TableId, key: &Key) -> Address {
        let own: Vec<_> = self.entries(table, key).into_iter().collect();
        if !own.is_empty() && self.rng.below(10) < 7 {
            return self.choose(&own);
        }
        let all: Vec<_> =
            self.model.values().flat_map(Entries::values).flatten().copied().collect();
        if all.is_empty() { self.new_address() } else { self.choose(&all) }
    }

    fn entries(&self, table: TableId, key: &Key) -> BTreeSet<Address> {
        self.model.get(&table).and_then(|keys| keys.get(key)).cloned().unwrap_or_default()
    }

    fn of(&mut self, table: TableId, key: &Key) -> &mut BTreeSet<Address> {
        self.model.entry(table).or_default().entry(key.clone()).or_default()
    }

    async fn insert(&mut self, table: TableId, key: &Key) {
        let new = self.new_address();
        self.index.insert(table, key, new).await;
        self.of(table, key).insert(new);
    }

    async fn step(&mut self) {
        let keys = self.keys.clone();
        let (table, key) = (self.choose(&TABLES), self.choose(&keys));
        let (old, new) = (self.old_address(table, &key), self.new_address());
        let known = self.entries(table, &key).contains(&old);
        match self.rng.below(1_000) {
            // A key has a second entry now and then, beside damage.
            0..400 if self.entries(table, &key).is_empty() => self.insert(table, &key).await,
            0..10 => self.insert(table, &key).await,
            10..650 => {
                let replaced = self.index.replace(table, &key, old, new).await;
                assert_eq!(replaced, known, "{}: replacing {old:?} of {key:?}", self.name);
                if known {
                    self.of(table, &key).remove(&old);
                    self.of(table, &key).insert(new);
                }
            }
            650..997 => {
                let removed = self.index.remove(table, &key, old).await;
                assert_eq!(removed, known, "{}: removing {old:?} of {key:?}", self.name);
                self.of(table, &key).remove(&old);
            }
            _ => {
                self.index.drop_table(table);
                self.model.remove(&table);
            }
        }
        self.check(table, &key).await;
    }

    /// The key's entries are found, and nothing that is no entry of the table.
    async fn check(&self, table: TableId, key: &Key) {
        let hashed = HashedKey::new(key);
        self.index.prefetch(table, hashed);
        let found = self.index.lookup(table, key).await;
        let own = self.entries(table, key);
        assert!(own.is_subset(&found), "{}: {key:?} has {own:?}, not {found:?}", self.name);
        let all: BTreeSet<_> =
            self.model.get(&table).into_iter().flat_map(Entries::values).flatten().collect();
        assert!(found.iter().all(|at| all.contains(at)), "{}: {found:?} of {key:?}", self.name);
        let entries: usize = self.model.values().flat_map(Entries::values).map(BTreeSet::len).sum();
        assert_eq!(self.index.entries(), entries as u64, "{}: entries", self.name);
    }

    /// A scan from any of 60 keys, present or not, returns the next entries, with none left out
    /// between.
    async fn check_scans(&self, table: TableId) {
        let after = |key: &Key, from: Option<&Key>| {
            from.is_none_or(|from| self.index.compare(key, from) == Ordering::Greater)
        };
        let entries: Vec<(&Key, Address)> = self.model.get(&table).map_or(Vec::new(), |keys| {
            keys.iter().flat_map(|(key, at)| at.iter().map(move |at| (key, *at))).collect()
        });
        let from = self.keys.iter().step_by(self.keys.len() / 60).map(Some);
        for from in from.chain([None]) {
            for limit in [1, 2, 7, 1_000] {
                let found = self.index.scan(table, from.map(HashedKey::new), limit).await;
                let context = format!("{}: {limit} from {from:?}", self.name);
                let unique: BTreeSet<_> = found.iter().map(|entry| entry.address).collect();
                assert_eq!(unique.len(), found.len(), "{context}: an entry is returned once");
                let (returned, rest): (Vec<_>, Vec<_>) =
                    entries.iter().partition(|(_, at)| unique.contains(at));
                assert_eq!(returned.len(), found.len(), "{context}: all are entries of the table");
                let rest: Vec<_> = rest.iter().filter(|(key, _)| after(key, from)).collect();
                if rest.is_empty() {
                    continue;
                }
                assert!(found.len() >= limit, "{context}: {} entries", found.len());
                let last = returned.iter().map(|(key, _)| *key);
                let last = last.max_by(|a, b| self.index.compare(a, b));
                assert!(last.is_some_and(|last| after(last, from)), "{context}: no progress");
                let missed = rest.iter().find(|(key, _)| !after(key, last));
                assert!(missed.is_none(), "{context}: {missed:?} is left out");
            }
        }
    }
}

#[test]
fn an_index_is_a_sorted_map_of_entries() {
    each(&async |name, index| {
        let mut run = Run::new(name, index, 60, 7);
        for step in 0..20_000 {
            run.step().await;
            if step % 400 == 0 {
                run.check_scans(TABLES[step / 400 % TABLES.len()]).await;
            }
        }
        for table in TABLES {
            index.drop_table(table);
            run.model.remove(&table);
            run.check_scans(table).await;
        }
        assert_eq!(index.entries(), 0, "{name}");
    });
}

/// So many that each lane of `hash` has neighbours.
#[test]
fn a_scan_misses_none_of_many_entries() {
    each(&async |name, index| {
        let mut run = Run::new(name, index, 4_000, 3);
        let keys = run.keys.clone();
        for key in keys.iter().filter(|_| run.rng.below(2) == 0).collect::<Vec<_>>() {
            run.insert(TABLES[0], key).await;
        }
        run.check_scans(TABLES[0]).await;
    });
}

#[test]
fn an_index_has_one_order_of_keys_for_ever() {
    let keys = keys(200);
    for (name, make) in INDEXES {
        let (index, other) = (make(&CONFIG, &Arc::default()), make(&CONFIG, &Arc::default()));
        let mut sorted = keys.clone();
        sorted.sort_by(|a, b| index.compare(a, b));
        for (place, a) in sorted.iter().enumerate() {
            for (other_place, b) in sorted.iter().enumerate() {
                assert_eq!(index.compare(a, b), place.cmp(&other_place), "{name}: {a:?}, {b:?}");
                assert_eq!(other.compare(a, b), index.compare(a, b), "{name}: {a:?}, {b:?}");
            }
        }
    }
}

/// The least that an entry can take is its address. What a dropped table took is given back.
#[test]
fn the_memory_of_an_index_grows_and_shrinks_with_its_entries() {
    each(&async |name, index| {
        let empty = index.memory_bytes();
        let mut run = Run::new(name, index, 3_000, 1);
        let keys = run.keys.clone();
        for key in &keys {
            run.insert(TABLES[0], key).await;
        }
        let full = index.memory_bytes();
        let least = keys.len() as u64 * u64::from(Address::BITS / 8);
        assert!(full >= empty + least, "{name}: {full} bytes for {} entries", keys.len());
        for key in &keys {
            for at in run.entries(TABLES[0], key) {
                run.index.replace(TABLES[0], key, at, Address::MAX).await;
            }
        }
        assert_eq!(index.memory_bytes(), full, "{name}: another address takes the same");
        index.drop_table(TABLES[0]);
        let after = index.memory_bytes();
        assert!(after < empty + least, "{name}: {after} bytes for no entry, {empty} at first");
    });
}

/// Keys as List commands return them in buffers of `room` bytes, each from where the last ended.
async fn list(device: &Device, start: &Key, room: u32) -> Vec<Key> {
    let queue = device.controller().queue_pair();
    let (mut keys, mut from): (Vec<Key>, Key) = (Vec::new(), start.clone());
    loop {
        let command = Command::list(Device::NAMESPACE, from.as_bytes(), room);
        queue.submit(Submission::new(command, &from));
        let completion = queue.next().await;
        assert_eq!(completion.status, Status::SUCCESS);
        let data = completion.data.bytes().expect("a list is never a phantom");
        let met = ListReader::new(data).expect("a list has a count");
        let met = met.map(|bytes| key(bytes.expect("a list is whole")));
        let more: Vec<_> = met.filter(|key| keys.last() != Some(key)).collect();
        let Some(last) = more.last() else { return keys };
        from = last.clone();
        keys.extend(more);
    }
}

#[test]
fn a_device_with_the_btree_lists_keys_in_the_order_of_their_bytes() {
    let mut profile = Profile::load("moke").unwrap();
    profile.index = profile::Index::named("btree");
    Reactor::new(None).run(async {
        let cells = Device::manufacture(&profile, 1);
        let device = Device::format(&profile, cells, 1, FaultPlan::default()).await.unwrap();
        let queue = device.controller().queue_pair();
        let keys = keys(300);
        // Every other key is stored, the last first.
        let stored: Vec<Key> = keys.iter().step_by(2).cloned().collect();
        for key in stored.iter().rev() {
            let command = Command::store(Device::NAMESPACE, key.as_bytes(), 9, StoreOptions::NONE);
            queue.submit(Submission::with_data(command, key, Buf::phantom(9, 1)));
            assert_eq!(queue.next().await.status, Status::SUCCESS);
        }
        for start in keys.iter().step_by(23) {
            let expected: Vec<_> = stored.iter().filter(|key| *key >= start).cloned().collect();
            for room in [600, 4_096] {
                assert_eq!(list(&device, start, room).await, expected, "from {start:?}");
            }
        }
    });
}

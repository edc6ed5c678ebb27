//! Lives of a store between losses of power, and a model of it.

use crate::checkpoints::medium::{Cells, Slow};
use base::{Buf, Key, Nanos, Rng};
use clock::Stage;
use engine::{
    Ack, Condition, Config, Error, HashIndex, IndexConfig, KeySpaceId, Live, Recovery, Store, Usage,
};
use media::{ExtentId, Shape, Victims};
use reactor::Reactor;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

const KEYS: u64 = 90;
const CLIENTS: u64 = 6;
pub(crate) const SPACE: KeySpaceId = KeySpaceId(1);
/// A key space that the test creates and deletes again and again.
const OTHER: KeySpaceId = KeySpaceId(2);

/// A value, by its length and checksum; `None` for a key that is not there.
type Content = Option<(u32, u64)>;

/// The acknowledged state of a store, as hosts know it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    pub(crate) pairs: BTreeMap<u64, (u32, u64)>,
    /// Changes that were not answered.
    open: BTreeMap<u64, Content>,
    pub(crate) other: Option<BTreeMap<u64, (u32, u64)>>,
    /// The other key space is being created, deleted or written to.
    other_is_open: bool,
    pub(crate) checkpoints: u64,
}

/// The state of a store, as its functions return it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) pairs: BTreeMap<u64, Result<(u32, u64), Error>>,
    pub(crate) other: Option<BTreeMap<u64, (u32, u64)>>,
    pub(crate) usage: Usage,
    pub(crate) live: Vec<(ExtentId, Live)>,
    pub(crate) listed: Vec<Key>,
}

pub(crate) fn key(number: u64) -> Key {
    let len = [8, 16, 17, 120][usize::try_from(number % 4).expect("below 4")];
    let mut bytes = vec![0x5A; len];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    Key::new(&bytes).expect("120 bytes or less")
}

pub(crate) fn shape(rng: &mut Rng) -> Shape {
    let pick = |rng: &mut Rng, of: [u32; 3]| of[usize::try_from(rng.below(3)).expect("few")];
    Shape {
        page_bytes: 4_096,
        spare_bytes: pick(rng, [0, 120, 1_000]),
        pages_per_extent: pick(rng, [12, 16, 32]),
        extents: pick(rng, [18, 22, 28]),
        parallelism: 4,
        frames: None,
    }
}

pub(crate) fn config(rng: &mut Rng, shape: &Shape) -> Config {
    let victims = [Victims::Greedy, Victims::Fifo, Victims::Random, Victims::CostBenefit];
    let room = shape.extent_bytes() * u64::from(shape.extents - 6);
    Config {
        capacity_bytes: room * [40, 60, 75][usize::try_from(rng.below(3)).expect("few")] / 100,
        ack: Ack::Program,
        victims: victims[usize::try_from(rng.below(4)).expect("few")],
        index: |_, lanes| Box::new(HashIndex::new(lanes)),
        index_config: IndexConfig::default(),
        checkpoint_bytes: [0, 0, 100_000][usize::try_from(rng.below(3)).expect("few")],
        headers_bytes: 0,
        cache_bytes: 0,
        saves_buffer: true,
        reactors: 1,
        group: clock::Group::new(),
        seed: rng.next_u64(),
    }
}

fn size(rng: &mut Rng) -> u32 {
    let len = match rng.below(8) {
        0 => rng.below(9),
        1..4 => rng.below(500),
        4..7 => rng.below(4_000),
        _ => 4_096 + rng.below(7_000),
    };
    u32::try_from(len).expect("a few pages")
}

/// Nothing has no tag.
fn phantom(len: u32, tag: u64) -> Buf {
    Buf::phantom(len, if len == 0 { 0 } else { tag })
}

/// Changes a key of `SPACE`.
async fn change(store: &Arc<Store>, model: &RefCell<Model>, rng: &RefCell<Rng>, deletes: u64) {
    let number = {
        let model = model.borrow();
        let mut rng = rng.borrow_mut();
        let free: Vec<u64> = (0..KEYS).filter(|key| !model.open.contains_key(key)).collect();
        free[usize::try_from(rng.below(free.len() as u64)).expect("few keys")]
    };
    let delete = rng.borrow_mut().below(100) < deletes;
    let len = size(&mut rng.borrow_mut());
    let tag = rng.borrow_mut().next_u64();
    let value = phantom(len, tag);
    let content = (!delete).then(|| (len, value.checksum()));
    model.borrow_mut().open.insert(number, content);
    let announced = store.announce();
    let done = if delete {
        store.delete(SPACE, &key(number), announced).await
    } else {
        let write = Condition::Always.into();
        store.put(SPACE, &key(number), &value, write, announced).await.map(drop)
    };
    let mut model = model.borrow_mut();
    model.open.remove(&number);
    match done {
        Ok(()) => drop(match content {
            Some(content) => model.pairs.insert(number, content),
            None => model.pairs.remove(&number),
        }),
        Err(Error::KeyNotFound) => assert!(!model.pairs.contains_key(&number)),
        Err(error) => assert_eq!(error, Error::CapacityExceeded),
    }
}

/// Creates the other key space, writes to it, deletes it.
async fn come_and_go(store: &Arc<Store>, model: &RefCell<Model>, rng: &RefCell<Rng>) {
    model.borrow_mut().other_is_open = true;
    let exists = model.borrow().other.is_some();
    if !exists {
        if store.create_key_space(OTHER).await.is_ok() {
            model.borrow_mut().other = Some(BTreeMap::new());
        }
    } else if rng.borrow_mut().below(12) == 0 {
        if store.delete_key_space(OTHER).await.is_ok() {
            model.borrow_mut().other = None;
        }
    } else {
        let number = rng.borrow_mut().below(KEYS / 4);
        let value = phantom(size(&mut rng.borrow_mut()), number);
        let (write, announced) = (Condition::Always.into(), store.announce());
        if store.put(OTHER, &key(number), &value, write, announced).await.is_ok() {
            let mut model = model.borrow_mut();
            let other = model.other.as_mut().expect("it exists");
            other.insert(number, (value.len(), value.checksum()));
        }
    }
    model.borrow_mut().other_is_open = false;
}

/// Reads the whole state of a store.
pub(crate) async fn look(store: &Arc<Store>) -> Seen {
    // Before the cleaner has its first turn.
    let mut usage = store.usage();
    (usage.extents_free, usage.index_bytes) = (0, 0);
    let mut live = store.live_by_extent();
    live.retain(|(_, live)| live.records > 0);
    let mut pairs = BTreeMap::new();
    for number in 0..KEYS {
        match store.get(SPACE, &key(number)).await {
            Err(Error::KeyNotFound) => {}
            found => {
                pairs.insert(number, found.map(|value| (value.len(), value.checksum())));
            }
        }
    }
    let mut other = None;
    if store.key_spaces().contains(&OTHER) {
        let mut pairs = BTreeMap::new();
        for number in 0..KEYS / 4 {
            if let Ok(value) = store.get(OTHER, &key(number)).await {
                pairs.insert(number, (value.len(), value.checksum()));
            }
        }
        other = Some(pairs);
    }
    let mut listed = Vec::new();
    // A key that cannot be read ends the list.
    let take = |key: &Key| {
        listed.push(key.clone());
        true
    };
    let _ = store.list(SPACE, None, take).await;
    Seen { pairs, other, usage, live, listed }
}

pub(crate) fn sum(live: &[(ExtentId, Live)]) -> Live {
    live.iter().map(|(_, live)| *live).sum()
}

impl Model {
    /// Checks the state after a loss of power, and takes over the outcome of unanswered changes.
    fn settle(&mut self, seen: &Seen, what: &str) {
        let mut open = std::mem::take(&mut self.open);
        for number in 0..KEYS {
            let found = seen.pairs.get(&number).copied().transpose();
            let found = found.unwrap_or_else(|error| panic!("{what}: key {number}: {error}"));
            if found != self.pairs.get(&number).copied() {
                let change = open.remove(&number);
                let known = self.pairs.get(&number);
                assert_eq!(change, Some(found), "{what}: key {number} was {known:?}");
                match found {
                    Some(content) => drop(self.pairs.insert(number, content)),
                    None => drop(self.pairs.remove(&number)),
                }
            }
        }
        if !std::mem::take(&mut self.other_is_open) {
            assert_eq!(seen.other, self.other, "{what}: the key space that comes and goes");
        }
        self.other.clone_from(&seen.other);
        let pairs = self.pairs.len() + self.other.as_ref().map_or(0, BTreeMap::len);
        let of_store = seen.usage.values.records - pairs as u64;
        assert!((2..=4).contains(&of_store), "{what}: {of_store} records of key spaces");
        assert_eq!(seen.usage.index_entries, seen.usage.values.records, "{what}: an entry each");
        let sum = sum(&seen.live);
        assert_eq!(sum, seen.usage.values, "{what}: the sum over extents");
        let others = self.other.iter().flat_map(BTreeMap::keys);
        let long = self.pairs.keys().chain(others).filter(|number| key(**number).is_long());
        assert_eq!(sum.long_keys, long.count() as u64, "{what}: long keys");
    }
}

/// Opens the store in the cells and reads its state.
pub(crate) fn reopen(
    cells: &Arc<Cells>,
    config: &dyn Fn() -> Config,
    what: &str,
) -> (Seen, Recovery) {
    Reactor::new(None).run(async {
        let medium = cells.power();
        let (store, recovery) = open(&medium, config(), what).await;
        (look(&store).await, recovery)
    })
}

pub(crate) async fn open(medium: &Arc<Slow>, config: Config, what: &str) -> (Arc<Store>, Recovery) {
    let opened = Store::open(medium.clone(), config).await;
    let (store, recovery) = opened.unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(medium.reads(), recovery.pages_read, "{what}: it says what it has read");
    (store, recovery)
}

/// Runs a store until a loss of power at a random instant.
pub(crate) fn live(
    cells: &Arc<Cells>,
    model: Model,
    seed: u64,
    config: &dyn Fn() -> Config,
    is_first: bool,
) -> Model {
    let model = Rc::new(RefCell::new(model));
    let rng = Rc::new(RefCell::new(Rng::new(seed)));
    let what = format!("seed {seed:#x}");
    Reactor::new(seed.is_multiple_of(2).then_some(seed)).run(async {
        let medium = cells.power();
        let store = if is_first {
            let store = Store::format(medium, config());
            store.create_key_space(SPACE).await.expect("there is room for it");
            store
        } else {
            let (store, _) = open(&medium, config(), &what).await;
            let seen = look(&store).await;
            model.borrow_mut().settle(&seen, &what);
            store
        };
        let deletes = rng.borrow_mut().below(50);
        for _ in 0..CLIENTS {
            let (store, model, rng) = (store.clone(), model.clone(), rng.clone());
            clock::spawn(async move {
                loop {
                    change(&store, &model, &rng, deletes).await;
                    let pause = rng.borrow_mut().below(100_000);
                    clock::sleep(Nanos(pause), Stage::Core).await;
                }
            });
        }
        {
            let (store, model, rng) = (store.clone(), model.clone(), rng.clone());
            clock::spawn(async move {
                loop {
                    come_and_go(&store, &model, &rng).await;
                    let pause = rng.borrow_mut().below(1_000_000);
                    clock::sleep(Nanos(pause), Stage::Core).await;
                }
            });
        }
        {
            let (store, model, rng) = (store.clone(), model.clone(), rng.clone());
            clock::spawn(async move {
                loop {
                    let pause = (1 << rng.borrow_mut().below(24)) + 100_000;
                    clock::sleep(Nanos(pause), Stage::Core).await;
                    let made = store.checkpoint().await;
                    model.borrow_mut().checkpoints += u64::from(made.is_ok());
                }
            });
        }
        some_time(&model, &rng).await;
    });
    Rc::into_inner(model).expect("all tasks are gone").into_inner()
}

/// Waits until the instant of the loss of power; in half of all cases that is soon after a
/// checkpoint.
async fn some_time(model: &RefCell<Model>, rng: &RefCell<Rng>) {
    let below = |bound| rng.borrow_mut().below(bound);
    let longest = 400_000_000 >> below(4);
    clock::sleep(Nanos(below(longest)), Stage::Core).await;
    if below(2) > 0 {
        return;
    }
    // If there is one.
    let before = model.borrow().checkpoints;
    for _ in 0..1_000 {
        if model.borrow().checkpoints > before {
            break;
        }
        clock::sleep(Nanos(20_000), Stage::Core).await;
    }
    clock::sleep(Nanos(below(4_000_000)), Stage::Core).await;
}

/// Opens a store in vain: power goes before it is open, or soon after.
pub(crate) fn open_in_vain(cells: &Arc<Cells>, config: &dyn Fn() -> Config, after: Nanos) {
    Reactor::new(None).run(async {
        let (medium, config) = (cells.power(), config());
        clock::spawn(async move {
            assert!(Store::open(medium, config).await.is_ok(), "it opens again");
        });
        clock::sleep(after, Stage::Core).await;
    });
}

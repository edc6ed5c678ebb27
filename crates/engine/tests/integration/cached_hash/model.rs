//! A store with the index against maps: clients side by side, each with keys of its own.

use crate::cached_hash::medium::Slow;
use base::{Buf, Key, Nanos, Rng, mix};
use clock::Stage;
use engine::{
    Ack, CachedHashIndex, Condition, Config, Error, IndexConfig, KeySpaceId, MakeIndex, Store,
    Usage,
};
use media::{Shape, Victims};
use reactor::Reactor;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

pub(crate) const SPACE: KeySpaceId = KeySpaceId(1);

/// Leaves of at most eight entries: a hundred keys fill more than the fewest frames.
const SMALL: MakeIndex = |config, _| Box::new(CachedHashIndex::with_leaves_of(8, config));

pub(crate) const fn shape(spare_bytes: u32) -> Shape {
    Shape {
        page_bytes: 2_048,
        spare_bytes,
        pages_per_extent: 32,
        extents: 40,
        parallelism: 4,
        frames: None,
    }
}

/// A run's device and load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) clients: u64,
    pub(crate) keys_of_client: u64,
    pub(crate) operations: u64,
    pub(crate) dram_bytes: u64,
    pub(crate) spare_bytes: u32,
    pub(crate) buffered: bool,
    pub(crate) checkpoint_bytes: u64,
}

impl Plan {
    pub(crate) fn of(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        Self {
            seed,
            clients: [1, 4, 24][usize::try_from(rng.below(3)).unwrap()],
            keys_of_client: 12 + rng.below(20),
            operations: 250,
            dram_bytes: rng.below(60) * 4_096,
            spare_bytes: [0, 128][usize::try_from(rng.below(2)).unwrap()],
            buffered: rng.below(4) == 0,
            checkpoint_bytes: [0, 200 << 10][usize::try_from(rng.below(2)).unwrap()],
        }
    }

    pub(crate) fn config(&self) -> Config {
        let keys_max = self.clients * self.keys_of_client + 10;
        Config {
            capacity_bytes: 22 * shape(0).extent_bytes(),
            ack: if self.buffered { Ack::Buffer { bytes: 16 << 10 } } else { Ack::Program },
            victims: Victims::Greedy,
            index: SMALL,
            index_config: IndexConfig { dram_bytes: self.dram_bytes, keys_max },
            checkpoint_bytes: self.checkpoint_bytes,
            headers_bytes: 0,
            cache_bytes: 0,
            saves_buffer: true,
            reactors: 1,
            group: clock::Group::new(),
            seed: self.seed,
        }
    }
}

type Content = (u32, u64);
pub(crate) type Model = BTreeMap<Key, Content>;

/// Key `number` of a client: clients' keys lie side by side in every leaf.
fn key(client: u64, number: u64) -> Key {
    Key::new(&mix(client << 32 | number).to_le_bytes()).unwrap()
}

/// Runs the operations of a client, one after the other.
async fn client(store: Arc<Store>, plan: Plan, client: u64, model: Rc<RefCell<Model>>) {
    let mut rng = Rng::new(mix(plan.seed << 8 | client));
    for version in 0..plan.operations {
        let key = key(client, rng.below(plan.keys_of_client));
        let known = model.borrow().get(&key).copied();
        match rng.below(10) {
            0..5 => {
                let value =
                    Buf::phantom(1 + u32::try_from(rng.below(2_500)).unwrap(), mix(version));
                let write = Condition::Always.into();
                let put = store.put(SPACE, &key, &value, write, store.announce()).await;
                match put {
                    Ok(_) => model.borrow_mut().insert(key, (value.len(), value.checksum())),
                    Err(error) => {
                        panic!("{plan:?}: putting {key:?}: {error}, {:?}", store.usage())
                    }
                };
            }
            5..7 => {
                let deleted = store.delete(SPACE, &key, store.announce()).await;
                let expected = known.map(drop).ok_or(Error::KeyNotFound);
                assert_eq!(deleted, expected, "{plan:?}: deleting {key:?}");
                model.borrow_mut().remove(&key);
            }
            7 => {
                let exists = store.exist(SPACE, &key).await;
                assert_eq!(exists, Ok(known.is_some()), "{plan:?}: {key:?}");
            }
            _ => {
                let got = store.get(SPACE, &key).await.map(|value| (value.len(), value.checksum()));
                assert_eq!(got, known.ok_or(Error::KeyNotFound), "{plan:?}: getting {key:?}");
            }
        }
    }
}

/// Checks that the store has every key of the model and no other.
pub(crate) async fn check(store: &Arc<Store>, plan: Plan, model: &RefCell<Model>) {
    let model = model.borrow().clone();
    let mut listed = Vec::new();
    store
        .list(SPACE, None, |key| {
            listed.push(key.clone());
            true
        })
        .await
        .unwrap();
    listed.sort();
    let expected: Vec<Key> = model.keys().cloned().collect();
    assert_eq!(listed.len(), expected.len(), "{plan:?}: keys listed");
    assert_eq!(listed, expected, "{plan:?}");
    for (key, content) in &model {
        let got = store.get(SPACE, key).await.map(|value| (value.len(), value.checksum()));
        assert_eq!(got, Ok(*content), "{plan:?}: {key:?}");
    }
    let usage = store.usage();
    let live = store.live_by_extent();
    let sum: u64 = live.iter().map(|(_, live)| live.bytes).sum();
    assert_eq!(usage.values.bytes, sum, "{plan:?}: live bytes of all extents");
    // A key space has two records of the store's own.
    assert_eq!(usage.values.records, model.len() as u64 + 2, "{plan:?}: live records");
    assert_eq!(usage.index_entries, model.len() as u64 + 2, "{plan:?}: entries");
}

pub(crate) async fn run_clients(store: &Arc<Store>, plan: Plan, model: &Rc<RefCell<Model>>) {
    let clients =
        (0..plan.clients).map(|number| client(store.clone(), plan, number, model.clone()));
    clock::join_all(clients.collect()).await;
}

/// Returns the counts that do not depend on free extents, memory or tombstones, of which some are
/// needless.
pub(crate) fn counted(usage: Usage) -> (engine::Live, u64) {
    (usage.values, usage.index_entries)
}

fn run(plan: Plan, ends: End) {
    let media = Arc::new(Slow::new(shape(plan.spare_bytes), plan.seed));
    let model = Rc::new(RefCell::new(Model::new()));
    let mut before = None;
    Reactor::new(Some(plan.seed)).run(async {
        let store = Store::format(media.clone(), plan.config());
        store.create_key_space(SPACE).await.unwrap();
        run_clients(&store, plan, &model).await;
        check(&store, plan, &model).await;
        if ends == End::Stops {
            store.flush().await.unwrap();
            store.checkpoint().await.unwrap();
        }
        let counts = store.index_counts();
        let budget = plan.dram_bytes.max(24 * 4_096);
        assert!(counts.dram_bytes <= budget, "{plan:?}: {counts:?}");
        before = Some(counted(store.usage()));
    });
    for life in 0..2 {
        let plan = Plan { seed: plan.seed + 1_000 * (life + 1), ..plan };
        Reactor::new(Some(plan.seed)).run(async {
            let (store, _) = Store::open(media.clone(), plan.config()).await.unwrap();
            assert_eq!(Some(counted(store.usage())), before, "{plan:?}: life {life}");
            check(&store, plan, &model).await;
            run_clients(&store, plan, &model).await;
            check(&store, plan, &model).await;
            if ends == End::Stops {
                store.checkpoint().await.unwrap();
            }
            before = Some(counted(store.usage()));
        });
    }
}

/// Table pages are lost while the store runs, and while it does not.
fn run_with_damage(plan: Plan) {
    let media = Arc::new(Slow::new(shape(plan.spare_bytes), plan.seed));
    let model = Rc::new(RefCell::new(Model::new()));
    Reactor::new(Some(plan.seed)).run(async {
        let store = Store::format(media.clone(), plan.config());
        store.create_key_space(SPACE).await.unwrap();
        run_clients(&store, plan, &model).await;
        for life in 0..3 {
            let plan = Plan { seed: plan.seed + 1_000 * (life + 1), ..plan };
            // Also while the cleaner is at work.
            let damaged = media.clone();
            clock::spawn(async move {
                for _ in 0..100 {
                    clock::sleep(Nanos::from_micros(900), Stage::Array).await;
                    damaged.damage_tables();
                }
            });
            run_clients(&store, plan, &model).await;
            check(&store, plan, &model).await;
        }
        store.flush().await.unwrap();
        store.checkpoint().await.unwrap();
    });
    media.damage_tables();
    Reactor::new(Some(plan.seed)).run(async {
        let (store, _) = Store::open(media.clone(), plan.config()).await.unwrap();
        check(&store, plan, &model).await;
        run_clients(&store, plan, &model).await;
        check(&store, plan, &model).await;
    });
}

/// How a life ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// With a checkpoint.
    Stops,
    /// By a loss of power, without notice.
    IsCut,
}

fn seeds() -> std::ops::Range<u64> {
    let from = std::env::var("SEED").ok().map(|seed| seed.parse::<u64>().unwrap());
    from.map_or(0..30, |seed| seed..seed + 1)
}

#[test]
fn a_store_with_a_small_budget_equals_a_map_also_after_a_stop() {
    for seed in seeds() {
        run(Plan::of(seed), End::Stops);
    }
}

#[test]
fn a_store_with_a_small_budget_equals_a_map_also_after_a_loss_of_power() {
    for seed in seeds() {
        // Without capacitors the content of a buffer would be lost.
        run(Plan { buffered: false, ..Plan::of(seed) }, End::IsCut);
    }
}

#[test]
fn damage_to_the_table_of_an_index_changes_nothing() {
    for seed in seeds() {
        run_with_damage(Plan { clients: 24, ..Plan::of(seed) });
    }
}

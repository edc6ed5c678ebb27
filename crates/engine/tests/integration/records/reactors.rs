//! Several reactors store, and clean a victim together.

use crate::records::medium::Wary;
use crate::records::rig::{
    SPACES, beside, check_counts, config, content, format_with, found, key, reopen, rest, shape,
    store_one, value,
};
use base::{Buf, Rng};
use engine::{Ack, Config, Store, WorkPool, Write};
use media::{Media, Victims};
use reactor::{PeerGroup, Places};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

const REACTORS: usize = 4;
const KEYS: u64 = 120;
const OVERWRITES: u64 = 1_500;

/// The last values of all keys.
type Model = BTreeMap<u64, Buf>;

async fn store_random(store: &Arc<Store>, model: &RefCell<Model>, keys: [u64; 2], seed: u64) {
    let mut rng = Rng::new(seed);
    for version in 0..OVERWRITES {
        let number = keys[0] + rng.below(keys[1]);
        let key = key(number);
        let value = value(u32::try_from(rng.below(900)).expect("it is small"), version);
        let put = store.put(SPACES[0], &key, &value, Write::default(), store.announce());
        put.await.expect("there is room");
        model.borrow_mut().insert(number, value);
    }
}

async fn check(store: &Arc<Store>, model: &Model) {
    for (number, value) in model {
        assert_eq!(found(store, SPACES[0], *number).await, content(value), "key {number}");
    }
}

/// Overwrites keys of a store for whose pool all reactors work, and opens what is left on its
/// medium. Returns how many reactors have moved records.
async fn clean_together(places: Places, seed: u64) -> usize {
    let pool = Arc::new(WorkPool::default());
    for place in 1..REACTORS {
        let pool = pool.clone();
        places.spawn(place, async move { drop(pool.join()) });
    }
    rest().await;
    let medium = Arc::new(Wary::new(shape(1_024, 64)));
    let config = Config { reactors: 4, ..config(medium.shape(), Ack::Program) };
    let store = Store::format_among(pool, medium.clone(), config);
    for space in SPACES {
        store.create_key_space(space).await.expect("there is room");
    }
    let model = Rc::new(RefCell::new(Model::new()));
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let (store, model) = (store.clone(), model.clone());
            beside(async move {
                let keys = [writer * KEYS / 4, KEYS / 4];
                store_random(&store, &model, keys, seed ^ writer << 32).await;
            })
        })
        .collect();
    while writers.iter().any(|writer| writer.borrow().is_none()) {
        rest().await;
    }
    rest().await;
    let model = model.take();
    check(&store, &model).await;
    check_counts(&store, model.len() as u64);
    let (opened, _) = reopen(&medium).await;
    check(&opened, &model).await;
    check_counts(&opened, model.len() as u64);
    store.work_by_reactor().into_iter().filter(|work| work.records_moved > 0).count()
}

#[test]
fn several_reactors_move_the_records_of_victims_and_all_keys_keep_their_values() {
    let mut with_several = 0;
    for seed in 0..20 {
        let mut group = PeerGroup::new(REACTORS, seed, Some(seed));
        group.preempt_often(4, 8);
        let places = group.places();
        with_several += u32::from(group.run(clean_together(places, seed)) > 1);
    }
    assert_eq!(with_several, 20, "in so many runs more than one reactor has moved records");
}

/// Returns a store of two reactors on `medium`, which keeps all headers in memory.
async fn store_of_two(medium: &Arc<Wary>) -> Arc<Store> {
    let config = Config {
        reactors: 2,
        headers_bytes: 1 << 20,
        victims: Victims::Greedy,
        ..config(medium.shape(), Ack::Program)
    };
    format_with(medium, config).await
}

/// Overwrites one key until this ends, and counts the stores that have landed.
async fn overwrite(store: Arc<Store>, number: u64, count: Rc<Cell<u64>>) {
    for version in 0..OVERWRITES {
        let (key, value) = (key(number), value(700, version));
        let put = store.put(SPACES[0], &key, &value, Write::default(), store.announce());
        put.await.expect("there is room");
        count.set(count.get() + 1);
    }
}

#[test]
fn a_reactor_stores_in_its_open_extent_while_stores_of_another_wait_for_space() {
    let mut group = PeerGroup::new(2, 1, Some(1));
    let places = group.places();
    group.run(async move {
        let medium = Arc::new(Wary::new(shape(1_024, 64)));
        let store = store_of_two(&medium).await;
        store_one(&store, SPACES[0], 0, &value(100, 0)).await;
        medium.hold_reads();
        let count = Rc::new(Cell::new(0));
        places.spawn(1, overwrite(store.clone(), 1, count.clone()));
        rest().await;
        let before = count.get();
        assert!((100..OVERWRITES).contains(&before), "no space is left after {before} stores");
        for version in 1..4 {
            let stored = beside({
                let store = store.clone();
                async move { store_one(&store, SPACES[0], 0, &value(100, version)).await }
            });
            rest().await;
            assert!(stored.borrow().is_some(), "store {version} needs no space of the other");
        }
        assert_eq!(count.get(), before, "the cleaner has freed nothing yet");
        medium.release_reads();
        rest().await;
        assert_eq!(count.get(), OVERWRITES);
    });
}

//! Several reactors store, and clean a victim together.

use crate::records::medium::Wary;
use crate::records::rig::{
    SPACES, beside, check_counts, config, content, format_with, found, key, reopen, rest, shape,
    store_one, value,
};
use base::{Buf, Rng};
use engine::{Ack, Config, Store, WorkPool, Write};
use media::{Media, Shape, Victims};
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

/// Returns a store for whose pool all reactors work.
async fn format_among(places: &Places, medium: &Arc<Wary>, victims: Victims) -> Arc<Store> {
    let pool = Arc::new(WorkPool::default());
    for place in 1..REACTORS {
        let pool = pool.clone();
        places.spawn(place, async move { drop(pool.join()) });
    }
    rest().await;
    let headers_bytes = 1 << 20;
    let config =
        Config { reactors: 4, victims, headers_bytes, ..config(medium.shape(), Ack::Program) };
    let store = Store::format_among(pool, medium.clone(), config);
    for space in SPACES {
        store.create_key_space(space).await.expect("there is room");
    }
    store
}

/// Overwrites keys of a store for whose pool all reactors work, and opens what is left on its
/// medium. Returns how many reactors have moved records.
async fn clean_together(places: Places, seed: u64) -> usize {
    let medium = Arc::new(Wary::new(shape(1_024, 64)));
    let store = format_among(&places, &medium, Victims::Fifo).await;
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

/// Overwrites key 0 so many times. Each value gets a page to itself.
async fn fill_pages(store: &Arc<Store>, count: u64) {
    for version in 0..count {
        store_one(store, SPACES[0], 0, &value(700, version)).await;
    }
}

/// Fills all space with extents that are half alive. The oldest have less that lives: the first one
/// has the record of key 1 and some more, the second its tombstone, and the next two nothing.
async fn fill_around_tombstone(store: Arc<Store>, shape: Shape) {
    let pages = u64::from(shape.pages_per_extent);
    for number in 1..4 {
        store_one(&store, SPACES[0], number, &value(700, number)).await;
    }
    fill_pages(&store, pages).await;
    store.delete(SPACES[0], &key(1), store.announce()).await.expect("it is there");
    fill_pages(&store, 3 * pages).await;
    for number in 10..u64::from(shape.extents) * pages / 2 {
        store_one(&store, SPACES[0], number, &value(500, number)).await;
        fill_pages(&store, 1).await;
    }
}

#[test]
fn a_tombstone_outlasts_the_record_that_it_hides_when_the_extents_of_both_are_cleaned_together() {
    let mut group = PeerGroup::new(REACTORS, 1, Some(1));
    let places = group.places();
    group.run(async move {
        let shape = Shape { extents: 256, ..shape(1_024, 64) };
        let medium = Arc::new(Wary::new(shape));
        let store = format_among(&places, &medium, Victims::Greedy).await;
        medium.hold_reads();
        let filled = beside(fill_around_tombstone(store, shape));
        rest().await;
        let used = medium.extents().len();
        assert!(used + 3 >= shape.extents as usize, "only {used} extents are used");
        assert!(filled.borrow().is_none(), "there is space left");
        medium.keep_remains();
        medium.release_reads();
        rest().await;
        let remains = medium.kept_remains();
        assert!(remains.len() > 8, "{} resets", remains.len());
        for (number, medium) in remains.iter().take(8).enumerate() {
            let (opened, _) = reopen(medium).await;
            assert_eq!(found(&opened, SPACES[0], 1).await, None, "after reset {number}");
            assert_eq!(found(&opened, SPACES[0], 2).await, content(&value(700, 2)));
        }
    });
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

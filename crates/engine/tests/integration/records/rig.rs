//! A store on a wary medium.

use crate::records::medium::Wary;
use base::{Buf, Key, Nanos};
use clock::Stage;
use engine::{
    Ack, BatchOp, BatchWrite, Config, Error, HashIndex, IndexConfig, KeySpaceId, Live, Store, Write,
};
use media::{Media, Shape, Victims};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// The key spaces that stores of these tests have.
pub(crate) const SPACES: [KeySpaceId; 3] = [KeySpaceId(1), KeySpaceId(2), KeySpaceId(3)];

pub(crate) const fn shape(page_bytes: u32, spare_bytes: u32) -> Shape {
    Shape {
        page_bytes,
        spare_bytes,
        pages_per_extent: 32,
        extents: 16,
        parallelism: 4,
        frames: None,
    }
}

pub(crate) fn config(shape: Shape, ack: Ack) -> Config {
    Config {
        capacity_bytes: u64::from(shape.extents - 6) * shape.extent_bytes() * 6 / 10,
        ack,
        // Other policies may never clean an extent.
        victims: Victims::Fifo,
        index: |_, lanes| Box::new(HashIndex::new(lanes)),
        index_config: IndexConfig::default(),
        checkpoint_bytes: 0,
        headers_bytes: 0,
        cache_bytes: 0,
        saves_buffer: true,
        reactors: 1,
        group: clock::Group::new(),
        seed: 1,
    }
}

/// Returns a store with [`SPACES`] on an empty medium.
pub(crate) async fn format(medium: &Arc<Wary>, ack: Ack) -> Arc<Store> {
    format_with(medium, config(medium.shape(), ack)).await
}

pub(crate) async fn format_with(medium: &Arc<Wary>, config: Config) -> Arc<Store> {
    let store = Store::format(medium.clone(), config);
    for space in SPACES {
        store.create_key_space(space).await.expect("there is room");
    }
    store
}

/// Opens the store that a loss of power leaves on `medium`. Returns it with its own medium.
pub(crate) async fn reopen(medium: &Wary) -> (Arc<Store>, Arc<Wary>) {
    let medium = Arc::new(medium.remains());
    let config = config(medium.shape(), Ack::Program);
    (Store::open(medium.clone(), config).await.expect("it opens").0, medium)
}

pub(crate) fn key(number: u64) -> Key {
    let len = [1, 7, 16, 33, 200][usize::try_from(number % 5).expect("below 5")].max(8);
    let mut bytes = vec![0xA5; len];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    Key::new(&bytes).expect("8 to 200 bytes")
}

pub(crate) fn value(len: u32, tag: u64) -> Buf {
    Buf::phantom(len, if len == 0 { 0 } else { tag })
}

pub(crate) fn put(space: KeySpaceId, number: u64, value: Buf) -> BatchWrite {
    let op = BatchOp::Put { value, write: Write::default() };
    BatchWrite { space, key: key(number), op }
}

pub(crate) fn delete(space: KeySpaceId, number: u64) -> BatchWrite {
    BatchWrite { space, key: key(number), op: BatchOp::DELETE }
}

pub(crate) async fn store_one(store: &Arc<Store>, space: KeySpaceId, number: u64, value: &Buf) {
    let announced = store.announce();
    store
        .put(space, &key(number), value, Write::default(), announced)
        .await
        .expect("there is room");
}

/// Returns the length and checksum of the key's value, if it exists.
pub(crate) async fn found(
    store: &Arc<Store>,
    space: KeySpaceId,
    number: u64,
) -> Option<(u32, u64)> {
    match store.get(space, &key(number)).await {
        Ok(value) => content(&value),
        Err(Error::KeyNotFound) => None,
        Err(error) => panic!("{error} for key {number}"),
    }
}

/// Returns what [`found`] returns of this value. All empty values are equal.
#[expect(clippy::unnecessary_wraps, reason = "it is compared with what may be nothing")]
pub(crate) fn content(value: &Buf) -> Option<(u32, u64)> {
    Some((value.len(), if value.len() == 0 { 0 } else { value.checksum() }))
}

/// Overwrites other keys until so many extents have been reset, then deletes those.
pub(crate) async fn churn(store: &Arc<Store>, medium: &Wary, resets: u64) {
    let goal = medium.resets() + resets;
    for round in 0.. {
        if medium.resets() >= goal {
            break;
        }
        assert!(round < 100_000, "nothing is cleaned");
        let space = SPACES[usize::try_from(round % 3).expect("below 3")];
        store_one(store, space, 1_000 + round % 30, &value(900, round)).await;
    }
    for number in 1_000..1_030 {
        for space in SPACES {
            let deleted = store.delete(space, &key(number), store.announce()).await;
            assert!(matches!(deleted, Ok(()) | Err(Error::KeyNotFound)));
        }
    }
}

/// Stores until no space is left, so that expired values must be cleaned away, and deletes all
/// those keys.
pub(crate) async fn fill_and_clear(store: &Arc<Store>) {
    let mut stored = 5_000;
    loop {
        let (key, value) = (key(stored), value(900, stored));
        let announced = store.announce();
        match store.put(SPACES[2], &key, &value, Write::default(), announced).await {
            Ok(_) => stored += 1,
            Err(Error::CapacityExceeded) => break,
            Err(error) => panic!("{error}"),
        }
    }
    for number in 5_000..stored {
        store.delete(SPACES[2], &key(number), store.announce()).await.expect("it is there");
    }
}

/// Starts `work` as a task. Returns a cell that has the result when the task ends.
pub(crate) fn beside<T: 'static>(
    work: impl Future<Output = T> + 'static,
) -> Rc<RefCell<Option<T>>> {
    let result = Rc::new(RefCell::new(None));
    let place = result.clone();
    clock::spawn(async move {
        let done = work.await;
        *place.borrow_mut() = Some(done);
    });
    result
}

/// Sleeps until all tasks have done what they can.
pub(crate) async fn rest() {
    clock::sleep(Nanos(1), Stage::Core).await;
}

/// Checks the counts of live values: of the store, and as the sum of its extents.
pub(crate) fn check_counts(store: &Store, records: u64) {
    let usage = store.usage().values;
    // The store keeps two records of each key space.
    assert_eq!(usage.records, records + 2 * SPACES.len() as u64, "values that live");
    let sum = store.live_by_extent().into_iter().map(|(_, live)| live).sum::<Live>();
    assert_eq!(sum, usage, "the extents' live values add up to the store's");
}

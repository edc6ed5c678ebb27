//! Limits of the index, and the extents that it takes from a store that another index filled.

use crate::cached_hash::medium::Slow;
use base::{Buf, Key, Rng};
use engine::{
    Ack, CachedHashIndex, Condition, Config, Error, HashIndex, IndexConfig, KeySpaceId, MakeIndex,
    Store, Write,
};
use media::{Media, Memory, Shape, Victims};
use reactor::Reactor;
use std::sync::Arc;

const SPACE: KeySpaceId = KeySpaceId(1);

const CACHED: MakeIndex = |config, _| Box::new(CachedHashIndex::new(config));
const HASH: MakeIndex = |_, lanes| Box::new(HashIndex::new(lanes));

fn config(capacity_bytes: u64, index: MakeIndex, keys_max: u64) -> Config {
    Config {
        capacity_bytes,
        ack: Ack::Program,
        victims: Victims::Greedy,
        index,
        index_config: IndexConfig { dram_bytes: 0, keys_max },
        checkpoint_bytes: 0,
        headers_bytes: 0,
        cache_bytes: 0,
        saves_buffer: true,
        reactors: 1,
        group: clock::Group::new(),
        seed: 1,
    }
}

fn key(number: u64) -> Key {
    Key::new(&number.to_le_bytes()).unwrap()
}

async fn put(store: &Arc<Store>, number: u64) -> Result<(), Error> {
    put_long(store, number, 10).await
}

async fn put_long(store: &Arc<Store>, number: u64, len: u32) -> Result<(), Error> {
    let write: Write = Condition::Always.into();
    let value = Buf::phantom(len, number);
    store.put(SPACE, &key(number), &value, write, store.announce()).await.map(drop)
}

#[test]
fn one_key_more_than_the_index_holds_is_refused_until_another_is_deleted() {
    let shape = Shape {
        page_bytes: 4_096,
        spare_bytes: 0,
        pages_per_extent: 64,
        extents: 30,
        parallelism: 4,
        frames: None,
    };
    Reactor::new(None).run(async {
        let config = config(10 * shape.extent_bytes(), CACHED, 50);
        let store = Store::format(Arc::new(Slow::new(shape, 1)), config);
        store.create_key_space(SPACE).await.unwrap();
        for number in 0..50 {
            assert_eq!(put(&store, number).await, Ok(()), "key {number}");
        }
        assert_eq!(put(&store, 50).await, Err(Error::CapacityExceeded));
        assert_eq!(put(&store, 7).await, Ok(()), "an overwrite needs no entry");
        store.delete(SPACE, &key(7), store.announce()).await.unwrap();
        assert_eq!(put(&store, 50).await, Ok(()));
        assert_eq!(put(&store, 7).await, Err(Error::CapacityExceeded));
    });
}

/// While `hash` fills the store, the cleaner keeps four extents free. `cached-hash` wants as many
/// for its table, or more.
#[test]
fn a_store_that_another_index_filled_has_room_again() {
    const KEYS: u64 = 400;
    let shape = Shape {
        page_bytes: 2_048,
        spare_bytes: 128,
        pages_per_extent: 32,
        extents: 24,
        parallelism: 4,
        frames: None,
    };
    let mut without_room = 0;
    for (seed, keys_max) in (0..8).flat_map(|seed| [1_000, 3_000, 6_000].map(|keys| (seed, keys))) {
        let kept =
            CACHED(&IndexConfig { dram_bytes: 0, keys_max }, &Arc::default()).table_extents(&shape);
        let capacity_bytes = u64::from(shape.extents - 6 - kept) * shape.extent_bytes() * 8 / 10;
        let medium = Arc::new(Memory::new(shape));
        let len = |rng: &mut Rng| {
            let most = capacity_bytes / KEYS * 3 / 2;
            u32::try_from(rng.below(most)).unwrap()
        };
        let mut rng = Rng::new(seed);
        Reactor::new(Some(seed)).run(async {
            let store = Store::format(medium.clone(), config(capacity_bytes, HASH, keys_max));
            store.create_key_space(SPACE).await.unwrap();
            for number in (0..KEYS).chain((0..2_000).map(|_| rng.below(KEYS)).collect::<Vec<_>>()) {
                let len = len(&mut rng);
                let put = put_long(&store, number, len).await;
                assert!(matches!(put, Ok(()) | Err(Error::CapacityExceeded)), "{put:?}");
            }
        });
        without_room += u32::from(medium.free_extents() <= kept);
        Reactor::new(Some(seed)).run(async {
            let config = config(capacity_bytes, CACHED, keys_max);
            let (store, _) = Store::open(medium.clone(), config).await.unwrap();
            for number in (0..KEYS).rev() {
                let put = put(&store, number).await;
                assert_eq!(put, Ok(()), "seed {seed}, {kept} kept, {number}");
            }
            store.delete(SPACE, &key(0), store.announce()).await.unwrap();
        });
    }
    assert!(without_room > 10, "{without_room} stores have no extent beside those that are kept");
}

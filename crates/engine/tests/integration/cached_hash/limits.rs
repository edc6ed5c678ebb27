//! What the index refuses.

use crate::cached_hash::medium::Slow;
use base::{Buf, Key};
use engine::{
    Ack, CachedHashIndex, Condition, Config, Error, IndexConfig, KeySpaceId, Store, Write,
};
use media::{Shape, Victims};
use reactor::Reactor;
use std::sync::Arc;

const SPACE: KeySpaceId = KeySpaceId(1);

fn key(number: u64) -> Key {
    Key::new(&number.to_le_bytes()).unwrap()
}

async fn put(store: &Arc<Store>, number: u64) -> Result<(), Error> {
    let write: Write = Condition::Always.into();
    let value = Buf::phantom(10, number);
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
        let config = Config {
            capacity_bytes: 10 * shape.extent_bytes(),
            ack: Ack::Program,
            victims: Victims::Greedy,
            index: |config| Box::new(CachedHashIndex::new(config)),
            index_config: IndexConfig { dram_bytes: 0, keys_max: 50 },
            checkpoint_bytes: 0,
            headers_bytes: 0,
            cache_bytes: 0,
            saves_buffer: true,
            group: clock::Group::new(),
            seed: 1,
        };
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

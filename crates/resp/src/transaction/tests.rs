//! Two transactions one of which is done between the reads and the writes of the other.

use crate::door::Door;
use crate::failure::Failure;
use crate::hidden;
use crate::settings::Settings;
use crate::users::Users;
use base::{Buf, BufPool, Key, Nanos};
use clock::{Group, Stage};
use engine::{Ack, Config, HashIndex, IndexConfig, KeySpaceId, Store};
use media::{Memory, Shape, Victims};
use reactor::Reactor;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

pub(crate) const SPACE: KeySpaceId = KeySpaceId(1);

const SHAPE: Shape = Shape {
    page_bytes: 4 << 10,
    spare_bytes: 256,
    pages_per_extent: 512,
    extents: 16,
    parallelism: 1,
    frames: None,
};

pub(crate) async fn door() -> Door {
    door_that(Ack::Program).await
}

/// A door whose replies to writes say what `ack` says.
pub(crate) async fn door_that(ack: Ack) -> Door {
    let config = Config {
        capacity_bytes: 8 << 20,
        ack,
        victims: Victims::Greedy,
        index: |_, lanes| Box::new(HashIndex::new(lanes)),
        index_config: IndexConfig::default(),
        checkpoint_bytes: 0,
        headers_bytes: 0,
        cache_bytes: 0,
        saves_buffer: true,
        reactors: 1,
        group: Group::new(),
        seed: 1,
    };
    let store = Store::format(Arc::new(Memory::new(SHAPE)), config);
    store.create_key_space(SPACE).await.expect("there is room");
    Door::new(store, Users::default(), Settings::default(), BufPool::new(1 << 20))
}

pub(crate) fn key(name: &str) -> Key {
    Key::new(name.as_bytes()).expect("a short name")
}

async fn put(door: &Door, name: &str) {
    let mut transaction = door.transaction();
    transaction.put(SPACE, &key(name), Buf::copy_from(b"before"), None);
    transaction.commit().await.expect("there is no other writer");
}

async fn exists(door: &Door, name: &str) -> bool {
    let found = door.transaction().get(SPACE, &key(name)).await;
    found.expect("it can be read").is_some()
}

/// What is done to the key that was read, if that keeps what builds on it from being done.
async fn outcome(read: &str, between: Option<&str>) -> Result<(), Failure> {
    let door = door().await;
    put(&door, "present").await;
    let mut transaction = door.transaction();
    transaction.get(SPACE, &key(read)).await.expect("it can be read");
    match between {
        Some("delete") => {
            let mut other = door.transaction();
            other.delete(SPACE, &key(read));
            other.commit().await.expect("there is no other writer");
        }
        Some(name) => put(&door, name).await,
        None => {}
    }
    transaction.put(SPACE, &key("built on it"), Buf::copy_from(b"after"), None);
    let outcome = transaction.commit().await;
    assert_eq!(exists(&door, "built on it").await, outcome.is_ok());
    outcome
}

#[test]
fn what_was_read_is_still_true_when_what_builds_on_it_is_written() {
    Reactor::new(None).run(async {
        for (read, between, goes) in [
            ("present", None, true),
            ("present", Some("something else"), true),
            ("present", Some("present"), false),
            ("present", Some("delete"), false),
            ("absent", None, true),
            ("absent", Some("absent"), false),
        ] {
            let outcome = outcome(read, between).await;
            let is_overtaken = matches!(outcome, Err(Failure::Overtaken));
            assert_eq!(is_overtaken, !goes, "{read}, {between:?}: {outcome:?}");
        }
    });
}

/// A transaction that assumes a database without collections, and writes one, does not deadlock
/// with a FLUSHDB of another database.
#[test]
fn who_empties_a_database_and_who_begins_another_do_not_wait_for_each_other() {
    Reactor::new(None).run(async {
        const OTHER: KeySpaceId = KeySpaceId(2);
        let door = Rc::new(door().await);
        door.store().ensure_key_space(hidden::roots(SPACE)).await.expect("there is room");
        let mut transaction = door.transaction();
        assert!(!transaction.has(hidden::roots(OTHER)));
        transaction.put(hidden::roots(OTHER), &key("h"), Buf::copy_from(b"root"), None);
        let is_empty = Rc::new(Cell::new(false));
        let (emptied, emptying) = (is_empty.clone(), door.clone());
        clock::spawn(async move {
            emptying.empty(SPACE).await.expect("emptying succeeds");
            emptied.set(true);
        });
        // It waits for this transaction, which has not come to its end.
        clock::sleep(Nanos::from_micros(1_000), Stage::Core).await;
        assert!(!is_empty.get());
        let outcome = Rc::new(Cell::new(None));
        let done = outcome.clone();
        clock::spawn(async move { done.set(Some(transaction.commit().await.is_ok())) });
        clock::sleep(Nanos::from_micros(10_000), Stage::Core).await;
        assert_eq!((outcome.get(), is_empty.get()), (Some(false), true), "it is done once more");
    });
}

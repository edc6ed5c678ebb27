//! Stores that take no wait until they are in the log, and those that take one.

use crate::records::medium::Wary;
use crate::records::rig::put as batch_put;
use crate::records::rig::{
    SPACES, beside, config, content, format, format_with, found, key, rest, shape, store_one, value,
};
use base::{Buf, Key, Nanos};
use clock::Stage;
use engine::{Ack, Announced, Begun, Config, Error, Landing, Store, Stored, Write};
use media::Media;
use reactor::Reactor;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Begins to store a value.
fn begin(store: &Arc<Store>, key: &Key, value: &Buf) -> Begun {
    store.begin_put(SPACES[0], key, value, Write::default(), store.announce())
}

/// Stores a value that takes no wait until it is in the log.
fn begin_now(store: &Arc<Store>, key: &Key, value: &Buf) -> Landing {
    match begin(store, key, value) {
        Begun::Landing(landing) => landing,
        Begun::Done(done) => panic!("it has not landed, and came to {done:?}"),
        Begun::Wait(_) => panic!("nothing has to be read for {key:?}"),
    }
}

/// Stores a value; if that needs a wait before it is in the log, returns the announcement.
async fn put(store: &Arc<Store>, number: u64, len: u32, tag: u64) -> Result<(), Announced> {
    match begin(store, &key(number), &value(len, tag)) {
        Begun::Landing(landing) => {
            store.landed(landing).await.expect("the medium takes it");
        }
        Begun::Done(done) => panic!("it has not landed, and came to {done:?}"),
        Begun::Wait(announced) => return Err(announced),
    }
    Ok(())
}

#[test]
fn a_key_that_no_other_task_changes_is_stored_without_a_wait() {
    let medium = Arc::new(Wary::new(shape(1_024, 64)));
    Reactor::new(None).run(async {
        let store = format(&medium, Ack::Program).await;
        let records = store.usage().values.records;
        // A new key, and an overwrite of a record that has not landed.
        medium.hold();
        let outcomes: Vec<_> = (1..=2)
            .map(|tag| {
                let store = store.clone();
                beside(async move { put(&store, 1, 90, tag).await.map_err(drop) })
            })
            .collect();
        rest().await;
        assert!(outcomes.iter().all(|outcome| outcome.borrow().is_none()), "before it lands");
        medium.release();
        rest().await;
        assert!(outcomes.iter().all(|outcome| *outcome.borrow() == Some(Ok(()))));
        assert_eq!(found(&store, SPACES[0], 1).await, content(&value(90, 2)));
        assert_eq!(store.usage().values.records, records + 1);
    });
}

#[test]
fn a_store_that_needs_a_wait_changes_nothing_before_it() {
    let medium = Arc::new(Wary::new(shape(1_024, 64)));
    Reactor::new(None).run(async {
        let store = format(&medium, Ack::Program).await;
        store_one(&store, SPACES[0], 1, &value(90, 1)).await;
        let before = store.usage();
        assert!(put(&store, 1, 90, 2).await.is_err(), "the header has to be read");
        let max = store.value_bytes_max();
        match begin(&store, &key(2), &value(max + 1, 2)) {
            Begun::Done(done) => assert_eq!(done, Err(Error::ValueTooLong { max })),
            Begun::Landing(_) | Begun::Wait(_) => panic!("it is too long"),
        }
        assert_eq!(store.usage(), before);
        assert_eq!(found(&store, SPACES[0], 1).await, content(&value(90, 1)));
        // A store that needs a wait can be done with its announcement.
        let announced = put(&store, 1, 90, 3).await.expect_err("the header has to be read");
        let (key, third) = (key(1), value(90, 3));
        let stored = store.put(SPACES[0], &key, &third, Write::default(), announced);
        stored.await.expect("there is room");
        assert_eq!(found(&store, SPACES[0], 1).await, content(&value(90, 3)));
    });
}

#[test]
fn a_store_without_a_wait_does_not_overtake_the_holder_of_the_latch() {
    let medium = Arc::new(Wary::new(shape(1_024, 64)));
    Reactor::new(None).run(async {
        let store = format(&medium, Ack::Program).await;
        store_one(&store, SPACES[0], 1, &value(90, 1)).await;
        medium.hold_reads();
        let batch = {
            let (store, writes) =
                (store.clone(), [1, 2].map(|n| batch_put(SPACES[0], n, value(90, 2))));
            beside(async move { store.write_batch(writes.into(), store.announce()).await })
        };
        rest().await;
        assert!(put(&store, 2, 90, 3).await.is_err(), "the batch has its latch");
        let (other, third) = (key(3), value(90, 3));
        let other = begin_now(&store, &other, &third);
        medium.release_reads();
        assert_eq!(store.landed(other).await, Ok(Stored::Anew));
        rest().await;
        assert_eq!(*batch.borrow(), Some(Ok::<(), Error>(())));
        assert_eq!(found(&store, SPACES[0], 2).await, content(&value(90, 2)));
        assert_eq!(put(&store, 2, 90, 3).await.map_err(drop), Err(()), "it has landed");
    });
}

#[test]
fn readers_wait_until_a_store_that_did_not_land_is_undone() {
    not_landed(Wary::refuse);
}

#[test]
fn readers_do_not_see_a_failed_store_whose_page_can_be_read() {
    not_landed(Wary::refuse_and_keep);
}

fn not_landed(refuse: impl Fn(&Wary)) {
    let medium = Arc::new(Wary::new(shape(1_024, 64)));
    Reactor::new(None).run(async {
        let store = format(&medium, Ack::Program).await;
        medium.hold();
        let (key, first, second) = (key(1), value(90, 1), value(90, 2));
        // As in a run of pipelined stores, whose last one is waited for first.
        let stored = [&first, &second].map(|value| begin_now(&store, &key, value));
        refuse(&medium);
        medium.release();
        rest().await;
        let read = {
            let (store, key) = (store.clone(), key.clone());
            beside(async move { store.get(SPACES[0], &key).await.map(|value| content(&value)) })
        };
        let exists = {
            let (store, key) = (store.clone(), key.clone());
            beside(async move { store.exist(SPACES[0], &key).await })
        };
        clock::sleep(Nanos::from_micros(10_000), Stage::Core).await;
        assert_eq!(*read.borrow(), None, "whether it is lost is not known yet");
        assert_eq!(*exists.borrow(), None);
        let [first, second] = stored;
        assert_eq!(store.landed(second).await, Err(Error::Unrecovered));
        assert_eq!(store.landed(first).await, Err(Error::Unrecovered));
        rest().await;
        assert_eq!(*read.borrow(), Some(Err(Error::KeyNotFound)));
        assert_eq!(*exists.borrow(), Some(Ok(false)));
    });
}

/// Undoing one failed store exposes another failed store.
#[test]
fn readers_wait_until_two_failed_stores_in_several_extents_are_undone() {
    let medium = Arc::new(Wary::new(shape(1_024, 64)));
    Reactor::new(None).run(async {
        let store = format(&medium, Ack::Program).await;
        medium.hold();
        let put = |number: u64, tag: u64| begin_now(&store, &key(number), &value(900, tag));
        let first = put(1, 1);
        let between: Vec<_> = (2..70).map(|number| put(number, 1)).collect();
        let last = put(1, 2);
        rest().await;
        let extents: BTreeSet<_> = medium.held().into_iter().map(|at| at.extent).collect();
        assert!(extents.len() > 1, "{extents:?}");
        medium.refuse();
        medium.release();
        rest().await;
        let read = {
            let store = store.clone();
            beside(async move { store.get(SPACES[0], &key(1)).await.map(|value| content(&value)) })
        };
        // The reader meets the last store.
        rest().await;
        for stored in [last].into_iter().chain(between.into_iter().rev()) {
            assert_eq!(store.landed(stored).await, Err(Error::Unrecovered));
        }
        clock::sleep(Nanos::from_micros(10_000), Stage::Core).await;
        assert_eq!(*read.borrow(), None, "the first is not undone yet");
        assert_eq!(store.landed(first).await, Err(Error::Unrecovered));
        clock::sleep(Nanos::from_micros(10_000), Stage::Core).await;
        assert_eq!(*read.borrow(), Some(Err(Error::KeyNotFound)));
    });
}

/// The key exists throughout, with its new or with its old value.
#[test]
fn a_key_with_a_failed_overwrite_is_listed() {
    let medium = Arc::new(Wary::new(shape(1_024, 64)));
    Reactor::new(None).run(async {
        let config = Config { headers_bytes: 1 << 16, ..config(medium.shape(), Ack::Program) };
        let store = format_with(&medium, config).await;
        store_one(&store, SPACES[0], 1, &value(90, 1)).await;
        medium.hold();
        let (key, second) = (key(1), value(90, 2));
        let stored = begin_now(&store, &key, &second);
        medium.refuse_and_keep();
        medium.release();
        rest().await;
        let listed = {
            let store = store.clone();
            beside(async move {
                let mut keys = Vec::new();
                let take = |key: &Key| {
                    keys.push(key.clone());
                    true
                };
                store.list(SPACES[0], None, take).await.map(|()| keys)
            })
        };
        rest().await;
        assert_eq!(store.landed(stored).await, Err(Error::Unrecovered));
        clock::sleep(Nanos::from_micros(10_000), Stage::Core).await;
        assert_eq!(*listed.borrow(), Some(Ok(vec![key])));
    });
}

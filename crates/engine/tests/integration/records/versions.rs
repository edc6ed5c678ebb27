use crate::records::medium::Wary;
use crate::records::rig::{
    SPACES, beside, check_counts, churn, content, found, key, put, reopen, shape, store_one, value,
};
use base::{Buf, Key, Nanos, Rng};
use clock::{Stage, UnixMillis, unix_now};
use engine::{Ack, BatchOp, BatchWrite, Begun, Condition, Error, Store, Version, Write};
use media::Shape;
use reactor::Reactor;
use std::collections::BTreeSet;
use std::sync::Arc;

const SMALL: Shape = shape(1_024, 64);

async fn version(store: &Arc<Store>, number: u64) -> Version {
    let retrieved = store.retrieve(SPACES[0], &key(number)).await.expect("it exists");
    let facts = store.examine(SPACES[0], &key(number)).await;
    let facts = facts.expect("it can be read").expect("it exists");
    assert_eq!(facts.version, retrieved.version);
    assert_eq!(facts.value_len, retrieved.value.len());
    assert_eq!(facts.expires, retrieved.expires);
    retrieved.version
}

async fn put_if(store: &Arc<Store>, number: u64, condition: Condition) -> Result<(), Error> {
    let (key, value) = (key(number), value(50, number));
    store.put(SPACES[0], &key, &value, condition.into(), store.announce()).await.map(drop)
}

async fn delete_if(store: &Arc<Store>, number: u64, condition: Condition) -> Result<(), Error> {
    let (space, key, op) = (SPACES[0], key(number), BatchOp::Delete { condition });
    store.write_batch(vec![BatchWrite { space, key, op }], store.announce()).await
}

#[test]
fn a_version_is_that_of_one_store_until_the_next() {
    let medium = Arc::new(Wary::new(SMALL));
    Reactor::new(None).run(async {
        let store = crate::records::rig::format(&medium, Ack::Program).await;
        assert_eq!(store.examine(SPACES[0], &key(1)).await, Ok(None));
        store_one(&store, SPACES[0], 1, &value(700, 1)).await;
        let first = version(&store, 1).await;
        churn(&store, &medium, 40).await;
        assert_eq!(version(&store, 1).await, first, "cleaning writes nothing new");
        let unchanged = Condition::Unchanged(first);
        assert_eq!(put_if(&store, 1, unchanged).await, Ok(()));
        assert_ne!(version(&store, 1).await, first);
        let changed = Err(Error::KeyChanged);
        assert_eq!(put_if(&store, 1, unchanged).await, changed);
        assert_eq!(delete_if(&store, 1, unchanged).await, changed);
        let second = Condition::Unchanged(version(&store, 1).await);
        assert_eq!(delete_if(&store, 1, second).await, Ok(()));
        assert_eq!(delete_if(&store, 1, second).await, changed);
        assert_eq!(put_if(&store, 1, second).await, changed);
        let missing = Err(Error::KeyNotFound);
        assert_eq!(delete_if(&store, 1, Condition::MustExist).await, missing);
        assert_eq!(store.delete(SPACES[0], &key(1), store.announce()).await, missing);
        assert_eq!(delete_if(&store, 1, Condition::Always).await, Ok(()));
        assert_eq!(delete_if(&store, 1, Condition::MustNotExist).await, Ok(()));
        // Storing the same value again makes another version.
        store_one(&store, SPACES[0], 1, &value(50, 1)).await;
        assert_eq!(put_if(&store, 1, second).await, changed);
        assert_eq!(delete_if(&store, 1, Condition::MustNotExist).await, Err(Error::KeyExists));
        check_counts(&store, 1);
    });
}

#[test]
fn a_version_outlives_the_store() {
    let medium = Arc::new(Wary::new(SMALL));
    let before = Reactor::new(None).run(async {
        let store = crate::records::rig::format(&medium, Ack::Program).await;
        for number in 0..5 {
            store_one(&store, SPACES[0], number, &value(300, number)).await;
        }
        version(&store, 3).await
    });
    Reactor::new(None).run(async {
        let (store, _) = reopen(&medium).await;
        assert_eq!(version(&store, 3).await, before);
        assert_eq!(put_if(&store, 3, Condition::Unchanged(before)).await, Ok(()));
        assert_eq!(put_if(&store, 3, Condition::Unchanged(before)).await, Err(Error::KeyChanged));
    });
}

#[test]
fn an_expired_key_has_changed() {
    let medium = Arc::new(Wary::new(SMALL));
    Reactor::new(None).run(async {
        let store = crate::records::rig::format(&medium, Ack::Program).await;
        let date = UnixMillis(unix_now().0 + 10);
        let write = Write { expires: Some(date), ..Write::default() };
        let announced = store.announce();
        store.put(SPACES[0], &key(1), &value(9, 9), write, announced).await.unwrap();
        let facts = store.examine(SPACES[0], &key(1)).await.unwrap().unwrap();
        assert_eq!((facts.value_len, facts.expires), (9, Some(date)));
        let unchanged = Condition::Unchanged(facts.version);
        clock::sleep(Nanos::from_micros(10_000), Stage::Core).await;
        assert_eq!(store.examine(SPACES[0], &key(1)).await, Ok(None));
        assert_eq!(put_if(&store, 1, unchanged).await, Err(Error::KeyChanged));
        assert_eq!(delete_if(&store, 1, unchanged).await, Err(Error::KeyChanged));
        for ops in [vec![keep(1, unchanged)], vec![keep(1, unchanged), put(SPACES[0], 2, fill())]] {
            let written = store.write_batch(ops, store.announce()).await;
            assert_eq!(written, Err(Error::KeyChanged));
        }
        assert_eq!(found(&store, SPACES[0], 2).await, None);
    });
}

fn fill() -> Buf {
    value(20, 20)
}

fn keep(number: u64, condition: Condition) -> BatchWrite {
    BatchWrite { space: SPACES[0], key: key(number), op: BatchOp::Keep { condition } }
}

#[test]
fn a_batch_does_not_write_the_keys_that_it_keeps() {
    let medium = Arc::new(Wary::new(SMALL));
    Reactor::new(None).run(async {
        let store = crate::records::rig::format(&medium, Ack::Program).await;
        store_one(&store, SPACES[0], 1, &value(60, 1)).await;
        let first = version(&store, 1).await;
        let (is, is_not) = (Condition::Unchanged(first), Condition::MustNotExist);
        let write = async |ops| store.write_batch(ops, store.announce()).await;
        assert_eq!(write(vec![keep(1, is)]).await, Ok(()));
        assert_eq!(write(vec![keep(1, is_not)]).await, Err(Error::KeyExists));
        assert_eq!(write(vec![keep(1, is), keep(2, is_not)]).await, Ok(()));
        let usage = store.usage();
        assert_eq!(write(vec![keep(2, is_not), keep(1, is_not)]).await, Err(Error::KeyExists));
        assert_eq!(store.usage(), usage, "nothing is written");
        assert_eq!(write(vec![keep(1, is), put(SPACES[0], 2, fill())]).await, Ok(()));
        let delete = BatchOp::Delete { condition: is };
        let delete = || BatchWrite { space: SPACES[0], key: key(1), op: delete.clone() };
        assert_eq!(write(vec![keep(2, is_not), delete()]).await, Err(Error::KeyExists));
        assert_eq!(version(&store, 1).await, first);
        assert_eq!(write(vec![delete(), put(SPACES[0], 3, fill())]).await, Ok(()));
        assert_eq!(write(vec![delete(), put(SPACES[0], 4, fill())]).await, Err(Error::KeyChanged));
        assert_eq!(found(&store, SPACES[0], 2).await, content(&fill()));
        assert_eq!(found(&store, SPACES[0], 4).await, None);
        check_counts(&store, 2);
    });
}

fn number(value: &Buf) -> u64 {
    u64::from_le_bytes(*value.bytes().expect("real bytes").first_chunk().expect("eight"))
}

/// Adds to the number of a key: retries until no other task writes the key in between.
async fn add(store: &Arc<Store>, at: u64) -> u64 {
    for tried in 0.. {
        let (now, condition) = match store.retrieve(SPACES[0], &key(at)).await {
            Ok(retrieved) => (number(&retrieved.value), Condition::Unchanged(retrieved.version)),
            Err(error) => {
                assert_eq!(error, Error::KeyNotFound);
                (0, Condition::MustNotExist)
            }
        };
        let sum = Buf::copy_from(&(now + 1).to_le_bytes());
        let (key, announced) = (key(at), store.announce());
        match store.put(SPACES[0], &key, &sum, condition.into(), announced).await {
            Ok(_) => return tried,
            Err(error) => assert!(matches!(error, Error::KeyChanged | Error::KeyExists)),
        }
    }
    0
}

#[test]
fn many_writers_add_to_a_number_and_no_addition_is_lost() {
    let mut tries = 0;
    for seed in 0..10 {
        let medium = Arc::new(Wary::new(SMALL));
        Reactor::new(Some(seed)).run(async {
            let store = crate::records::rig::format(&medium, Ack::Program).await;
            let tasks: Vec<_> = (0..8)
                .map(|task| {
                    let store = store.clone();
                    beside(async move {
                        let mut tried = 0;
                        for round in 0..20 {
                            tried += add(&store, (task + round) % 2).await;
                        }
                        tried
                    })
                })
                .collect();
            while tasks.iter().any(|task| task.borrow().is_none()) {
                clock::sleep(Nanos(1_000), Stage::Core).await;
            }
            tries += tasks.iter().map(|task| task.borrow().unwrap()).sum::<u64>();
            for at in 0..2 {
                let value = store.get(SPACES[0], &key(at)).await.unwrap();
                assert_eq!(number(&value), 80, "seed {seed}");
            }
        });
    }
    assert!(tries > 100, "only {tries} came between others");
}

/// Moves one from one key to another a number of times, and checks at each read that their sum is
/// the same.
#[test]
fn a_batch_on_what_was_read_is_one_step() {
    for seed in 0..10 {
        let medium = Arc::new(Wary::new(SMALL));
        Reactor::new(Some(seed)).run(async {
            let store = crate::records::rig::format(&medium, Ack::Program).await;
            for at in 0..3 {
                let hundred = Buf::copy_from(&100_u64.to_le_bytes());
                store_one(&store, SPACES[0], at, &hundred).await;
            }
            let tasks: Vec<_> = (0..6)
                .map(|task| {
                    let store = store.clone();
                    beside(async move {
                        let mut rng = Rng::new(seed * 10 + task);
                        for _ in 0..20 {
                            step(&store, &mut rng).await;
                        }
                    })
                })
                .collect();
            while tasks.iter().any(|task| task.borrow().is_none()) {
                clock::sleep(Nanos(1_000), Stage::Core).await;
            }
        });
    }
}

async fn step(store: &Arc<Store>, rng: &mut Rng) {
    loop {
        let mut now = Vec::new();
        for at in 0..3 {
            let retrieved = store.retrieve(SPACES[0], &key(at)).await.expect("it exists");
            now.push((number(&retrieved.value), Condition::Unchanged(retrieved.version)));
        }
        let mut ops: Vec<_> = (0..).zip(&now).map(|(at, (_, is))| keep(at, *is)).collect();
        let (from, to) = (rng.below(3), rng.below(3));
        if from != to {
            for (at, by) in [(from, u64::MAX), (to, 1)] {
                let at = usize::try_from(at).expect("below 3");
                let (number, condition) = now[at];
                let value = Buf::copy_from(&number.wrapping_add(by).to_le_bytes());
                let write = condition.into();
                ops[at].op = BatchOp::Put { value, write };
            }
        }
        match store.write_batch(ops, store.announce()).await {
            Ok(()) => {
                assert_eq!(now.iter().map(|(number, _)| number).sum::<u64>(), 300);
                return;
            }
            Err(error) => assert_eq!(error, Error::KeyChanged),
        }
    }
}

#[test]
fn a_walk_meets_every_key_that_stays_once() {
    for seed in 0..20 {
        let medium = Arc::new(Wary::new(SMALL));
        Reactor::new(None).run(async {
            let store = crate::records::rig::format(&medium, Ack::Program).await;
            let mut rng = Rng::new(seed);
            for number in 0..100 {
                store_one(&store, SPACES[0], number, &value(30, number)).await;
            }
            store_one(&store, SPACES[1], 5_000, &value(30, 1)).await;
            assert_eq!(store.key_count(SPACES[0]), Ok(100));
            let (mut met, mut after) = (Vec::new(), None);
            loop {
                let count = usize::try_from(1 + rng.below(30)).unwrap();
                let walked = store.walk(SPACES[0], after, count).await.unwrap();
                met.extend(walked.keys);
                after = walked.last;
                if after.is_none() {
                    break;
                }
                let number = 100 + rng.below(50);
                store_one(&store, SPACES[0], number, &value(30, 7)).await;
                let gone = key(100 + rng.below(50));
                let _ = store.delete(SPACES[0], &gone, store.announce()).await;
                store_one(&store, SPACES[0], rng.below(100), &value(30, 7)).await;
            }
            let set: BTreeSet<Key> = met.iter().cloned().collect();
            assert_eq!(set.len(), met.len(), "seed {seed}: one was met twice");
            assert!((0..100).all(|number| set.contains(&key(number))), "seed {seed}");
            assert!(!set.contains(&key(5_000)), "that is another key space");
        });
    }
}

/// The check would wait for room that only a landing page makes, and no page lands.
#[test]
fn conditions_are_checked_while_the_buffer_is_full() {
    let medium = Arc::new(Wary::new(SMALL));
    Reactor::new(None).run(async {
        let store = crate::records::rig::format(&medium, Ack::Buffer { bytes: 1_200 }).await;
        store_one(&store, SPACES[0], 1, &value(300, 1)).await;
        medium.hold();
        // Pages have 1,024 bytes.
        let is_full = (2..8).any(|number| {
            let (key, value) = (key(number), value(300, number));
            let write = Write::default();
            match store.begin_put(SPACES[0], &key, &value, write, store.announce()) {
                Begun::Done(done) => done.is_err(),
                Begun::Landing(_) => panic!("hosts are answered from the buffer"),
                Begun::Wait(_) => true,
            }
        });
        assert!(is_full, "a page is on its way, and the next values do not fit the buffer");
        for last in [1, 2] {
            let checks = (1..=last).map(|number| keep(number, Condition::Always)).collect();
            assert_eq!(store.write_batch(checks, store.announce()).await, Ok(()));
        }
        medium.release();
    });
}

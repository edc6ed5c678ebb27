use crate::records::medium::Wary;
use crate::records::rig::{
    SPACES, beside, check_counts, churn, content, delete, fill_and_clear, format, found, key, put,
    reopen, rest, shape, store_one, value,
};
use base::{Buf, Nanos, Rng};
use clock::{Stage, UnixMillis, set_unix_now, unix_now};
use engine::{Ack, BatchOp, BatchWrite, Condition, Error, KeySpaceId, Store, Write};
use media::Shape;
use reactor::Reactor;
use std::collections::BTreeMap;
use std::sync::Arc;

const SMALL: Shape = shape(1_024, 64);

/// Until `millis` have passed.
fn until(millis: u64) -> Write {
    Write { expires: Some(UnixMillis(unix_now().0 + millis)), ..Write::default() }
}

async fn pass(millis: u64) {
    clock::sleep(Nanos::from_micros(1_000 * millis), Stage::Core).await;
}

async fn store_for(store: &Arc<Store>, number: u64, value: &Buf, millis: u64) {
    let announced = store.announce();
    store
        .put(SPACES[0], &key(number), value, until(millis), announced)
        .await
        .expect("there is room");
}

async fn listed(store: &Arc<Store>, space: KeySpaceId) -> usize {
    let mut keys = 0;
    let count = |_: &base::Key| {
        keys += 1;
        true
    };
    store.list(space, None, count).await.expect("nothing fails");
    keys
}

#[test]
fn a_value_that_has_expired_is_not_there() {
    let medium = Arc::new(Wary::new(SMALL));
    Reactor::new(None).run(async {
        let store = format(&medium, Ack::Program).await;
        for len in [0, 700, 5_000] {
            store_for(&store, 1, &value(len, 6), 10).await;
            pass(9).await;
            assert_eq!(found(&store, SPACES[0], 1).await, content(&value(len, 6)));
            assert_eq!(store.exist(SPACES[0], &key(1)).await, Ok(true));
            assert_eq!(listed(&store, SPACES[0]).await, 1);
            pass(1).await;
            assert_eq!(found(&store, SPACES[0], 1).await, None);
            assert_eq!(store.exist(SPACES[0], &key(1)).await, Ok(false));
            assert_eq!(listed(&store, SPACES[0]).await, 0);
            let put = |condition: Condition| {
                let (store, value) = (store.clone(), value(8, 8));
                async move {
                    let announced = store.announce();
                    store.put(SPACES[0], &key(1), &value, condition.into(), announced).await
                }
            };
            assert_eq!(put(Condition::MustExist).await, Err(Error::KeyNotFound));
            let deleted = store.delete(SPACES[0], &key(1), store.announce()).await;
            assert_eq!(deleted, Err(Error::KeyNotFound));
            for refused in [
                vec![on(1, Condition::MustExist)],
                vec![delete(SPACES[0], 2), on(1, Condition::MustExist)],
            ] {
                let refused = store.write_batch(refused, store.announce()).await;
                assert_eq!(refused, Err(Error::KeyNotFound));
            }
            let nothing = vec![delete(SPACES[0], 1), delete(SPACES[0], 2)];
            assert_eq!(store.write_batch(nothing, store.announce()).await, Ok(()));
            let stored = put(Condition::MustNotExist).await;
            assert_eq!(stored, Ok(engine::Stored::Anew));
            pass(100).await;
            assert_eq!(found(&store, SPACES[0], 1).await, content(&value(8, 8)));
            check_counts(&store, 1);
        }
    });
}

fn on(number: u64, condition: Condition) -> BatchWrite {
    let op = BatchOp::Put { value: value(5, 5), write: condition.into() };
    BatchWrite { space: SPACES[0], key: key(number), op }
}

#[test]
fn members_of_a_batch_expire_each_at_its_time() {
    let medium = Arc::new(Wary::new(SMALL));
    Reactor::new(None).run(async {
        let store = format(&medium, Ack::Program).await;
        let member = |number: u64| {
            let op = BatchOp::Put { value: value(700, number), write: until(number * 10) };
            BatchWrite { space: SPACES[0], key: key(number), op }
        };
        let writes = (1..=5).map(member).chain([put(SPACES[1], 9, value(10, 9))]).collect();
        store.write_batch(writes, store.announce()).await.unwrap();
        for passed in 0..=5 {
            for number in 1..=5 {
                let expected = content(&value(700, number)).filter(|_| number > passed);
                assert_eq!(found(&store, SPACES[0], number).await, expected, "{number}");
            }
            pass(10).await;
        }
        assert_eq!(found(&store, SPACES[1], 9).await, content(&value(10, 9)));
    });
}

/// An older version stays hidden by one that expires, however often both are cleaned and the device
/// is opened.
#[test]
fn no_older_value_comes_back_when_one_expires() {
    for seed in 0..8 {
        let medium = Arc::new(Wary::new(SMALL));
        let mut date = Reactor::new(None).run(async {
            let store = format(&medium, Ack::Program).await;
            for number in 0..20 {
                store_one(&store, SPACES[0], number, &value(300, number)).await;
            }
            churn(&store, &medium, seed * 5).await;
            for number in 0..10 {
                store_for(&store, number, &value(400, number), 50).await;
            }
            churn(&store, &medium, 1 + seed % 3 * 10).await;
            pass(50).await;
            unix_now()
        });
        let mut remains = medium;
        for life in 0..6 {
            remains = Reactor::new(None).run(async {
                set_unix_now(date);
                let (store, medium) = reopen(&remains).await;
                for number in 0..20 {
                    let expected = content(&value(300, number)).filter(|_| number >= 10);
                    let got = found(&store, SPACES[0], number).await;
                    assert_eq!(got, expected, "seed {seed}, life {life}, key {number}");
                }
                churn(&store, &medium, [0, 3, 40][life % 3]).await;
                if life % 3 == 2 {
                    fill_and_clear(&store).await;
                    check_counts(&store, 10);
                }
                date = unix_now();
                medium
            });
        }
    }
}

/// Values expire while the device is off.
#[test]
fn a_value_expires_while_the_device_is_off_and_not_before() {
    let medium = Arc::new(Wary::new(SMALL));
    let date = Reactor::new(None).run(async {
        let store = format(&medium, Ack::Program).await;
        store_one(&store, SPACES[0], 1, &value(100, 1)).await;
        store_for(&store, 1, &value(200, 2), 1_000).await;
        pass(100).await;
        unix_now()
    });
    for (off, is_there) in [(0, true), (899, true), (900, false), (5_000_000, false)] {
        Reactor::new(None).run(async {
            set_unix_now(UnixMillis(date.0 + off));
            let (store, _) = reopen(&medium).await;
            let expected = content(&value(200, 2)).filter(|_| is_there);
            assert_eq!(found(&store, SPACES[0], 1).await, expected, "after {off} ms");
        });
    }
}

/// A reader that learns of the expiry also learns that the replaced value is gone. So the expired
/// value must be durable first.
#[test]
fn readers_wait_until_an_expired_value_has_landed() {
    let medium = Arc::new(Wary::new(SMALL));
    Reactor::new(None).run(async {
        let store = format(&medium, Ack::Program).await;
        store_one(&store, SPACES[0], 1, &value(100, 1)).await;
        medium.hold();
        let _put = beside({
            let store = store.clone();
            async move { store_for(&store, 1, &value(10, 2), 1).await }
        });
        pass(2).await;
        let (a, b) = (store.clone(), store.clone());
        let got = beside(async move { found(&a, SPACES[0], 1).await });
        let deleted = beside(async move { b.delete(SPACES[0], &key(1), b.announce()).await });
        rest().await;
        assert!(got.borrow().is_none() && deleted.borrow().is_none(), "nothing is told yet");
        medium.release();
        rest().await;
        assert_eq!(*got.borrow(), Some(None));
        assert_eq!(*deleted.borrow(), Some(Err(Error::KeyNotFound)));
    });
}

/// Expired values make room, and values that have not expired do not.
#[test]
fn a_store_full_of_expired_values_takes_as_many_again() {
    let medium = Arc::new(Wary::new(SMALL));
    Reactor::new(None).run(async {
        let store = format(&medium, Ack::Program).await;
        let fill = async |from: u64, millis: u64| {
            for number in from.. {
                let (key, value) = (key(number), value(900, number));
                let put = store.put(SPACES[0], &key, &value, until(millis), store.announce());
                match put.await {
                    Ok(_) => {}
                    Err(Error::CapacityExceeded) => return number - from,
                    Err(error) => panic!("{error}"),
                }
            }
            0
        };
        let first = fill(0, 1_000_000).await;
        assert!(first > 100, "{first} values");
        assert_eq!(fill(10_000, 1_000_000).await, 0, "nothing has expired");
        check_counts(&store, first);
        pass(1_000_000).await;
        let second = fill(20_000, 1_000_000).await;
        // The extents that are being filled hold some of the first that cannot be cleaned away yet.
        let open = 2 * u64::from(SMALL.pages_per_extent);
        assert!(second + open >= first, "{second} values after {first}");
        pass(1_000_000).await;
        let batch = (0..8).map(|number| put(SPACES[1], number, value(500, 1))).collect();
        assert_eq!(store.write_batch(batch, store.announce()).await, Ok(()));
        for number in 0..first {
            assert_eq!(found(&store, SPACES[0], number).await, None);
        }
    });
}

/// Dates of keys by number: what [`Store::expiring_in`] and [`Store::key_count`] count.
type Dates = BTreeMap<u64, Option<UnixMillis>>;

fn check_dates(store: &Store, dates: &Dates, what: &str) {
    let count = |is: &dyn Fn(&UnixMillis) -> bool| {
        dates.values().flatten().filter(|date| is(date)).count() as u64
    };
    // An expired value counts until the next tenth of a second, unless it is cleaned away.
    let least = count(&|date| *date > unix_now());
    let most = count(&|date| date.0.div_ceil(100) > unix_now().0 / 100);
    let never = dates.values().filter(|date| date.is_none()).count() as u64;
    let counted = store.expiring_in(SPACES[0]).expect("it is there");
    assert!((least..=most).contains(&counted.waiting), "{what}: {counted:?}, {least} to {most}");
    assert_eq!(store.key_count(SPACES[0]), Ok(never + counted.waiting), "{what}: {counted:?}");
}

/// Stores, deletes and lets keys expire, among them some twice.
async fn change_dates(store: &Arc<Store>, rng: &mut Rng, dates: &mut Dates) {
    for _ in 0..200 {
        let number = rng.below(60);
        match rng.below(5) {
            0 => {
                let deleted = store.delete(SPACES[0], &key(number), store.announce()).await;
                let is_over =
                    |date: Option<UnixMillis>| date.is_some_and(|date| date <= unix_now());
                let is_there = dates.get(&number).is_some_and(|date| !is_over(*date));
                assert_eq!(deleted.is_ok(), is_there);
                // An expired value stays until it is cleaned.
                if is_there {
                    dates.remove(&number);
                }
            }
            1 => {
                store_one(store, SPACES[0], number, &value(200, number)).await;
                dates.insert(number, None);
            }
            _ => {
                let millis = 1 + rng.below(3_000);
                dates.insert(number, Some(UnixMillis(unix_now().0 + millis)));
                store_for(store, number, &value(200, number), millis).await;
            }
        }
        pass(rng.below(40)).await;
        check_dates(store, dates, "while they change");
    }
}

#[test]
fn keys_that_have_expired_are_not_counted() {
    for seed in 0..6 {
        let medium = Arc::new(Wary::new(SMALL));
        let (mut rng, mut dates) = (Rng::new(seed), Dates::new());
        let date = Reactor::new(None).run(async {
            let store = format(&medium, Ack::Program).await;
            change_dates(&store, &mut rng, &mut dates).await;
            churn(&store, &medium, 8).await;
            check_dates(&store, &dates, "cleaned");
            if seed % 2 == 0 {
                store.checkpoint().await.expect("there is room");
            }
            change_dates(&store, &mut rng, &mut dates).await;
            store.flush().await.expect("nothing fails");
            unix_now()
        });
        Reactor::new(None).run(async {
            set_unix_now(date);
            let (store, medium) = reopen(&medium).await;
            while store.count_expiring().await {}
            check_dates(&store, &dates, "opened");
            assert_eq!(store.expired_since_opening(), 0, "what had expired before");
            change_dates(&store, &mut rng, &mut dates).await;
            churn(&store, &medium, 8).await;
            check_dates(&store, &dates, "cleaned again");
            assert!(store.expired_since_opening() > 0);
            store.delete_key_space(SPACES[0]).await.expect("it is there");
            store.create_key_space(SPACES[0]).await.expect("there is room");
            check_dates(&store, &Dates::new(), "deleted");
        });
    }
}

/// Each is counted as it is stored, not when a caller next asks for the counts.
#[test]
fn values_that_expire_before_the_counts_are_asked_for_are_counted_as_expired() {
    let medium = Arc::new(Wary::new(SMALL));
    Reactor::new(None).run(async {
        let store = format(&medium, Ack::Program).await;
        for number in 0..5 {
            store_for(&store, number, &value(200, number), 10).await;
        }
        pass(1_000).await;
        check_dates(&store, &Dates::new(), "expired");
        assert_eq!(store.expired_since_opening(), 5);
    });
}

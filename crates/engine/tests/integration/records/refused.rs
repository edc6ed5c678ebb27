//! Stores, deletes and batches whose pages the medium does not take.

use crate::records::medium::Wary;
use crate::records::rig::{
    SPACES, beside, check_counts, churn, content, delete, format, found, key, put, reopen, rest,
    shape, store_one, value,
};
use base::Nanos;
use clock::Stage;
use engine::{Ack, BatchWrite, Begun, Error, KeySpaceId, Store, Write};
use media::{Label, Media, Shape, Stream};
use reactor::Reactor;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

const SMALL: Shape = shape(1_024, 64);
const KEYS: u64 = 40;

/// Length and checksum of the value of each key.
type Model = BTreeMap<u64, (u32, u64)>;

/// Returns a value that shares a page, fills one, fills several, or is empty.
fn stored(number: u64, version: u64) -> base::Buf {
    let len = [90, 700, 2_500, 0][usize::try_from(number % 4).expect("below 4")];
    value(len, number + 1_000 * version)
}

/// Returns the length and checksum of a key's value, or the error.
async fn read(store: &Arc<Store>, number: u64) -> Result<Option<(u32, u64)>, Error> {
    match store.get(SPACES[0], &key(number)).await {
        Ok(value) => Ok(content(&value)),
        Err(Error::KeyNotFound) => Ok(None),
        Err(error) => Err(error),
    }
}

async fn check(store: &Arc<Store>, model: &Model, when: &str) {
    for number in 0..KEYS + 20 {
        let expected = Ok(model.get(&number).copied());
        assert_eq!(read(store, number).await, expected, "key {number}, {when}");
        let exists = store.exist(SPACES[0], &key(number)).await;
        assert_eq!(exists, Ok(model.contains_key(&number)), "key {number}, {when}");
    }
    check_counts(store, model.len() as u64);
    let entries = model.len() + 2 * SPACES.len();
    assert_eq!(store.usage().index_entries, entries as u64, "{when}");
}

async fn prepare(store: &Arc<Store>) -> Model {
    let mut model = Model::new();
    for number in 0..KEYS {
        store_one(store, SPACES[0], number, &stored(number, 0)).await;
        model.extend(content(&stored(number, 0)).map(|content| (number, content)));
    }
    model
}

type Outcome = Rc<RefCell<Option<Result<(), Error>>>>;

fn put_beside(store: &Arc<Store>, number: u64, version: u64) -> Outcome {
    let (store, key, value) = (store.clone(), key(number), stored(number, version));
    beside(async move {
        let (write, mut announced) = (Write::default(), store.announce());
        // Every other one begins without a wait, where that is possible.
        if number.is_multiple_of(2) {
            match store.begin_put(SPACES[0], &key, &value, write, announced) {
                Begun::Done(done) => return done.map(drop),
                Begun::Landing(landing) => return store.landed(landing).await.map(drop),
                Begun::Wait(again) => announced = again,
            }
        }
        store.put(SPACES[0], &key, &value, write, announced).await.map(drop)
    })
}

fn delete_beside(store: &Arc<Store>, number: u64) -> Outcome {
    let store = store.clone();
    beside(async move { store.delete(SPACES[0], &key(number), store.announce()).await })
}

fn batch_beside(store: &Arc<Store>, writes: Vec<BatchWrite>) -> Outcome {
    let store = store.clone();
    beside(async move { store.write_batch(writes, store.announce()).await })
}

/// Overwrites, deletes and creates keys, all at once, on many pages. Returns the outcomes, and the
/// model if all succeed.
fn change(store: &Arc<Store>, model: &Model) -> (Vec<Outcome>, Model) {
    let (mut outcomes, mut after) = (Vec::new(), model.clone());
    let mut put_one = |number: u64| {
        after.extend(content(&stored(number, 1)).map(|content| (number, content)));
        put_beside(store, number, 1)
    };
    outcomes.extend([0, 1, 2, 3, 4, 6, KEYS, KEYS + 1, KEYS + 2].map(&mut put_one));
    for number in [7, 8, 9, 10] {
        outcomes.push(delete_beside(store, number));
        after.remove(&number);
    }
    let (new, old) = (KEYS + 5, 11);
    let of_batch = [new, old, 13, 14].map(|number| put(SPACES[0], number, stored(number, 1)));
    for number in [new, old, 13, 14] {
        after.extend(content(&stored(number, 1)).map(|content| (number, content)));
    }
    let gone = [15, 17].map(|number| {
        after.remove(&number);
        delete(SPACES[0], number)
    });
    outcomes.push(batch_beside(store, of_batch.into_iter().chain(gone).collect()));
    (outcomes, after)
}

/// Returns how many of the finished ones failed.
fn failed(outcomes: &[Outcome]) -> usize {
    let failed = |outcome: &&Outcome| {
        let outcome = outcome.borrow().expect("it is over");
        assert!(matches!(outcome, Ok(()) | Err(Error::Unrecovered)), "{outcome:?}");
        outcome.is_err()
    };
    outcomes.iter().filter(failed).count()
}

#[test]
fn a_failed_write_has_changed_nothing_now_after_cleaning_and_after_opening() {
    let medium = Arc::new(Wary::new(SMALL));
    let model = Reactor::new(None).run(async {
        let store = format(&medium, Ack::Program).await;
        let model = prepare(&store).await;
        medium.hold();
        let (outcomes, _) = change(&store, &model);
        rest().await;
        assert!(medium.held().len() >= 8, "on many pages: {:?}", medium.held());
        medium.refuse();
        medium.release();
        while_later().await;
        assert_eq!(failed(&outcomes), outcomes.len());
        check(&store, &model, "after the errors").await;
        let (outcomes, after) = change(&store, &model);
        rest().await;
        assert_eq!(failed(&outcomes), 0, "the next ones go to another extent");
        check(&store, &after, "after the next ones").await;
        after
    });
    let untouched = medium.remains();
    Reactor::new(None).run(async {
        let (store, _) = reopen(&untouched).await;
        check(&store, &model, "opened").await;
    });
    let remains = Reactor::new(None).run(async {
        let medium = Arc::new(Wary::new(SMALL));
        let store = format(&medium, Ack::Program).await;
        let model = prepare(&store).await;
        medium.hold();
        let (outcomes, _) = change(&store, &model);
        rest().await;
        medium.refuse();
        medium.release();
        while_later().await;
        assert_eq!(failed(&outcomes), outcomes.len());
        churn(&store, &medium, 60).await;
        check(&store, &model, "cleaned").await;
        store.checkpoint().await.unwrap();
        (medium.remains(), model)
    });
    Reactor::new(None).run(async {
        let (medium, model) = remains;
        let (store, medium) = reopen(&medium).await;
        check(&store, &model, "cleaned and opened").await;
        churn(&store, &medium, 40).await;
        check(&store, &model, "cleaned, opened and cleaned").await;
    });
}

/// The later of two stores of a key may fail before the earlier one, or after it.
#[test]
fn a_key_has_its_old_value_when_all_later_stores_of_it_fail_in_any_order() {
    for first in [false, true] {
        for deletes in [false, true] {
            let medium = Arc::new(Wary::new(SMALL));
            let model = Reactor::new(None).run(async {
                let store = format(&medium, Ack::Program).await;
                let model = prepare(&store).await;
                medium.hold();
                let mut outcomes = vec![put_beside(&store, 2, 1)];
                rest().await;
                if deletes {
                    outcomes.push(delete_beside(&store, 2));
                    rest().await;
                }
                outcomes.push(put_beside(&store, 2, 2));
                rest().await;
                let held = medium.held();
                assert!(held.len() >= 6, "each on pages of its own: {held:?}");
                medium.refuse();
                let order: Vec<_> = if first {
                    held.into_iter().collect()
                } else {
                    held.into_iter().rev().collect()
                };
                for at in order {
                    medium.land(at);
                    while_later().await;
                }
                medium.release();
                while_later().await;
                assert_eq!(failed(&outcomes), outcomes.len());
                check(&store, &model, "after the errors").await;
                churn(&store, &medium, 60).await;
                check(&store, &model, "cleaned").await;
                model
            });
            Reactor::new(None).run(async {
                let (store, _) = reopen(&medium).await;
                check(&store, &model, "opened").await;
            });
        }
    }
}

/// No page lands after the two that fail: nothing but the later store wakes the earlier one.
#[test]
fn a_key_has_its_old_value_when_both_stores_of_it_fail_and_no_other_page_lands() {
    let medium = Arc::new(Wary::new(SMALL));
    Reactor::new(None).run(async {
        let store = format(&medium, Ack::Program).await;
        let model = prepare(&store).await;
        medium.hold();
        let mut outcomes = vec![put_beside(&store, 1, 1)];
        rest().await;
        outcomes.push(put_beside(&store, 1, 2));
        rest().await;
        let held: Vec<_> = medium.held().into_iter().collect();
        assert_eq!(held.len(), 2, "each on a page of its own");
        medium.refuse();
        for at in held {
            medium.land(at);
            while_later().await;
        }
        assert_eq!(failed(&outcomes), 2, "both were answered");
        medium.release();
        check(&store, &model, "after the errors").await;
    });
}

/// Sleeps long enough for all tasks to finish what they can.
async fn while_later() {
    clock::sleep(Nanos::from_micros(1_000), Stage::Core).await;
}

/// Of two stores of a key the first one fails, and the second one lands, before it or after it.
#[test]
fn a_key_has_the_later_value_when_only_an_earlier_store_of_it_fails() {
    for later_is_first in [false, true] {
        for deletes in [false, true] {
            let medium = Arc::new(Wary::new(SMALL));
            let model = Reactor::new(None).run(async {
                let store = format(&medium, Ack::Program).await;
                let mut model = prepare(&store).await;
                medium.hold();
                let first =
                    if deletes { delete_beside(&store, 1) } else { put_beside(&store, 1, 1) };
                rest().await;
                let second = put_beside(&store, 1, 2);
                rest().await;
                model.extend(content(&stored(1, 2)).map(|content| (1, content)));
                let mut held = medium.held();
                assert_eq!(held.len(), 2, "{held:?}");
                medium.refuse_page(held[0]);
                if later_is_first {
                    held.reverse();
                }
                for at in held {
                    medium.land(at);
                    while_later().await;
                }
                medium.release();
                while_later().await;
                assert_eq!((failed(&[first]), failed(&[second])), (1, 0));
                check(&store, &model, "after the error").await;
                churn(&store, &medium, 60).await;
                check(&store, &model, "cleaned").await;
                model
            });
            Reactor::new(None).run(async {
                let (store, _) = reopen(&medium).await;
                check(&store, &model, "opened").await;
            });
        }
    }
}

#[test]
fn a_key_stays_deleted_when_a_later_store_of_it_fails() {
    let medium = Arc::new(Wary::new(SMALL));
    let model = Reactor::new(None).run(async {
        let store = format(&medium, Ack::Program).await;
        let mut model = prepare(&store).await;
        medium.hold();
        let first = delete_beside(&store, 1);
        rest().await;
        let second = put_beside(&store, 1, 2);
        rest().await;
        model.remove(&1);
        let held = medium.held();
        medium.refuse_page(held[1]);
        for at in held {
            medium.land(at);
            while_later().await;
        }
        medium.release();
        assert_eq!((failed(&[first]), failed(&[second])), (0, 1));
        check(&store, &model, "after the error").await;
        churn(&store, &medium, 60).await;
        check(&store, &model, "cleaned").await;
        model
    });
    Reactor::new(None).run(async {
        let (store, _) = reopen(&medium).await;
        check(&store, &model, "opened").await;
    });
}

/// A key space has two records, of which the second one fails.
#[test]
fn a_key_space_that_could_not_be_created_or_deleted_is_as_before_when_it_is_opened() {
    let (new, old) = (KeySpaceId(9), SPACES[0]);
    let medium = Arc::new(Wary::new(SMALL));
    let model = Reactor::new(None).run(async {
        let store = format(&medium, Ack::Program).await;
        let model = prepare(&store).await;
        for deletes in [false, true] {
            medium.hold();
            let other = store.clone();
            let outcome = beside(async move {
                let change = if deletes {
                    other.delete_key_space(old).await
                } else {
                    other.create_key_space(new).await
                };
                assert_eq!(change, Err(Error::Unrecovered));
            });
            rest().await;
            medium.land(medium.held()[0]);
            rest().await;
            medium.refuse_page(medium.held()[0]);
            medium.release();
            while_later().await;
            assert!(outcome.borrow().is_some());
        }
        assert_eq!(store.key_spaces(), SPACES);
        model
    });
    Reactor::new(None).run(async {
        let (store, _) = reopen(&medium).await;
        assert_eq!(store.key_spaces(), SPACES);
        for number in 0..KEYS {
            assert_eq!(read(&store, number).await, Ok(model.get(&number).copied()));
        }
    });
}

/// Another task wants the key space again while it is deleted. The second record of the deletion
/// fails, or lands.
#[test]
fn a_key_space_that_is_wanted_while_it_is_deleted_keeps_the_keys_that_are_told() {
    for fails in [true, false] {
        let medium = Arc::new(Wary::new(SMALL));
        let model = Reactor::new(None).run(async {
            let store = format(&medium, Ack::Program).await;
            let model = prepare(&store).await;
            medium.hold();
            let (deleting, creating) = (store.clone(), store.clone());
            let deleted = beside(async move { deleting.delete_key_space(SPACES[0]).await });
            rest().await;
            let created = beside(async move {
                creating.ensure_key_space(SPACES[0]).await?;
                store_one(&creating, SPACES[0], 99, &value(40, 7)).await;
                Ok::<_, Error>(())
            });
            rest().await;
            assert_eq!(store.create_key_space(SPACES[0]).await, Err(Error::KeySpaceExists));
            medium.land(medium.held()[0]);
            rest().await;
            if fails {
                medium.refuse_page(medium.held()[0]);
            }
            medium.release();
            while_later().await;
            let end = if fails { Err(Error::Unrecovered) } else { Ok(()) };
            assert_eq!((deleted.take(), created.take()), (Some(end), Some(Ok(()))));
            if fails { model } else { BTreeMap::new() }
        });
        Reactor::new(None).run(async {
            let (store, _) = reopen(&medium).await;
            for number in 0..KEYS {
                assert_eq!(read(&store, number).await, Ok(model.get(&number).copied()));
            }
            assert_eq!(found(&store, SPACES[0], 99).await, content(&value(40, 7)));
        });
    }
}

/// The cleaner has copied what lived beside the old value, and waits for the new one to land.
#[test]
fn an_old_value_is_there_though_its_extent_is_being_cleaned_when_the_new_one_fails() {
    for number in [1, 2, 9] {
        let medium = Arc::new(Wary::new(SMALL));
        let model = Reactor::new(None).run(async {
            let store = format(&medium, Ack::Program).await;
            let model = prepare(&store).await;
            medium.hold();
            let outcome = put_beside(&store, number, 1);
            rest().await;
            let refused = medium.held();
            let (other, place) = (store.clone(), medium.clone());
            let done = beside(async move { churn(&other, &place, 60).await });
            for _ in 0..4_000 {
                let others = medium.held().into_iter().filter(|at| !refused.contains(at));
                others.for_each(|at| medium.land(at));
                rest().await;
            }
            assert_eq!((medium.resets(), medium.held()), (0, refused.clone()), "it waits");
            for at in &refused {
                medium.refuse_page(*at);
            }
            medium.release();
            while done.borrow().is_none() {
                while_later().await;
            }
            assert_eq!(failed(&[outcome]), 1);
            check(&store, &model, "cleaned").await;
            model
        });
        Reactor::new(None).run(async {
            let (store, _) = reopen(&medium).await;
            check(&store, &model, "opened").await;
        });
    }
}

/// Both stores of a key have failed, and the earlier one is not undone yet. At this instant the
/// cleaner has moved all other records, and no page is in flight.
#[test]
fn an_old_value_is_kept_from_the_cleaner_until_every_store_of_its_key_has_been_undone() {
    let medium = Arc::new(Wary::new(SMALL));
    let model = Reactor::new(None).run(async {
        let store = format(&medium, Ack::Program).await;
        let model = prepare(&store).await;
        let labels = || medium.extents().into_iter().map(|found| found.label);
        let old: Vec<Label> = labels().collect();
        medium.hold();
        let mut outcomes = vec![put_beside(&store, 1, 1)];
        rest().await;
        outcomes.push(put_beside(&store, 1, 2));
        rest().await;
        let held = medium.held();
        let [first, second] = held[..] else { panic!("{held:?}") };
        medium.refuse();
        medium.land(first);
        let (other, place) = (store.clone(), medium.clone());
        let done = beside(async move { churn(&other, &place, 60).await });
        for _ in 0..4_000 {
            for at in medium.held_of(Stream::Host).into_iter().filter(|at| *at != second) {
                medium.land(at);
            }
            rest().await;
        }
        let copies = medium.held_of(Stream::Gc);
        assert_eq!(medium.held().len(), 1 + copies.len());
        assert!(!copies.is_empty() && medium.resets() == 0, "the cleaner is at work");
        medium.land(second);
        rest().await;
        medium.release();
        while done.borrow().is_none() {
            while_later().await;
        }
        assert_eq!(failed(&outcomes), 2);
        check(&store, &model, "cleaned").await;
        churn(&store, &medium, 60).await;
        check(&store, &model, "cleaned again").await;
        let left: Vec<Label> = labels().filter(|label| old.contains(label)).collect();
        assert_eq!(left, [], "the extent in which the old value lives again is cleaned too");
        model
    });
    Reactor::new(None).run(async {
        let (store, _) = reopen(&medium).await;
        check(&store, &model, "opened").await;
    });
}

/// A value that was acknowledged from a buffer and did not land is lost: reads of its key return an
/// error, and no older value.
#[test]
fn a_value_acknowledged_from_a_buffer_that_does_not_land_reads_as_lost() {
    let medium = Arc::new(Wary::new(SMALL));
    let lost = Reactor::new(None).run(async {
        let store = format(&medium, Ack::Buffer { bytes: 1 << 20 }).await;
        let model = prepare(&store).await;
        medium.hold();
        let (outcomes, after) = change(&store, &model);
        rest().await;
        assert_eq!(failed(&outcomes), 0, "answered");
        medium.refuse();
        medium.release();
        rest().await;
        store_one(&store, SPACES[1], 1, &value(90, 1)).await;
        rest().await;
        let lost = lost_of(&store, &after).await;
        assert!(lost.len() >= 10, "{lost:?}");
        churn(&store, &medium, 60).await;
        let lost = less(&lost, lost_of(&store, &after).await);
        assert_eq!(found(&store, SPACES[1], 1).await, content(&value(90, 1)));
        store.flush().await.unwrap();
        (lost, after)
    });
    Reactor::new(None).run(async {
        let (lost, after) = lost;
        let (store, medium) = reopen(&medium).await;
        assert_eq!(lost_of(&store, &after).await, lost, "opened");
        churn(&store, &medium, 40).await;
        assert_eq!(lost_of(&store, &after).await, lost, "opened and cleaned");
    });
}

/// Cleaning restores empty values only: their headers hold all of them.
fn less(before: &[u64], now: Vec<u64>) -> Vec<u64> {
    let is_empty = |number: &u64| stored(*number, 0).len() == 0;
    let expected: Vec<u64> = before.iter().copied().filter(|number| !is_empty(number)).collect();
    let other: Vec<u64> = now.iter().copied().filter(|number| !is_empty(number)).collect();
    assert_eq!(other, expected, "cleaned");
    now
}

/// Returns the keys whose reads report a lost value. Checks the values of all others.
async fn lost_of(store: &Arc<Store>, model: &Model) -> Vec<u64> {
    let mut lost = Vec::new();
    for number in 0..KEYS + 20 {
        match read(store, number).await {
            Err(Error::Unrecovered) => lost.push(number),
            read => assert_eq!(read, Ok(model.get(&number).copied()), "key {number}"),
        }
    }
    lost
}

/// The task that undoes the delete waits for the latch of the key, and a reader meets the delete
/// during that wait.
#[test]
fn readers_do_not_see_a_failed_delete_whose_page_can_be_read() {
    let medium = Arc::new(Wary::new(SMALL));
    Reactor::new(None).run(async {
        let store = format(&medium, Ack::Program).await;
        for number in [1, 2] {
            store_one(&store, SPACES[0], number, &value(90, 1)).await;
        }
        medium.hold();
        let deleted = delete_beside(&store, 1);
        rest().await;
        medium.hold_reads();
        let written = [1, 2].map(|number| put(SPACES[0], number, value(90, 2)));
        let batch = batch_beside(&store, written.into());
        rest().await;
        medium.refuse_and_keep();
        medium.release();
        rest().await;
        let got = {
            let store = store.clone();
            beside(async move { read(&store, 1).await })
        };
        rest().await;
        assert!(deleted.borrow().is_none() && got.borrow().is_none(), "both wait");
        medium.release_reads();
        while_later().await;
        assert_eq!(*deleted.borrow(), Some(Err(Error::Unrecovered)));
        assert_eq!(*batch.borrow(), Some(Ok(())));
        assert_eq!(*got.borrow(), Some(Ok(content(&value(90, 2)))));
    });
}

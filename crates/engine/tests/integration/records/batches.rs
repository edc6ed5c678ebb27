use crate::records::medium::Wary;
use crate::records::rig::{
    SPACES, beside, check_counts, churn, config, content, delete, format, found, key, put, reopen,
    rest, shape, store_one, value,
};
use base::{Rng, mix};
use engine::{Ack, BatchOp, BatchWrite, Condition, Error, KeySpaceId, Store, Write};
use media::{PageId, Shape};
use reactor::Reactor;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const SMALL: Shape = shape(1_024, 64);

fn on_condition(space: KeySpaceId, number: u64, condition: Condition) -> BatchWrite {
    let op = BatchOp::Put { value: value(10, 1), write: condition.into() };
    BatchWrite { space, key: key(number), op }
}

async fn write(store: &Arc<Store>, writes: Vec<BatchWrite>) -> Result<(), Error> {
    store.write_batch(writes, store.announce()).await
}

/// Six members over three key spaces and some pages, one of them longer than a page, two deletes:
/// one of what is there, one of what is not.
fn six() -> Vec<BatchWrite> {
    vec![
        put(SPACES[0], 1, value(600, 11)),
        put(SPACES[1], 1, value(700, 12)),
        delete(SPACES[0], 2),
        put(SPACES[2], 3, value(2_500, 13)),
        delete(SPACES[2], 9),
        put(SPACES[1], 4, value(0, 0)),
    ]
}

/// Returns the values of the keys of [`six`].
async fn state(store: &Arc<Store>) -> Vec<Option<(u32, u64)>> {
    let mut state = Vec::new();
    for write in six() {
        let number = u64::from_be_bytes(*write.key.as_bytes().first_chunk().expect("a number"));
        state.push(found(store, write.space, number).await);
    }
    state
}

/// Stores older versions of some of the batch's keys.
async fn prepare(store: &Arc<Store>) {
    store_one(store, SPACES[0], 1, &value(50, 1)).await;
    store_one(store, SPACES[0], 2, &value(60, 2)).await;
    store_one(store, SPACES[2], 3, &value(3_000, 3)).await;
}

fn state_before() -> Vec<Option<(u32, u64)>> {
    let [one, two, three] = [value(50, 1), value(60, 2), value(3_000, 3)].map(|v| content(&v));
    vec![one, None, two, three, None, None]
}

fn state_after() -> Vec<Option<(u32, u64)>> {
    let value = |write: &BatchWrite| match &write.op {
        BatchOp::Put { value, .. } => content(value),
        BatchOp::Delete { .. } | BatchOp::Keep { .. } => None,
    };
    six().iter().map(value).collect()
}

/// Every set of the batch's pages that a loss of power may leave, then cleaning, then another loss
/// of power.
#[test]
fn a_batch_is_whole_or_absent_whichever_of_its_pages_landed() {
    for spare_bytes in [0, 64, 512] {
        let pages = torn(spare_bytes, &BTreeSet::new());
        assert!(pages.len() >= 5, "a batch of {} pages proves little", pages.len());
        for landed in 0..1_u32 << pages.len() {
            let is_in = |at: &usize| landed >> at & 1 == 1;
            torn(spare_bytes, &(0..pages.len()).filter(is_in).collect());
        }
    }
}

/// Cuts the power when of the batch's pages those of these numbers have landed. Returns all pages.
fn torn(spare_bytes: u32, landed: &BTreeSet<usize>) -> Vec<PageId> {
    let medium = Arc::new(Wary::new(shape(1_024, spare_bytes)));
    let pages = Reactor::new(None).run(async {
        let store = format(&medium, Ack::Program).await;
        prepare(&store).await;
        medium.hold();
        let result = beside(async move { write(&store, six()).await });
        rest().await;
        let pages = medium.held();
        for at in landed {
            medium.land(pages[*at]);
        }
        rest().await;
        assert_eq!(result.borrow().is_some(), landed.len() == pages.len(), "{landed:?} landed");
        pages
    });
    let is_whole = landed.len() == pages.len();
    let (expected, records) = if is_whole { (state_after(), 4) } else { (state_before(), 3) };
    let mut remains = medium;
    for life in 0..3 {
        remains = Reactor::new(None).run(async {
            let (store, medium) = reopen(&remains).await;
            assert_eq!(state(&store).await, expected, "{landed:?} landed, life {life}");
            check_counts(&store, records);
            if life == 1 {
                churn(&store, &medium, 2 * u64::from(SMALL.extents)).await;
                assert_eq!(state(&store).await, expected, "{landed:?} landed and cleaned");
                check_counts(&store, records);
            }
            medium
        });
    }
    pages
}

#[test]
fn no_read_or_write_answers_from_a_member_before_its_whole_batch_has_landed() {
    let medium = Arc::new(Wary::new(SMALL));
    Reactor::new(None).run(async {
        let store = format(&medium, Ack::Program).await;
        prepare(&store).await;
        medium.hold();
        let batch = beside({
            let store = store.clone();
            async move { write(&store, six()).await }
        });
        rest().await;
        let told = told_of(&store);
        rest().await;
        let pages = medium.held();
        let (last, others) = pages.split_last().unwrap();
        for at in others {
            medium.land(*at);
            rest().await;
            assert!(told.iter().all(|told| !told()), "told when {at} has landed, but not {last}");
        }
        let late = told_of(&store);
        rest().await;
        assert!(late.iter().all(|told| !told()), "told of what has landed itself");
        medium.release();
        rest().await;
        assert!(told.iter().chain(&late).all(|told| told()), "told when all has landed");
        assert_eq!(*batch.borrow(), Some(Ok(())));
        assert_eq!(state(&store).await, state_after());
    });
}

/// Starts all commands whose answer depends on a member of [`six`]. Each function returns whether
/// its command was answered.
fn told_of(store: &Arc<Store>) -> Vec<Box<dyn Fn() -> bool>> {
    let mut told: Vec<Box<dyn Fn() -> bool>> = Vec::new();
    for member in six() {
        let BatchWrite { space, key, op } = member;
        if matches!(op, BatchOp::Delete { .. }) && space == SPACES[2] {
            // The delete of a missing key leaves no record.
            continue;
        }
        let (a, b, c, name) = (store.clone(), store.clone(), store.clone(), key.clone());
        let get = beside(async move { a.get(space, &key).await.is_ok() });
        let other = name.clone();
        let exist = beside(async move { b.exist(space, &other).await });
        let is_there = !matches!(op, BatchOp::Delete { .. });
        let condition = if is_there { Condition::MustNotExist } else { Condition::MustExist };
        let refused = beside(async move {
            let write = condition.into();
            let put = c.put(space, &name, &value(1, 1), write, c.announce()).await;
            assert!(put.is_err(), "the condition is not met");
        });
        told.push(Box::new(move || get.borrow().is_some()));
        told.push(Box::new(move || exist.borrow().is_some()));
        told.push(Box::new(move || refused.borrow().is_some()));
    }
    for space in SPACES {
        let store = store.clone();
        let listed = beside(async move { store.list(space, None, |_| true).await });
        told.push(Box::new(move || listed.borrow().is_some()));
    }
    told
}

/// A store that overwrites a member of a batch outlives the batch.
#[test]
fn a_store_over_a_member_stays_when_the_batch_is_cut_off() {
    let medium = Arc::new(Wary::new(SMALL));
    Reactor::new(None).run(async {
        let store = format(&medium, Ack::Program).await;
        prepare(&store).await;
        medium.hold();
        let _batch = beside({
            let store = store.clone();
            async move { write(&store, six()).await }
        });
        rest().await;
        let of_batch = medium.held();
        let over = beside({
            let store = store.clone();
            async move { store_one(&store, SPACES[0], 1, &value(33, 99)).await }
        });
        rest().await;
        for at in medium.held().into_iter().filter(|at| !of_batch.contains(at)) {
            medium.land(at);
        }
        // The store may share the batch's last page; not its others.
        if over.borrow().is_none() {
            medium.land(*of_batch.last().unwrap());
        }
        rest().await;
        assert!(over.borrow().is_some(), "the store is answered");
    });
    Reactor::new(None).run(async {
        let (store, _) = reopen(&medium).await;
        let mut expected = state_before();
        expected[0] = content(&value(33, 99));
        assert_eq!(state(&store).await, expected);
        check_counts(&store, 3);
    });
}

/// An unreadable page of a batch does not lose the members on other pages.
#[test]
fn damage_to_one_member_is_not_damage_to_the_others() {
    let medium = Arc::new(Wary::new(shape(1_024, 64)));
    let pages = Reactor::new(None).run(async {
        let store = format(&medium, Ack::Program).await;
        prepare(&store).await;
        medium.hold();
        let batch = beside({
            let store = store.clone();
            async move { write(&store, six()).await }
        });
        rest().await;
        let pages = medium.held();
        medium.release();
        rest().await;
        assert_eq!(*batch.borrow(), Some(Ok(())));
        // A record follows the batch, so that the end of the batch is known.
        store_one(&store, SPACES[0], 7, &value(900, 7)).await;
        pages
    });
    for (which, at) in pages.iter().enumerate() {
        Reactor::new(None).run(async {
            let damaged = medium.remains();
            damaged.spoil(*at);
            let (store, _) = reopen(&damaged).await;
            let mut changed = 0;
            for (write, after) in six().iter().zip(state_after()) {
                let got = store.get(write.space, &write.key).await;
                let got = got.ok().and_then(|value| content(&value));
                changed += usize::from(got == after);
            }
            assert!(changed >= 3, "only {changed} members are left without page {which}");
        });
    }
}

#[test]
fn a_batch_is_refused_as_a_whole_and_changes_nothing() {
    let medium = Arc::new(Wary::new(SMALL));
    Reactor::new(None).run(async {
        let store = format(&medium, Ack::Program).await;
        prepare(&store).await;
        let max = store.batch_bytes_max();
        let (max_records, fits) = (store.batch_records_max(), u32::try_from(max / 4).unwrap());
        let too_long = Err(Error::BatchTooLong { max_bytes: max, max_records });
        let member = || put(SPACES[0], 1, value(20, 5));
        let cases = [
            (
                vec![member(), on_condition(SPACES[1], 1, Condition::MustExist)],
                Err(Error::KeyNotFound),
            ),
            (
                vec![member(), on_condition(SPACES[0], 2, Condition::MustNotExist)],
                Err(Error::KeyExists),
            ),
            (
                // The first of two is told.
                vec![
                    on_condition(SPACES[2], 3, Condition::MustNotExist),
                    on_condition(SPACES[1], 8, Condition::MustExist),
                ],
                Err(Error::KeyExists),
            ),
            (vec![member(), delete(SPACES[0], 1)], Err(Error::BatchRepeatsKey)),
            (vec![member(), put(KeySpaceId(9), 1, value(1, 1))], Err(Error::NoKeySpace)),
            (vec![member(), put(KeySpaceId(0), 1, value(1, 1))], Err(Error::KeySpaceReserved)),
            ((0..5).map(|n| put(SPACES[0], n, value(fits, n))).collect(), too_long),
            ((0..=u64::from(max_records)).map(|n| delete(SPACES[0], n)).collect(), too_long),
        ];
        let usage = store.usage();
        for (writes, expected) in cases {
            let what = format!("{} members, the last {:?}", writes.len(), writes.last());
            assert_eq!(write(&store, writes).await, expected, "{what}");
            assert_eq!(state(&store).await, state_before(), "{what}");
            assert_eq!(store.usage(), usage, "{what}");
        }
    });
}

#[test]
fn a_batch_may_be_empty_or_have_one_member() {
    let medium = Arc::new(Wary::new(SMALL));
    Reactor::new(None).run(async {
        let store = format(&medium, Ack::Program).await;
        let long = value(store.value_bytes_max(), 4);
        assert!(u64::from(long.len()) > store.batch_bytes_max());
        assert_eq!(write(&store, Vec::new()).await, Ok(()));
        assert_eq!(write(&store, vec![put(SPACES[0], 1, long.clone())]).await, Ok(()));
        assert_eq!(found(&store, SPACES[0], 1).await, content(&long));
        let missing = on_condition(SPACES[0], 2, Condition::MustExist);
        assert_eq!(write(&store, vec![missing]).await, Err(Error::KeyNotFound));
        assert_eq!(write(&store, vec![delete(SPACES[0], 2)]).await, Ok(()));
        assert_eq!(write(&store, vec![delete(SPACES[0], 1)]).await, Ok(()));
        assert_eq!(found(&store, SPACES[0], 1).await, None);
        check_counts(&store, 0);
    });
}

/// A value of any length may be stored together with the condition that others are met.
#[test]
fn the_longest_value_of_a_batch_is_not_counted() {
    let medium = Arc::new(Wary::new(SMALL));
    Reactor::new(None).run(async {
        let store = format(&medium, Ack::Program).await;
        let (max, longest) = (store.batch_bytes_max(), store.value_bytes_max());
        assert!(u64::from(longest) > max);
        let with = |len: u32, more: u32| {
            let keep = BatchOp::Keep { condition: Condition::MustNotExist };
            let others = (2..2 + more).map(|n| put(SPACES[1], n.into(), value(len / 8, n.into())));
            let keep = BatchWrite { space: SPACES[1], key: key(1), op: keep };
            [put(SPACES[0], 1, value(len, 1)), keep].into_iter().chain(others).collect::<Vec<_>>()
        };
        let len = longest - 100;
        assert_eq!(write(&store, with(len, 0)).await, Ok(()));
        assert_eq!(found(&store, SPACES[0], 1).await, content(&value(len, 1)));
        assert_eq!(write(&store, with(longest / 2, 1)).await, Ok(()));
        // An accepted batch fits, and one that would not fit is refused.
        let mut stored = 0;
        for more in 0..40 {
            for len in [longest, longest - 1, longest / 2, longest / 3] {
                let writes = with(len, more);
                let bytes = writes.iter().map(|write| match &write.op {
                    BatchOp::Put { value, .. } => u64::from(value.len()),
                    BatchOp::Delete { .. } | BatchOp::Keep { .. } => 0,
                });
                let is_long = bytes.sum::<u64>() > max;
                let takes = store.takes_batch(&writes);
                let keys: Vec<u64> = (2..2 + u64::from(more)).collect();
                // The write must match `takes_batch`, even in an extent with room for this batch
                // only.
                let done = write(&store, writes).await;
                match done {
                    Ok(()) => stored += u32::from(is_long && more > 1),
                    Err(Error::BatchTooLong { .. }) => assert!(!takes, "{more} {len}"),
                    Err(error) => panic!("{more} of {len}: {error}"),
                }
                for n in keys.into_iter().filter(|_| done.is_ok()) {
                    let kept = found(&store, SPACES[1], n).await;
                    assert_eq!(kept, content(&value(len / 8, n)), "{more} {len}");
                }
                for n in 2..2 + u64::from(more) {
                    let _ = write(&store, vec![delete(SPACES[1], n)]).await;
                }
            }
        }
        assert!(stored > 8, "{stored} with a long value were stored");
    });
}

/// The capacity limits the live records after a batch, not each of its members.
#[test]
fn a_batch_needs_room_for_its_sum_less_what_it_replaces() {
    let medium = Arc::new(Wary::new(SMALL));
    Reactor::new(None).run(async {
        let store = format(&medium, Ack::Program).await;
        let mut stored = 0;
        let full = loop {
            let (key, value) = (key(stored), value(900, 1));
            let announced = store.announce();
            match store.put(SPACES[0], &key, &value, Write::default(), announced).await {
                Ok(_) => stored += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(full, Error::CapacityExceeded);
        let usage = store.usage().values;
        // Two for two fit; three for two do not, nor does any one more.
        let more = |first: u64, count: u64| {
            (0..count).map(move |n| put(SPACES[1], first + n, value(900, 2)))
        };
        let less = || (0..2).map(|number| delete(SPACES[0], number));
        let too_much = write(&store, more(0, 3).chain(less()).collect()).await;
        assert_eq!(too_much, Err(Error::CapacityExceeded));
        assert_eq!(store.usage().values, usage);
        assert_eq!(write(&store, more(0, 2).chain(less()).collect()).await, Ok(()));
        assert_eq!(store.usage().values, usage);
        check_counts(&store, stored);
        assert_eq!(found(&store, SPACES[0], 1).await, None);
        assert_eq!(found(&store, SPACES[1], 1).await, content(&value(900, 2)));
    });
}

/// Many at once over few keys, some of which have one latch: the same key in two key spaces. Each
/// batch writes all of a group, so the last one has written all of it.
#[test]
fn batches_over_the_same_keys_take_turns() {
    for seed in 0..20 {
        let medium = Arc::new(Wary::new(SMALL));
        Reactor::new(Some(seed)).run(async {
            let store = format(&medium, Ack::Program).await;
            let group: Vec<_> = (0..4).flat_map(|n| SPACES.map(|space| (space, n))).collect();
            let mut results = Vec::new();
            for version in 0..40 {
                let store = store.clone();
                let mut group = group.clone();
                let mut rng = Rng::new(mix(seed * 1_000 + version));
                for at in (1..group.len()).rev() {
                    let other = rng.below(at as u64 + 1);
                    group.swap(at, usize::try_from(other).unwrap());
                }
                results.push(beside(async move {
                    clock::sleep(base::Nanos(rng.below(30)), clock::Stage::Core).await;
                    if version % 5 == 4 {
                        // Single ones meet them, and are overwritten, or come last.
                        let one = value(40, version);
                        store_one(&store, group[0].0, 50 + group[0].1, &one).await;
                        return Ok(());
                    }
                    let member = |(space, n): &(KeySpaceId, u64)| {
                        put(*space, *n, value(40 + 100 * u32::try_from(*n).unwrap(), version))
                    };
                    write(&store, group.iter().map(member).collect()).await
                }));
            }
            clock::sleep(base::Nanos(1_000), clock::Stage::Core).await;
            assert!(results.iter().all(|result| *result.borrow() == Some(Ok(()))), "all are done");
            let mut tags = BTreeMap::new();
            for (space, n) in &group {
                *tags.entry(found(&store, *space, *n).await.unwrap().1).or_insert(0) += 1;
            }
            assert_eq!(tags.len(), 1, "seed {seed}: the members of one batch: {tags:?}");
        });
    }
}

#[test]
fn deleting_a_key_space_drops_its_members_of_a_batch_and_no_others() {
    let medium = Arc::new(Wary::new(SMALL));
    Reactor::new(None).run(async {
        let store = format(&medium, Ack::Program).await;
        prepare(&store).await;
        write(&store, six()).await.unwrap();
        store.delete_key_space(SPACES[1]).await.unwrap();
        let gone = write(&store, six()).await;
        assert_eq!(gone, Err(Error::NoKeySpace));
    });
    Reactor::new(None).run(async {
        let (store, _) = reopen(&medium).await;
        for (write, after) in six().iter().zip(state_after()) {
            let got = store.get(write.space, &write.key).await;
            let expected = match after {
                _ if write.space == SPACES[1] => Err(Error::NoKeySpace),
                None => Err(Error::KeyNotFound),
                Some(after) => Ok(after),
            };
            assert_eq!(got.map(|value| content(&value).unwrap()), expected);
        }
    });
}

/// Any batch within the limits fits, wherever the open extent stands, and lies in one extent.
/// Larger ones than the buffer are refused where stores are answered from one.
#[test]
fn any_batch_within_the_limits_goes_through() {
    let mut victims = 0;
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let pages = [512, 1_024, 4_096][usize::try_from(rng.below(3)).unwrap()];
        let spare = [0, 32, 64, 128, 400][usize::try_from(rng.below(5)).unwrap()];
        let per_extent = 14 + u32::try_from(rng.below(40)).unwrap();
        let shape = Shape { pages_per_extent: per_extent, ..shape(pages, spare) };
        let medium = Arc::new(Wary::new(shape));
        Reactor::new(None).run(async {
            let mut config = config(shape, Ack::Program);
            if seed % 4 == 0 {
                config.ack = Ack::Buffer { bytes: 2_000 };
            }
            let store = Store::format(medium.clone(), config);
            store.create_key_space(SPACES[0]).await.unwrap();
            let max = store.batch_bytes_max();
            assert!(seed % 4 != 0 || max <= 2_000);
            for round in 0..300 {
                let writes = random_batch(&mut rng, max, round);
                let bytes: u64 = writes.iter().map(bytes_of).sum();
                let done = write(&store, writes.clone()).await;
                assert_eq!(done, Ok(()), "seed {seed}: {bytes} of {max} bytes");
                for write in &writes {
                    let BatchOp::Put { value, .. } = &write.op else { continue };
                    let got = store.get(write.space, &write.key).await.unwrap();
                    assert_eq!(content(&got), content(value), "seed {seed}");
                }
            }
            victims += store.counters().victims;
        });
    }
    assert!(victims > 1_000, "only {victims} extents were cleaned");
}

/// As the limit is documented.
fn bytes_of(write: &BatchWrite) -> u64 {
    let value = if let BatchOp::Put { value, .. } = &write.op { value.len() } else { 0 };
    u64::from(value) + (32 + write.key.as_bytes().len() as u64).next_multiple_of(8)
}

/// Close to the limit, of members of all sizes, or all of one.
fn random_batch(rng: &mut Rng, max: u64, round: u64) -> Vec<BatchWrite> {
    let largest = 1 + rng.below(max.min(3_000));
    let mut left = max;
    let mut writes = Vec::new();
    let mut numbers = BTreeSet::new();
    for _ in 0..1_000 {
        let number = rng.below(60);
        let len = if rng.below(3) == 0 { largest } else { rng.below(largest) };
        let write = put(
            SPACES[0],
            number,
            value(u32::try_from(len).expect("a batch is short"), mix(round)),
        );
        if bytes_of(&write) <= left && numbers.insert(number) {
            left -= bytes_of(&write);
            writes.push(write);
        }
    }
    writes
}

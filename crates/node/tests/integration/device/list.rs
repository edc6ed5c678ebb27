//! Keys listed while others come and go.

use crate::device::host::{Host, delete, key, list, listed, store};
use crate::device::machine::{log, moke, on};
use base::{Buf, Key, Nanos, Rng};
use clock::Stage;
use node::profile::LogFtl;
use node::{Device, Profile};
use spec::Status;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;

/// Keys that are there all the time.
const STAYING: u64 = 400;

fn staying(number: u64) -> Key {
    key(number, [8, 9, 16, 17, 30, 255][usize::try_from(number % 6).expect("below 6")])
}

/// Returns a key that is stored and deleted during the walk.
fn passing(number: u64) -> Key {
    key(1 << 40 | number, [8, 16, 21][usize::try_from(number % 3).expect("below 3")])
}

/// Stores and deletes other keys, 16 at a time, until `stop`.
async fn disturb(host: Host, stop: Rc<Cell<bool>>, seed: u64) {
    let mut rng = Rng::new(seed);
    while !stop.get() {
        let submissions: Vec<_> = (0..64)
            .map(|_| {
                let key = passing(rng.below(300));
                match rng.below(2) {
                    0 => store(&key, &Buf::phantom(200, 7)),
                    _ => delete(&key),
                }
            })
            .collect();
        let completions = host.all(submissions.into_iter(), 16).await;
        assert!(completions.iter().all(|completion| completion.status.is_success()));
    }
}

/// The keys met by Lists of at most `room` bytes that each begin where the one before ended; none
/// is met twice.
async fn walk(host: &Host, room: u32) -> BTreeSet<Key> {
    let mut met = BTreeSet::new();
    let mut last = None;
    loop {
        let completion = host.one(list(last.as_ref(), room)).await;
        assert_eq!(completion.status, Status::SUCCESS);
        let keys = listed(&completion);
        assert!(completion.data.len() <= room);
        let new: Vec<&Key> = keys.iter().filter(|key| Some(*key) != last.as_ref()).collect();
        for key in &new {
            assert!(met.insert((*key).clone()), "{key:?} was met before, in lists of {room} bytes");
        }
        match new.last() {
            Some(key) => last = Some((*key).clone()),
            None => return met,
        }
    }
}

fn profile() -> Profile {
    moke(&[("blocks_per_plane", "16"), ("pages_per_block", "33"), ("size_gb", "0.3")])
}

/// A device with the keys that stay, and others that are changed for as long as `work` takes.
fn disturbed(profile: &Profile, work: impl AsyncFnOnce(&Device, &Host)) {
    on(profile, async |device| {
        let host = Host::new(device);
        let keys = (0..STAYING).map(staying).chain((0..300).step_by(2).map(passing));
        let keys: Vec<Key> = keys.collect();
        host.each(keys.iter().map(|key| store(key, &Buf::phantom(100, 1)))).await;
        let stop = Rc::new(Cell::new(false));
        for seed in 0..3 {
            clock::spawn(disturb(Host::new(device), stop.clone(), seed));
        }
        work(device, &host).await;
        stop.set(true);
        clock::sleep(Nanos::from_millis(100), Stage::Core).await;
    });
}

#[test]
fn keys_that_stay_are_listed_exactly_once_whatever_comes_and_goes() {
    let mut on_blocks = profile();
    log(&mut on_blocks).ftl = LogFtl::Page;
    for profile in [profile(), on_blocks] {
        disturbed(&profile, async |_, host| {
            // The least room is for one key of 255 bytes beside the one that the list begins with.
            for room in [4 + 2 * 260, 600, 1_000, 4_096, 100_000] {
                let met = walk(host, room).await;
                for number in 0..STAYING {
                    let key = staying(number);
                    assert!(met.contains(&key), "{key:?} in lists of {room} bytes");
                }
            }
        });
    }
}

/// A walk may start at a present or an absent key. It lists the keys after it, and all walks have
/// the same order.
#[test]
fn a_list_may_begin_at_any_key() {
    disturbed(&profile(), async |_, host| {
        let stays: BTreeSet<Key> = (0..STAYING).map(staying).collect();
        let only_staying = |keys: Vec<Key>| -> Vec<Key> {
            keys.into_iter().filter(|key| stays.contains(key)).collect()
        };
        let order = only_staying(host.list_all(1_000).await);
        assert_eq!(order.len() as u64, STAYING);
        for at in (0..order.len()).step_by(37) {
            let first = listed(&host.one(list(Some(&order[at]), 2_000)).await);
            assert_eq!(first[0], order[at], "a list begins with its key");
            let first = only_staying(first);
            assert_eq!(first, order[at..at + first.len()], "and continues in order");
        }
        let mut seen = BTreeSet::new();
        for number in 0..200 {
            let absent = key(1 << 50 | number, 11);
            let first = listed(&host.one(list(Some(&absent), 4_000)).await);
            assert!(!first.contains(&absent), "an absent key is not listed");
            let first = only_staying(first);
            if let Some(place) = order.iter().position(|key| Some(key) == first.first()) {
                assert_eq!(first, order[place..place + first.len()]);
                seen.insert(place);
            }
        }
        assert!(seen.len() > 50, "absent keys lie in {} places of the order", seen.len());
    });
}

/// Retrieving as few as one key at a time, with nothing else going on.
#[test]
fn lists_of_one_key_each_meet_all() {
    let profile = moke(&[]);
    on(&profile, async |device| {
        let host = Host::new(device);
        let keys: Vec<Key> = (0..100).map(|number| key(number, 16)).collect();
        host.each(keys.iter().map(|key| store(key, &Buf::phantom(1, 1)))).await;
        let met = walk(&host, 4 + 2 * 20).await;
        assert!(met.iter().eq(keys.iter()));
        let none = host.one(list(None, 4 + 19)).await;
        assert_eq!((none.status, listed(&none).len()), (Status::SUCCESS, 0), "no room for a key");
        let none = host.one(list(None, 3)).await;
        assert_eq!(none.status, Status::INVALID_FIELD, "no room for a count");
    });
}

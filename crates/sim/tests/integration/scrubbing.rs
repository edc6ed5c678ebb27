//! Scrubbing by several reactors.

use crate::drives_of_peers::{BEFORE_EXTENTS, BLOCK_BYTES, formatted, key, options, peers};
use base::{Buf, Nanos, Rng};
use clock::Stage;
use drive::Durability;
use engine::{KeySpaceId, Write};
use node::DiskDrive;
use reactor::Reactor;
use sim::{DiskFaults, SimDisk};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::num::NonZero;
use std::rc::Rc;
use std::sync::Arc;

const DURABILITY: Durability = Durability::Capacitor;
const SPACE: KeySpaceId = KeySpaceId(1);
const EXTENT_BYTES: u64 = 2 << 20;
const EXTENTS: u64 = 24;
const RATE: u64 = 8 << 20;
/// The most that is read of an extent at a time, and some pages.
const READ_BYTES: u64 = (1 << 20) + (64 << 10);
const STEP: Nanos = Nanos::from_millis(10);

type Told = Rc<RefCell<BTreeSet<String>>>;

/// A disk with values in most extents, of which some blocks cannot be read.
fn damaged(seed: u64) -> SimDisk {
    let disk = formatted(EXTENTS, EXTENT_BYTES, seed);
    let used = disk.clone();
    let mut rng = Rng::new(seed);
    let all = Reactor::new(None).run(async {
        let drive = DiskDrive::open(used, options(DURABILITY, 1)).await.expect("it is whole");
        let store = drive.store();
        for number in 0..900 {
            let len = usize::try_from(1 + rng.below(40_000)).expect("it is short");
            let value = Buf::copy_from(&vec![7; len]);
            let stored =
                store.put(SPACE, &key(number), &value, Write::default(), store.announce()).await;
            stored.expect("there is room");
        }
        drive.close().await.expect("nothing fails");
        let of = |id: u32, page: u32| u64::from(id) * EXTENT_BYTES + u64::from(page) * 4_096;
        let facts = store.extent_facts();
        facts.iter().filter(|it| it.has_summary).map(|it| of(it.id.0, it.pages)).collect::<Vec<_>>()
    });
    assert!(all.len() > 6, "{} extents are full", all.len());
    // Not the last blocks of an extent, where its summary is.
    let unreadable = (0..30).map(|_| {
        let extent = rng.below(all.len() as u64) * EXTENT_BYTES;
        (BEFORE_EXTENTS + extent + rng.below(EXTENT_BYTES / 2)) / u64::from(BLOCK_BYTES)
    });
    let faults = DiskFaults { unreadable: unreadable.collect(), ..DiskFaults::default() };
    disk.killed(faults, seed)
}

/// Runs `work` on the drive of a disk while so many reactors scrub it. Returns what was told.
fn scrubbing<W: Future<Output = ()>>(
    disk: &SimDisk,
    reactors: usize,
    seed: u64,
    work: impl FnOnce(Rc<DiskDrive>) -> W,
) -> (SimDisk, BTreeSet<String>) {
    let disk = Arc::new(
        disk.killed(DiskFaults { unreadable: disk.unreadable(), ..DiskFaults::default() }, 1),
    );
    let (mut group, pool) = peers(reactors, seed);
    let told = Told::default();
    let (tell, used) = (told.clone(), disk.clone());
    group.run(async move {
        let opened = DiskDrive::open_among(pool, used, options(DURABILITY, reactors)).await;
        let drive = Rc::new(opened.expect("it is a drive"));
        // The cleaner would move what is on damaged pages.
        drive.store().end_cleaning().await;
        let rate = NonZero::new(RATE).expect("it is some");
        drive.scrub(rate, move |sentence| {
            assert!(tell.borrow_mut().insert(sentence), "a page is told of once");
        });
        work(drive).await;
    });
    drop(group);
    let faults = DiskFaults { unreadable: disk.unreadable(), ..DiskFaults::default() };
    (disk.killed(faults, 1), told.take())
}

/// Scrubs all of a disk, never faster than its rate. Returns what was told, the bytes that each
/// reactor read, and the time.
fn scrub_all(disk: &SimDisk, reactors: usize, seed: u64) -> (BTreeSet<String>, Vec<u64>, Nanos) {
    let read = Rc::new(RefCell::new((vec![0; reactors], Nanos::ZERO)));
    let result = read.clone();
    let (_, told) = scrubbing(disk, reactors, seed, |drive| async move {
        let (store, began) = (drive.store(), clock::now());
        while store.scrubbed().passes == 0 {
            clock::sleep(STEP, Stage::Queue).await;
            let (bytes, time) = (store.scrubbed().bytes, clock::now() - began);
            let allowed = time.0 / 1_000 * RATE / 1_000_000 + reactors as u64 * READ_BYTES;
            assert!(bytes <= allowed, "{bytes} bytes after {time}");
        }
        let (bytes, time) = &mut *result.borrow_mut();
        *time = clock::now() - began;
        for work in store.work_by_reactor() {
            bytes[work.reactor_id as usize] += work.scrubbed_bytes;
        }
        assert_eq!(bytes.iter().sum::<u64>(), store.scrubbed().bytes);
    });
    let (bytes, time) = read.take();
    (told, bytes, time)
}

#[test]
fn several_reactors_find_the_damage_that_one_finds_at_the_same_rate() {
    for seed in 0..4 {
        let disk = damaged(seed);
        let (expected, all, time) = scrub_all(&disk, 1, seed);
        assert!(expected.len() > 5, "{expected:?}");
        for reactors in 2..=4 {
            let (told, bytes, of_these) = scrub_all(&disk, reactors, seed);
            assert_eq!(told, expected, "seed {seed}, {reactors} reactors");
            assert_eq!(bytes.iter().sum::<u64>(), all[0], "seed {seed}, {reactors} reactors");
            assert!(bytes.iter().all(|bytes| *bytes > 0), "seed {seed}: {bytes:?}");
            // One reactor takes longer where it reads damaged pages again.
            assert!(of_these <= time + STEP, "seed {seed}: {of_these} and {time}");
        }
    }
}

#[test]
fn a_checkpoint_in_the_middle_of_a_pass_leaves_out_no_extent_of_it() {
    for seed in 0..8 {
        let (disk, mut rng) = (damaged(seed % 2), Rng::new(seed));
        let (expected, _, time) = scrub_all(&disk, 4, seed);
        let (kept, then) = scrubbing(&disk, 4, seed, |drive| async move {
            clock::sleep(Nanos(rng.below(time.0)), Stage::Queue).await;
            drive.store().checkpoint().await.expect("there is room");
        });
        let (_, after) = scrubbing(&kept, 4, seed, |drive| async move {
            while drive.store().scrubbed().passes == 0 {
                clock::sleep(STEP, Stage::Queue).await;
            }
        });
        let told: BTreeSet<_> = then.union(&after).cloned().collect();
        assert_eq!(told, expected, "seed {seed}");
        assert!(!after.is_empty() && after.len() <= expected.len(), "seed {seed}");
    }
}

#[test]
fn no_reactor_reads_on_after_the_end_of_scrubbing() {
    for seed in 0..10 {
        let (disk, mut rng) = (damaged(0), Rng::new(seed));
        scrubbing(&disk, 4, seed, |drive| async move {
            let store = drive.store();
            clock::sleep(Nanos(rng.below(1_000_000_000)), Stage::Queue).await;
            store.end_scrubbing();
            let before = store.scrubbed().bytes;
            clock::sleep(Nanos::from_secs(1), Stage::Queue).await;
            let ended = store.scrubbed().bytes;
            assert!(ended - before <= 4 * READ_BYTES, "reads under way end");
            clock::sleep(Nanos::from_secs(10), Stage::Queue).await;
            assert_eq!(store.scrubbed().bytes, ended);
        });
    }
}

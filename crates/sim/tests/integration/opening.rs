//! A drive on a disk that several reactors open together.

use crate::drives_of_peers::{formatted, key, options, peers};
use base::{Buf, Rng};
use drive::Durability;
use engine::{Error, How, KeySpaceId, Live, Recovery, Write};
use media::ExtentId;
use node::DiskDrive;
use reactor::Reactor;
use sim::{DiskFaults, SimDisk};
use std::sync::Arc;

const SPACE: KeySpaceId = KeySpaceId(1);
const DURABILITY: Durability = Durability::Capacitor;
const EXTENT_BYTES: u64 = 128 << 10;
const EXTENTS: u64 = 50;
const KEYS: u64 = 2_000;
const CHANGES: u64 = 6_000;

/// What opening has found.
#[derive(Debug, PartialEq)]
struct Opened {
    how: How,
    /// Extents, those read for records, those with a summary, records and lost pages.
    recovery: [u64; 5],
    live: Vec<(ExtentId, Live)>,
    tombstones: Live,
    index_entries: u64,
    values: Vec<Result<Vec<u8>, Error>>,
}

/// Returns a disk whose drive was changed at random and not closed, with a checkpoint after so
/// many changes.
fn used_disk(seed: u64, checkpoint_after: u64) -> Arc<SimDisk> {
    let disk = formatted(EXTENTS, EXTENT_BYTES, seed);
    let used = disk.clone();
    Reactor::new(None).run(async move {
        let drive = DiskDrive::open(used, options(DURABILITY, 1)).await.expect("it is new");
        let (store, mut rng) = (drive.store(), Rng::new(seed));
        for change in 0..CHANGES {
            if change == checkpoint_after {
                store.checkpoint().await.expect("there is room");
            }
            let key = key(rng.below(KEYS));
            if rng.below(8) == 0 {
                let deleted = store.delete(SPACE, &key, store.announce()).await;
                assert!(matches!(deleted, Ok(()) | Err(Error::KeyNotFound)));
                continue;
            }
            let len = usize::try_from(1 + rng.below(600)).expect("it is short");
            let value = Buf::copy_from(&vec![u8::try_from(change % 256).expect("a byte"); len]);
            let stored = store.put(SPACE, &key, &value, Write::default(), store.announce()).await;
            stored.expect("there is room");
        }
        store.flush().await.expect("nothing fails");
    });
    disk
}

/// Opens the drive on what is on `disk`, by so many reactors. Returns what it has found, and the
/// records that each reactor entered.
fn open(disk: &SimDisk, reactors: usize, seed: u64) -> (Opened, Vec<u64>) {
    let disk = Arc::new(disk.killed(DiskFaults::default(), 1));
    let (mut group, pool) = peers(reactors, seed);
    group.run(async move {
        let options = options(DURABILITY, reactors);
        let drive = DiskDrive::open_among(pool, disk, options).await.expect("it is whole");
        let Recovery { how, extents, replayed_extents, summaries, records, lost_pages, .. } =
            drive.recovery();
        let recovery = [extents, replayed_extents, summaries, records, lost_pages];
        let (store, usage) = (drive.store(), drive.usage());
        let mut values = Vec::new();
        for number in 0..KEYS {
            let value = store.get(SPACE, &key(number)).await;
            values.push(value.map(|value| value.bytes().expect("they are bytes").to_vec()));
        }
        let (live, tombstones) = (store.live_by_extent(), usage.tombstones);
        let index_entries = usage.index_entries;
        let work = store.work_by_reactor();
        let mut entered = vec![0; reactors];
        for work in work {
            entered[work.reactor_id as usize] += work.records_entered;
        }
        assert_eq!(entered.iter().sum::<u64>(), records);
        (Opened { how, recovery, live, tombstones, index_entries, values }, entered)
    })
}

#[test]
fn several_reactors_find_in_a_drive_what_one_finds() {
    for seed in 0..6 {
        // With the checkpoint of the format, the whole log is read.
        let after = if seed % 2 == 0 { u64::MAX } else { CHANGES / 2 };
        let disk = used_disk(seed, after);
        let (expected, entered) = open(&disk, 1, seed);
        assert!(entered[0] >= CHANGES / 3, "{entered:?}");
        for reactors in 2..=4 {
            let (found, entered) = open(&disk, reactors, seed);
            assert_eq!(found, expected, "seed {seed}, {reactors} reactors");
            assert!(entered.iter().all(|records| *records > 0), "seed {seed}: {entered:?}");
        }
    }
}

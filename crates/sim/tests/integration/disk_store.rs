//! A store on a disk that is full, or fails: what is refused is refused at once and says why, and
//! what was stored can be read.

use base::{Buf, Key, Nanos};
use clock::Stage;
use drive::{Durability, Format};
use engine::{Error, KeySpaceId, Store, Write};
use media::BlocksShape;
use node::{DiskDrive, DiskOptions};
use reactor::{PeerGroup, Reactor};
use sim::{DiskConditions, DiskFaults, Left, SimDisk};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

const SPACE: KeySpaceId = KeySpaceId(1);
const FORMAT: Format = Format { id: [1; 16], secret: [2; 16], extent_bytes: Some(128 << 10) };

fn key(number: usize) -> Key {
    Key::new(format!("key {number}").as_bytes()).expect("it is short")
}

fn value(number: usize) -> Buf {
    let byte = u8::try_from(number % 251).expect("it fits");
    Buf::copy_from(&vec![byte; 100 + number * 997 % 9_000])
}

async fn put(store: &Arc<Store>, number: usize) -> Result<(), Error> {
    let (key, value) = (key(number), value(number));
    store.put(SPACE, &key, &value, Write::default(), store.announce()).await.map(drop)
}

async fn delete(store: &Arc<Store>, number: usize) -> Result<(), Error> {
    store.delete(SPACE, &key(number), store.announce()).await
}

async fn assert_there(store: &Arc<Store>, numbers: std::ops::Range<usize>) {
    for number in numbers {
        let found = store.get(SPACE, &key(number)).await.expect("it was stored");
        assert_eq!(found.bytes(), value(number).bytes(), "value {number}");
    }
}

/// A disk with an empty drive.
async fn formatted(block_bytes: u32) -> SimDisk {
    let blocks = 18 * (128 << 10) / u64::from(block_bytes);
    let shape = BlocksShape { block_bytes, blocks, parallelism: 4 };
    let healthy = SimDisk::new(shape, DiskConditions::new(block_bytes), 1);
    let healthy = Arc::new(healthy);
    DiskDrive::format(healthy.clone(), FORMAT).await.expect("nothing fails");
    healthy.killed(DiskFaults::default(), 2)
}

/// A drive on a disk with `faults`.
async fn open(block_bytes: u32, faults: DiskFaults) -> DiskDrive {
    let disk = Arc::new(formatted(block_bytes).await.killed(faults, 3));
    DiskDrive::open(disk, DiskOptions::default()).await.expect("nothing has failed yet")
}

/// Stores one value after the other until one is refused, and returns how many there are, and why.
async fn fill(store: &Arc<Store>) -> (usize, Error) {
    for number in 0.. {
        if let Err(error) = put(store, number).await {
            return (number, error);
        }
    }
    unreachable!("a disk has an end");
}

#[test]
fn a_full_drive_reads_and_deletes_and_then_has_room_again() {
    for block_bytes in [512, 4_096] {
        Reactor::new(None).run(async {
            let drive = open(block_bytes, DiskFaults::default()).await;
            let store = drive.store();
            let (count, error) = fill(store).await;
            assert_eq!(error, Error::CapacityExceeded);
            assert!(count > 50, "{count} values fit");
            assert_there(store, 0..count).await;
            for number in 0..count {
                delete(store, number).await.expect("a full drive deletes");
            }
            for number in 0..count * 9 / 10 {
                put(store, number).await.expect("what was deleted has made room");
            }
            assert_there(store, 0..count * 9 / 10).await;
        });
    }
}

#[test]
fn a_drive_whose_flush_has_failed_refuses_changes_at_once_and_reads_on() {
    Reactor::new(None).run(async {
        let faults = DiskFaults { failed_flushes: BTreeSet::from([60]), ..DiskFaults::default() };
        let drive = open(4_096, faults).await;
        let store = drive.store();
        let (count, error) = fill(store).await;
        assert_eq!(error, Error::Unwritten);
        assert!(store.usage().extents_free > 4, "it is not full: {:?}", store.usage());
        for number in count..count + 40 {
            assert_eq!(put(store, number).await, Err(Error::Unwritten));
        }
        assert_eq!(delete(store, 0).await, Err(Error::Unwritten));
        assert_eq!(delete(store, count).await, Err(Error::KeyNotFound));
        assert_there(store, 0..count).await;
    });
}

#[test]
fn a_thin_disk_that_has_no_space_left_refuses_values_and_reads_on() {
    Reactor::new(None).run(async {
        let faults = DiskFaults { no_space: (60..100_000).collect(), ..DiskFaults::default() };
        let drive = open(4_096, faults).await;
        let store = drive.store();
        let (count, error) = fill(store).await;
        assert_eq!(error, Error::CapacityExceeded);
        for number in count..count + 40 {
            assert_eq!(put(store, number).await, Err(Error::CapacityExceeded));
        }
        assert_there(store, 0..count).await;
    });
}

/// Values that are overwritten: about an eighth of the drive.
const LIVE: usize = 60;

#[test]
fn a_disk_takes_values_again_after_writes_have_failed() {
    let no_space = |writes| DiskFaults { no_space: writes, ..DiskFaults::default() };
    let failed = |writes| DiskFaults { failed_writes: writes, ..DiskFaults::default() };
    for first in [200, 500, 901] {
        for faults in
            [no_space((first..first + 400).collect()), failed((first..first + 400).collect())]
        {
            Reactor::new(None).run(async {
                let drive = open(4_096, faults).await;
                let store = drive.store();
                let mut refused = 0;
                for number in 0..100 * LIVE {
                    let is_refused = put(store, number % LIVE).await.is_err();
                    if is_refused {
                        refused += 1;
                    } else if refused > 0 && number % LIVE == 0 {
                        break;
                    }
                }
                assert!(refused > 0, "some writes fail");
                for number in 0..40 * LIVE {
                    let taken = put(store, number % LIVE).await;
                    assert_eq!(taken, Ok(()), "value {number}, first failure {first}");
                }
                assert_there(store, 0..LIVE).await;
            });
        }
    }
}

const EVERY_SECOND: DiskOptions = DiskOptions {
    durability: Durability::EverySecond,
    checkpoint_bytes: node::CHECKPOINT_BYTES,
    scrub_rate: 0,
    cache_bytes: 0,
    reactors: 1,
};

/// A disk that has lost its power as a change of this number of a checkpoint began, of values that
/// were answered and are not flushed. `None` when the checkpoint has fewer.
fn cut_in_checkpoint(change: u64) -> Option<Arc<SimDisk>> {
    let mut reactor = Reactor::new(None);
    let disk = Arc::new(reactor.run(formatted(4_096)));
    let (used, done) = (disk.clone(), Rc::new(Cell::new(false)));
    let ended = done.clone();
    reactor.run(async {
        clock::spawn(async move {
            let drive = DiskDrive::open(used.clone(), EVERY_SECOND).await.expect("nothing fails");
            for number in 0..40 {
                put(drive.store(), number).await.expect("there is room");
            }
            used.cut_at(used.counts().changes() + change);
            drive.store().checkpoint().await.expect("there is room");
            ended.set(true);
        });
        while !disk.is_cut() && !done.get() {
            clock::sleep(Nanos::from_micros(100), Stage::Core).await;
        }
    });
    drop(reactor);
    disk.is_cut().then_some(disk)
}

#[test]
fn a_checkpoint_outlives_no_page_that_it_names() {
    let disks: Vec<_> = (0..).map_while(cut_in_checkpoint).collect();
    assert!(disks.len() > 3, "{} cuts of a checkpoint", disks.len());
    for (change, disk) in disks.iter().enumerate() {
        for seed in 0..100 {
            let after = Arc::new(disk.cut(Left::Newest, DiskFaults::default(), seed));
            Reactor::new(None).run(async {
                let drive = DiskDrive::open(after, EVERY_SECOND).await.expect("nothing fails");
                for number in 0..40 {
                    match drive.store().get(SPACE, &key(number)).await {
                        Ok(found) => assert_eq!(found.bytes(), value(number).bytes()),
                        Err(error) => {
                            assert_eq!(error, Error::KeyNotFound, "change {change}, seed {seed}");
                        }
                    }
                }
            });
        }
    }
}

/// One of two reactors has stored much more, so its numbers are far ahead.
#[test]
fn of_two_reactors_that_store_a_key_the_later_one_is_found_after_a_loss_of_power() {
    let disk = Arc::new(Reactor::new(None).run(formatted(4_096)));
    let mut reactors = PeerGroup::new(2, 1, None);
    let (places, used) = (reactors.places(), disk.clone());
    reactors.run(async move {
        let options = DiskOptions { reactors: 2, ..EVERY_SECOND };
        let drive = DiskDrive::open(used, options).await.expect("nothing fails");
        let store = drive.store().clone();
        let elsewhere = async |number: usize, value: Buf| {
            let (store, done) = (store.clone(), Rc::new(Cell::new(false)));
            let stored = done.clone();
            places.spawn(1, async move {
                let key = key(number);
                let put = store.put(SPACE, &key, &value, Write::default(), store.announce()).await;
                put.expect("there is room");
                stored.set(true);
            });
            while !done.get() {
                clock::sleep(Nanos(1), Stage::Queue).await;
            }
        };
        elsewhere(1_000, value(1)).await;
        for _ in 0..100 {
            put(&store, 0).await.expect("there is room");
        }
        elsewhere(0, value(7)).await;
        store.flush().await.expect("nothing fails");
    });
    let after = Arc::new(disk.cut(Left::Nothing, DiskFaults::default(), 1));
    Reactor::new(None).run(async {
        let drive = DiskDrive::open(after, EVERY_SECOND).await.expect("nothing fails");
        let found = drive.store().get(SPACE, &key(0)).await.expect("it was flushed");
        assert_eq!(found.bytes(), value(7).bytes());
    });
}

//! Checkpoints that several reactors write together, while others store.

use crate::drives_of_peers::{BEFORE_EXTENTS, BLOCK_BYTES, formatted, key, options, peers};
use base::{Buf, Nanos};
use clock::Stage;
use drive::Durability;
use engine::{Checkpointed, How, KeySpaceId, Live, Store, Write};
use media::Stream;
use node::DiskDrive;
use reactor::{Places, Reactor};
use sim::{DiskFaults, Left, SimDisk};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

const DURABILITY: Durability = Durability::Group;
const SPACE: KeySpaceId = KeySpaceId(1);
const EXTENT_BYTES: u64 = 128 << 10;
const EXTENTS: u64 = 50;

/// Keys that are stored before the checkpoint, and those that are changed while it is written.
const KEYS: u64 = 1_500;
const CHANGED: u64 = 200;

/// The last versions of values that were answered.
type Model = Rc<RefCell<BTreeMap<u64, u64>>>;

fn value(version: u64) -> Buf {
    Buf::copy_from(&version.to_le_bytes().repeat(1 + usize::try_from(version % 20).expect("few")))
}

async fn put(store: &Arc<Store>, model: &Model, number: u64, version: u64) {
    let (key, value) = (key(number), value(version));
    store
        .put(SPACE, &key, &value, Write::default(), store.announce())
        .await
        .expect("there is room");
    model.borrow_mut().insert(number, version);
}

/// The versions that a drive has; `None` for what is no value of the tests.
async fn found(store: &Arc<Store>) -> BTreeMap<u64, Option<u64>> {
    let mut found = BTreeMap::new();
    for number in 0..KEYS + CHANGED {
        let Ok(stored) = store.get(SPACE, &key(number)).await else { continue };
        let bytes = stored.bytes().expect("they are bytes");
        let version = bytes.first_chunk().map(|version| u64::from_le_bytes(*version));
        found.insert(number, version.filter(|version| value(*version).bytes() == Some(bytes)));
    }
    found
}

/// Overwrites and adds keys in each reactor, in no order of their hashes.
fn change_in_each(places: &Places, store: &Arc<Store>, model: &Model, reactors: u64) {
    for place in 0..reactors {
        let (store, model) = (store.clone(), model.clone());
        places.spawn(usize::try_from(place).expect("a few"), async move {
            for change in (place..CHANGED).step_by(usize::try_from(reactors).expect("a few")) {
                let number = if change % 2 == 0 { change * 7 } else { KEYS + change };
                put(&store, &model, number, 10_000 + change).await;
            }
        });
    }
}

/// What became of a drive that so many reactors use.
struct Used {
    disk: Arc<SimDisk>,
    /// Versions that were answered.
    model: BTreeMap<u64, u64>,
    /// `None` when the power was cut.
    checkpointed: Option<Checkpointed>,
    /// Pages of tables that each reactor wrote for the checkpoint.
    pages: Vec<u64>,
}

/// Writes a checkpoint by so many reactors, while each changes keys. The power is lost as the
/// change of the disk of this number begins; else all changes have been made when this returns.
fn checkpoint_among(reactors: usize, seed: u64, cut_after: Option<u64>) -> Used {
    let (disk, model) = (formatted(EXTENTS, EXTENT_BYTES, seed), Model::default());
    let (mut group, pool) = peers(reactors, seed);
    let (used, places, done) = (disk.clone(), group.places(), Rc::new(Cell::new(None)));
    let (answered, ended) = (model.clone(), done.clone());
    let pages = Rc::new(RefCell::new(vec![0; reactors]));
    let written = pages.clone();
    group.run(async {
        clock::spawn(async move {
            let opened =
                DiskDrive::open_among(pool, used.clone(), options(DURABILITY, reactors)).await;
            let drive = opened.expect("it is whole");
            let store = drive.store();
            for number in 0..KEYS {
                put(store, &answered, number, number).await;
            }
            let wrote = |sign: fn(u64, u64) -> u64| {
                for work in store.work_by_reactor() {
                    let pages = &mut written.borrow_mut()[work.reactor_id as usize];
                    *pages = sign(*pages, work.table_pages);
                }
            };
            wrote(u64::wrapping_sub);
            if let Some(after) = cut_after {
                used.cut_at(used.counts().changes() + after);
            }
            change_in_each(&places, store, &answered, reactors as u64);
            let checkpointed = store.checkpoint().await.expect("there is room");
            wrote(u64::wrapping_add);
            let all = KEYS + CHANGED / 2;
            while (answered.borrow().len() as u64) < all {
                clock::sleep(Nanos::from_micros(100), Stage::Core).await;
            }
            // The last change of each reactor adds a key or overwrites one.
            clock::sleep(Nanos::from_millis(100), Stage::Core).await;
            ended.set(Some(checkpointed));
        });
        while !disk.is_cut() && done.get().is_none() {
            clock::sleep(Nanos::from_micros(100), Stage::Core).await;
        }
    });
    drop(group);
    let (model, pages) = (model.take(), pages.take());
    Used { disk, model, checkpointed: done.get(), pages }
}

/// How a drive is opened, and what it has: live values, entries of the index, and versions.
type Opened = (How, Live, u64, BTreeMap<u64, Option<u64>>);

fn open(disk: SimDisk) -> (Opened, Vec<u64>) {
    Reactor::new(None).run(async {
        let drive = DiskDrive::open(Arc::new(disk), options(DURABILITY, 1)).await;
        let drive = drive.expect("it is a drive");
        let (store, usage) = (drive.store(), drive.usage());
        let tables = store.extent_facts().into_iter();
        let tables = tables.filter(|extent| extent.label.stream == Stream::Index);
        let tables = tables.map(|extent| u64::from(extent.id.0)).collect();
        let how = drive.recovery().how;
        ((how, usage.values, usage.index_entries, found(store).await), tables)
    })
}

/// The blocks of these extents.
fn blocks_of(extents: &[u64]) -> impl Iterator<Item = u64> {
    let blocks = EXTENT_BYTES / u64::from(BLOCK_BYTES);
    let before = BEFORE_EXTENTS / u64::from(BLOCK_BYTES);
    extents.iter().flat_map(move |at| before + at * blocks..before + (at + 1) * blocks)
}

#[test]
fn each_reactor_writes_a_part_of_a_checkpoint_by_which_a_drive_opens_as_by_a_scan() {
    for seed in 0..6 {
        for reactors in 1..=4 {
            let used = checkpoint_among(reactors, seed, None);
            let checkpointed = used.checkpointed.expect("no power was lost");
            assert!((KEYS..KEYS + CHANGED).contains(&checkpointed.entries), "{checkpointed:?}");
            assert_eq!(used.pages.iter().sum::<u64>(), checkpointed.pages, "seed {seed}");
            let has_share = |pages: &u64| *pages >= 1;
            assert!(used.pages.iter().all(has_share), "seed {seed}: {:?}", used.pages);
            let (opened, tables) = open(used.disk.killed(DiskFaults::default(), 1));
            assert_eq!(opened.0, How::Checkpoint, "seed {seed}, {reactors} reactors");
            let expected = used.model.iter().map(|(number, version)| (*number, Some(*version)));
            assert_eq!(opened.3, expected.collect(), "seed {seed}, {reactors} reactors");
            let unreadable = blocks_of(&tables).collect();
            let faults = DiskFaults { unreadable, ..DiskFaults::default() };
            let (scanned, _) = open(used.disk.killed(faults, 1));
            assert_eq!((scanned.0, opened.1, opened.2), (How::Scan, scanned.1, scanned.2));
            assert_eq!(opened.3, scanned.3, "seed {seed}, {reactors} reactors");
        }
    }
}

#[test]
fn a_loss_of_power_in_a_checkpoint_of_several_reactors_loses_nothing() {
    for reactors in 1..=4 {
        let mut by_checkpoint = 0;
        let cuts =
            (0..60).step_by(3).map(|after| (after, checkpoint_among(reactors, after, Some(after))));
        let cuts: Vec<_> = cuts.take_while(|(_, used)| used.disk.is_cut()).collect();
        assert!(cuts.len() > 7, "{} cuts", cuts.len());
        for (after, used) in cuts {
            for (seed, left) in (0..).zip(Left::ALL) {
                let disk = used.disk.cut(left, DiskFaults::default(), seed);
                let ((how, .., found), _) = open(disk);
                by_checkpoint += u32::from(how == How::Checkpoint);
                let named = format!("{reactors} reactors, change {after}, {left:?}");
                assert!(found.values().all(Option::is_some), "{named}");
                for (number, version) in &used.model {
                    let found = found.get(number).copied().flatten();
                    // A store that was not answered may have been done.
                    let may_be = [Some(*version), Some(10_000 + number / 7)];
                    assert!(may_be.contains(&found), "key {number}, {named}: {found:?}");
                }
            }
        }
        assert!(by_checkpoint > 0, "{reactors} reactors");
    }
}

//! Readers pin an extent in the stretch of the lane that leads there. The cleaner points the entry
//! elsewhere under the lane's lock, waits for the last reader, and forgets the extent.

use super::{Pinning, Scene, TABLE};
use clock::{Rank, Stage};
use loom::thread;
use media::ExtentId;
use reactor::check_by_loom;
use std::sync::Arc;

const VICTIM: ExtentId = ExtentId(0);
const COPY: ExtentId = ExtentId(1);
const HASH: u64 = 1 << 60;

/// Moves the one record of the victim, waits for its readers, and resets it.
async fn clean(scene: &Scene) {
    let log = &scene.log;
    let layout = &log.layout;
    let [from, to] = [VICTIM, COPY].map(|id| layout.address(log.number(id, 0), 0, 20, 8));
    log.whole().begin_cleaning(VICTIM);
    {
        let mut lanes = log.lanes.lock(HASH);
        assert!(lanes.of(HASH).entries.replace(TABLE, HASH, from, to));
    }
    loop {
        if let Some(is_unused) = log.forget_if_unpinned(VICTIM, true) {
            assert!(is_unused, "no record lives in it");
            break;
        }
        clock::park(Rank::Free, Stage::Gc).await;
    }
    scene.reset(VICTIM);
}

fn read(scene: &Scene, pins: Pinning) {
    let visits = scene.visits(HASH, pins);
    assert_eq!(visits.len(), 1, "the key has one record");
    visits.iter().for_each(|visit| scene.read(visit));
}

/// Runs the cleaner beside `readers`.
fn race(readers: u32, has_settled: bool, pins: Pinning) {
    let scene = Scene::new(readers + 1, 2);
    scene.insert(HASH, VICTIM);
    if !has_settled {
        scene.log.settled.set(VICTIM, 0);
    }
    let readers: Vec<_> = (1..=readers)
        .map(|number| {
            let scene: Arc<Scene> = scene.clone();
            thread::spawn(move || scene.run(number, async { read(&scene, pins) }))
        })
        .collect();
    scene.run(0, clean(&scene));
    for reader in readers {
        reader.join().unwrap();
    }
}

#[test]
fn loom_cleaner_forgets_an_extent_after_its_reader() {
    check_by_loom(None, || race(1, true, Pinning::AtOnce));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn loom_finds_a_reader_that_pins_in_another_stretch() {
    check_by_loom(None, || race(1, true, Pinning::Late));
}

#[test]
fn loom_cleaner_forgets_an_extent_after_two_readers() {
    check_by_loom(Some(3), || race(2, true, Pinning::AtOnce));
}

/// The reader, late to see that the page has settled, pins it with the log locked.
#[test]
fn loom_cleaner_forgets_an_extent_after_a_reader_that_locks_the_log() {
    check_by_loom(None, || race(1, false, Pinning::AtOnce));
}

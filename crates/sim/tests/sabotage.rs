//! Stores that make a mistake on purpose are found out, by the scenarios that a store without
//! mistakes passes, and what is printed of a failing seed is enough to see it fail again.

// Other builds have no mistakes.
#![cfg(debug_assertions)]

use engine::Sabotage;
use sim::{Failure, Scenario, fails_with, failure};
use std::sync::{Mutex, PoisonError};

/// Seeds in which a mistake must show.
const SEEDS: Seeds = Seeds { count: 60, first: 0 };

/// Seeds in which a mistake must show that needs a rare order of tasks in several reactors. The
/// first one shows it today. If it no longer does, name another one: to try all takes a minute.
const SEEDS_OF_ORDERS: Seeds = Seeds { count: 300, first: 230 };

/// The seeds below `count`, from `first` on and then from 0 on.
#[derive(Clone, Copy, Debug)]
struct Seeds {
    count: u64,
    first: u64,
}

/// The mistake of this process is one for all its tests.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A mistake of the store, or of the drive below it.
#[derive(Clone, Copy, Debug)]
enum Mistake {
    Store(Sabotage),
    Drive(drive::Sabotage),
}

impl From<Sabotage> for Mistake {
    fn from(mistake: Sabotage) -> Self {
        Self::Store(mistake)
    }
}

impl From<drive::Sabotage> for Mistake {
    fn from(mistake: drive::Sabotage) -> Self {
        Self::Drive(mistake)
    }
}

impl Mistake {
    fn choose(self) {
        match self {
            Self::Store(mistake) => Sabotage::choose(Some(mistake)),
            Self::Drive(mistake) => drive::Sabotage::choose(Some(mistake)),
        }
    }

    fn choose_none() {
        Sabotage::choose(None);
        drive::Sabotage::choose(None);
    }
}

/// The first seed that finds `mistake`, and how.
fn found_by(mistake: Mistake, scenario: Scenario, seeds: Seeds) -> Option<(u64, Failure)> {
    mistake.choose();
    let mut seeds = (seeds.first..seeds.count).chain(0..seeds.first);
    let found = seeds.find_map(|seed| Some((seed, failure(scenario, seed)?)));
    Mistake::choose_none();
    found
}

fn assert_found(mistake: impl Into<Mistake>, scenario: Scenario) {
    assert_found_in(mistake, scenario, SEEDS);
}

fn assert_found_in(mistake: impl Into<Mistake>, scenario: Scenario, seeds: Seeds) {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let mistake = mistake.into();
    let (seed, failure) = found_by(mistake, scenario, seeds)
        .unwrap_or_else(|| panic!("{mistake:?} is not found by {seeds:?} of {scenario:?}"));
    assert!(!failure.message.is_empty(), "it is said what is wrong");
    let first = failure.message.lines().next().unwrap_or_default();
    println!("{mistake:?}: {scenario:?} seed {seed}: {first}");
    assert!(sim::failure(scenario, seed).is_none(), "without the mistake the seed passes");
}

#[test]
fn a_store_that_answers_before_the_data_is_on_the_flash_is_found() {
    assert_found(Sabotage::AnswerBeforeData, Scenario::Kv);
}

#[test]
fn a_store_that_tells_of_data_before_it_is_on_the_flash_is_found() {
    assert_found(Sabotage::IndexBeforeData, Scenario::Kv);
}

#[test]
fn a_store_without_tombstones_is_found() {
    assert_found(Sabotage::NoTombstones, Scenario::Kv);
}

#[test]
fn a_store_that_does_not_look_at_sequences_is_found() {
    assert_found(Sabotage::NoSequences, Scenario::Kv);
}

#[test]
fn a_store_that_takes_parts_of_batches_is_found() {
    assert_found(Sabotage::TornBatches, Scenario::Batches);
}

#[test]
fn a_store_that_takes_parts_of_values_is_found() {
    assert_found(Sabotage::TornRecords, Scenario::Kv);
}

#[test]
fn a_drive_that_answers_before_it_has_flushed_is_found() {
    assert_found(drive::Sabotage::AnswerBeforeFlush, Scenario::Disk);
}

#[test]
fn a_drive_that_takes_what_an_extent_held_before_is_found() {
    assert_found(drive::Sabotage::FormerFrames, Scenario::Disk);
}

#[test]
fn a_store_on_a_disk_that_answers_before_the_data_is_written_is_found() {
    assert_found(Sabotage::AnswerBeforeData, Scenario::Disk);
}

#[test]
fn a_store_on_a_disk_that_tells_of_headers_before_the_data_is_written_is_found() {
    assert_found(Sabotage::IndexBeforeData, Scenario::Disk);
}

#[test]
fn a_store_on_a_disk_that_does_not_look_at_sequences_is_found() {
    assert_found(Sabotage::NoSequences, Scenario::Disk);
}

#[test]
fn a_store_on_a_disk_that_takes_parts_of_batches_is_found() {
    assert_found(Sabotage::TornBatches, Scenario::DiskBatches);
}

#[test]
fn a_checkpoint_that_does_not_hold_all_lanes_is_found() {
    assert_found_in(Sabotage::CheckpointByLanes, Scenario::DiskBatches, SEEDS_OF_ORDERS);
}

#[test]
fn a_store_that_gives_its_locks_back_before_it_appends_is_found() {
    assert_found(Sabotage::AppendsLate, Scenario::Disk);
}

/// It shows only where a fault strikes, so of all faults of a run few are left.
#[test]
fn the_faults_of_a_failing_run_are_shortened_to_those_that_it_needs() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let (seed, failure) = found_by(Sabotage::LostIsAbsent.into(), Scenario::Kv, SEEDS)
        .expect("some seed has such a fault");
    let needed = failure.plan.matches("[[fault]]").count();
    println!("seed {seed}: {needed} of {} faults:\n{}", failure.faults, failure.plan);
    assert!((1..=3).contains(&needed), "{failure:?}");
    Sabotage::choose(Some(Sabotage::LostIsAbsent));
    let (with, without) =
        (fails_with(Scenario::Kv, seed, &failure.plan), fails_with(Scenario::Kv, seed, ""));
    Sabotage::choose(None);
    assert!(with && !without, "with the plan it fails ({with}), without faults not ({without})");
    assert!(!fails_with(Scenario::Kv, seed, &failure.plan), "nor without the mistake");
}

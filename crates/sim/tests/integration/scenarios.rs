//! Seeded runs of whole devices, with faults of the flash and losses of power at any instant, and
//! of hosts on a network that splits, delays and cuts: what was acknowledged is there, and nothing
//! else.
//!
//! The counts of seeds take less than a minute each on two slow cores; `cargo xtask soak` runs many
//! more.

use base::{Buf, Key};
use controller::Submission;
use node::{Device, FaultPlan, Profile};
use reactor::Reactor;
use sim::{Scenario, Tally, sweep, sweep_scenario};
use spec::{Command, Status, StoreOptions};

fn run(scenario: Scenario, seeds: u64) -> Tally {
    let sum = sweep_scenario("scenarios", seeds, scenario);
    // A single seed may be one without any of them.
    if sum.cuts > 200 {
        let each = [sum.operations, sum.cuts_of_opening, sum.faults, sum.reopenings()];
        assert!(each.iter().all(|&count| count > 10), "hardly anything happened: {sum}");
    }
    sum
}

#[test]
fn keys_and_values_outlive_faults_and_losses_of_power() {
    let sum = run(Scenario::Kv, 200);
    assert!(sum.victims > sum.cuts || sum.cuts < 100, "hardly anything was cleaned: {sum}");
}

#[test]
fn hosts_on_a_network_that_cuts_see_one_device() {
    let sum = sweep_scenario("scenarios", 50, Scenario::Remote);
    // A single seed may be one without any of them.
    if sum.operations > 20_000 {
        let each = [sum.reconnections, sum.unanswered, sum.victims];
        assert!(each.iter().all(|&count| count > 100), "hardly anything happened: {sum}");
    }
}

#[test]
fn batches_are_whole_or_absent_and_values_expire_on_time() {
    run(Scenario::Batches, 200);
}

#[test]
fn keys_and_values_on_a_disk_outlive_its_faults_and_losses_of_power() {
    let sum = run(Scenario::Disk, 40);
    assert!(sum.victims > sum.cuts || sum.cuts < 100, "hardly anything was cleaned: {sum}");
}

#[test]
fn batches_on_a_disk_are_whole_or_absent_and_values_expire_on_time() {
    run(Scenario::DiskBatches, 40);
}

/// In this run a batch comes where it just fits if its records lie together as they would by
/// themselves, and the page that was open before it takes the first of them.
#[test]
fn a_batch_whose_records_lie_together_otherwise_is_in_one_extent_too() {
    assert!(Scenario::DiskBatches.run(320).operations > 0);
}

#[test]
fn power_of_a_disk_is_lost_at_each_write_and_flush() {
    // All of one disk.
    let sum = sweep("scenarios", 600, sim::cut_at_change);
    assert!(sum.victims > 10 || sum.cuts < 1_000, "hardly anything was cleaned: {sum}");
}

#[test]
fn logical_blocks_outlive_faults_and_losses_of_power() {
    run(Scenario::Block, 200);
}

#[test]
fn zones_outlive_faults_and_losses_of_power() {
    run(Scenario::Zoned, 200);
}

#[test]
fn machines_that_reset_their_controllers_see_one_device() {
    let sum = sweep_scenario("scenarios", 50, Scenario::Pcie);
    // A single seed may be one without any of them.
    if sum.operations > 20_000 {
        let each = [sum.reconnections, sum.unanswered, sum.victims];
        assert!(each.iter().all(|&count| count > 100), "hardly anything happened: {sum}");
    }
}

#[test]
fn logical_blocks_over_pcie_outlive_faults_and_losses_of_power() {
    run(Scenario::PcieBlock, 60);
}

#[test]
fn zones_over_pcie_outlive_faults_and_losses_of_power() {
    run(Scenario::PcieZoned, 60);
}

#[test]
fn of_64_stores_that_must_create_a_key_one_wins() {
    Reactor::new(None).run(async {
        let profile = Profile::load("moke").unwrap();
        let cells = Device::manufacture(&profile, 0);
        let device = Device::format(&profile, cells, 0, FaultPlan::default()).await.unwrap();
        let queue = device.controller().queue_pair();
        let key = Key::new(b"key").unwrap();
        let value = |tag| Buf::phantom(4_096, tag);
        for tag in 0..64 {
            let options = StoreOptions::MUST_NOT_EXIST;
            let command = Command::store(Device::NAMESPACE, key.as_bytes(), 4_096, options);
            queue.submit(Submission::with_data(command, &key, value(tag)));
        }
        let mut winners = Vec::new();
        for _ in 0..64 {
            let completion = queue.next().await;
            match completion.status {
                Status::SUCCESS => winners.push(completion.id),
                status => assert_eq!(status, Status::KEY_EXISTS),
            }
        }
        assert_eq!(winners.len(), 1, "{winners:?}");
        let retrieve = Command::retrieve(Device::NAMESPACE, key.as_bytes(), 4_096);
        queue.submit(Submission::new(retrieve, &key));
        assert_eq!(queue.next().await.data.checksum(), value(winners[0]).checksum());
    });
}

#[test]
fn readers_of_one_reactor_find_what_the_cleaner_of_another_moves() {
    for seed in 0..4 {
        let victims = sim::read_while_cleaning(seed);
        assert!(victims > 20, "seed {seed}: {victims} extents were cleaned");
    }
}

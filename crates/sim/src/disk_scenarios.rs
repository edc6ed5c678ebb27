use crate::batches::BatchHosts;
use crate::disk_driver::DiskDriver;
use crate::disk_plan::DiskPlan;
use crate::hosts::Hosts;
use crate::kv::{KvHosts, KvPlan};
use crate::tally::Tally;
use base::Rng;
use std::rc::Rc;
use workload::Payload;

/// Operations between two losses of power.
const OPERATIONS: usize = 1_000;

/// The same where power is lost at each write and flush in turn, and how many of those there are.
const FEW_OPERATIONS: usize = 250;
const CHANGES_OF_A_LIFE: u64 = 600;

/// Two hosts of keys and values on a drive.
pub(crate) fn kv(seed: u64) -> DiskDriver {
    with_operations(seed, OPERATIONS)
}

fn with_operations(seed: u64, operations: usize) -> DiskDriver {
    let mut rng = Rng::new(base::mix(seed));
    let plan = DiskPlan::new(seed, &mut rng);
    let (fill_percent, hot) = (60 + rng.below(40), rng.below(3));
    DiskDriver::new(plan, rng, |plan, capacity_bytes| {
        let hosts: Rc<dyn Hosts> = Rc::new(KvHosts::new(KvPlan {
            seed,
            capacity_bytes,
            payload: Payload::Full,
            fill_percent,
            hot_percent: [50, 50, 80][usize::try_from(hot).expect("below 3")],
            value_bytes_max: plan.extent_bytes / 13,
            hosts: 2,
            operations,
        }));
        hosts
    })
}

/// Hosts of batches, and of values that expire, on a drive.
pub(crate) fn batches(seed: u64) -> DiskDriver {
    let mut rng = Rng::new(base::mix(seed));
    let plan = DiskPlan::new(seed, &mut rng);
    DiskDriver::new(plan, rng, |_, capacity_bytes| {
        Rc::new(BatchHosts::new(seed, capacity_bytes, Payload::Full))
    })
}

/// Runs keys and values on a drive on a disk, whose power is lost as one write, trim or flush of
/// its first life begins. Seeds that follow each other take one after the other, 600 of
/// each disk.
///
/// # Panics
/// As [`Scenario::run`](crate::Scenario::run).
pub fn cut_at_change(seed: u64) -> Tally {
    with_operations(seed / CHANGES_OF_A_LIFE, FEW_OPERATIONS).run_until(seed % CHANGES_OF_A_LIFE)
}

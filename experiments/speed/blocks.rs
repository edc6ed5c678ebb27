//! A block namespace: `970pro` with a 32nd of its blocks, so that it fills quickly, with its own
//! over-provisioning or with that of write-intensive drives.

use crate::rate::{last, millions_a_second, rate};
use base::limits::BLOCK_BYTES;
use node::{Device, FaultPlan, Figures, Profile};
use reactor::Reactor;
use std::time::Instant;
use workload::{Distribution, Load, Operation, Payload, Plan, Space, Until, ValueSizes};

/// A smaller flash with the same over-provisioning is cleaned in the same way.
const FRACTION: u32 = 32;

/// Over-provisioning of write-intensive drives, in percent.
pub(crate) const ROOMY: u64 = 28;

/// Capacities to overwrite before the measurement.
const BREAK_IN: u64 = 2;

/// Millions of operations a second of wall time, in each round.
#[derive(Default)]
pub(crate) struct Rates {
    pub(crate) read: Vec<f64>,
    pub(crate) write: Vec<f64>,
}

fn profile(over_provisioning: Option<u64>) -> Profile {
    let mut profile = Profile::load("970pro").expect("970pro is built in");
    profile.nand.blocks_per_plane /= FRACTION;
    let size = profile.namespaces[0].size_bytes / u64::from(FRACTION);
    let raw = profile.nand.raw_bytes();
    profile.namespaces[0].size_bytes =
        over_provisioning.map_or(size, |percent| raw * 100 / (100 + percent));
    profile
}

fn plan(operation: Operation, operations: u64, blocks: u64) -> Plan {
    Plan {
        operation,
        until: Until::Operations(operations),
        load: Load::QueueDepth(64),
        nsid: Device::NAMESPACE,
        space: Space::Blocks,
        key_bytes: 0,
        values: ValueSizes::Fixed(BLOCK_BYTES),
        keys: blocks,
        is_filled: true,
        seed: 1,
        distribution: Distribution::Uniform,
        payload: Payload::None,
    }
}

/// Runs `rounds` of `operations` random reads and writes each, on a device that is full and cleans.
/// It has its own over-provisioning, or `over_provisioning` percent.
pub(crate) fn measure(operations: u64, rounds: u32, over_provisioning: Option<u64>) -> Rates {
    let profile = profile(over_provisioning);
    let blocks = profile.namespaces[0].size_bytes / u64::from(BLOCK_BYTES);
    let mut rates = Rates::default();
    Reactor::new(None).run(async {
        let cells = Device::manufacture(&profile, 1);
        let device =
            Device::format(&profile, cells, 1, FaultPlan::default()).await.expect("a whole device");
        let queue = device.controller().queue_pair();
        let any = plan(Operation::RandRead, operations, blocks);
        workload::fill(&queue, &any, |_, _| {}).await.expect("all blocks fit");
        let broken_in = workload::overwrite(&queue, &any, 0, BREAK_IN * blocks, |_, _| {}).await;
        broken_in.expect("blocks can be overwritten");
        for round in 0..rounds {
            let before = device.figures();
            let start = Instant::now();
            let written = workload::overwrite(&queue, &any, 1 + round, operations, |_, _| {}).await;
            rates.write.push(millions_a_second(operations, start));
            written.expect("blocks can be overwritten");
            report(&before, &device.figures());
            rates.read.push(rate(&device, &any).await);
            let (read, write) = (last(&rates.read), last(&rates.write));
            println!("round {}: random read {read:.2}, random write {write:.2} M/s", round + 1);
        }
    });
    rates
}

fn report(before: &Figures, after: &Figures) {
    println!(
        "random writes: {} flash blocks cleaned, {} blocks moved for {} written",
        after.blocks.victims - before.blocks.victims,
        after.blocks.moved_blocks - before.blocks.moved_blocks,
        after.blocks.host_blocks - before.blocks.host_blocks
    );
}

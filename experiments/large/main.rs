//! A device of 1 TB with 100 million pairs (16 B keys, 4 KiB values, payload none): its fill rate
//! against a small device's, its memory in all, and the time to open it. Also the bytes of each
//! index for a pair.
//!
//! `cargo run --profile dist -p experiments --bin large -- [--pairs N]`, on an idle machine with
//! 16 GB.

mod memory;

use base::human_bytes;
use memory::Memory;
use nand::Cells;
use node::{Device, FaultPlan, INDEXES, Opened, Profile, profile::Index};
use reactor::Reactor;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;
use workload::{Distribution, Load, Operation, Payload, Plan, Space, Until, ValueSizes};

const PAIRS: u64 = 100_000_000;

/// Pairs of the small device, and of the devices on which indexes are compared.
const SMALL_PAIRS: u64 = 2_000_000;

const SEED: u64 = 1;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let pairs = match (args.next().as_deref(), args.next(), args.next()) {
        (None, ..) => Some(PAIRS),
        (Some("--pairs"), Some(number), None) => number.parse().ok().filter(|pairs| *pairs > 0),
        _ => None,
    };
    let Some(pairs) = pairs else {
        eprintln!("large: pairs are a whole number above 0, as in `large --pairs 100000000`");
        return ExitCode::from(2);
    };
    let small = Profile::load("moke").expect("moke is built in");
    let large = Profile::parse("device.toml", include_str!("device.toml"));
    let large = large.expect("the device of this experiment is whole");
    let start = Memory::now();
    let before = fill_rate(&small);
    let (cells, rate) = fill(&large, pairs, &start);
    let after = fill_rate(&small);
    println!(
        "filled with {pairs} pairs at {rate:.2} M/s, a small device with {SMALL_PAIRS} at \
         {before:.2} before and {after:.2} after: {:.2} of its rate (bar 0.5)",
        2.0 * rate / (before + after)
    );
    open_both_ways(&large, &cells);
    println!("most memory at any time: {}", Memory::now().peak());
    drop(cells);
    compare_indexes(&small, pairs.min(SMALL_PAIRS));
    ExitCode::SUCCESS
}

fn plan(pairs: u64) -> Plan {
    Plan {
        operation: Operation::Store,
        until: Until::Operations(pairs),
        load: Load::QueueDepth(64),
        nsid: Device::NAMESPACE,
        space: Space::Pairs,
        key_bytes: 16,
        values: ValueSizes::Fixed(4096),
        keys: pairs,
        is_filled: false,
        seed: SEED,
        distribution: Distribution::Uniform,
        payload: Payload::None,
    }
}

async fn format(profile: &Profile) -> Device {
    let cells = Device::manufacture(profile, SEED);
    let device = Device::format(profile, cells, SEED, FaultPlan::default()).await;
    device.expect("a whole device")
}

/// Stores `pairs` pairs, and returns the rate in millions a second of wall time.
#[expect(clippy::cast_precision_loss, reason = "for a report")]
async fn store(device: &Device, pairs: u64) -> f64 {
    let queue = device.controller().queue_pair();
    let start = Instant::now();
    let outcome = workload::run(&queue, &plan(pairs), |_, _| {}).await;
    assert_eq!(outcome.errors(), 0, "every pair has room");
    pairs as f64 / start.elapsed().as_secs_f64() / 1e6
}

fn fill_rate(profile: &Profile) -> f64 {
    Reactor::new(None).run(async { store(&format(profile).await, SMALL_PAIRS).await })
}

/// Fills a device, and reports its memory since `start`. It reuses memory that the small device has
/// freed.
fn fill(profile: &Profile, pairs: u64, start: &Memory) -> (Arc<Cells>, f64) {
    Reactor::new(None).run(async {
        let device = format(profile).await;
        let rate = store(&device, pairs).await;
        let full = Memory::now();
        println!(
            "memory: {} with {pairs} pairs, {} bytes for each",
            full.resident(),
            full.bytes_each_since(start, pairs)
        );
        device.flush().await.expect("nothing fails");
        (device.cells().clone(), rate)
    })
}

/// Opens the device after a crash and after an orderly stop.
fn open_both_ways(profile: &Profile, cells: &Arc<Cells>) {
    Reactor::new(None).run(async {
        let device = open(profile, cells).await;
        let start = Instant::now();
        device.stop().await.expect("nothing fails");
        println!("stopped in {:.1} s", start.elapsed().as_secs_f64());
    });
    Reactor::new(None).run(async { drop(open(profile, cells).await) });
}

async fn open(profile: &Profile, cells: &Arc<Cells>) -> Device {
    let start = Instant::now();
    let opened = Device::open(profile, cells.clone(), SEED, FaultPlan::default()).await;
    let (device, Opened { recovery, .. }) = opened.expect("what was written can be opened");
    let recovery = recovery.expect("the device has a store");
    println!(
        "opened by {:?} in {:.1} s, and {} on the device's clock: {} pages read, {} of {} extents \
         replayed, {} pairs",
        recovery.how,
        start.elapsed().as_secs_f64(),
        recovery.time,
        recovery.pages_read,
        recovery.replayed_extents,
        recovery.extents,
        device.store().usage().values.records
    );
    device
}

fn compare_indexes(profile: &Profile, pairs: u64) {
    for (name, _) in INDEXES {
        let mut profile = profile.clone();
        profile.index = Index::named(name);
        if let Err(reason) = profile.check_index() {
            println!("index {name}: {reason}");
            continue;
        }
        Reactor::new(None).run(async {
            let device = format(&profile).await;
            store(&device, pairs).await;
            report_index(name, &device);
        });
    }
}

#[expect(clippy::cast_precision_loss, reason = "for a report")]
fn report_index(name: &str, device: &Device) {
    let usage = device.store().usage();
    let each = |bytes: u64| bytes as f64 / usage.index_entries as f64;
    let table_bytes = device.figures().index.table_bytes;
    println!(
        "index {name}: {:.1} bytes of memory for each of {} pairs, {} in all; {:.1} on flash",
        each(usage.index_bytes),
        usage.index_entries,
        human_bytes(usage.index_bytes),
        each(table_bytes)
    );
}

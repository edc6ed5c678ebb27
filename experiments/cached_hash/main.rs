//! The cost of `cached-hash`: table pages read and written for each retrieve and each store, for
//! memory from 1 % of its table to all of it. With `endure`: whether it survives ten overwrites of
//! a device that is 90 % full, at 1 %.
//!
//! `cargo run --profile dist -p experiments --bin cached_hash -- FILE.svg`, or `-- endure`.

mod plot;

use node::profile::Index;
use node::{Device, FaultPlan, Figures, Profile};
use plot::Line;
use reactor::Reactor;
use std::process::ExitCode;
use workload::{Distribution, Load, Operation, Payload, Plan, Space, Until, ValueSizes};

/// So many keys that 1 % of their table exceeds the index's minimum.
const KEYS: u64 = 1_450_000;

/// With this size `KEYS` values fill a fifth of the device. It needs no cleaning, so all counted
/// pages are for hosts.
const SMALL_VALUE_BYTES: u32 = 64;

/// With this size `KEYS` values fill 90 % of the device.
const LARGE_VALUE_BYTES: u32 = 544;

/// Memory in thousandths of the table.
const BUDGETS: [u64; 10] = [10, 15, 20, 30, 50, 100, 200, 400, 700, 1_000];

const OPERATIONS: u64 = 200_000;

const SEED: u64 = 1;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match &args[..] {
        [word] if word == "endure" => endure(),
        [file] => match std::fs::write(file, measure_all()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("cached_hash: {file} cannot be written: {error}");
                ExitCode::FAILURE
            }
        },
        _ => {
            eprintln!("cached_hash: name a file for the plot, as cached-index.svg, or say endure");
            ExitCode::from(2)
        }
    }
}

/// Bytes of a table with all keys: 11 for each key, and 16 for each leaf; leaves are 11 sixteenths
/// full.
const TABLE_BYTES: u64 = KEYS * 11 + KEYS / 249 * 16;

fn profile(budget: u64) -> Profile {
    let profile = Profile::parse("device.toml", include_str!("device.toml"));
    let mut profile = profile.expect("the device of this experiment is whole");
    let mut index = Index::named("cached-hash").expect("it is registered");
    index.dram_bytes = Some(TABLE_BYTES * budget / 1_000);
    index.keys_max = Some(KEYS);
    profile.index = Some(index);
    profile.check_index().expect("the index fits the device");
    profile
}

fn plan(operation: Operation, operations: u64, value_bytes: u32, is_filled: bool) -> Plan {
    Plan {
        operation,
        until: Until::Operations(operations),
        load: Load::QueueDepth(64),
        nsid: Device::NAMESPACE,
        space: Space::Pairs,
        key_bytes: 16,
        values: ValueSizes::Fixed(value_bytes),
        keys: KEYS,
        is_filled,
        seed: SEED,
        distribution: Distribution::Uniform,
        payload: Payload::None,
    }
}

/// Returns a device filled with all keys.
async fn filled(profile: &Profile, value_bytes: u32) -> Device {
    let cells = Device::manufacture(profile, SEED);
    let device = Device::format(profile, cells, SEED, FaultPlan::default()).await;
    let device = device.expect("a whole device");
    run(&device, &plan(Operation::Store, KEYS, value_bytes, false)).await;
    device
}

/// Runs `plan`, and returns the figures of the device before and after it.
async fn run(device: &Device, plan: &Plan) -> (Figures, Figures) {
    let before = device.figures();
    let queue = device.controller().queue_pair();
    let outcome = workload::run(&queue, plan, |_, _| {}).await;
    assert_eq!(outcome.errors(), 0, "every operation succeeds");
    (before, device.figures())
}

#[expect(clippy::cast_precision_loss, reason = "for a report")]
fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}

/// Returns the table pages read and written for each operation of `plan`.
async fn measure(device: &Device, operation: Operation) -> (f64, f64) {
    let plan = plan(operation, OPERATIONS, SMALL_VALUE_BYTES, true);
    let (before, after) = run(device, &plan).await;
    assert_eq!(after.store.victims, 0, "nothing is cleaned");
    let reads = after.index.page_reads - before.index.page_reads;
    let writes = after.index.page_writes - before.index.page_writes;
    (ratio(reads, OPERATIONS), ratio(writes, OPERATIONS))
}

/// Measures each budget and returns the plot.
fn measure_all() -> String {
    let line = |name, colour| Line { name, colour, points: Vec::new() };
    let mut lines = [
        line("reads for a retrieve", "#0072B2"),
        line("reads for a store", "#009E73"),
        line("writes for a store", "#D55E00"),
    ];
    println!("budget   memory       table        retrieve: reads  store: reads  writes");
    for budget in BUDGETS {
        Reactor::new(None).run(async {
            let device = filled(&profile(budget), SMALL_VALUE_BYTES).await;
            let retrieve = measure(&device, Operation::Retrieve).await;
            let store = measure(&device, Operation::Mixed { read_percent: 0 }).await;
            let index = device.figures().index;
            let percent = ratio(budget, 10);
            println!(
                "{percent:>5.1} %  {:>9} B  {:>10} B  {:>15.2}  {:>12.2}  {:>6.2}",
                index.dram_bytes, index.table_bytes, retrieve.0, store.0, store.1
            );
            for (line, rate) in lines.iter_mut().zip([retrieve.0, store.0, store.1]) {
                line.points.push((percent, rate));
            }
        });
    }
    plot::svg("Table pages for each operation", &lines)
}

/// Overwrites the device's content ten times, with the smallest budget.
fn endure() -> ExitCode {
    Reactor::new(None).run(async {
        let device = filled(&profile(BUDGETS[0]), LARGE_VALUE_BYTES).await;
        let usage = device.store().usage();
        let fill = ratio(usage.values.bytes, device.store().capacity_bytes());
        println!("filled to {:.1} %", 100.0 * fill);
        for capacity in 1..=10 {
            let writes = Operation::Mixed { read_percent: 0 };
            let overwrites = plan(writes, KEYS, LARGE_VALUE_BYTES, true);
            let (before, after) = run(&device, &overwrites).await;
            println!(
                "overwritten {capacity} times: {} extents cleaned, {:.2} table pages read and \
                 {:.2} written for each store, memory {} B of {} B",
                after.store.victims - before.store.victims,
                ratio(after.index.page_reads - before.index.page_reads, KEYS),
                ratio(after.index.page_writes - before.index.page_writes, KEYS),
                after.index.dram_bytes,
                TABLE_BYTES * BUDGETS[0] / 1_000
            );
        }
        ExitCode::SUCCESS
    })
}

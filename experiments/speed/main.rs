//! Measures the speed of simulation on one core: `moke` as shipped, the staged model, 16 B keys, 4
//! KiB values, queue depth 64, payload none, stages accounted and latencies in histograms.
//! Alternates with the bare model of five stages, which is the machine's limit. Before them,
//! measures 4 KiB random reads and writes on a block namespace that is full and cleans.
//!
//! `cargo run --profile dist -p experiments --bin speed -- [KEYS] [ROUNDS]`, on an idle machine.

mod bare;
mod blocks;
mod rate;

use base::human_bytes;
use experiments::median;
use node::{Device, FaultPlan, Profile};
use rate::{last, rate};
use reactor::Reactor;
use std::process::ExitCode;
use workload::{Distribution, Load, Operation, Payload, Plan, Space, Until, ValueSizes};

/// The paper's load (MoKE, section III): 2.6 million pairs.
const KEYS: u64 = 2_600_000;

const ROUNDS: usize = 5;

/// Millions of operations a second of wall time, in each round.
#[derive(Default)]
struct Rates {
    bare: Vec<f64>,
    store: Vec<f64>,
    retrieve: Vec<f64>,
}

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let mut number = |default: u64| args.next().map_or(Ok(default), |text| text.parse());
    let (Ok(keys), Ok(rounds)) = (number(KEYS), number(ROUNDS as u64)) else {
        eprintln!("speed: KEYS and ROUNDS are whole numbers, as in `speed 2600000 5`");
        return ExitCode::from(2);
    };
    let block_rounds = u32::try_from(rounds).unwrap_or(u32::MAX);
    let mut roomy = blocks::measure(keys, block_rounds, Some(blocks::ROOMY));
    let mut tight = blocks::measure(keys, block_rounds, None);
    let mut rates = Rates::default();
    for round in 1..=rounds {
        measure(keys, &mut rates, round == rounds);
        println!(
            "round {round}: bare {:.2}, store {:.2}, retrieve {:.2} M/s",
            last(&rates.bare),
            last(&rates.store),
            last(&rates.retrieve)
        );
    }
    let bare = median(&mut rates.bare);
    let line = |name: &str, rate: f64, bar: &str| {
        println!("{name:<16} {rate:>5.2} M/s  {:>4.2} of bare  {bar}", rate / bare);
    };
    println!("medians of {rounds} rounds, {keys} keys or operations:");
    line("bare model", bare, "");
    line("store (filling)", median(&mut rates.store), "bar 0.7 M/s");
    line("retrieve", median(&mut rates.retrieve), "bar 1.0 M/s");
    line("random read", median(&mut roomy.read), "bar 1.0 M/s");
    line("random write", median(&mut roomy.write), "bar 0.7 M/s");
    line("the same, tight", median(&mut tight.write), "");
    ExitCode::SUCCESS
}

#[expect(clippy::cast_precision_loss, reason = "for a report")]
fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}

fn plan(operation: Operation, operations: u64, keys: u64) -> Plan {
    Plan {
        operation,
        until: Until::Operations(operations),
        load: Load::QueueDepth(64),
        nsid: Device::NAMESPACE,
        space: Space::Pairs,
        key_bytes: 16,
        values: ValueSizes::Fixed(4096),
        keys,
        is_filled: false,
        seed: 1,
        distribution: Distribution::Uniform,
        payload: Payload::None,
    }
}

/// Runs one round: the bare model, then a new device filled and read. Also overwrites the last one.
fn measure(keys: u64, rates: &mut Rates, overwrite: bool) {
    rates.bare.push(bare::rate(keys, keys));
    let profile = Profile::load("moke").expect("moke is built in");
    Reactor::new(None).run(async {
        let cells = Device::manufacture(&profile, 1);
        let device = Device::format(&profile, cells, 1, FaultPlan::default())
            .await
            .expect("moke is a whole device");
        rates.store.push(rate(&device, &plan(Operation::Store, keys, keys)).await);
        rates.retrieve.push(rate(&device, &plan(Operation::Retrieve, keys, keys)).await);
        if overwrite {
            report_index(&device);
            overwrite_steadily(&device, keys).await;
        }
    });
}

fn report_index(device: &Device) {
    let usage = device.store().usage();
    println!(
        "index: {} for {} pairs, {:.1} bytes a pair",
        human_bytes(usage.index_bytes),
        usage.index_entries,
        ratio(usage.index_bytes, usage.index_entries)
    );
}

/// Overwrites until every extent has been written and the cleaner works, then measures.
async fn overwrite_steadily(device: &Device, keys: u64) {
    let warm_up = plan(Operation::Mixed { read_percent: 0 }, keys, keys);
    let mut written = 0;
    while device.figures().store.victims < 64 {
        rate(device, &warm_up).await;
        written += keys;
    }
    let before = device.figures();
    let rate = rate(device, &warm_up).await;
    let after = device.figures();
    let host = after.store.host_bytes - before.store.host_bytes;
    let flash = after.nand.bytes_programmed - before.nand.bytes_programmed;
    println!(
        "steady overwrite: {:.2} M/s after {written} warm-up stores, {} extents cleaned, \
         write amplification {:.3}",
        rate,
        after.store.victims - before.store.victims,
        ratio(flash, host)
    );
}

//! Measures how long a drive under cleaning delays stores, on a disk of a given speed. Virtual time
//! excludes the machine's noise, and also its processor time.
//!
//! `cargo run --profile dist -p experiments --bin pacing -- [SHARE ...]`, on any machine with 4
//! GiB.

mod disk;

use base::Nanos;
use disk::{PacedDisk, Speed};
use drive::{Durability, Format};
use node::{DiskDrive, DiskOptions};
use reactor::Reactor;
use std::process::ExitCode;
use std::sync::Arc;
use workload::{
    Distribution, Kind, Load, Operation, Outcome, Payload, Plan, Space, Until, ValueSizes,
};

const BYTES: u64 = 2 << 30;

/// The disk of `experiments/README.md`.
const SPEED: Speed = Speed {
    read: Nanos(57_000),
    write: Nanos(40_000),
    flush: Nanos(100_000),
    read_bytes_per_second: 3_000_000_000,
    write_bytes_per_second: 2_400_000_000,
};

/// The share of the drive's capacity that the pairs take.
const FILL: f64 = 0.7;

/// Bytes of a pair, header and summary included.
const PAIR_BYTES: f64 = 8_704.0;

/// Shares of the maximum rate.
const SHARES: [f64; 3] = [0.5, 0.8, 0.9];

fn main() -> ExitCode {
    let shares: Result<Vec<f64>, _> = std::env::args().skip(1).map(|text| text.parse()).collect();
    let shares = match shares {
        Ok(shares) if shares.is_empty() => SHARES.to_vec(),
        Ok(shares) if shares.iter().all(|share| *share > 0.0) => shares,
        _ => {
            eprintln!("pacing: shares of the best rate are numbers, as in `pacing 0.5 0.8`");
            return ExitCode::from(2);
        }
    };
    for durability in [Durability::Capacitor, Durability::Group] {
        measure(durability, &shares);
    }
    ExitCode::SUCCESS
}

fn measure(durability: Durability, shares: &[f64]) {
    println!("{durability:?}: random overwrites of 8 KiB at a fill of {FILL}");
    println!(
        "{:>24} {:>9} {:>9} {:>9} {:>9} {:>10}",
        "stores a second", "mean, us", "p50", "p99", "p99.9", "written"
    );
    let most = run(durability, Load::QueueDepth(64));
    report("64 at a time", &most);
    for share in shares {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate")]
        let per_second = (most.rate * share) as u64;
        let figures = run(durability, Load::Rate { per_second, outstanding: None });
        report(&format!("{share:.2} of that"), &figures);
    }
}

/// The result of a load.
struct Figures {
    outcome: Outcome,
    rate: f64,
    /// Bytes written for each byte from hosts.
    amplification: f64,
}

fn report(name: &str, figures: &Figures) {
    let tally = figures.outcome.tally(Kind::Store).expect("there are stores");
    let micros = |quantile| tally.latency(quantile).0 / 1_000;
    println!(
        "{name:>14} {:>9.0} {:>9.0} {:>9} {:>9} {:>9} {:>10.2}",
        figures.rate,
        tally.mean_ns() / 1e3,
        micros(0.5),
        micros(0.99),
        micros(0.999),
        figures.amplification,
    );
}

/// Overwrites the content three times on a drive that was overwritten twice before.
#[expect(clippy::cast_precision_loss, reason = "for a report")]
fn run(durability: Durability, load: Load) -> Figures {
    Reactor::new(None).run(async {
        let disk = Arc::new(PacedDisk::new(BYTES, SPEED));
        let format = Format { id: [1; 16], secret: [2; 16], extent_bytes: None };
        DiskDrive::format(disk.clone(), format).await.expect("it is large enough");
        let options = DiskOptions { durability, ..DiskOptions::default() };
        let drive = DiskDrive::open(disk.clone(), options).await.expect("it was made above");
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
        let keys = (drive.store().capacity_bytes() as f64 * FILL / PAIR_BYTES) as u64;
        let plan = |operations, load| Plan {
            operation: Operation::Mixed { read_percent: 0 },
            until: Until::Operations(operations),
            load,
            nsid: 1,
            space: Space::Pairs,
            key_bytes: 16,
            values: ValueSizes::Fixed(8_192),
            keys,
            is_filled: true,
            seed: 1,
            distribution: Distribution::Uniform,
            payload: Payload::Full,
        };
        let queue = drive.controller().queue_pair();
        let aged = plan(2 * keys, Load::QueueDepth(64));
        workload::fill(&queue, &aged, |_, _| {}).await.expect("every pair has room");
        workload::run(&queue, &aged, |_, _| {}).await;
        let (written, operations) = (disk.written(), 3 * keys);
        let outcome = workload::run(&queue, &plan(operations, load), |_, _| {}).await;
        assert_eq!(outcome.errors(), 0, "every pair has room");
        let written = (disk.written() - written) as f64;
        let rate = operations as f64 / outcome.elapsed().as_secs_f64();
        let amplification = written / (operations as f64 * (8_192.0 + 16.0));
        Figures { outcome, rate, amplification }
    })
}

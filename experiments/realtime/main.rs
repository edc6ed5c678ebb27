//! Measures real time in this process: the minimum of a command, the lateness of completions, and
//! the difference between a device in real time and in virtual time.
//!
//! `cargo run --profile dist -p experiments --bin realtime -- [ROUNDS]`, on an idle machine: the
//! reactor spins on one core, and other work on that core delays it.

use base::Nanos;
use node::{Device, FaultPlan, Profile};
use reactor::{LATE, Reactor};
use std::process::ExitCode;
use workload::{
    Distribution, Kind, Load, Operation, Outcome, Payload, Plan, Space, Tally, Until, ValueSizes,
};

const ROUNDS: usize = 5;

/// Added to every command of `ideal`, as in FEMU's figure 2b.
const FIXED: Nanos = Nanos::from_micros(50);

const DEPTHS: [u32; 5] = [1, 2, 4, 8, 16];

fn main() -> ExitCode {
    let rounds = std::env::args().nth(1).map_or(Ok(ROUNDS), |text| text.parse());
    let Ok(rounds @ 1..) = rounds else {
        eprintln!("realtime: ROUNDS is a whole number, as in `realtime 5`");
        return ExitCode::from(2);
    };
    floor(rounds);
    fixed(rounds);
    against_virtual_time(rounds);
    ExitCode::SUCCESS
}

/// Measures a command on a device without delays: the overhead of this program.
fn floor(rounds: usize) {
    let profile = profile("ideal");
    let mut medians = Vec::new();
    for _ in 0..rounds {
        let outcome = measure(&profile, 1, 200_000, Clock::Real);
        medians.push(tally(&outcome).latency(0.5));
    }
    println!("ideal, QD 1, retrieve: p50 {} (bar 10 us), median of {rounds}", median(&mut medians));
}

/// Measures the lateness of completions that are due at a fixed time after their submission.
fn fixed(rounds: usize) {
    let mut profile = profile("ideal");
    profile.firmware.t_read = FIXED;
    let quantiles = [0.5, 0.99, 0.999];
    let mut late = quantiles.map(|_| Vec::new());
    for _ in 0..rounds {
        let outcome = measure(&profile, 1, 100_000, Clock::Real);
        for (quantile, late) in quantiles.into_iter().zip(&mut late) {
            late.push(tally(&outcome).lateness(quantile).unwrap_or_default());
        }
    }
    let [p50, p99, p999] = late.map(|mut late| median(&mut late));
    println!(
        "ideal + {FIXED}, QD 1, retrieve: late p50 {p50}, p99 {p99}, p99.9 {p999} (bar {LATE}), \
         medians of {rounds}"
    );
}

/// Prints the means in both clocks.
fn against_virtual_time(rounds: usize) {
    let profile = profile("moke");
    for operation in [Operation::Retrieve, Operation::Store] {
        for depth in DEPTHS {
            let operations = if operation == Operation::Store { 20_000 } else { 100_000 };
            let mean = |clock| mean_of(&measure_as(&profile, operation, depth, operations, clock));
            let simulated = mean(Clock::Virtual);
            let mut ratios: Vec<f64> = (0..rounds).map(|_| mean(Clock::Real) / simulated).collect();
            ratios.sort_by(f64::total_cmp);
            println!(
                "moke, QD {depth:>2}, {:<8}: virtual {:.1} us, real {:+.2} % (bar 5 %), median of \
                 {rounds}, from {:+.2} to {:+.2} %",
                operation.name(),
                simulated / 1e3,
                (ratios[rounds / 2] - 1.0) * 100.0,
                (ratios[0] - 1.0) * 100.0,
                (ratios[rounds - 1] - 1.0) * 100.0,
            );
        }
    }
}

#[derive(Clone, Copy)]
enum Clock {
    Virtual,
    Real,
}

fn profile(name: &str) -> Profile {
    Profile::load(name).expect("the profile is built in")
}

fn measure(profile: &Profile, depth: u32, operations: u64, clock: Clock) -> Outcome {
    measure_as(profile, Operation::Retrieve, depth, operations, clock)
}

/// Runs `operations` on a new device, filled in virtual time.
fn measure_as(
    profile: &Profile,
    operation: Operation,
    depth: u32,
    operations: u64,
    clock: Clock,
) -> Outcome {
    let plan = Plan {
        operation,
        until: Until::Operations(operations),
        load: Load::QueueDepth(depth),
        nsid: Device::NAMESPACE,
        space: Space::Pairs,
        key_bytes: 16,
        values: ValueSizes::Fixed(4_096),
        keys: 100_000,
        is_filled: false,
        seed: 1,
        distribution: Distribution::Uniform,
        payload: Payload::None,
    };
    let mut reactor = Reactor::new(None);
    let cells = Device::manufacture(profile, 1);
    let device = reactor
        .run(Device::format(profile, cells, 1, FaultPlan::default()))
        .expect("a whole device");
    let queue = device.controller().queue_pair();
    if plan.needs_fill() {
        reactor.run(workload::fill(&queue, &plan, |_, _| {})).expect("the keys fit");
        reactor.run(device.store().flush()).expect("the device is sound");
    }
    let run = workload::run(&queue, &plan, |_, _| {});
    let outcome = match clock {
        Clock::Virtual => reactor.run(run),
        Clock::Real => reactor.run_in_real_time(run).0,
    };
    assert_eq!(outcome.errors(), 0, "every operation succeeds");
    outcome
}

fn tally(outcome: &Outcome) -> &Tally {
    outcome.tally(Kind::Retrieve).expect("it retrieved")
}

fn mean_of(outcome: &Outcome) -> f64 {
    let tallies = Kind::ALL.into_iter().filter_map(|kind| outcome.tally(kind));
    tallies.map(Tally::mean_ns).next().expect("there are operations of one kind")
}

fn median(values: &mut [Nanos]) -> Nanos {
    values.sort_unstable();
    values[values.len() / 2]
}

//! Checks whether a device with the times of flash keeps them over TCP, and up to which load.
//! Compares the mean of reads in virtual time, plus what TCP adds to a single read, with the mean
//! over TCP in real time.
//!
//! `cargo run --profile dist -p experiments --bin flash_over_tcp -- [ROUNDS]`, on an idle machine
//! of two cores: one for the target and one for the host, which both poll without sleeping.

mod target;

use base::Nanos;
use experiments::median;
use node::{Device, FaultPlan, Profile};
use reactor::Reactor;
use std::process::ExitCode;
use target::{Measured, Target};
use workload::{
    Distribution, Kind, Load, Operation, Outcome, Payload, Plan, Space, Tally, Until, ValueSizes,
};

const ROUNDS: usize = 41;

/// The time of each measurement, so short that the machine's other work disturbs less than half of
/// the rounds.
const TIME: Nanos = Nanos::from_millis(20);

const DEPTHS: [u32; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];

/// The allowed deviation of a mean.
const BAR: f64 = 0.05;

/// A core that works for this share of the time is full.
const FULL: f64 = 0.95;

const CASES: [(&str, Operation, Space); 2] =
    [("970pro", Operation::RandRead, Space::Blocks), ("moke", Operation::Retrieve, Space::Pairs)];

fn main() -> ExitCode {
    let rounds = std::env::args().nth(1).map_or(Ok(ROUNDS), |text| text.parse());
    let Ok(rounds @ 1..) = rounds else {
        eprintln!("flash_over_tcp: ROUNDS is a whole number above 0, as in `flash_over_tcp 41`");
        return ExitCode::from(2);
    };
    for (name, operation, space) in CASES {
        report(name, &plan(operation, space), rounds);
    }
    ExitCode::SUCCESS
}

fn plan(operation: Operation, space: Space) -> Plan {
    Plan {
        operation,
        until: Until::Time(TIME),
        load: Load::QueueDepth(1),
        nsid: Device::NAMESPACE,
        space,
        key_bytes: 16,
        values: ValueSizes::Fixed(4_096),
        keys: 20_000,
        is_filled: false,
        seed: 1,
        distribution: Distribution::Uniform,
        payload: Payload::Full,
    }
}

/// The result at one depth: means in nanoseconds.
struct Line {
    depth: u32,
    simulated: f64,
    /// Over TCP without delays, one outstanding.
    floor: f64,
    real: f64,
    target_busy: f64,
    host_busy: f64,
    /// Operations a second over TCP.
    rate: f64,
}

fn report(name: &str, plan: &Plan, rounds: usize) {
    let profile = Profile::load(name).expect("the profile is built in");
    println!("{name}, {} of 4 KiB, medians of {rounds}:", plan.operation.name());
    println!("   QD    sim: us   floor us     sum us    TCP us   error  target    host   a second");
    let floor = Target::start(&profile.clone().without_delays(), plan);
    let real = Target::start(&profile, plan);
    let mut simulated = Simulated::new(&profile, plan);
    let mut full = None;
    for depth in DEPTHS {
        let line = measure(plan, depth, rounds, (&mut simulated, &floor, &real));
        line.print();
        if line.target_busy.max(line.host_busy) >= FULL && full.is_none() {
            full = Some((line.depth, line.rate));
        }
    }
    match full {
        Some((depth, rate)) => println!("a core is full from QD {depth} on, {rate:.0} a second"),
        None => println!("no depth fills a core"),
    }
    floor.stop();
    real.stop();
}

fn measure(
    plan: &Plan,
    depth: u32,
    rounds: usize,
    (simulated, floor, real): (&mut Simulated, &Target, &Target),
) -> Line {
    let deep = Plan { load: Load::QueueDepth(depth), ..*plan };
    let outcome = simulated.measure(&deep);
    // Without delays, more outstanding reads would have a far higher rate and queue for each other.
    let alone = Plan { load: Load::QueueDepth(1), ..*plan };
    let mut figures = <[Vec<f64>; 5]>::default();
    for _ in 0..rounds {
        let without = mean(&floor.measure(&alone).outcome);
        let Measured { outcome, target_busy, host_busy } = real.measure(&deep);
        let round = [without, mean(&outcome), target_busy, host_busy, per_second(&outcome)];
        figures.iter_mut().zip(round).for_each(|(figures, figure)| figures.push(figure));
    }
    let [floor, real, target_busy, host_busy, rate] =
        figures.map(|mut figures| median(&mut figures));
    Line { depth, simulated: mean(&outcome), floor, real, target_busy, host_busy, rate }
}

impl Line {
    fn print(&self) {
        let Self { depth, simulated, floor, real, target_busy, host_busy, rate } = self;
        let error = real / (simulated + floor) - 1.0;
        println!(
            "{depth:>5} {:>10.1} {:>10.1} {:>10.1} {:>9.1} {:>+6.1}% {:>6.0}% {:>6.0}% \
             {rate:>10.0}{}",
            simulated / 1e3,
            floor / 1e3,
            (simulated + floor) / 1e3,
            real / 1e3,
            error * 100.0,
            target_busy * 100.0,
            host_busy * 100.0,
            if error.abs() > BAR { "  beyond 5 %" } else { "" }
        );
    }
}

/// The device in virtual time.
struct Simulated {
    reactor: Reactor,
    device: Device,
}

impl Simulated {
    fn new(profile: &Profile, plan: &Plan) -> Self {
        let mut reactor = Reactor::new(None);
        let cells = Device::manufacture(profile, 1);
        let device = reactor
            .run(Device::format(profile, cells, 1, FaultPlan::default()))
            .expect("a whole device");
        let queue = device.controller().queue_pair();
        reactor.run(workload::fill(&queue, plan, |_, _| {})).expect("the keys fit");
        reactor.run(device.flush()).expect("the device is sound");
        Self { reactor, device }
    }

    fn measure(&mut self, plan: &Plan) -> Outcome {
        let queue = self.device.controller().queue_pair();
        self.reactor.run(workload::run(&queue, plan, |_, _| {}))
    }
}

fn mean(outcome: &Outcome) -> f64 {
    let tallies = Kind::ALL.into_iter().filter_map(|kind| outcome.tally(kind));
    tallies.map(Tally::mean_ns).next().expect("there are operations of one kind")
}

#[expect(clippy::cast_precision_loss, reason = "for a report")]
fn per_second(outcome: &Outcome) -> f64 {
    outcome.operations() as f64 * 1e9 / outcome.elapsed().0.max(1) as f64
}

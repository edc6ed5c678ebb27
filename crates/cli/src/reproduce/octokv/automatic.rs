//! OCT-auto: Kvasir's balancer against those of the slides, and against a single queue.

use super::description::{assumptions_on_target, described_for};
use super::sweep::{Load, MEASURED, Scheduler, Served, WARM_UP};
use super::testbed::{CORES, Operation};
use crate::parallel;
use crate::plot::{Axis, Mark, Panel, Scale, Series, Unit};
use crate::progress::Unit as ProgressUnit;
use crate::reproduce::criteria;
use crate::reproduce::finding::{Finding, Row};
use crate::reproduce::run::Run;
use balance::Policy;
use base::Rng;
use serde::Deserialize;

/// The seed of the loads. It was chosen after the last change of the balancer.
const SEED: u64 = 20_261_211;

/// Drawn loads.
const LOADS: usize = 6;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bounds {
    criterion: String,
    rate_min: f64,
    p99_max: f64,
    single_min: f64,
    balanced_max: f64,
}

/// The schedulers compared.
const SCHEDULERS: [(&str, Scheduler); 5] = [
    ("none", Scheduler::Balancer(Policy::None)),
    ("rr", Scheduler::Balancer(Policy::RoundRobin)),
    ("ps", Scheduler::Balancer(Policy::ProportionalShare)),
    ("auto", Scheduler::Balancer(Policy::Auto)),
    ("single queue", Scheduler::SingleQueue),
];

/// A load, and what it got from each of the [`SCHEDULERS`].
struct Point {
    load: Load,
    served: [Served; SCHEDULERS.len()],
}

/// `auto` as parts of others.
#[derive(Clone, Copy, Debug)]
struct Ratios {
    /// Of the best rate of another policy.
    rate: f64,
    /// Of the best 99th percentile of another policy with nearly the best rate.
    p99: f64,
    /// Of the rate of the single queue.
    single: f64,
}

pub(in crate::reproduce) fn run(run: Run) -> Finding {
    let bounds: Bounds = criteria::bounds("OCT-auto");
    let points = measure(run);
    let ratios: Vec<Ratios> = points.iter().map(|point| point.ratios(bounds.rate_min)).collect();
    let load = format!(
        "{LOADS} loads drawn by seed {SEED}, one that an earlier seed drew, and a balanced one"
    );
    Finding {
        setup: described_for((WARM_UP, MEASURED), &load, run, "auto is none"),
        assumptions: assumptions_on_target(&OWN_ASSUMPTIONS),
        rows: points.iter().flat_map(Point::rows).collect(),
        holds: points.iter().all(|point| bounds.hold(point)),
        beside: None,
        criterion: bounds.criterion,
        panels: vec![
            panel(&ratios, "rate, of the best other policy", |ratios| ratios.rate),
            panel(&ratios, "99th percentile, of the best other policy", |ratios| ratios.p99),
        ],
    }
}

const OWN_ASSUMPTIONS: [&str; 5] = [
    "the slides have no such sweep: a load has 1 to 48 connections in turn on the cores, values of \
     512 B to 64 KiB, 1 to 32 commands outstanding on a connection, and in two of three loads one \
     connection has a larger part of all of them, up to all",
    "a connection sends its next command when one is answered, without a pause",
    "stages grow with the value as measured between 4 and 16 KiB",
    "a core executes what another one has sent before what it has received, as a server does \
     before each batch of commands",
    "the single queue has all stages of all commands, for any core, without messages",
];

/// Returns the drawn loads, the one at which `auto` was furthest from the single queue with earlier
/// seeds, and a balanced one.
fn loads() -> Vec<Load> {
    let mut rng = Rng::new(SEED);
    let few = Load { operation: Operation::Get, bytes: 8 << 10, depths: vec![8, 2, 2, 2, 2, 2] };
    let balanced = Load { operation: Operation::Get, bytes: 16 << 10, depths: vec![8; 2 * CORES] };
    (0..LOADS).map(|_| Load::draw(&mut rng)).chain([few, balanced]).collect()
}

fn measure(run: Run) -> Vec<Point> {
    let loads = loads();
    let trials: Vec<(&Load, Scheduler)> = loads
        .iter()
        .flat_map(|load| SCHEDULERS.map(|(_, scheduler)| (load, switched(scheduler, run))))
        .collect();
    let mut bar = run.progress.bar("trials", ProgressUnit::Count);
    let total = trials.len() as u64;
    let serve = |(load, scheduler): &(&Load, Scheduler)| load.serve(*scheduler, SEED);
    let served = parallel::map(&trials, parallel::cores(), serve, |done| bar.set(done, total));
    let served = served.chunks(SCHEDULERS.len()).map(|all| std::array::from_fn(|at| all[at]));
    let served: Vec<[Served; SCHEDULERS.len()]> = served.collect();
    loads.into_iter().zip(served).map(|(load, served)| Point { load, served }).collect()
}

fn switched(scheduler: Scheduler, run: Run) -> Scheduler {
    match scheduler {
        Scheduler::Balancer(Policy::Auto) if run.is_control => Scheduler::Balancer(Policy::None),
        scheduler => scheduler,
    }
}

impl Bounds {
    fn hold(&self, point: &Point) -> bool {
        let Ratios { rate, p99, single } = point.ratios(self.rate_min);
        let is_near = single >= self.single_min || !point.is_possible();
        let is_calm = point.auto().diverted <= self.balanced_max || !point.load.is_balanced();
        rate >= self.rate_min && p99 <= self.p99_max && is_near && is_calm
    }
}

impl Point {
    fn auto(&self) -> &Served {
        &self.served[3]
    }

    /// Returns whether a balancer could serve as much as the single queue.
    fn is_possible(&self) -> bool {
        self.load.can_receive(self.served[4].rate)
    }

    fn ratios(&self, near: f64) -> Ratios {
        let [others @ .., auto, single] = &self.served;
        let best = others.iter().map(|other| other.rate).fold(0.0, f64::max);
        let fast = others.iter().filter(|other| other.rate >= near * best);
        let least = fast.map(|other| other.p99).fold(f64::INFINITY, f64::min);
        Ratios { rate: auto.rate / best, p99: auto.p99 / least, single: auto.rate / single.rate }
    }

    fn name(&self) -> String {
        let Load { operation, bytes, depths } = &self.load;
        let (hot, rest) = (depths[0], depths.iter().sum::<u64>() - depths[0]);
        let size = base::human_bytes(*bytes);
        let connections = depths.len();
        format!("{} {size}, {connections} connections ({hot} + {rest})", operation.name())
    }

    fn rows(&self) -> Vec<Row> {
        let name = self.name();
        let row = |what: String, ours, unit| Row {
            label: format!("{name}: {what}"),
            paper: None,
            ours,
            unit,
        };
        let mut rows = Vec::new();
        for ((scheduler, _), served) in SCHEDULERS.iter().zip(&self.served) {
            rows.push(row(format!("rate, {scheduler}"), served.rate / 1e3, "k/s"));
            rows.push(row(format!("99 %, {scheduler}"), served.p99 / 1e3, "us"));
        }
        rows.push(row("diverted, auto".to_owned(), self.auto().diverted * 100.0, "%"));
        let single = self.ratios(1.0).single * 100.0;
        let reachable = if self.is_possible() { "" } else { " (no core receives as much)" };
        rows.push(row(format!("auto of single queue{reachable}"), single, "%"));
        rows
    }
}

/// Returns a panel of a ratio at each point, by the number of the point.
fn panel(points: &[Ratios], label: &str, ratio: fn(&Ratios) -> f64) -> Panel {
    let ratios = points.iter().map(ratio);
    let names = (1..=points.len()).map(|number| number.to_string()).collect();
    Panel {
        title: "auto".to_owned(),
        x: Axis { label: "load".to_owned(), scale: Scale::Categories(names), unit: Unit::Plain },
        y: Axis { label: label.to_owned(), scale: Scale::Linear, unit: Unit::Plain },
        series: vec![Series {
            name: "ours".to_owned(),
            mark: Mark::Bars,
            points: (0..).map(f64::from).zip(ratios).collect(),
        }],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(rate: f64, p99: f64, diverted: f64) -> Served {
        Served { rate, p99, diverted }
    }

    fn point(auto: Served, depths: Vec<u64>) -> Point {
        let other = served(1_000.0, 100.0, 0.0);
        // A policy with a lower rate may answer earlier.
        let (less, single) = (served(960.0, 80.0, 0.1), served(1_070.0, 50.0, 0.0));
        let load = Load { operation: Operation::Get, bytes: 4 << 10, depths };
        Point { load, served: [less, other, less, auto, single] }
    }

    #[test]
    fn a_point_at_the_bounds_holds_and_beyond_any_one_it_does_not() {
        let bounds: Bounds = criteria::bounds("OCT-auto");
        let hold = |auto, depths: &[u64]| bounds.hold(&point(auto, depths.to_vec()));
        assert!(hold(served(971.0, 104.9, 0.5), &[9, 1]));
        assert!(!hold(served(969.0, 104.9, 0.5), &[9, 1]), "the rate of another policy");
        assert!(!hold(served(971.0, 105.1, 0.5), &[9, 1]), "the 99th percentile of another policy");
        assert!(hold(served(971.0, 104.9, 0.000_9), &[9; CORES]));
        assert!(!hold(served(971.0, 104.9, 0.001_1), &[9; CORES]), "it is balanced");
        let mut far = point(served(971.0, 104.9, 0.5), vec![9, 1]);
        far.served[4].rate = 1_100.0;
        assert!(!bounds.hold(&far), "the single queue");
        far.served[4].rate = 1e7;
        assert!(bounds.hold(&far), "no core receives 9 million commands a second");
    }
}

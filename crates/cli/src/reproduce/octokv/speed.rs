//! OCT-rt and OCT-tp: response time and throughput of a store on the client, of `OctoKV`, and of
//! `OctoKV` with balancing.

use super::description::{assumptions, described};
use super::testbed::{LOADS, Operation, THREADS};
use super::trial::{Setup, StorePlace, Trial, run_all};
use crate::plot::{Axis, Mark, Panel, Scale, Series, Unit};
use crate::reproduce::criteria;
use crate::reproduce::finding::{Finding, Row};
use crate::reproduce::run::Run;
use balance::Policy;
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bounds {
    criterion: String,
    better_min: f64,
    worse_max: f64,
}

/// The systems compared.
const SYSTEMS: [(&str, StorePlace, Policy); 4] = [
    ("store on the client", StorePlace::Client, Policy::None),
    ("OctoKV", StorePlace::Target, Policy::None),
    ("OctoKV, RR", StorePlace::Target, Policy::RoundRobin),
    ("OctoKV, PS", StorePlace::Target, Policy::ProportionalShare),
];

/// A figure of each system, by load.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Figures {
    client: [f64; THREADS.len()],
    octokv: [f64; THREADS.len()],
    rr: [f64; THREADS.len()],
    ps: [f64; THREADS.len()],
}

/// OCT-rt.
pub(in crate::reproduce) fn run_response(run: Run) -> Finding {
    finding("OCT-rt", "mean response time", |trial| trial.response / 1e3, "us", run)
}

/// OCT-tp.
pub(in crate::reproduce) fn run_throughput(run: Run) -> Finding {
    finding("OCT-tp", "operations a second", |trial| trial.rate / 1e3, "k/s", run)
}

fn finding(
    id: &str,
    what: &str,
    figure: fn(&Trial) -> f64,
    unit: &'static str,
    run: Run,
) -> Finding {
    let bounds: Bounds = criteria::bounds(id);
    let found = measure(figure, run);
    // A response time is better the lower it is.
    let is_time = unit == "us";
    let control = "without balancing also where OctoKV's is with it";
    Finding {
        setup: described("puts and gets of 7, 10 and 12 threads", run, control),
        assumptions: assumptions(&OWN_ASSUMPTIONS),
        rows: found.iter().flat_map(|(it, figures)| figures.rows(*it, unit)).collect(),
        holds: found.iter().all(|(_, figures)| bounds.hold(figures, is_time)),
        beside: None,
        criterion: bounds.criterion,
        panels: found.iter().map(|(it, figures)| figures.panel(*it, what, unit)).collect(),
    }
}

const OWN_ASSUMPTIONS: [&str; 2] = [
    "the slides have no numbers of these figures",
    "windows of 100 ms; a core keeps what it diverts, gives away at most what it has above the \
     mean, and takes back 5 % in each window in which it is not above the mean",
];

/// Returns the figures of each operation.
fn measure(figure: fn(&Trial) -> f64, run: Run) -> Vec<(Operation, Figures)> {
    let setups = |operation| {
        SYSTEMS.into_iter().flat_map(move |(_, store, policy)| {
            let policy = if run.is_control { Policy::None } else { policy };
            THREADS.map(|threads| Setup { policy, ..Setup::new(store, operation, threads) })
        })
    };
    let setups: Vec<Setup> = Operation::ALL.into_iter().flat_map(setups).collect();
    let figures: Vec<f64> = run_all(&setups, run).iter().map(figure).collect();
    let of_operation = |figures: &[f64]| {
        let by_load = |system| std::array::from_fn(|load| figures[THREADS.len() * system + load]);
        Figures { client: by_load(0), octokv: by_load(1), rr: by_load(2), ps: by_load(3) }
    };
    let figures = figures.chunks(SYSTEMS.len() * THREADS.len()).map(of_operation);
    Operation::ALL.into_iter().zip(figures).collect()
}

impl Bounds {
    fn hold(&self, figures: &Figures, is_time: bool) -> bool {
        // How much better the second is, as a share of the first.
        let gain = |from: f64, to: f64| if is_time { 1.0 - to / from } else { to / from - 1.0 };
        let Figures { client, octokv, ps, .. } = figures;
        (0..THREADS.len()).all(|load| {
            let least = if load == 0 { -self.worse_max } else { self.better_min };
            gain(client[load], octokv[load]) > 0.0 && gain(octokv[load], ps[load]) >= least
        })
    }
}

impl Figures {
    fn each(&self) -> [(&'static str, &[f64; THREADS.len()]); 4] {
        let Self { client, octokv, rr, ps } = self;
        let figures = [client, octokv, rr, ps];
        std::array::from_fn(|at| (SYSTEMS[at].0, figures[at]))
    }

    fn rows(&self, operation: Operation, unit: &'static str) -> Vec<Row> {
        let row = |name: &str, load: &str, ours| {
            let label = format!("{} {load}: {name}", operation.name());
            Row { label, paper: None, ours, unit }
        };
        let of = |load: usize| self.each().map(|(name, it)| row(name, LOADS[load], it[load]));
        (0..THREADS.len()).flat_map(of).collect()
    }

    fn panel(&self, operation: Operation, what: &str, unit: &str) -> Panel {
        let series = |(name, figures): (&str, &[f64; THREADS.len()])| Series {
            name: name.to_owned(),
            mark: Mark::Bars,
            points: (0..).map(f64::from).zip(figures.iter().copied()).collect(),
        };
        Panel {
            title: format!("{}s", operation.name()),
            x: Axis {
                label: "load".to_owned(),
                scale: Scale::Categories(LOADS.map(str::to_owned).to_vec()),
                unit: Unit::Plain,
            },
            y: Axis { label: format!("{what}, {unit}"), scale: Scale::Linear, unit: Unit::Plain },
            series: self.each().map(series).into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Figures = Figures {
        client: [110.0, 110.0, 110.0],
        octokv: [100.0, 100.0, 100.0],
        rr: [0.0; 3],
        ps: [100.9, 98.9, 98.9],
    };

    #[test]
    fn times_at_the_bounds_hold_and_beyond_any_one_they_do_not() {
        let bounds: Bounds = criteria::bounds("OCT-rt");
        assert!(bounds.hold(&AT, true));
        for load in 0..3 {
            let mut slow = AT;
            slow.octokv[load] = 110.1;
            slow.ps[load] = 100.0;
            assert!(!bounds.hold(&slow, true), "OctoKV is as slow as the client");
            let mut slow = AT;
            slow.ps[load] += 0.3;
            assert!(!bounds.hold(&slow, true), "PS, load {load}");
        }
    }

    #[test]
    fn rates_at_the_bounds_hold_and_beyond_any_one_they_do_not() {
        let bounds: Bounds = criteria::bounds("OCT-tp");
        let at = Figures { client: [90.0; 3], ps: [99.1, 101.1, 101.1], ..AT };
        assert!(bounds.hold(&at, false));
        for load in 0..3 {
            let mut slow = at;
            slow.ps[load] -= 0.3;
            assert!(!bounds.hold(&slow, false), "PS, load {load}");
        }
    }
}

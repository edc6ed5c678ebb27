//! OCT-lb: how evenly balancing loads the cores.

use super::description::{assumptions, axis_of_cores, described};
use super::testbed::{LOADS, Operation, THREADS};
use super::trial::{CoreFigures, Setup, StorePlace, Trial, run_all};
use crate::plot::{Axis, Mark, Panel, Scale, Series, Unit};
use crate::reproduce::criteria;
use crate::reproduce::finding::{Finding, Row};
use crate::reproduce::run::Run;
use balance::{Memory, Policy, Settings};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bounds {
    criterion: String,
    kept_ratio_min: f64,
    anew_ratio_min: f64,
}

/// The balancers compared: their names, policies, and whether they keep what cores divert.
const BALANCERS: [(&str, Policy, bool); 5] = [
    ("none", Policy::None, true),
    ("RR", Policy::RoundRobin, true),
    ("PS", Policy::ProportionalShare, true),
    ("RR, each window anew", Policy::RoundRobin, false),
    ("PS, each window anew", Policy::ProportionalShare, false),
];

/// One load under each of the [`BALANCERS`].
struct Balanced {
    name: String,
    is_heavy: bool,
    trials: [Trial; BALANCERS.len()],
}

pub(in crate::reproduce) fn run(run: Run) -> Finding {
    let bounds: Bounds = criteria::bounds("OCT-lb");
    let loads = measure(run);
    let heavy = || loads.iter().filter(|balanced| balanced.is_heavy);
    Finding {
        setup: described("10 and 12 threads on OctoKV", run, "without balancing everywhere"),
        assumptions: assumptions(&OWN_ASSUMPTIONS),
        rows: loads.iter().flat_map(Balanced::rows).collect(),
        holds: heavy().all(|balanced| bounds.hold(&balanced.deviations())),
        beside: None,
        criterion: bounds.criterion,
        panels: loads.iter().map(Balanced::panel).collect(),
    }
}

const OWN_ASSUMPTIONS: [&str; 3] = [
    "the slides show the utilisation in plots only; ours is that of the whole time measured",
    "windows of 100 ms; a core keeps what it diverts, gives away at most what it has above the \
     mean, and takes back 5 % in each window in which it is not above the mean",
    "each window anew: read literally, a core gives away 20 % of its utilisation if the window \
     before was unbalanced, and else nothing",
];

/// Returns the medium and the heavy loads.
fn measure(run: Run) -> Vec<Balanced> {
    let loads = [1, 2].into_iter().flat_map(|load| Operation::ALL.map(|it| (load, it)));
    let loads: Vec<(usize, Operation)> = loads.collect();
    let setups: Vec<Setup> = loads.iter().flat_map(|load| setups(*load, run)).collect();
    let trials = run_all(&setups, run);
    let balanced = |((load, operation), trials): (&(usize, Operation), &[Trial])| Balanced {
        name: format!("{} {}", LOADS[*load], operation.name()),
        is_heavy: *load == 2,
        trials: std::array::from_fn(|at| trials[at]),
    };
    loads.iter().zip(trials.chunks(BALANCERS.len())).map(balanced).collect()
}

fn setups((load, operation): (usize, Operation), run: Run) -> [Setup; BALANCERS.len()] {
    BALANCERS.map(|(_, policy, keeps)| {
        let policy = if run.is_control { Policy::None } else { policy };
        let memory = if keeps { Settings::default().memory } else { Memory::Off };
        Setup { policy, memory, ..Setup::new(StorePlace::Target, operation, THREADS[load]) }
    })
}

impl Bounds {
    /// `deviations` are in the order of the [`BALANCERS`].
    fn hold(&self, [none, _, kept, _, anew]: &[f64; BALANCERS.len()]) -> bool {
        *none >= self.kept_ratio_min * kept && *none >= self.anew_ratio_min * anew
    }
}

impl Balanced {
    /// Returns the standard deviation of the cores' utilisation.
    fn deviations(&self) -> [f64; BALANCERS.len()] {
        self.trials.each_ref().map(|trial| trial.spread(|core| core.utilisation).1)
    }

    fn rows(&self) -> Vec<Row> {
        let row = |label, ours, unit| Row { label, paper: None, ours, unit };
        let mut rows = Vec::new();
        let none = self.deviations()[0];
        for ((name, ..), trial) in BALANCERS.iter().zip(&self.trials) {
            let name = format!("{}, {name}", self.name);
            let (_, deviation) = trial.spread(|core| core.utilisation);
            let (diverted, _) = trial.spread(|core| core.diverted);
            rows.push(row(format!("{name}: deviation"), deviation * 100.0, "%"));
            rows.push(row(format!("{name}: fall of it"), none / deviation, "times"));
            rows.push(row(format!("{name}: diverted"), diverted * 100.0, "%"));
            rows.push(row(format!("{name}: response"), trial.response / 1e3, "us"));
        }
        rows
    }

    fn panel(&self) -> Panel {
        let utilisation = |core: &CoreFigures| core.utilisation * 100.0;
        let series = |((name, ..), trial): (&(&str, Policy, bool), &Trial)| Series {
            name: (*name).to_owned(),
            mark: Mark::Bars,
            points: (0..).map(f64::from).zip(trial.cores.iter().map(utilisation)).collect(),
        };
        Panel {
            title: self.name.clone(),
            x: axis_of_cores(),
            y: Axis { label: "utilisation, %".to_owned(), scale: Scale::Linear, unit: Unit::Plain },
            series: BALANCERS.iter().zip(&self.trials).map(series).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deviations_at_the_bounds_hold_and_beyond_any_one_they_do_not() {
        let bounds: Bounds = criteria::bounds("OCT-lb");
        let hold = |kept, anew| bounds.hold(&[16.0, 16.0, kept, 16.0, anew]);
        assert!(hold(4.0, 10.0) && !hold(4.01, 10.0) && !hold(4.0, 10.01));
    }
}

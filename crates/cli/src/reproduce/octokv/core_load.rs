//! OCT-util: cores that are busy answer late.

use super::description::{assumptions, axis_of_cores, described};
use super::placement::ConnectionPlacement;
use super::testbed::{CORES, LOADS, Operation, THREADS};
use super::trial::{CoreFigures, Setup, StorePlace, run_all};
use crate::plot::{Axis, Mark, Panel, Scale, Series, Unit};
use crate::reproduce::criteria;
use crate::reproduce::finding::{Finding, Row};
use crate::reproduce::run::Run;
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bounds {
    criterion: String,
    apart_min: f64,
    slower_min: f64,
}

/// The cores under one load.
struct Cores {
    name: String,
    figures: [CoreFigures; CORES],
}

pub(in crate::reproduce) fn run(run: Run) -> Finding {
    let bounds: Bounds = criteria::bounds("OCT-util");
    let loads = measure(run);
    let control = "the client has 18 processors, so each core has three connections";
    Finding {
        setup: described("7 and 12 threads on a store on the client", run, control),
        assumptions: assumptions(&OWN_ASSUMPTIONS),
        rows: loads.iter().flat_map(Cores::rows).collect(),
        holds: loads.iter().all(|cores| bounds.hold(&cores.figures)),
        beside: None,
        criterion: bounds.criterion,
        panels: loads.iter().flat_map(Cores::panels).collect(),
    }
}

const OWN_ASSUMPTIONS: [&str; 2] = [
    "the slides show utilisation and latency in plots only",
    "latency is the time between receiving and answering a command",
];

/// Returns the cores under the light and the heavy loads.
fn measure(run: Run) -> Vec<Cores> {
    let loads = [0, 2].into_iter().flat_map(|load| Operation::ALL.map(|it| (load, it)));
    let (names, setups): (Vec<String>, Vec<Setup>) = loads.map(|load| named(load, run)).unzip();
    let trials = run_all(&setups, run).into_iter();
    names
        .into_iter()
        .zip(trials)
        .map(|(name, trial)| Cores { name, figures: trial.cores })
        .collect()
}

fn named((load, operation): (usize, Operation), run: Run) -> (String, Setup) {
    let setup = Setup::new(StorePlace::Client, operation, THREADS[load]);
    let placement = if run.is_control { ConnectionPlacement::EVEN } else { setup.placement };
    (format!("{} {}", LOADS[load], operation.name()), Setup { placement, ..setup })
}

impl Bounds {
    fn hold(&self, cores: &[CoreFigures; CORES]) -> bool {
        let groups = Groups::of(cores);
        groups.apart >= self.apart_min && groups.slower >= self.slower_min
    }
}

/// The cores in two groups, on both sides of the widest gap between their utilisations.
struct Groups {
    /// The gap.
    apart: f64,
    /// How much longer a command of the busier group takes, as a share of one of the other.
    slower: f64,
}

impl Groups {
    fn of(cores: &[CoreFigures; CORES]) -> Self {
        let mut sorted = *cores;
        sorted.sort_by(|one, other| one.utilisation.total_cmp(&other.utilisation));
        let gap = |at: &usize| sorted[*at].utilisation - sorted[at - 1].utilisation;
        let widest = (1..CORES).max_by(|one, other| gap(one).total_cmp(&gap(other)));
        let at = widest.expect("there are several cores");
        // By Little's law, a group's latency is its depth over its rate.
        let latency = |cores: &[CoreFigures]| {
            let depth: f64 = cores.iter().map(|core| core.depth).sum();
            let rate: f64 = cores.iter().map(|core| core.depth / core.latency).sum();
            depth / rate
        };
        let (idle, busy) = sorted.split_at(at);
        Self { apart: gap(&at), slower: latency(busy) / latency(idle) - 1.0 }
    }
}

impl Cores {
    fn rows(&self) -> Vec<Row> {
        let row = |label, ours, unit| Row { label, paper: None, ours, unit };
        let mut rows = Vec::new();
        for (core, figures) in (1..).zip(&self.figures) {
            let name = format!("{}, core {core}", self.name);
            rows.push(row(format!("{name}: utilisation"), figures.utilisation * 100.0, "%"));
            rows.push(row(format!("{name}: latency"), figures.latency / 1e3, "us"));
        }
        let groups = Groups::of(&self.figures);
        rows.push(row(format!("{}: groups apart", self.name), groups.apart * 100.0, "%"));
        rows.push(row(format!("{}: busier group slower", self.name), groups.slower * 100.0, "%"));
        rows
    }

    fn panels(&self) -> [Panel; 2] {
        let panel = |label: &str, unit, figure: fn(&CoreFigures) -> f64| Panel {
            title: self.name.clone(),
            x: axis_of_cores(),
            y: Axis { label: label.to_owned(), scale: Scale::Linear, unit },
            series: vec![Series {
                name: "ours".to_owned(),
                mark: Mark::Bars,
                points: (0..).map(f64::from).zip(self.figures.iter().map(figure)).collect(),
            }],
        };
        [
            panel("utilisation, %", Unit::Plain, |core| core.utilisation * 100.0),
            panel("mean latency of a command", Unit::Nanos, |core| core.latency),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cores(utilisation: [f64; CORES], latency: [f64; CORES]) -> [CoreFigures; CORES] {
        std::array::from_fn(|at| CoreFigures {
            // A command a nanosecond.
            depth: latency[at],
            utilisation: utilisation[at],
            latency: latency[at],
            diverted: 0.0,
        })
    }

    #[test]
    fn two_groups_hold_at_the_bounds_and_beyond_any_one_they_do_not() {
        let bounds: Bounds = criteria::bounds("OCT-util");
        let hold = |high: f64, slow: f64| {
            let utilisation = [high, 0.5, 0.4, high + 0.05, 0.45, 0.5];
            bounds.hold(&cores(utilisation, [slow, 1.0, 1.0, slow, 1.0, 1.0]))
        };
        assert!(hold(0.601, 1.201) && !hold(0.599, 1.201) && !hold(0.601, 1.199));
    }
}

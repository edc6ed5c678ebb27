//! OCT-qd: how deep the queue of each core is without balancing.

use super::description::{assumptions, axis_of_cores, described};
use super::duration::Times;
use super::placement::ConnectionPlacement;
use super::testbed::{CORES, Operation};
use super::trial::{CoreFigures, Setup, StorePlace, Trial, run_all, spread};
use crate::plot::{Axis, Mark, Panel, Scale, Series, Unit};
use crate::reproduce::criteria;
use crate::reproduce::finding::{Finding, Row};
use crate::reproduce::run::Run;
use serde::Deserialize;

/// A row of the paper's table.
struct Paper {
    name: &'static str,
    operation: Operation,
    threads: usize,
    depths: [f64; CORES],
}

/// `OctoKV`'s slides: "Thread Queue Depth for each core/SPDK thread".
const TABLE: [Paper; 4] = [
    Paper {
        name: "light put",
        operation: Operation::Put,
        threads: 7,
        depths: [2.00, 2.21, 0.75, 1.58, 0.67, 0.33],
    },
    Paper {
        name: "heavy put",
        operation: Operation::Put,
        threads: 12,
        depths: [5.25, 5.48, 2.00, 2.06, 2.13, 2.13],
    },
    Paper {
        name: "light get",
        operation: Operation::Get,
        threads: 7,
        depths: [3.95, 4.23, 1.27, 1.36, 2.00, 1.82],
    },
    Paper {
        name: "heavy get",
        operation: Operation::Get,
        threads: 12,
        depths: [6.06, 6.54, 2.69, 2.62, 2.92, 2.65],
    },
];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bounds {
    criterion: String,
    mean_error_max: f64,
    deviation_error_max: f64,
}

/// The depths of each row of the [`TABLE`].
type Depths = [[f64; CORES]; TABLE.len()];

/// What is run for the whole table. One of the first three must meet the criterion.
struct Variant {
    name: &'static str,
    placement: ConnectionPlacement,
    times: Times,
}

const STATED: usize = 3;

fn variants(run: Run) -> [Variant; STATED + 1] {
    let processors = if run.is_control { 18 } else { 20 };
    let (by_processor, times) = (ConnectionPlacement::Processor(processors), Times::Exponential);
    [
        Variant { name: "by processor", placement: by_processor, times },
        Variant { name: "by hash", placement: ConnectionPlacement::Hash(processors), times },
        Variant { name: "by thread", placement: ConnectionPlacement::Thread, times },
        Variant { name: "constant times", placement: by_processor, times: Times::Constant },
    ]
}

pub(in crate::reproduce) fn run(run: Run) -> Finding {
    let bounds: Bounds = criteria::bounds("OCT-qd");
    let variants = variants(run);
    let found = measure(&variants, run);
    let control = "the client has 18 processors, so each core has three connections";
    Finding {
        setup: described("7 and 12 threads on a store on the client", run, control),
        assumptions: assumptions(&OWN_ASSUMPTIONS),
        rows: rows(&variants, &found),
        holds: found[..STATED].iter().any(|depths| bounds.hold(depths)),
        beside: None,
        criterion: bounds.criterion,
        panels: TABLE.iter().zip(&found[0]).map(|(paper, ours)| panel(paper, ours)).collect(),
    }
}

const OWN_ASSUMPTIONS: [&str; 3] = [
    "a queue has the commands that its core has received and not answered",
    "the slides do not say how connections are placed. By processor: as above. By hash: a hash of \
     the connection's number selects the core. By thread: a connection for each thread, thread n \
     on core n mod 6",
    "constant times: as by processor, but no time of a stage varies",
];

fn measure(variants: &[Variant], run: Run) -> Vec<Depths> {
    let setups: Vec<Setup> = variants.iter().flat_map(Variant::setups).collect();
    let depths = |trials: &[Trial]| {
        std::array::from_fn(|row| trials[row].cores.map(|core: CoreFigures| core.depth))
    };
    run_all(&setups, run).chunks(TABLE.len()).map(depths).collect()
}

impl Variant {
    fn setups(&self) -> [Setup; TABLE.len()] {
        let &Self { placement, times, .. } = self;
        TABLE.each_ref().map(|paper| {
            let setup = Setup::new(StorePlace::Client, paper.operation, paper.threads);
            Setup { placement, times, ..setup }
        })
    }
}

impl Bounds {
    fn hold(&self, depths: &Depths) -> bool {
        TABLE.iter().zip(depths).all(|(paper, depths)| {
            let ((of_paper, theirs), (mean, ours)) = (spread(&paper.depths), spread(depths));
            (mean / of_paper - 1.0).abs() <= self.mean_error_max
                && (ours / mean - theirs / of_paper).abs() <= self.deviation_error_max
        })
    }
}

fn rows(variants: &[Variant], found: &[Depths]) -> Vec<Row> {
    let row = |label, paper, ours| Row { label, paper: Some(paper), ours, unit: "" };
    let mut rows = Vec::new();
    for (paper, depths) in TABLE.iter().zip(&found[0]) {
        rows.extend((0..CORES).map(|core| {
            let label = format!("{}, core {}", paper.name, core + 1);
            row(label, paper.depths[core], depths[core])
        }));
    }
    for (Variant { name, .. }, depths) in variants.iter().zip(found) {
        for (paper, depths) in TABLE.iter().zip(depths) {
            let ((of_paper, theirs), (mean, ours)) = (spread(&paper.depths), spread(depths));
            let name = format!("{name}, {}", paper.name);
            rows.push(row(format!("{name}: mean"), of_paper, mean));
            rows.push(row(format!("{name}: deviation/mean"), theirs / of_paper, ours / mean));
        }
    }
    rows
}

fn panel(paper: &Paper, ours: &[f64; CORES]) -> Panel {
    let series = |name: &str, depths: &[f64; CORES]| Series {
        name: name.to_owned(),
        mark: Mark::Bars,
        points: (0..).map(f64::from).zip(depths.iter().copied()).collect(),
    };
    Panel {
        title: paper.name.to_owned(),
        x: axis_of_cores(),
        y: Axis { label: "mean queue depth".to_owned(), scale: Scale::Linear, unit: Unit::Plain },
        series: vec![series("paper", &paper.depths), series("ours", ours)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_paper() -> Depths {
        TABLE.each_ref().map(|paper| paper.depths)
    }

    #[test]
    fn means_and_deviations_are_those_of_the_slides() {
        let slides = [(1.26, 0.78), (3.18, 1.70), (2.43, 1.31), (3.91, 1.86)];
        for (paper, (mean, deviation)) in TABLE.iter().zip(slides) {
            let (ours, spread) = spread(&paper.depths);
            assert!((ours - mean).abs() < 0.01 && (spread - deviation).abs() < 0.005);
        }
    }

    #[test]
    fn depths_at_the_bounds_hold_and_beyond_any_one_they_do_not() {
        let bounds: Bounds = criteria::bounds("OCT-qd");
        assert!(bounds.hold(&of_paper()));
        for row in 0..TABLE.len() {
            for (factor, holds) in [(1.249, true), (1.251, false), (0.751, true), (0.749, false)] {
                let mut depths = of_paper();
                depths[row].iter_mut().for_each(|depth| *depth *= factor);
                assert_eq!(bounds.hold(&depths), holds, "row {row}, {factor}");
            }
            // Moves each depth from the mean, so that deviation over mean grows by `by`.
            let moved = |by: f64| {
                let mut depths = of_paper();
                let (mean, deviation) = spread(&depths[row]);
                let factor = 1.0 + by * mean / deviation;
                depths[row].iter_mut().for_each(|depth| *depth = mean + (*depth - mean) * factor);
                bounds.hold(&depths)
            };
            assert_eq!([-0.151, -0.149, 0.149, 0.151].map(moved), [false, true, true, false]);
        }
    }

    #[test]
    fn the_bounds_are_those_of_the_file() {
        let mut depths = of_paper();
        depths[0].iter_mut().for_each(|depth| *depth *= 1.1);
        depths[1] = [5.6, 5.8, 1.8, 1.9, 1.9, 2.0];
        assert!(criteria::bounds::<Bounds>("OCT-qd").hold(&depths));
        for (from, to) in [
            ("mean_error_max = 0.25", "mean_error_max = 0.09"),
            ("deviation_error_max = 0.15", "deviation_error_max = 0.05"),
        ] {
            assert!(!criteria::changed::<Bounds>("OCT-qd", from, to).hold(&depths), "{to}");
        }
    }
}

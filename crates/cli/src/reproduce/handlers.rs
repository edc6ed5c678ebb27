//! MoKE-1d: reads keep their latency as long as enough request handlers are free.

use super::criteria;
use super::finding::{Finding, Row};
use super::moke::{self, OPERATIONS, PAIRS};
use super::run::Run;
use crate::number::grouped;
use crate::output::Failure;
use crate::plot::{Axis, Mark, Panel, Scale, Series, Unit};
use node::Profile;
use node::profile::Handlers;
use serde::Deserialize;
use workload::{Kind, Operation};

const HANDLERS: [Handlers; 3] = [Handlers::Count(1), Handlers::Count(2), Handlers::Unlimited];

const QUEUE_DEPTHS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bounds {
    criterion: String,
    sustained_max: f64,
    suffering_min: f64,
    deep_ratio_min: f64,
}

/// Mean latencies in nanoseconds at [`QUEUE_DEPTHS`].
type Means = [f64; QUEUE_DEPTHS.len()];

/// The same for each of [`HANDLERS`].
#[derive(Clone, Copy, Debug)]
struct Latencies {
    one: Means,
    two: Means,
    unlimited: Means,
}

pub(super) fn run(run: Run) -> Result<Finding, Failure> {
    let bounds: Bounds = criteria::bounds("MoKE-1d");
    let [one, two, unlimited] = if run.is_control { [Handlers::Unlimited; 3] } else { HANDLERS };
    let latencies = Latencies {
        one: measure(one, run)?,
        two: measure(two, run)?,
        unlimited: measure(unlimited, run)?,
    };
    let profile = moke::profile()?;
    Ok(Finding {
        setup: setup(&profile, run.is_control),
        assumptions: moke::assumptions(&profile, &ASSUMED, &OWN_ASSUMPTIONS),
        rows: rows(&latencies),
        holds: bounds.holds(&latencies),
        beside: None,
        criterion: bounds.criterion,
        panels: vec![panel(&latencies)],
    })
}

fn measure(handlers: Handlers, run: Run) -> Result<Means, Failure> {
    let mut profile = moke::profile()?;
    profile.firmware.handlers = handlers;
    let mut rig = moke::rig(&profile, run)?;
    rig.fill(&moke::plan(Operation::Retrieve, 1))?;
    let mut means = [0.0; QUEUE_DEPTHS.len()];
    for (mean, depth) in means.iter_mut().zip(QUEUE_DEPTHS) {
        let measured = moke::measure(&mut rig, &moke::plan(Operation::Retrieve, depth))?;
        *mean = moke::mean_ns(&measured, Kind::Retrieve);
    }
    Ok(means)
}

impl Bounds {
    fn holds(&self, latencies: &Latencies) -> bool {
        let Latencies { one, two, unlimited } = latencies;
        above(one, unlimited, 16).abs() <= self.sustained_max
            && above(two, unlimited, 32).abs() <= self.sustained_max
            && above(one, unlimited, 32) >= self.suffering_min
            && deep_ratio(one) >= self.deep_ratio_min
    }
}

/// Returns the relative excess of `latencies` over `others` at queue depth `depth`.
fn above(latencies: &Means, others: &Means, depth: u32) -> f64 {
    at(latencies, depth) / at(others, depth) - 1.0
}

fn deep_ratio(latencies: &Means) -> f64 {
    at(latencies, 64) / at(latencies, 1)
}

/// Returns the element of `latencies` for queue depth `depth`.
fn at(latencies: &Means, depth: u32) -> f64 {
    let index = QUEUE_DEPTHS.iter().position(|&known| known == depth);
    latencies[index.expect("the criterion is about depths that are measured")]
}

const ASSUMED: [&str; 5] = [
    "firmware.handlers",
    "nand.channel_mb_per_s",
    "nand.model",
    "link.mb_per_s",
    "link.transfer_us",
];

const OWN_ASSUMPTIONS: [&str; 3] = [
    "a request manager of the paper is a handler, held for T_read; the device of the paper has \
     one, and two stand for a drive with more of them",
    "with two handlers or more, it is the link that retrieves wait for at queue depth 64, where \
     unlimited handlers too take more than twice what one retrieve takes: the criterion's last \
     part alone would not tell them apart",
    "the paper gives no numbers for this figure: flat to depth 16, suffering at very high depth",
];

fn setup(profile: &Profile, is_control: bool) -> String {
    let load = format!(
        "{} pairs stored, then {} random retrieves at each queue depth",
        grouped(PAIRS),
        grouped(OPERATIONS)
    );
    let setup = moke::setup(profile, &load);
    if is_control { setup + "; control: handlers are unlimited everywhere" } else { setup }
}

fn named(latencies: &Latencies) -> [(&'static str, &Means); 3] {
    let Latencies { one, two, unlimited } = latencies;
    [("one handler", one), ("two handlers", two), ("unlimited handlers", unlimited)]
}

fn rows(latencies: &Latencies) -> Vec<Row> {
    let of_handlers = named(latencies).into_iter().flat_map(|(name, means)| {
        QUEUE_DEPTHS.iter().zip(means).map(move |(depth, mean)| Row {
            label: format!("{name}, queue depth {depth}"),
            paper: None,
            ours: mean / 1e3,
            unit: "us",
        })
    });
    of_handlers.chain(compared(latencies)).collect()
}

/// Returns the values that the criterion compares.
fn compared(latencies: &Latencies) -> [Row; 5] {
    let Latencies { one, two, unlimited } = latencies;
    let row = |label: &str, ours, unit| Row { label: label.to_owned(), paper: None, ours, unit };
    let share =
        |label, latencies, depth| row(label, above(latencies, unlimited, depth) * 100.0, "%");
    [
        share("depth 16: one handler above unlimited", one, 16),
        share("depth 32: two handlers above unlimited", two, 32),
        share("depth 32: one handler above unlimited", one, 32),
        row("one handler: depth 64 over depth 1", deep_ratio(one), "times"),
        row("unlimited handlers: depth 64 over depth 1", deep_ratio(unlimited), "times"),
    ]
}

fn panel(latencies: &Latencies) -> Panel {
    let series = named(latencies).into_iter().map(|(name, means)| Series {
        name: name.to_owned(),
        mark: Mark::Line,
        points: QUEUE_DEPTHS
            .iter()
            .zip(means)
            .map(|(&depth, &mean)| (depth.into(), mean))
            .collect(),
    });
    Panel {
        title: String::new(),
        x: Axis { label: "queue depth".to_owned(), scale: Scale::Log2, unit: Unit::Plain },
        y: Axis {
            label: "mean latency of a retrieve".to_owned(),
            scale: Scale::Linear,
            unit: Unit::Nanos,
        },
        series: series.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bounds with exact quotients.
    const BOUNDS: Bounds = Bounds {
        criterion: String::new(),
        sustained_max: 0.125,
        suffering_min: 0.25,
        deep_ratio_min: 2.0,
    };

    /// All values at the bounds. Depths are 1, 2, 4, 8, 16, 32, 64.
    const AT: Latencies = Latencies {
        one: [64.0, 64.0, 64.0, 64.0, 72.0, 80.0, 128.0],
        two: [64.0, 64.0, 64.0, 64.0, 64.0, 72.0, 90.0],
        unlimited: [64.0; 7],
    };

    #[test]
    fn latencies_at_the_bounds_hold_and_beyond_any_one_they_do_not() {
        assert!(BOUNDS.holds(&AT));
        let changed = |change: fn(&mut Latencies)| {
            let mut latencies = AT;
            change(&mut latencies);
            BOUNDS.holds(&latencies)
        };
        assert!(changed(|latencies| latencies.one[4] = 56.0), "as far below");
        assert!(!changed(|latencies| latencies.one[4] = 72.1), "one handler at 16");
        assert!(!changed(|latencies| latencies.one[4] = 55.9), "one handler at 16, below");
        assert!(!changed(|latencies| latencies.two[5] = 72.1), "two handlers at 32");
        assert!(!changed(|latencies| latencies.one[5] = 79.9), "one handler at 32");
        assert!(!changed(|latencies| latencies.one[6] = 127.9), "one handler at 64");
        assert!(!changed(|latencies| latencies.one[0] = 64.1), "one handler at 1");
        assert!(changed(|latencies| latencies.two[6] = 999.0), "which nothing is said of");
    }

    #[test]
    fn the_bounds_are_those_of_the_file() {
        let mut latencies = AT;
        (latencies.one[4], latencies.two[5]) = (67.0, 67.0);
        assert!(criteria::bounds::<Bounds>("MoKE-1d").holds(&latencies));
        for (from, to) in [
            ("sustained_max = 0.10", "sustained_max = 0.01"),
            ("suffering_min = 0.15", "suffering_min = 0.35"),
            ("deep_ratio_min = 2.0", "deep_ratio_min = 2.1"),
        ] {
            assert!(!criteria::changed::<Bounds>("MoKE-1d", from, to).holds(&latencies), "{to}");
        }
    }
}

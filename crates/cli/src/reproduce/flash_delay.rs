//! MoKE-1b and MoKE-1c: the flash adds exactly its timing to the latency of an operation.

use super::criteria;
use super::finding::{Finding, Row};
use super::moke::{self, OPERATIONS, PAIRS, VALUE_BYTES};
use super::run::Run;
use crate::number::{counted, grouped};
use crate::output::Failure;
use crate::plot::{Axis, Mark, Panel, Scale, Series, Unit};
use base::Nanos;
use node::Profile;
use node::profile::{Levels, Nand};
use serde::Deserialize;
use workload::{Kind, Operation};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bounds {
    criterion: String,
    error_max_ns: f64,
}

/// One of the two experiments.
struct Subject {
    id: &'static str,
    operation: Operation,
    kind: Kind,
    /// The paper's mean without flash delays.
    paper_ns: f64,
    /// Time that the flash adds.
    added: fn(&Nand) -> Nanos,
    /// The same in words.
    formula: &'static str,
    load: &'static str,
    /// Keys of the profile that matter and that the paper does not state.
    assumed: &'static [&'static str],
}

/// Mean latencies in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Means {
    without: f64,
    with: f64,
}

/// MoKE-1b.
pub(super) fn run_retrieves(run: Run) -> Result<Finding, Failure> {
    let subject = Subject {
        id: "MoKE-1b",
        operation: Operation::Retrieve,
        kind: Kind::Retrieve,
        paper_ns: 29_500.0,
        added: |nand| nand.levels.read[0] + transfer(nand, VALUE_BYTES),
        formula: "read and the value's transfer",
        load: "random retrieves",
        assumed: &["nand.channel_mb_per_s", "link.mb_per_s", "link.transfer_us"],
    };
    subject.run(run)
}

/// MoKE-1c.
pub(super) fn run_stores(run: Run) -> Result<Finding, Failure> {
    let subject = Subject {
        id: "MoKE-1c",
        operation: Operation::Store,
        kind: Kind::Store,
        paper_ns: 28_700.0,
        added: |nand| transfer(nand, nand.page_bytes) + nand.levels.program[0],
        formula: "program and the page's transfer",
        load: "stores of new keys in random order",
        assumed: &["nand.channel_mb_per_s", "link.mb_per_s", "link.transfer_us", "log.ack"],
    };
    subject.run(run)
}

/// Returns the time of `bytes` on a channel.
fn transfer(nand: &Nand, bytes: u32) -> Nanos {
    Nanos::for_bytes(bytes.into(), nand.channel_bytes_per_second)
}

const OWN_ASSUMPTIONS: [&str; 2] = [
    "the paper's time without delays includes the host's driver, API and benchmark, and the \
     emulator's own code; Kvasir's is the device alone, so the two are printed, not compared",
    "the paper shows the latency with delays in a plot only",
];

impl Subject {
    fn run(&self, run: Run) -> Result<Finding, Failure> {
        let bounds: Bounds = criteria::bounds(self.id);
        let profile = moke::profile()?;
        let without = self.measure(&without_delays(&profile), run)?;
        let delayed = if run.is_control { &without_delays(&profile) } else { &profile };
        let with = self.measure(delayed, run)?;
        let means = Means { without, with };
        let added_ns = moke::nanos((self.added)(&profile.nand));
        Ok(Finding {
            setup: self.setup(&profile, run.is_control),
            assumptions: moke::assumptions(&profile, self.assumed, &OWN_ASSUMPTIONS),
            rows: self.rows(means, added_ns),
            holds: bounds.holds(means, added_ns),
            beside: None,
            criterion: bounds.criterion,
            panels: vec![self.panel(means)],
        })
    }

    /// Returns the mean latency in nanoseconds of one operation at a time.
    fn measure(&self, profile: &Profile, run: Run) -> Result<f64, Failure> {
        let mut rig = moke::rig(profile, run)?;
        let plan = moke::plan(self.operation, 1);
        if plan.needs_fill() {
            rig.fill(&plan)?;
        }
        Ok(moke::mean_ns(&moke::measure(&mut rig, &plan)?, self.kind))
    }

    fn setup(&self, profile: &Profile, is_control: bool) -> String {
        let pairs = match self.operation {
            Operation::Store => "an empty device".to_owned(),
            _ => format!("{} stored", counted(PAIRS, "pair")),
        };
        let load = format!("{pairs}, then {} {}, one at a time", grouped(OPERATIONS), self.load);
        let setup =
            moke::setup(profile, &load) + "; without delays: the array and channels take no time";
        if is_control { setup + "; control: flash delays are off in both runs" } else { setup }
    }

    fn rows(&self, means: Means, added_ns: f64) -> Vec<Row> {
        let row = |label: &str, paper: Option<f64>, ours: f64| Row {
            label: format!("{}{label}", self.kind.name()),
            paper: paper.map(|nanos| nanos / 1e3),
            ours: ours / 1e3,
            unit: "us",
        };
        vec![
            row(" without flash delays", Some(self.paper_ns), means.without),
            row(" with flash delays", None, means.with),
            row(": the difference", None, means.with - means.without),
            row(&format!(": {}", self.formula), None, added_ns),
        ]
    }

    fn panel(&self, means: Means) -> Panel {
        let names = ["without flash delays", "with flash delays"].map(str::to_owned);
        let series = |name: &str, mark, points| Series { name: name.to_owned(), mark, points };
        Panel {
            title: String::new(),
            x: Axis {
                label: String::new(),
                scale: Scale::Categories(names.into()),
                unit: Unit::Plain,
            },
            y: Axis {
                label: format!("mean latency of a {}", self.kind.name()),
                scale: Scale::Linear,
                unit: Unit::Nanos,
            },
            series: vec![
                series("ours", Mark::Bars, vec![(0.0, means.without), (1.0, means.with)]),
                series("paper, host included", Mark::Bars, vec![(0.0, self.paper_ns)]),
            ],
        }
    }
}

impl Bounds {
    fn holds(&self, means: Means, added_ns: f64) -> bool {
        (means.with - means.without - added_ns).abs() <= self.error_max_ns
    }
}

/// Returns `profile` with flash that takes no time.
fn without_delays(profile: &Profile) -> Profile {
    let mut profile = profile.clone();
    let nand = &mut profile.nand;
    nand.levels = Levels::uniform(Nanos::ZERO, Nanos::ZERO);
    nand.erase = Nanos::ZERO;
    nand.channel_bytes_per_second = 0;
    profile
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_difference_is_right_within_the_bound_in_either_direction() {
        let bounds = Bounds { criterion: String::new(), error_max_ns: 0.5 };
        for (with, holds) in [
            (150.0, true),
            (150.5, true),
            (149.5, true),
            (150.625, false),
            (149.375, false),
            (100.0, false),
        ] {
            let means = Means { without: 100.0, with };
            assert_eq!(bounds.holds(means, 50.0), holds, "{with}");
        }
    }

    #[test]
    fn the_bounds_are_those_of_the_file() {
        for id in ["MoKE-1b", "MoKE-1c"] {
            let means = Means { without: 100.0, with: 150.25 };
            assert!(criteria::bounds::<Bounds>(id).holds(means, 50.0));
            let (from, to) = ("error_max_ns = 0.5", "error_max_ns = 0.125");
            assert!(!criteria::changed::<Bounds>(id, from, to).holds(means, 50.0));
        }
    }
}

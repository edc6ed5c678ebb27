//! MoKE-idx: measures the CPU time of the index on this machine, and checks that its four cost
//! settings move the latency of each kind of request by exactly their value.

use super::finding::{Finding, Row};
use super::index_time::{self, Cost, IndexCosts};
use super::moke::{self, KEY_BYTES, PAIRS};
use super::run::Run;
use super::{criteria, optimisation, processor};
use crate::number::grouped;
use crate::output::Failure;
use crate::plot::{Axis, Mark, Panel, Scale, Series, Unit};
use base::Nanos;
use node::{INDEXES, Profile};
use serde::Deserialize;
use workload::{Kind, Operation, Plan, Until};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bounds {
    criterion: String,
    shift_error_max_ns: f64,
}

/// The index of the criterion.
const JUDGED: &str = "hash";

/// MoKE, section II.B, in nanoseconds: without the tail and with it.
const PAPER_READ: Cost = Cost { mean: 4_200.0, p99: 4_800.0 };

/// See [`PAPER_READ`].
const PAPER_WRITE: Cost = Cost { mean: 4_400.0, p99: 16_200.0 };

/// One of the four settings.
struct Setting {
    name: &'static str,
    operation: Operation,
    kind: Kind,
    /// Its value; all four differ, so that a mix-up shows.
    cost: Nanos,
}

const SETTINGS: [Setting; 4] = [
    Setting {
        name: "T_read",
        operation: Operation::Retrieve,
        kind: Kind::Retrieve,
        cost: Nanos(3_001),
    },
    Setting { name: "T_write", operation: Operation::Store, kind: Kind::Store, cost: Nanos(7_013) },
    Setting {
        name: "T_delete",
        operation: Operation::Delete,
        kind: Kind::Delete,
        cost: Nanos(12_107),
    },
    Setting {
        name: "T_exist",
        operation: Operation::Exist,
        kind: Kind::Exist,
        cost: Nanos(20_011),
    },
];

/// Pairs of the four latency measurements: the latency of one operation at a time does not depend
/// on them.
const SHIFT_PAIRS: u64 = 10_000;

/// Result of the experiment.
struct Found {
    indexes: Vec<(&'static str, IndexCosts)>,
    timer: Cost,
    /// Change of the latency by each of [`SETTINGS`], in nanoseconds.
    shifts: [f64; SETTINGS.len()],
}

pub(super) fn run(run: Run) -> Result<Finding, Failure> {
    let bounds: Bounds = criteria::bounds("MoKE-idx");
    let measure = |&(name, make): &(&'static str, _)| {
        Ok((name, index_time::measure(make, KEY_BYTES, PAIRS, run.progress)?))
    };
    let found = Found {
        indexes: INDEXES.iter().map(measure).collect::<Result<_, Failure>>()?,
        timer: index_time::of_timer(),
        shifts: shifts(run)?,
    };
    let judged = found.indexes.iter().find(|(name, _)| *name == JUDGED);
    let (_, judged) = judged.expect("the index of the criterion is one of the indexes");
    Ok(Finding {
        setup: setup(run.is_control),
        assumptions: assumptions()?,
        rows: rows(&found),
        holds: bounds.holds(judged, found.shifts),
        beside: None,
        criterion: bounds.criterion,
        panels: panels(&found.indexes),
    })
}

/// Measures by how much the settings move the latencies.
fn shifts(run: Run) -> Result<[f64; SETTINGS.len()], Failure> {
    let free = with_costs([Nanos::ZERO; SETTINGS.len()])?;
    let set = if run.is_control {
        free.clone()
    } else {
        with_costs([0, 1, 2, 3].map(|index: usize| SETTINGS[index].cost))?
    };
    let mut shifts = [0.0; SETTINGS.len()];
    for (shift, setting) in shifts.iter_mut().zip(&SETTINGS) {
        *shift = setting.latency_ns(&set, run)? - setting.latency_ns(&free, run)?;
    }
    Ok(shifts)
}

/// Returns the paper's device with these costs, in the order of [`SETTINGS`].
fn with_costs([read, write, delete, exist]: [Nanos; SETTINGS.len()]) -> Result<Profile, Failure> {
    let mut profile = moke::profile()?;
    let firmware = &mut profile.firmware;
    (firmware.t_read, firmware.t_write) = (read, write);
    (firmware.t_delete, firmware.t_exist) = (delete, exist);
    Ok(profile)
}

impl Setting {
    /// Returns the mean latency of the setting's operation on a fresh device, one at a time.
    fn latency_ns(&self, profile: &Profile, run: Run) -> Result<f64, Failure> {
        let until = Until::Operations(SHIFT_PAIRS);
        let plan = Plan { keys: SHIFT_PAIRS, until, ..moke::plan(self.operation, 1) };
        let mut rig = moke::rig(profile, run)?;
        if plan.needs_fill() {
            rig.fill(&plan)?;
        }
        Ok(moke::mean_ns(&moke::measure(&mut rig, &plan)?, self.kind))
    }
}

impl Bounds {
    fn holds(&self, index: &IndexCosts, shifts: [f64; SETTINGS.len()]) -> bool {
        let is_shifted = |(setting, shift): (&Setting, f64)| {
            (shift - moke::nanos(setting.cost)).abs() <= self.shift_error_max_ns
        };
        index.read.is_within(PAPER_READ)
            && index.insert.is_within(PAPER_WRITE)
            && index.overwrite.is_within(PAPER_WRITE)
            && SETTINGS.iter().zip(shifts).all(is_shifted)
    }
}

impl Cost {
    fn is_within(self, bound: Self) -> bool {
        self.mean <= bound.mean && self.p99 <= bound.p99
    }
}

fn setup(is_control: bool) -> String {
    let applied = if is_control { "; control: the four costs stay 0" } else { "" };
    format!(
        "each index alone, one thread on {}: {} keys of {KEY_BYTES} B in random order, each \
         operation timed, hashing of the key included; then profile moke with the four costs set, \
         and with all four 0: {} operations of each kind, one at a time, in virtual time{applied}",
        processor::name().unwrap_or_else(|| "this machine".to_owned()),
        grouped(PAIRS),
        grouped(SHIFT_PAIRS),
    )
}

const OWN_ASSUMPTIONS: [&str; 5] = [
    "the paper gives means, without and with the 99th percentile's tail; ours are the mean of all \
     operations beside the former and the 99th percentile beside the latter",
    "a read is a lookup, a write of a new key a lookup and an insert, an overwrite a lookup and a \
     replacement; the key is in the processor's cache, as a command brings it along",
    "times are the wall's: work of others on this machine that interrupts an operation is in them, \
     and so is the timer, whose own time is shown and not taken off",
    "the paper's processor is another, an Intel Xeon Silver 4208",
    "the criterion is on the index hash, others are shown for comparison",
];

fn assumptions() -> Result<Vec<String>, Failure> {
    let profile = moke::profile()?;
    let mut assumptions = moke::assumptions(&profile, &["index.kind"], &OWN_ASSUMPTIONS);
    assumptions.extend(optimisation::note());
    Ok(assumptions)
}

fn rows(found: &Found) -> Vec<Row> {
    let row = |label: String, paper: Option<f64>, ours: f64| Row {
        label,
        paper: paper.map(|nanos| nanos / 1e3),
        ours: ours / 1e3,
        unit: "us",
    };
    let mut rows = Vec::new();
    for (name, costs) in &found.indexes {
        for (operation, cost, paper) in costs.named() {
            rows.push(row(format!("{name}: {operation}, mean"), Some(paper.mean), cost.mean));
            let label = format!("{name}: {operation}, 99th percentile");
            rows.push(row(label, Some(paper.p99), cost.p99));
        }
    }
    rows.push(row("the timer, in each of these".to_owned(), None, found.timer.mean));
    for (setting, shift) in SETTINGS.iter().zip(found.shifts) {
        let Setting { name, kind, cost, .. } = setting;
        let label = format!("{}, moved by {name} of {} ns", kind.name(), grouped(cost.0));
        rows.push(row(label, None, shift));
    }
    rows
}

impl IndexCosts {
    /// Returns the operations, each with the paper's figure.
    fn named(&self) -> [(&'static str, Cost, Cost); 3] {
        [
            ("read", self.read, PAPER_READ),
            ("write of a new key", self.insert, PAPER_WRITE),
            ("overwrite", self.overwrite, PAPER_WRITE),
        ]
    }
}

fn panels(indexes: &[(&'static str, IndexCosts)]) -> Vec<Panel> {
    let mean = |cost: Cost| cost.mean;
    let p99 = |cost: Cost| cost.p99;
    vec![panel("mean", indexes, mean), panel("99th percentile", indexes, p99)]
}

fn panel(title: &str, indexes: &[(&'static str, IndexCosts)], of: fn(Cost) -> f64) -> Panel {
    let operations = indexes[0].1.named();
    let at = |index: u8| f64::from(index);
    let mut series: Vec<Series> = indexes
        .iter()
        .map(|(name, costs)| Series {
            name: (*name).to_owned(),
            mark: Mark::Bars,
            points: (0..).map(at).zip(costs.named().map(|(_, cost, _)| of(cost))).collect(),
        })
        .collect();
    series.push(Series {
        name: "paper".to_owned(),
        mark: Mark::Bars,
        points: (0..).map(at).zip(operations.map(|(_, _, paper)| of(paper))).collect(),
    });
    let names = operations.map(|(name, _, _)| name.to_owned());
    Panel {
        title: title.to_owned(),
        x: Axis { label: String::new(), scale: Scale::Categories(names.into()), unit: Unit::Plain },
        y: Axis {
            label: "time of an operation".to_owned(),
            scale: Scale::Linear,
            unit: Unit::Nanos,
        },
        series,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Exactly at the bounds.
    const AT: IndexCosts =
        IndexCosts { read: PAPER_READ, insert: PAPER_WRITE, overwrite: PAPER_WRITE };

    const EXACT: [f64; 4] = [3_001.0, 7_013.0, 12_107.0, 20_011.0];

    const BOUNDS: Bounds = Bounds { criterion: String::new(), shift_error_max_ns: 0.5 };

    #[test]
    fn the_papers_times_hold_and_each_that_is_longer_does_not() {
        assert!(BOUNDS.holds(&AT, EXACT));
        let longer = |change: fn(&mut IndexCosts) -> &mut f64, by: f64| {
            let mut costs = AT;
            *change(&mut costs) += by;
            BOUNDS.holds(&costs, EXACT)
        };
        let changes: [fn(&mut IndexCosts) -> &mut f64; 6] = [
            |costs| &mut costs.read.mean,
            |costs| &mut costs.read.p99,
            |costs| &mut costs.insert.mean,
            |costs| &mut costs.insert.p99,
            |costs| &mut costs.overwrite.mean,
            |costs| &mut costs.overwrite.p99,
        ];
        for change in changes {
            assert!(longer(change, -1.0) && !longer(change, 1.0));
        }
    }

    #[test]
    fn each_latency_must_move_by_its_own_cost() {
        for index in 0..SETTINGS.len() {
            for (by, holds) in [(0.5, true), (-0.5, true), (0.625, false), (-0.625, false)] {
                let mut shifts = EXACT;
                shifts[index] += by;
                assert_eq!(BOUNDS.holds(&AT, shifts), holds, "{index} by {by}");
            }
        }
        let [read, write, delete, exist] = EXACT;
        assert!(!BOUNDS.holds(&AT, [write, read, delete, exist]), "by another's");
        assert!(!BOUNDS.holds(&AT, [0.0; 4]));
    }

    #[test]
    fn the_bounds_are_those_of_the_file() {
        let mut shifts = EXACT;
        shifts[2] += 0.25;
        assert!(criteria::bounds::<Bounds>("MoKE-idx").holds(&AT, shifts));
        let (from, to) = ("shift_error_max_ns = 0.5", "shift_error_max_ns = 0.125");
        assert!(!criteria::changed::<Bounds>("MoKE-idx", from, to).holds(&AT, shifts));
    }
}

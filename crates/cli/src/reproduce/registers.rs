//! FEMU-3: with two registers a plane senses a page while another is on the channel.

use super::criteria;
use super::finding::{Finding, Row};
use super::open_channel::{self, Direction, Drive, Io, nanos};
use super::run::Run;
use crate::output::Failure;
use crate::plot::{Axis, Mark, Panel, Scale, Series, Unit};
use base::limits::BLOCK_BYTES;
use node::Profile;
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bounds {
    criterion: String,
    error_max_ns: f64,
}

/// Two pages of one level, by their numbers in a block of the paper's page map.
struct Pair {
    name: &'static str,
    level: usize,
    pages: [u64; 2],
}

const PAIRS: [Pair; 2] = [
    Pair { name: "lower", level: 0, pages: [0, 1] },
    Pair { name: "upper", level: 1, pages: [13, 14] },
];

/// End times of two reads, in nanoseconds.
type Ends = [f64; 2];

/// Both reads of a pair of one level.
#[derive(Clone, Copy, Debug)]
struct Reads {
    level: &'static str,
    single: Ends,
    double: Ends,
    /// The gain of the second read that the criterion demands.
    formula: f64,
}

pub(super) fn run(run: Run) -> Result<Finding, Failure> {
    let bounds: Bounds = criteria::bounds("FEMU-3");
    let profile = open_channel::profile(1, 1)?;
    let single = measure(&profile, 1)?;
    let double = measure(&profile, if run.is_control { 1 } else { 2 })?;
    let transfer = nanos(open_channel::transfer(&profile));
    let reads = [0, 1].map(|pair| {
        let Pair { name, level, .. } = PAIRS[pair];
        let formula = nanos(profile.nand.levels.read[level]).min(transfer);
        Reads { level: name, single: single[pair], double: double[pair], formula }
    });
    Ok(Finding {
        setup: setup(&profile, run.is_control),
        assumptions: open_channel::assumptions(&profile, &[], &OWN_ASSUMPTIONS),
        rows: reads.iter().flat_map(rows).collect(),
        holds: bounds.holds(&reads),
        beside: None,
        criterion: bounds.criterion,
        panels: vec![panel(&reads)],
    })
}

/// Returns the end times of each of [`PAIRS`] on a drive with this many registers.
fn measure(profile: &Profile, registers: u32) -> Result<[Ends; 2], Failure> {
    let mut profile = profile.clone();
    profile.nand.registers = registers;
    let mut drive = Drive::new(&profile)?;
    let blocks_per_page = u64::from(profile.nand.page_bytes / BLOCK_BYTES);
    let mut ends = [[0.0; 2]; 2];
    for (ends, pair) in ends.iter_mut().zip(PAIRS) {
        let read = |page| {
            let first = page * blocks_per_page;
            Io { direction: Direction::Read, first, blocks: 1 }
        };
        let latencies = drive.together(&pair.pages.map(read))?;
        *ends = [nanos(latencies[0]), nanos(latencies[1])];
    }
    Ok(ends)
}

impl Reads {
    /// Returns how much earlier the second read ends with two registers.
    fn gain(&self) -> f64 {
        self.single[1] - self.double[1]
    }
}

impl Bounds {
    fn holds(&self, reads: &[Reads]) -> bool {
        reads.iter().all(|reads| (reads.gain() - reads.formula).abs() <= self.error_max_ns)
    }
}

const OWN_ASSUMPTIONS: [&str; 2] = [
    "copying a page from one register to the other takes no time: the paper calls it quick and \
     gives no number",
    "figure 3 of the paper is a drawing without numbers",
];

fn setup(profile: &Profile, is_control: bool) -> String {
    let setup = open_channel::setup(profile)
        + "; 1 channel with 1 plane; two reads of one block each, of two pages of one level, \
           arrive together";
    if is_control { setup + "; control: one register in both runs" } else { setup }
}

fn rows(reads: &Reads) -> Vec<Row> {
    let Reads { level, single, double, formula } = reads;
    let row = |label: &str, ours: f64| Row {
        label: format!("{level} pages: {label}"),
        paper: None,
        ours: ours / 1e3,
        unit: "us",
    };
    vec![
        row("first read, one register", single[0]),
        row("second read, one register", single[1]),
        row("first read, two registers", double[0]),
        row("second read, two registers", double[1]),
        row("the second read gains", reads.gain()),
        row("shorter of sense and transfer", *formula),
    ]
}

fn panel(reads: &[Reads]) -> Panel {
    let names = reads.iter().map(|reads| format!("{} pages", reads.level));
    let series = |name: &str, end: fn(&Reads) -> f64| Series {
        name: name.to_owned(),
        mark: Mark::Bars,
        points: [0.0, 1.0].into_iter().zip(reads.iter().map(end)).collect(),
    };
    Panel {
        title: String::new(),
        x: Axis {
            label: String::new(),
            scale: Scale::Categories(names.collect()),
            unit: Unit::Plain,
        },
        y: Axis {
            label: "end of the second read".to_owned(),
            scale: Scale::Linear,
            unit: Unit::Nanos,
        },
        series: vec![
            series("one register", |reads| reads.single[1]),
            series("two registers", |reads| reads.double[1]),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads of both levels gain equally; 48 and 52 are right.
    fn reads(lower: f64, upper: f64) -> [Reads; 2] {
        let ends = |gain| ([100.0, 200.0], [100.0, 200.0 - gain]);
        let of = |level, formula, (single, double)| Reads { level, single, double, formula };
        [of("lower", 48.0, ends(lower)), of("upper", 52.0, ends(upper))]
    }

    #[test]
    fn both_gains_are_right_within_the_bound_in_either_direction() {
        let bounds = Bounds { criterion: String::new(), error_max_ns: 0.5 };
        for (upper, holds) in [
            (52.0, true),
            (52.5, true),
            (51.5, true),
            (52.625, false),
            (51.375, false),
            (0.0, false),
        ] {
            assert_eq!(bounds.holds(&reads(48.0, upper)), holds, "{upper}");
            assert_eq!(bounds.holds(&reads(upper - 4.0, 52.0)), holds, "{upper} - 4");
        }
    }

    #[test]
    fn the_bound_is_that_of_the_file() {
        assert!(criteria::bounds::<Bounds>("FEMU-3").holds(&reads(48.0, 52.25)));
        let (from, to) = ("error_max_ns = 0.5", "error_max_ns = 0.125");
        assert!(!criteria::changed::<Bounds>("FEMU-3", from, to).holds(&reads(48.0, 52.25)));
    }
}

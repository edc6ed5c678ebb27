//! FEMU-5 and FEMU-5b: errors of a model with one register and one latency for all pages.

use super::criteria;
use super::filebench::{Host, PERSONALITIES, Personality};
use super::finding::{Finding, Row, Verdict};
use super::open_channel::{self, Drive};
use super::run::Run;
use crate::number::grouped;
use crate::output::Failure;
use crate::plot::{Axis, Mark, Panel, Scale, Series, Unit};
use base::Nanos;
use node::Profile;
use node::profile::{Levels, Model};
use serde::Deserialize;

/// Operations of a mean.
const OPERATIONS: u64 = 20_000;

/// FEMU, section 3.2.3, result 2: "16 IO threads of concurrent reads/writes on 16 planes across 4
/// channels".
const FULL: Size = Size { threads: 16, channels: 4, planes: 4 };

/// FEMU, figure 5b, varies threads and planes; the axis of the figure is not in its text.
const SIZES: [Size; 6] = [
    Size { threads: 1, channels: 1, planes: 1 },
    Size { threads: 1, channels: 4, planes: 4 },
    Size { threads: 4, channels: 1, planes: 4 },
    Size { threads: 4, channels: 4, planes: 4 },
    Size { threads: 16, channels: 1, planes: 4 },
    FULL,
];

/// Number of threads, and size of the drive.
#[derive(Clone, Copy)]
struct Size {
    threads: usize,
    channels: u32,
    /// Planes of each channel.
    planes: u32,
}

/// Workload and drive of a comparison.
struct Case {
    name: String,
    size: Size,
    personality: &'static Personality,
}

/// Mean latencies in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Means {
    stand_in: f64,
    basic: f64,
    /// Mean latency of the basic model if its stages wait and time is not computed ahead.
    waited: f64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bounds {
    criterion: String,
    gap_min: f64,
    gap_max: f64,
    personalities_min: usize,
}

/// A criterion without bounds: it compares figures with each other.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Comparison {
    criterion: String,
}

/// FEMU-5.
pub(super) fn run_personalities(run: Run) -> Result<Finding, Failure> {
    let bounds: Bounds = criteria::bounds("FEMU-5");
    let Comparison { criterion } = criteria::bounds("FEMU-5-ahead");
    let cases: Vec<Case> = PERSONALITIES
        .iter()
        .map(|personality| Case { name: personality.name.to_owned(), size: FULL, personality })
        .collect();
    let means = measure_all(&cases, run)?;
    let profile = open_channel::profile(FULL.channels, FULL.planes)?;
    let mut rows: Vec<Row> =
        cases.iter().zip(&means).flat_map(|(case, means)| case.rows(means)).collect();
    rows.extend(bounds.rows(&means));
    let does = PERSONALITIES.iter().map(|personality| {
        let Personality { name, does, .. } = personality;
        format!("{name}, of workloads/{name}.f of Filebench: {does}")
    });
    Ok(Finding {
        setup: setup(&profile, "16 threads, 4 channels x 4 planes", run.is_control),
        assumptions: assumptions(&profile, &OF_FIGURE_A).into_iter().chain(does).collect(),
        rows,
        holds: bounds.holds(&means),
        beside: Some(Verdict { criterion, holds: means.iter().all(Means::pays_for_ahead) }),
        criterion: bounds.criterion,
        panels: vec![panel(&cases, &means)],
    })
}

/// FEMU-5b.
pub(super) fn run_sizes(run: Run) -> Result<Finding, Failure> {
    let Comparison { criterion } = criteria::bounds("FEMU-5b");
    let varmail = PERSONALITIES.iter().find(|personality| personality.name == "varmail");
    let personality = varmail.expect("varmail is among the six");
    let cases = SIZES.map(|size| {
        let Size { threads, channels, planes } = size;
        Case { name: format!("{threads}T{}P", channels * planes), size, personality }
    });
    let means = measure_all(&cases, run)?;
    let profile = open_channel::profile(FULL.channels, FULL.planes)?;
    let does = format!("varmail, of workloads/varmail.f of Filebench: {}", personality.does);
    let mut rows: Vec<Row> =
        cases.iter().zip(&means).flat_map(|(case, means)| case.rows(means)).collect();
    let papers = [("1T1P: gap", 0.7), ("16T16P: gap", 38.0)];
    for (label, paper) in papers {
        let row = rows.iter_mut().find(|row| row.label == label).expect("this size is measured");
        row.paper = Some(paper);
    }
    Ok(Finding {
        setup: setup(&profile, "varmail with xT threads on yP planes", run.is_control),
        assumptions: assumptions(&profile, &OF_FIGURE_B).into_iter().chain([does]).collect(),
        rows,
        holds: grows(&means),
        beside: None,
        criterion,
        panels: vec![panel(&cases, &means)],
    })
}

fn measure_all(cases: &[Case], run: Run) -> Result<Vec<Means>, Failure> {
    cases.iter().map(|case| case.measure(run.is_control)).collect()
}

impl Case {
    fn measure(&self, is_control: bool) -> Result<Means, Failure> {
        let stand_in = open_channel::profile(self.size.channels, self.size.planes)?;
        let basic = if is_control { stand_in.clone() } else { basic(&stand_in) };
        let mut waited = basic.clone();
        waited.nand.model = Model::Staged;
        Ok(Means {
            stand_in: self.mean_ns(&stand_in)?,
            basic: self.mean_ns(&basic)?,
            waited: self.mean_ns(&waited)?,
        })
    }

    fn mean_ns(&self, profile: &Profile) -> Result<f64, Failure> {
        let mut drive = Drive::new(profile)?.with_flushes(self.personality.flushes);
        let mut host = Host::new(self.personality, self.size.threads, drive.blocks());
        drive.mean_ns(self.size.threads, OPERATIONS, |thread| host.next(thread))
    }

    fn rows(&self, means: &Means) -> [Row; 4] {
        let row = |label: &str, ours, unit| Row {
            label: format!("{}: {label}", self.name),
            paper: None,
            ours,
            unit,
        };
        [
            row("stand-in", means.stand_in / 1e3, "us"),
            row("basic model", means.basic / 1e3, "us"),
            row("gap", means.gap() * 100.0, "%"),
            row("gap, nothing computed ahead", means.gap_of(means.waited) * 100.0, "%"),
        ]
    }
}

/// Returns FEMU's basic model, section 3.2.2, of `stand_in`: one register, one latency for all
/// pages, and time computed ahead.
fn basic(stand_in: &Profile) -> Profile {
    let mut profile = stand_in.clone();
    let nand = &mut profile.nand;
    nand.model = Model::Scalar;
    nand.registers = 1;
    nand.levels = Levels::uniform(mean(&nand.levels.read), mean(&nand.levels.program));
    profile
}

fn mean(times: &[Nanos]) -> Nanos {
    let sum: u64 = times.iter().map(|time| time.0).sum();
    Nanos(sum / times.len() as u64)
}

impl Means {
    /// Returns the relative excess of the basic model over the stand-in.
    fn gap(&self) -> f64 {
        self.gap_of(self.basic)
    }

    /// True if computing ahead causes the difference between the basic model and the stand-in.
    fn pays_for_ahead(&self) -> bool {
        let Self { stand_in, basic, waited } = *self;
        stand_in < basic && (waited - stand_in).abs() < (basic - stand_in).abs()
    }

    /// Returns the relative excess of `mean` over the stand-in's.
    fn gap_of(&self, mean: f64) -> f64 {
        (mean - self.stand_in) / self.stand_in
    }
}

impl Bounds {
    fn holds(&self, means: &[Means]) -> bool {
        self.within(means) >= self.personalities_min
    }

    /// Returns the number of gaps within the paper's range.
    fn within(&self, means: &[Means]) -> usize {
        let range = self.gap_min..=self.gap_max;
        means.iter().filter(|means| range.contains(&means.gap().abs())).count()
    }

    /// Returns the values of the criterion.
    #[expect(clippy::cast_precision_loss, reason = "there are six")]
    fn rows(&self, means: &[Means]) -> [Row; 3] {
        let gaps = || means.iter().map(|means| means.gap().abs() * 100.0);
        let row = |label: &str, paper, ours, unit| Row {
            label: label.to_owned(),
            paper: Some(paper),
            ours,
            unit,
        };
        [
            row("nearest to the stand-in", 12.0, gaps().fold(f64::INFINITY, f64::min), "%"),
            row("farthest from it", 57.0, gaps().fold(0.0, f64::max), "%"),
            row("personalities 12 to 57 % away", 6.0, self.within(means) as f64, "of 6"),
        ]
    }
}

/// True if the last gap is larger than the first.
fn grows(means: &[Means]) -> bool {
    let gap = |means: Option<&Means>| means.map_or(0.0, |means| means.gap().abs());
    gap(means.last()) > gap(means.first())
}

const OF_FIGURE_A: [&str; 2] = [
    "the paper's 12 and 57 % are of its basic model against the drive itself",
    "the paper's advanced model is 0.5 to 38 % away from that drive: not reproducible, since here \
     the advanced model is all there is to compare with",
];

const OF_FIGURE_B: [&str; 2] = [
    "the paper's 0.7 and 38 % are of its advanced model against the drive: what is said to grow \
     here is the gap of the basic model",
    "the paper does not say how planes lie on channels; here there are 4 on each channel but for \
     1T1P",
];

const OWN_ASSUMPTIONS: [&str; 6] = [
    "stands in for the drive, which is no longer sold: the staged model with two registers and the \
     page map",
    "the basic model: time computed ahead (model = \"scalar\"), one register, for each page the \
     mean of the levels, the same transfer",
    "threads ask again as soon as they are answered: rate limits and pauses of Filebench are left \
     out, as are its caches and what moves no data; a command has at most 64 blocks of 4 KiB \
     (NVM_MAX_VLBA of Linux)",
    "files lie one behind the other, start at a block, and keep their size; any is taken next",
    "gap: mean latency of the basic model less that of the stand-in, over that of the stand-in; of \
     all operations, reads and writes",
    "nothing computed ahead: the basic model with model = \"staged\". What is left of the gap then \
     is due to one register and one latency; the rest is due to a channel that is booked for data \
     before they are sensed, so that others stand behind a channel that is idle",
];

fn assumptions(profile: &Profile, of_figure: &[&str]) -> Vec<String> {
    let own: Vec<&str> = OWN_ASSUMPTIONS.iter().chain(of_figure).copied().collect();
    open_channel::assumptions(profile, &[], &own)
}

fn setup(profile: &Profile, size: &str, is_control: bool) -> String {
    let setup = format!(
        "{}; {size}; the whole space written once, then {} operations, one at a time from each \
         thread",
        open_channel::setup(profile),
        grouped(OPERATIONS)
    );
    if is_control { setup + "; control: the basic model is the stand-in" } else { setup }
}

fn panel(cases: &[Case], means: &[Means]) -> Panel {
    let series = |name: &str, mean: fn(&Means) -> f64| Series {
        name: name.to_owned(),
        mark: Mark::Bars,
        points: (0..).map(f64::from).zip(means.iter().map(mean)).collect(),
    };
    Panel {
        title: String::new(),
        x: Axis {
            label: String::new(),
            scale: Scale::Categories(cases.iter().map(|case| case.name.clone()).collect()),
            unit: Unit::Plain,
        },
        y: Axis {
            label: "mean latency of an operation".to_owned(),
            scale: Scale::Linear,
            unit: Unit::Nanos,
        },
        series: vec![
            series("stand-in", |means| means.stand_in),
            series("basic model", |means| means.basic),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds =
        Bounds { criterion: String::new(), gap_min: 0.125, gap_max: 0.5, personalities_min: 2 };

    fn of_gaps(gaps: &[f64]) -> Vec<Means> {
        let of_gap = |gap| Means { stand_in: 64.0, basic: 64.0 * (1.0 + gap), waited: 0.0 };
        gaps.iter().map(of_gap).collect()
    }

    #[test]
    fn enough_gaps_in_the_range_hold_in_either_direction() {
        for (gaps, holds) in [
            ([0.125, 0.5, 0.0], true),
            ([-0.125, 0.0, -0.5], true),
            ([0.12, 0.5, 0.0], false),
            ([0.125, 0.51, 0.0], false),
            ([-0.125, -0.51, 0.0], false),
        ] {
            assert_eq!(BOUNDS.holds(&of_gaps(&gaps)), holds, "{gaps:?}");
        }
    }

    #[test]
    fn computing_ahead_pays_where_waiting_is_nearer_to_a_faster_stand_in() {
        for (basic, waited, pays) in [
            (90.0, 66.0, true),
            (90.0, 62.0, true),
            // The control: both are the stand-in.
            (64.0, 64.0, false),
            // Computing ahead makes no difference.
            (90.0, 90.0, false),
            (90.0, 38.0, false),
            // The stand-in is slower.
            (60.0, 64.0, false),
        ] {
            let means = Means { stand_in: 64.0, basic, waited };
            assert_eq!(means.pays_for_ahead(), pays, "{basic} {waited}");
        }
    }

    #[test]
    fn the_bounds_are_those_of_the_file() {
        let means = of_gaps(&[0.125, 0.5, 0.55, 0.3, 0.3, 0.6]);
        assert!(criteria::bounds::<Bounds>("FEMU-5").holds(&means));
        for (from, to) in [
            ("gap_min = 0.12", "gap_min = 0.13"),
            ("gap_max = 0.57", "gap_max = 0.54"),
            ("personalities_min = 5", "personalities_min = 6"),
        ] {
            assert!(!criteria::changed::<Bounds>("FEMU-5", from, to).holds(&means), "{to}");
        }
    }

    #[test]
    fn a_gap_grows_away_from_the_stand_in() {
        assert!(grows(&of_gaps(&[0.1, 0.0, 0.2])));
        assert!(grows(&of_gaps(&[0.1, 0.0, -0.2])));
        assert!(!grows(&of_gaps(&[0.2, 0.3, 0.1])));
        assert!(!grows(&of_gaps(&[0.0, 0.3, 0.0])));
    }

    #[test]
    fn the_basic_model_has_the_mean_of_the_levels() {
        assert_eq!(mean(&[48, 64].map(Nanos::from_micros)), Nanos::from_micros(56));
        assert_eq!(mean(&[Nanos::from_micros(7)]), Nanos::from_micros(7));
    }
}

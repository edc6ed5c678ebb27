//! FEMU-2a, 2b and 2c: reads by an increasing number of threads, in real time.

use super::core_pair::CorePair;
use super::finding::{Finding, Row};
use super::polled_drive::{self, Delay, Inside, Outside, PLANES};
use super::read_threads::{Latency, Reads, Sample, median};
use super::run::Run;
use super::{criteria, open_channel, optimisation, processor};
use crate::output::Failure;
use crate::plot::{Axis, Mark, Panel, Scale, Series, Unit};
use crate::progress::Unit as ProgressUnit;
use base::Nanos;
use node::Profile;
use serde::Deserialize;

/// FEMU, figure 2: "the number of concurrent IO threads running at the user level".
const THREADS: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];

/// Rounds of each figure.
const ROUNDS: usize = 41;

/// Duration of each round. Other programs occupy a core for some milliseconds now and then; with
/// rounds this short, that disturbs less than half of them.
const TIME: Nanos = Nanos::from_millis(20);

/// Measurements of the CPU time of a read.
const CODE_ROUNDS: usize = 5;

/// Reads per measurement of CPU time.
const CODE_READS: u32 = 100_000;

/// Figures of one drive by [`THREADS`].
type Curve = [Latency; THREADS.len()];

/// Figures of a drive: in process, over TCP, and by a guest. The criteria use the first two.
#[derive(Clone, Debug)]
struct Curves {
    inside: Curve,
    outside: Curve,
    /// Or why there are none.
    guest: Result<Curve, String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Floor {
    criterion: String,
    mean_max_ns: f64,
    mean_64_max_ns: f64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fixed {
    criterion: String,
    excess_max: f64,
    p99_excess_max_ns: f64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Staged {
    criterion: String,
    excess_max: f64,
    excess_64_max: f64,
}

/// A drive under measurement.
struct Subject {
    profile: Profile,
    /// Whether its host sleeps instead of polling.
    sleeps: bool,
}

/// FEMU-2a.
pub(super) fn run_floor(run: Run) -> Result<Finding, Failure> {
    let bounds: Floor = criteria::bounds("FEMU-2a");
    let [curves] = measure([subject(Delay::None, PLANES, run.is_control)?], run)?;
    let papers = |threads| Papers {
        mean: Some(if threads == 64 { 90.0 } else { 52.0 }),
        ..Papers::default()
    };
    Ok(Finding {
        setup: setup("no delay", run.is_control.then_some(SLEEPING)),
        assumptions: assumptions(&OF_FLOOR, &curves),
        rows: rows("", &curves, papers),
        holds: bounds.hold(&curves),
        beside: None,
        criterion: bounds.criterion,
        panels: vec![panel(&[("no delay", &curves)])],
    })
}

/// FEMU-2b.
pub(super) fn run_fixed(run: Run) -> Result<Finding, Failure> {
    let bounds: Fixed = criteria::bounds("FEMU-2b");
    let subjects =
        [subject(Delay::None, PLANES, false)?, subject(Delay::Fixed, PLANES, run.is_control)?];
    let [floor, fixed] = measure(subjects, run)?;
    let papers = |_| Papers { mean: Some(70.0), p99: Some(70.0), p9999: Some(105.0) };
    let mut rows = rows("", &fixed, papers);
    rows.extend(self::rows("without the delay, ", &floor, |_| Papers::default()));
    Ok(Finding {
        setup: setup("50 us from when a read has come", run.is_control.then_some(SLEEPING)),
        assumptions: assumptions(&OF_FIXED, &fixed),
        rows,
        holds: bounds.hold(&floor, &fixed),
        beside: None,
        criterion: bounds.criterion,
        panels: vec![panel(&[("no delay", &floor), ("+50 us", &fixed)])],
    })
}

/// FEMU-2c.
pub(super) fn run_staged(run: Run) -> Result<Finding, Failure> {
    let bounds: Staged = criteria::bounds("FEMU-2c");
    let planes = if run.is_control { 1 } else { PLANES };
    let subjects = [subject(Delay::Fixed, PLANES, false)?, subject(Delay::Staged, planes, false)?];
    let codes = [code(&subjects[0].profile)?, code(&subjects[1].profile)?];
    let [fixed, staged] = measure(subjects, run)?;
    let mut rows = rows("", &staged, |_| Papers::default());
    rows.extend(self::rows("fixed delay, ", &fixed, |_| Papers::default()));
    rows.extend(code_rows(&codes));
    let control = run.is_control.then_some("one plane, so that threads wait for each other");
    Ok(Finding {
        setup: setup("50 us through registers, planes and channels", control),
        assumptions: assumptions(&OF_STAGED, &staged),
        rows,
        holds: bounds.hold(&fixed, &staged),
        beside: None,
        criterion: bounds.criterion,
        panels: vec![panel(&[("fixed delay", &fixed), ("staged model", &staged)])],
    })
}

fn subject(delay: Delay, planes: u32, sleeps: bool) -> Result<Subject, Failure> {
    Ok(Subject { profile: polled_drive::profile(delay, planes)?, sleeps })
}

impl Subject {
    fn reads(&self, threads: usize) -> Reads {
        let layout = polled_drive::layout(&self.profile);
        Reads { layout, threads, time: TIME, sleeps: self.sleeps }
    }
}

/// Returns the curves of `subjects`: medians of rounds. In each round all subjects take turns.
fn measure<const N: usize>(subjects: [Subject; N], run: Run) -> Result<[Curves; N], Failure> {
    // The control misses its bounds by far under any load of the machine.
    let rounds = if run.is_control { 1 } else { ROUNDS };
    let cores = CorePair::new();
    cores.be_host();
    let drives = subjects.into_iter().map(|subject| Drive::new(subject, &cores));
    let drives: Result<Vec<Drive>, Failure> = drives.collect();
    let mut drives = drives?;
    let mut bar = run.progress.bar("measuring", ProgressUnit::Count);
    let (mut done, total) = (0, (rounds * THREADS.len()) as u64);
    for _ in 0..rounds {
        for place in 0..THREADS.len() {
            for drive in &mut drives {
                drive.measure(place)?;
            }
            done += 1;
            bar.set(done, total);
        }
    }
    let curves: Result<Vec<Curves>, Failure> = drives.into_iter().map(Drive::end).collect();
    Ok(curves?.try_into().expect("there is a curve for each subject"))
}

/// A drive under measurement, in this process and behind a target.
struct Drive {
    subject: Subject,
    inside: Inside,
    outside: Outside,
    samples: [Samples; THREADS.len()],
    /// Why a guest does not measure, if it does not.
    without_guest: Option<String>,
}

/// Figures of each round.
#[derive(Default)]
struct Samples {
    inside: Vec<Sample>,
    outside: Vec<Sample>,
    guest: Vec<Sample>,
}

impl Drive {
    fn new(subject: Subject, cores: &CorePair) -> Result<Self, Failure> {
        let (inside, outside) =
            (Inside::new(&subject.profile)?, Outside::start(&subject.profile, cores)?);
        // Both poll, so on one core each would wait for the other's time slice.
        let without_guest = (!cores.is_there()).then(|| "this process has one core".to_owned());
        Ok(Self { subject, inside, outside, samples: Default::default(), without_guest })
    }

    /// Measures one number of threads, given by its index.
    fn measure(&mut self, place: usize) -> Result<(), Failure> {
        let reads = self.subject.reads(THREADS[place]);
        let samples = &mut self.samples[place];
        samples.inside.push(self.inside.measure(reads)?);
        samples.outside.push(self.outside.measure(reads)?);
        if self.without_guest.is_none() {
            match self.outside.measure_guest(reads) {
                Ok(sample) => samples.guest.push(sample),
                Err(reason) => self.without_guest = Some(reason),
            }
        }
        Ok(())
    }

    fn end(self) -> Result<Curves, Failure> {
        self.outside.stop()?;
        let curve = |of: fn(&Samples) -> &[Sample]| {
            self.samples.each_ref().map(|samples| Latency::of(of(samples)))
        };
        Ok(Curves {
            inside: curve(|it| &it.inside),
            outside: curve(|it| &it.outside),
            guest: match self.without_guest {
                None => Ok(curve(|it| &it.guest)),
                Some(reason) => Err(reason),
            },
        })
    }
}

/// Returns the CPU time in nanoseconds of a read by [`THREADS`], on the drive of `profile`.
fn code(profile: &Profile) -> Result<[f64; THREADS.len()], Failure> {
    let mut drive = Inside::new(profile)?;
    let subject = Subject { profile: profile.clone(), sleeps: false };
    let mut codes = [0.0; THREADS.len()];
    for (code, threads) in codes.iter_mut().zip(THREADS) {
        let mut round = || drive.code_ns(subject.reads(threads), CODE_READS);
        let rounds: Result<Vec<f64>, Failure> = (0..CODE_ROUNDS).map(|_| round()).collect();
        *code = median(rounds?);
    }
    Ok(codes)
}

impl Curves {
    /// Returns the figures of each way to the drive, with its name.
    fn each(&self) -> impl Iterator<Item = (&'static str, &Curve)> {
        let guest = self.guest.as_ref().ok().map(|curve| ("by a guest", curve));
        [("in process", &self.inside), ("over TCP", &self.outside)].into_iter().chain(guest)
    }

    /// True if `holds` is true for each number of threads, in process and over TCP.
    fn all(&self, other: &Self, holds: impl Fn(usize, &Latency, &Latency) -> bool) -> bool {
        [(&self.inside, &other.inside), (&self.outside, &other.outside)].iter().all(
            |(curve, other)| {
                let mut pairs = curve.iter().zip(*other).zip(THREADS);
                pairs.all(|((latency, other), threads)| holds(threads, latency, other))
            },
        )
    }
}

impl Floor {
    fn hold(&self, curves: &Curves) -> bool {
        curves.all(curves, |threads, latency, _| {
            let max = if threads == 64 { self.mean_64_max_ns } else { self.mean_max_ns };
            latency.mean < max
        })
    }
}

impl Fixed {
    fn hold(&self, floor: &Curves, fixed: &Curves) -> bool {
        let delay = open_channel::nanos(polled_drive::DELAY);
        fixed.all(floor, |_, latency, floor| {
            let mean_max = (delay + floor.mean) * (1.0 + self.excess_max);
            let p99_max = delay + floor.p99 + self.p99_excess_max_ns;
            (delay..=mean_max).contains(&latency.mean) && latency.p99 <= p99_max
        })
    }
}

impl Staged {
    fn hold(&self, fixed: &Curves, staged: &Curves) -> bool {
        staged.all(fixed, |threads, latency, fixed| {
            let max = if threads == 64 { self.excess_64_max } else { self.excess_max };
            latency.mean <= fixed.mean * (1.0 + max)
        })
    }
}

/// The paper's figures in microseconds, where it gives them.
#[derive(Clone, Copy, Default)]
struct Papers {
    mean: Option<f64>,
    p99: Option<f64>,
    p9999: Option<f64>,
}

fn rows(of: &str, curves: &Curves, papers: impl Fn(usize) -> Papers) -> Vec<Row> {
    let mut rows = Vec::new();
    for (way, curve) in curves.each() {
        for (latency, threads) in curve.iter().zip(THREADS) {
            let Papers { mean, p99, p9999 } = papers(threads);
            let figures = [
                ("mean", mean, latency.mean),
                ("p99", p99, latency.p99),
                ("p99.99", p9999, latency.p9999),
            ];
            rows.extend(figures.map(|(name, paper, nanos)| Row {
                label: format!("{of}{way}, {threads:>2} threads: {name}"),
                paper,
                ours: nanos / 1e3,
                unit: "us",
            }));
        }
    }
    rows
}

/// Returns the CPU time of a core, and the part of the staged model.
fn code_rows([fixed, staged]: &[[f64; THREADS.len()]; 2]) -> Vec<Row> {
    let row = |label, ours, unit| Row { label, paper: None, ours, unit };
    let costs = fixed.iter().zip(staged).zip(THREADS);
    let mut rows: Vec<Row> = costs
        .flat_map(|((fixed, staged), threads)| {
            [
                ("fixed delay", *fixed),
                ("staged model", *staged),
                ("the model's own", staged - fixed),
            ]
            .map(|(name, nanos)| {
                row(format!("CPU, {threads:>2} threads: {name}"), nanos / 1e3, "us")
            })
        })
        .collect();
    let delay = open_channel::nanos(polled_drive::DELAY);
    let last = staged[THREADS.len() - 1];
    rows.push(row("threads that fill a core in process".to_owned(), delay / last, ""));
    rows
}

const SLEEPING: &str = "the host sleeps 100 us before it looks for a completion, and does not poll";

fn setup(delay: &str, control: Option<&str>) -> String {
    let setup = format!(
        "profile cnex-oc without delays, {PLANES} channels x 1 plane, {delay}; 1 to 64 threads \
         read blocks of 4 KiB, one at a time each, anywhere in 16 pages of a plane of its own; in \
         process: device and host on one thread; over TCP: on two, by loopback; by a guest: on \
         two, over vfio-user with mapped doorbells{}; real time; medians of {ROUNDS} rounds of {} \
         ms each, of all by turns{}",
        if CorePair::new().is_there() { ", each with a core" } else { " and on one core" },
        TIME.0 / 1_000_000,
        processor::name().map_or_else(String::new, |name| format!("; {name}")),
    );
    match control {
        Some(control) => format!("{setup}; control: {control}, one round"),
        None => setup,
    }
}

const SHARED_ASSUMPTIONS: [&str; 4] = [
    "times are of this machine, and what else it does disturbs them: run it on an idle one with \
     two cores",
    "the paper's threads are of a guest's user level, behind its kernel's driver and QEMU; ours \
     are commands under way of one host program, which polls: a queue in this process, \
     NVMe/TCP over loopback, and a queue in memory that it shares over vfio-user, as a guest \
     would, but without the guest's kernel and QEMU",
    "means and p99 are medians of those of the rounds, which other work on the machine disturbs \
     less; p99.99 is of all reads of all rounds, and so of what disturbed them too",
    "the paper does not say what drive that is; ours has a plane and a channel for each thread, so \
     that nothing of the model waits for another: what is above the delay is code's",
];

const OF_FLOOR: [&str; 2] = [
    "the paper's figures are bounds: less than 52 us with 1 to 32 threads, less than 90 us with 64",
    "without its patch of the guest the paper has 189 us with 32 threads and 264 us with 64; \
     without polling QEMU's NVMe has 106 us with 8, virtio 185 us and dataplane 126 us with 32",
];

const OF_FIXED: [&str; 2] = [
    "the paper gives one figure for all numbers of threads, some 70 us, of which 20 us are its \
     guest's, and its p99 and p99.99 of 70 and 105 us without one; they stand beside each of ours",
    "with 64 threads a read is due each 0.8 us: what a core does not manage makes all of them \
     wait, as without the delay",
];

const OF_STAGED: [&str; 3] = [
    "the paper's figure is a plot only, which rises with threads",
    "of the 50 us a sense takes 40 and the page on its channel 10, with two registers a plane",
    "CPU: what a read takes of a core, host and reactor included, in virtual time, in which no \
     thread waits for the wall, so that all of its CPU time is code's; the model's own is what the \
     staged model takes more than the fixed delay, whose flash is of the scalar model without \
     times",
];

fn assumptions(own: &[&str], curves: &Curves) -> Vec<String> {
    let listed = SHARED_ASSUMPTIONS.iter().chain(own).map(|&text| text.to_owned());
    let without = curves.guest.as_ref().err();
    let without = without.map(|reason| format!("no figures by a guest: {reason}"));
    listed.chain(without).chain(optimisation::note()).collect()
}

fn panel(drives: &[(&str, &Curves)]) -> Panel {
    let threads = || THREADS.map(|threads| f64::from(u32::try_from(threads).unwrap_or(u32::MAX)));
    let series = drives.iter().flat_map(|(name, curves)| {
        curves.each().map(move |(way, curve)| Series {
            name: format!("{name}, {way}"),
            mark: Mark::Line,
            points: threads().into_iter().zip(curve.iter().map(|latency| latency.mean)).collect(),
        })
    });
    Panel {
        title: String::new(),
        x: Axis { label: "threads".to_owned(), scale: Scale::Log2, unit: Unit::Plain },
        y: Axis {
            label: "mean latency of a read".to_owned(),
            scale: Scale::Linear,
            unit: Unit::Nanos,
        },
        series: series.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(mean: f64) -> Curve {
        [Latency { mean, p99: mean, p9999: mean }; THREADS.len()]
    }

    /// The same latency for any number of threads and both ways.
    fn flat(mean: f64) -> Curves {
        Curves { inside: curve(mean), outside: curve(mean), guest: Ok(curve(f64::MAX)) }
    }

    /// Returns whether `hold` is still true with one figure changed.
    fn changed(
        curves: &Curves,
        (is_inside, place): (bool, usize),
        change: impl Fn(&mut Latency),
        hold: impl Fn(&Curves) -> bool,
    ) -> bool {
        let mut curves = curves.clone();
        let curve = if is_inside { &mut curves.inside } else { &mut curves.outside };
        change(&mut curve[place]);
        hold(&curves)
    }

    #[test]
    fn a_floor_holds_below_each_of_its_bounds() {
        let bounds: Floor = criteria::bounds("FEMU-2a");
        let mut below = flat(51_999.0);
        (below.inside[6].mean, below.outside[6].mean) = (89_999.0, 89_999.0);
        assert!(bounds.hold(&below));
        for (place, bound) in [(0, 52_000.0), (5, 52_000.0), (6, 90_000.0)] {
            for is_inside in [true, false] {
                let holds = changed(
                    &below,
                    (is_inside, place),
                    |latency| latency.mean = bound,
                    |curves| bounds.hold(curves),
                );
                assert!(!holds, "{place}, {is_inside}");
            }
        }
        let lower: Floor =
            criteria::changed("FEMU-2a", "mean_max_ns = 52000.0", "mean_max_ns = 5.0");
        assert!(!lower.hold(&below));
    }

    #[test]
    fn each_way_to_a_drive_has_its_rows_and_the_criteria_are_of_two_of_them() {
        let curves =
            Curves { inside: curve(1_000.0), outside: curve(2_000.0), guest: Ok(curve(3_000.0)) };
        let rows = rows("", &curves, |_| Papers::default());
        for (way, ours) in [("in process", 1.0), ("over TCP", 2.0), ("by a guest", 3.0)] {
            let of_way = rows.iter().filter(|row| row.label.starts_with(way));
            let of_way: Vec<f64> = of_way.map(|row| row.ours).collect();
            assert_eq!(of_way, vec![ours; 3 * THREADS.len()], "{way}");
        }
        let bounds: Floor = criteria::bounds("FEMU-2a");
        assert!(bounds.hold(&Curves { guest: Ok(curve(f64::MAX)), ..curves.clone() }));
        let without = Curves { guest: Err("it fails".to_owned()), ..curves };
        assert!(bounds.hold(&without));
        assert_eq!(self::rows("", &without, |_| Papers::default()).len(), 2 * 3 * THREADS.len());
        let listed = assumptions(&OF_FLOOR, &without);
        assert!(listed.contains(&"no figures by a guest: it fails".to_owned()), "{listed:?}");
    }

    #[test]
    fn a_fixed_delay_adds_itself_and_little_more() {
        let bounds: Fixed = criteria::bounds("FEMU-2b");
        let floor = flat(10_000.0);
        for (mean, p99, holds) in [
            (50_000.0, 50_000.0, true),
            (62_999.0, 80_000.0, true),
            (49_999.0, 50_000.0, false),
            (63_001.0, 63_001.0, false),
            (60_000.0, 80_001.0, false),
        ] {
            for at in [(true, 0), (false, 0), (true, 6), (false, 6)] {
                let change = |latency: &mut Latency| (latency.mean, latency.p99) = (mean, p99);
                let hold = |fixed: &Curves| bounds.hold(&floor, fixed);
                assert_eq!(changed(&flat(60_000.0), at, change, hold), holds, "{mean}, {p99}");
            }
        }
        for (from, to) in [
            ("excess_max = 0.05", "excess_max = -0.05"),
            ("p99_excess_max_ns = 20000.0", "p99_excess_max_ns = -2000.0"),
        ] {
            let other: Fixed = criteria::changed("FEMU-2b", from, to);
            assert!(bounds.hold(&floor, &flat(59_000.0)) && !other.hold(&floor, &flat(59_000.0)));
        }
    }

    #[test]
    fn the_staged_model_stays_near_the_fixed_delay() {
        let bounds: Staged = criteria::bounds("FEMU-2c");
        let fixed = flat(50_000.0);
        for (place, mean, holds) in [
            (0, 54_999.0, true),
            (5, 55_001.0, false),
            (6, 64_999.0, true),
            (6, 65_001.0, false),
            (3, 40_000.0, true),
        ] {
            for is_inside in [true, false] {
                let change = |latency: &mut Latency| latency.mean = mean;
                let hold = |staged: &Curves| bounds.hold(&fixed, staged);
                assert_eq!(changed(&fixed, (is_inside, place), change, hold), holds, "{mean}");
            }
        }
        for (from, to) in [
            ("excess_max = 0.10", "excess_max = 0.05"),
            ("excess_64_max = 0.30", "excess_64_max = 0.05"),
        ] {
            let other: Staged = criteria::changed("FEMU-2c", from, to);
            assert!(bounds.hold(&fixed, &flat(53_000.0)) && !other.hold(&fixed, &flat(53_000.0)));
        }
    }

    #[test]
    fn the_models_code_is_the_difference_and_a_core_serves_a_limited_number_of_threads() {
        let rows = code_rows(&[[400.0; THREADS.len()], [1_000.0; THREADS.len()]]);
        let of = |label: &str| rows.iter().find(|row| row.label == label).unwrap().ours.to_string();
        assert_eq!(of("CPU,  1 threads: the model's own"), "0.6");
        assert_eq!(of("CPU, 64 threads: staged model"), "1");
        assert_eq!(of("threads that fill a core in process"), "50");
    }
}

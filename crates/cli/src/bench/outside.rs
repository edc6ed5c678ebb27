//! Measures a load on a namespace from the host's side, over a network or a server.

use super::report::{LoadReport, Subject, SubjectReport};
use crate::args::BenchArgs;
use crate::bench::figure;
use crate::breakdown;
use crate::number::{grouped, rounded, seconds};
use crate::output::{Failure, Output};
use crate::outputs;
use crate::progress::{Progress, Unit};
use crate::table;
use controller::Queue;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;
use workload::{DeviceFigures, Fill, FillError, Kind, Outcome, Plan, Report};

/// Refuses options that need an emulated device in this program; `place` is not one.
pub(super) fn check(args: &BenchArgs, place: &str) -> Result<(), Failure> {
    let given = [
        (args.cut_at.is_some(), "--cut-at"),
        (args.state.is_some(), "--state"),
        (args.pause_after.is_some(), "--pause-after"),
        (args.precondition.is_some(), "--precondition"),
        (args.measure.faults.is_some(), "--faults"),
        (args.measure.trace.is_some(), "--trace"),
    ];
    if let Some((_, name)) = given.into_iter().find(|(is_given, _)| *is_given) {
        return Err(Failure::Refused(format!(
            "{name} is for a device in this program, sim:PROFILE or emu:PROFILE, and not for one \
             {place}"
        )));
    }
    let plot: Vec<_> = args.measure.plot.iter().map(PathBuf::as_path).collect();
    outputs::check(&plot, &[])
}

/// The result of a load.
pub(super) struct Measured {
    pub(super) outcome: Outcome,
    fill: Option<Fill>,
    wall_seconds: f64,
}

/// Stores the keys that `plan` reads, then runs the plan. `begin` is called between the two. `lost`
/// returns the error of a lost connection, if the connection was lost.
pub(super) async fn measure(
    args: &BenchArgs,
    plan: &Plan,
    queue: &impl Queue,
    lost: impl Fn() -> Option<Failure>,
    begin: impl FnOnce(),
) -> Result<Measured, Failure> {
    let progress = Progress::new(args.measure.json);
    let mut fill = None;
    if plan.needs_fill() {
        let mut bar = progress.bar("storing", Unit::Count);
        let filled = workload::fill(queue, plan, |done, total| bar.set(done, total)).await;
        let failure = |error: FillError| Failure::Broken(error.to_string());
        fill = Some(filled.map_err(|error| lost().unwrap_or_else(|| failure(error)))?);
    }
    begin();
    let mut bar = progress.bar("measuring", Unit::of(plan));
    let started = Instant::now();
    let outcome = workload::run(queue, plan, |done, total| bar.set(done, total)).await;
    let wall_seconds = started.elapsed().as_secs_f64();
    match lost() {
        Some(failure) => Err(failure),
        None => Ok(Measured { outcome, fill, wall_seconds }),
    }
}

/// What to measure, and on which target.
pub(super) struct Asked<'a> {
    pub(super) args: &'a BenchArgs,
    pub(super) plan: &'a Plan,
    pub(super) target: &'a str,
    /// The target's description of itself.
    pub(super) device: String,
}

/// Facts to print: what a host sees, so without stages; and `more` facts for this kind of target.
#[derive(Debug, Serialize)]
pub(super) struct OutsideReport<M> {
    #[serde(flatten)]
    report: Report,
    device: String,
    seed: u64,
    load: LoadReport,
    #[serde(flatten)]
    subject: SubjectReport,
    #[serde(flatten)]
    more: M,
}

/// Facts that only one kind of target has.
pub(super) trait More: Serialize {
    /// Whether the time of an operation can be split into stages.
    const TELLS_STAGES: bool;

    /// Whether other programs may write to the target during the measurement.
    const IS_SHARED: bool;

    /// In words, for a table.
    fn facts(&self) -> Vec<(&'static str, String)>;
}

/// Draws the figure and returns the report.
pub(super) fn report<M: More>(
    asked: Asked<'_>,
    measured: &Measured,
    figures: &DeviceFigures,
    more: M,
) -> Output {
    let (args, outcome) = (asked.args, &measured.outcome);
    let report = OutsideReport::new(asked, measured, figures, more);
    let plot = args.measure.plot.as_ref();
    let undrawn =
        plot.and_then(|path| figure::draw(path, report.title(), report.caption(), outcome));
    let errors = report.errors();
    let output =
        if args.measure.json { Output::json(&report) } else { Output::new(report.table()) };
    output.with_errors(errors).with_errors(undrawn)
}

impl<M: More> OutsideReport<M> {
    fn new(asked: Asked<'_>, measured: &Measured, figures: &DeviceFigures, more: M) -> Self {
        let Asked { args, plan, target, device } = asked;
        let Measured { outcome, fill, wall_seconds } = measured;
        let subject = Subject::Plan(plan);
        let name = plan.operation.name();
        let report = Report::new(name, target, outcome, *wall_seconds, figures, *fill);
        let stages_ns = if M::TELLS_STAGES { report.stages_ns } else { BTreeMap::new() };
        Self {
            report: Report { stages_ns, lateness_ns: BTreeMap::new(), ..report },
            device,
            seed: args.measure.seed,
            load: LoadReport::of(&subject),
            subject: SubjectReport::of(&subject),
            more,
        }
    }

    fn title(&self) -> String {
        format!("{} on {}", self.report.workload, self.report.target)
    }

    fn caption(&self) -> String {
        let facts = self.subject.facts(self.seed).into_iter();
        let facts = facts.chain([("operations", self.load.sentence())]);
        let facts: Vec<String> = facts.map(|(name, fact)| format!("{name}: {fact}")).collect();
        format!("{}; {}", self.device, facts.join("; "))
    }

    fn errors(&self) -> Option<String> {
        let Report { ops, errors, errors_by_status, .. } = &self.report;
        let causes = errors_by_status.iter().map(|(cause, count)| format!("{count} {cause}"));
        let causes = causes.collect::<Vec<_>>().join(", ");
        let first = self.report.mismatch.as_ref().map(|mismatch| {
            let others = if M::IS_SHARED { "; others may write to this target" } else { "" };
            format!("; the first is {mismatch}{others}")
        });
        let first = first.unwrap_or_default();
        (*errors > 0).then(|| format!("{errors} of {ops} operations failed: {causes}{first}"))
    }

    fn table(&self) -> String {
        let heading = format!("{}\n{}\n", self.title(), self.device);
        let latencies = breakdown::latencies(&self.report.latency_ns);
        let digest = format!("digest {}\n", self.report.digest);
        [heading, self.facts(), latencies, digest].join("\n")
    }

    fn facts(&self) -> String {
        let report = &self.report;
        let mut facts = self.subject.facts(self.seed);
        if let Some(fill) = &report.fill {
            facts.push(("stored before", format!("in {}, not measured", seconds(fill.seconds))));
        }
        facts.push(("operations", format!("{}, {}", grouped(report.ops), self.load.sentence())));
        if report.ops_by_kind.len() > 1 {
            let counts = Kind::ALL.map(|kind| {
                let count = report.ops_by_kind.get(kind.name())?;
                Some(format!("{} {}", grouped(*count), kind.name()))
            });
            let counts: Vec<String> = counts.into_iter().flatten().collect();
            facts.push(("of which", counts.join(", ")));
        }
        facts.extend(report.early_end.map(|reason| ("ended early", reason.to_owned())));
        facts.extend(report.misses.map(|misses| ("misses", grouped(misses))));
        facts.push(("errors", grouped(report.errors)));
        let rate = rounded(report.ops_per_wall_second);
        let time = seconds(report.wall_seconds);
        facts.push(("wall time", format!("{time}, {rate} operations a second")));
        facts.extend(self.more.facts());
        table::facts(&facts)
    }
}

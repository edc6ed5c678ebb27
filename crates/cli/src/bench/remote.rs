//! `kvasir bench` on a namespace over NVMe/TCP, wherever that is: what a host sees of it. [`fit`]
//! makes a plan of what can be measured there.

mod fit;

use super::report::{LoadReport, Subject, SubjectReport};
use super::{figure, plan};
use crate::args::BenchArgs;
use crate::breakdown;
use crate::number::{grouped, rounded, seconds};
use crate::output::{Failure, Output};
use crate::outputs;
use crate::progress::{Progress, Unit};
use crate::remote::{self, Connected};
use crate::table;
use base::human_bytes;
use client::Uri;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Instant;
use workload::{DeviceFigures, Fill, Kind, Outcome, Plan, Report};

/// Outstanding stores while keys are filled in: as many as `workload::fill` has.
const FILL_DEPTH: u32 = 64;

/// Entries of the largest queue that is asked for.
const QUEUE_ENTRIES_MAX: u32 = 1024;

/// Measures what `args` ask for.
pub(super) fn run(args: &BenchArgs) -> Result<Output, Failure> {
    let uri: Uri = args.measure.target.parse().map_err(Failure::refused)?;
    check(args)?;
    let operation = plan::operation(args)?;
    fit::check(args, operation, &uri)?;
    let ((plan, measured), _) = remote::with(&uri, entries(args, &uri), async |connected| {
        let plan = fit::plan(args, operation, &uri, connected)?;
        let measured = measure(args, &plan, &uri, connected).await?;
        Ok((plan, measured))
    })?;
    let report = RemoteReport::new(args, &uri, &plan, &measured);
    if let Some(path) = &args.measure.plot {
        figure::draw(path, report.title(), report.caption(), &measured.outcome)?;
    }
    let errors = report.errors();
    let output =
        if args.measure.json { Output::json(&report) } else { Output::new(report.table()) };
    Ok(output.with_errors(errors))
}

/// Refuses what needs the device itself.
fn check(args: &BenchArgs) -> Result<(), Failure> {
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
             over NVMe/TCP"
        )));
    }
    let plot: Vec<_> = args.measure.plot.iter().map(std::path::PathBuf::as_path).collect();
    outputs::check(&plot, &[])
}

/// Entries of each queue, so that none of the load waits in this host if the target has as many.
fn entries(args: &BenchArgs, uri: &Uri) -> u16 {
    let depth = match args.rate {
        None => {
            let depth = args.queue_depth.unwrap_or(plan::QUEUE_DEPTH);
            depth.max(FILL_DEPTH).div_ceil(uri.queues.into())
        }
        Some(_) => QUEUE_ENTRIES_MAX,
    };
    u16::try_from((depth + 1).min(QUEUE_ENTRIES_MAX)).expect("1,024 at most")
}

/// How a load went.
struct Measured {
    outcome: Outcome,
    fill: Option<Fill>,
    wall_seconds: f64,
    /// What the target says it is.
    device: String,
}

async fn measure(
    args: &BenchArgs,
    plan: &Plan,
    uri: &Uri,
    connected: &Connected,
) -> Result<Measured, Failure> {
    let Connected { association, queue, namespace } = connected;
    let lost = || {
        let error = queue.failure().or_else(|| association.failure());
        error.map(|error| remote::broken(uri, &error))
    };
    let progress = Progress::new(args.measure.json);
    let mut fill = None;
    if plan.needs_fill() {
        let mut bar = progress.bar("storing", Unit::Count);
        let filled = workload::fill(queue, plan, |done, total| bar.set(done, total)).await;
        let failure = |error: workload::FillError| Failure::Broken(error.to_string());
        fill = Some(filled.map_err(|error| lost().unwrap_or_else(|| failure(error)))?);
    }
    let mut bar = progress.bar("measuring", Unit::Count);
    let started = Instant::now();
    let outcome = workload::run(queue, plan, |done, total| bar.set(done, total)).await;
    let wall_seconds = started.elapsed().as_secs_f64();
    if let Some(failure) = lost() {
        return Err(failure);
    }
    let model = association.controller().model_number;
    let model = model.as_str().filter(|model| !model.contains(char::is_control)).unwrap_or("?");
    let device = format!("{model}, {}", human_bytes(fit::size_bytes(namespace)));
    Ok(Measured { outcome, fill, wall_seconds, device })
}

/// What is printed: what a host sees, and so no stages and nothing of flash.
#[derive(Debug, Serialize)]
struct RemoteReport {
    #[serde(flatten)]
    report: Report,
    device: String,
    seed: u64,
    load: LoadReport,
    #[serde(flatten)]
    subject: SubjectReport,
    /// I/O queues.
    queues: u16,
    header_digest: bool,
    data_digest: bool,
}

impl RemoteReport {
    fn new(args: &BenchArgs, uri: &Uri, plan: &Plan, measured: &Measured) -> Self {
        let Measured { outcome, fill, wall_seconds, device } = measured;
        let subject = Subject::Plan(plan);
        let target = uri.to_string();
        let figures = DeviceFigures::default();
        let name = plan.operation.name();
        let report = Report::new(name, &target, outcome, *wall_seconds, &figures, *fill);
        // A host sees the link, and nothing behind it.
        let (stages_ns, lateness_ns) = (BTreeMap::new(), BTreeMap::new());
        Self {
            report: Report { stages_ns, lateness_ns, ..report },
            device: device.clone(),
            seed: args.measure.seed,
            load: LoadReport::of(&subject),
            subject: SubjectReport::of(&subject),
            queues: uri.queues,
            header_digest: uri.digests.header,
            data_digest: uri.digests.data,
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
        (*errors > 0).then(|| format!("{errors} of {ops} operations failed: {causes}"))
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
        table::facts(&facts)
    }
}

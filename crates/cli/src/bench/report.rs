use crate::args::MeasureArgs;
use crate::breakdown;
use crate::flash::Flash;
use crate::lateness::LatenessReport;
use crate::number::{counted, grouped, rounded, seconds};
use crate::rig::Measured;
use crate::table;
use crate::target::Target;
use base::human_bytes;
use serde::Serialize;
use workload::{DeviceFigures, Fill, Kind, Load, Pace, Plan, Report, Trace};

/// What was done to the device.
#[derive(Clone, Copy, Debug)]
pub(super) enum Subject<'a> {
    Plan(&'a Plan),
    Replay {
        /// The trace's file.
        file: &'a str,
        trace: &'a Trace,
        pace: Pace,
        /// Outstanding operations at full pace.
        queue_depth: u32,
    },
}

/// What `kvasir bench` prints: the workload's report, and what it is of.
#[derive(Debug, Serialize)]
pub(super) struct BenchReport {
    #[serde(flatten)]
    report: Report,
    /// What the device is.
    device: String,
    /// That of the operations and their values.
    seed: u64,
    /// The device's own.
    device_seed: u64,
    /// The clock that the device kept.
    clock: &'static str,
    load: LoadReport,
    #[serde(flatten)]
    subject: SubjectReport,
    /// How long the run took in the target's clock.
    simulated_seconds: f64,
    /// In real time: how late the device's events were.
    #[serde(skip_serializing_if = "Option::is_none")]
    event_lateness_ns: Option<LatenessReport>,
    #[serde(flatten)]
    flash: Flash,
}

/// When operations were submitted.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum LoadReport {
    /// So many outstanding.
    QueueDepth(u32),
    /// So many due in a second.
    Rate(u64),
    /// As a trace has them, or so many times as fast.
    Pace(String),
}

/// What was done.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
enum SubjectReport {
    Plan {
        keys: u64,
        key_bytes: usize,
        /// On average.
        value_bytes: f64,
        /// As on the command line.
        value_sizes: String,
        distribution: &'static str,
    },
    Replay {
        trace: TraceReport,
    },
}

/// What a trace is like.
#[derive(Clone, Debug, Serialize)]
struct TraceReport {
    file: String,
    operations: u64,
    keys: u32,
    /// From its first operation to its last.
    seconds: f64,
    /// Operations that find their key absent if one is done after the other.
    misses: u64,
    /// Keys of more than 255 bytes, which end in a hash of what they were.
    keys_shortened: u64,
    /// Values of more than 2 MiB, which have that much.
    values_cut: u64,
}

impl LoadReport {
    fn of(subject: &Subject<'_>) -> Self {
        match *subject {
            Subject::Plan(Plan { load: Load::QueueDepth(depth), .. }) => Self::QueueDepth(*depth),
            Subject::Plan(Plan { load: Load::Rate { per_second }, .. }) => Self::Rate(*per_second),
            Subject::Replay { pace: Pace::Full, queue_depth, .. } => Self::QueueDepth(queue_depth),
            Subject::Replay { pace, .. } => Self::Pace(pace.to_string()),
        }
    }

    fn sentence(&self) -> String {
        match self {
            Self::QueueDepth(depth) => format!("{} outstanding", grouped((*depth).into())),
            Self::Rate(rate) => format!("{} due in a second", grouped(*rate)),
            Self::Pace(pace) => format!("due as in the trace, {pace}"),
        }
    }
}

impl SubjectReport {
    fn of(subject: &Subject<'_>) -> Self {
        match subject {
            Subject::Plan(plan) => Self::Plan {
                keys: plan.keys,
                key_bytes: plan.key_bytes,
                value_bytes: plan.values.mean(),
                value_sizes: plan.values.to_string(),
                distribution: plan.distribution.name(),
            },
            Subject::Replay { file, trace, .. } => Self::Replay {
                trace: TraceReport {
                    file: (*file).to_owned(),
                    operations: trace.operations(),
                    keys: trace.keys(),
                    seconds: trace.duration().as_secs_f64(),
                    misses: trace.misses(),
                    keys_shortened: trace.keys_shortened(),
                    values_cut: trace.values_cut(),
                },
            },
        }
    }

    /// `misses` of a run, beside those that the trace has by itself.
    fn misses(&self, misses: u64) -> String {
        match self {
            Self::Plan { .. } => grouped(misses),
            Self::Replay { trace } => {
                let in_order = grouped(trace.misses);
                format!("{}, and {in_order} if done one after the other", grouped(misses))
            }
        }
    }

    fn facts(&self, seed: u64) -> Vec<(&'static str, String)> {
        match self {
            Self::Plan { keys, key_bytes, value_sizes, distribution, .. } => {
                let key = human_bytes(*key_bytes as u64);
                let pairs = format!(
                    "{} of {key} + {value_sizes}, {distribution}, seed {seed}",
                    grouped(*keys),
                );
                vec![("pairs", pairs)]
            }
            Self::Replay { trace } => trace.facts(),
        }
    }
}

impl TraceReport {
    fn facts(&self) -> Vec<(&'static str, String)> {
        let Self { operations, keys, keys_shortened, values_cut, .. } = self;
        let size = format!(
            "{} on {} in {}",
            counted(*operations, "operation"),
            counted((*keys).into(), "key"),
            seconds(self.seconds),
        );
        let mut facts = vec![("trace", size)];
        if keys_shortened + values_cut > 0 {
            let changed = format!(
                "{} of more than 255 bytes, {} of more than 2 MiB",
                counted(*keys_shortened, "key"),
                counted(*values_cut, "value"),
            );
            facts.push(("shortened", changed));
        }
        facts
    }
}

impl BenchReport {
    pub(super) fn new(
        args: &MeasureArgs,
        target: &Target,
        subject: &Subject<'_>,
        fill: Option<Fill>,
        measured: &Measured,
    ) -> Self {
        let Measured { outcome, window, flash, wall_seconds, lateness } = measured;
        let device = DeviceFigures {
            write_amplification: window.write_amplification(),
            flash_reads_per_retrieve: window.flash_reads_per_retrieve(outcome.retrieve_commands()),
            counters: window.after.nand.words().to_vec(),
        };
        let name = match subject {
            Subject::Plan(plan) => plan.operation.name(),
            Subject::Replay { .. } => "replay",
        };
        Self {
            report: Report::new(name, &target.uri, outcome, *wall_seconds, &device, fill),
            device: target.profile.description.clone(),
            seed: args.seed,
            device_seed: target.seed.unwrap_or(args.seed),
            clock: target.clock.name(),
            load: LoadReport::of(subject),
            subject: SubjectReport::of(subject),
            simulated_seconds: outcome.elapsed().as_secs_f64(),
            event_lateness_ns: lateness.as_ref().map(LatenessReport::new),
            flash: *flash,
        }
    }

    /// What was measured, in one line.
    pub(super) fn title(&self) -> String {
        format!("{} on {}", self.report.workload, self.report.target)
    }

    /// How it was measured, in one line.
    pub(super) fn caption(&self) -> String {
        let facts = self.subject.facts(self.seed).into_iter();
        let facts = facts.chain([("operations", self.load.sentence())]);
        let facts: Vec<String> = facts.map(|(name, fact)| format!("{name}: {fact}")).collect();
        format!("{}; {}", self.device, facts.join("; "))
    }

    /// What went wrong, if anything did.
    pub(super) fn errors(&self) -> Option<String> {
        let Report { ops, errors, errors_by_status, .. } = &self.report;
        let causes = errors_by_status.iter().map(|(cause, count)| format!("{count} {cause}"));
        let causes = causes.collect::<Vec<_>>().join(", ");
        (*errors > 0).then(|| format!("{errors} of {ops} operations failed: {causes}"))
    }

    /// As a person reads it.
    pub(super) fn table(&self) -> String {
        let Report { write_amplification, flash_reads_per_retrieve, .. } = self.report;
        [
            format!("{}\n{}\n", self.title(), self.device),
            self.facts(),
            breakdown::latencies(&self.report.latency_ns),
            breakdown::stages(&self.report.stages_ns),
            self.flash.table(write_amplification, flash_reads_per_retrieve),
            format!("digest {}\n", self.report.digest),
        ]
        .join("\n")
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
        if let Some(reason) = report.early_end {
            facts.push(("ended early", reason.to_owned()));
        }
        if let Some(misses) = report.misses {
            facts.push(("misses", self.subject.misses(misses)));
        }
        facts.push(("errors", grouped(report.errors)));
        let rate = report.ops_per_second.map_or_else(
            || "no time passed".to_owned(),
            |rate| {
                let time = seconds(self.simulated_seconds);
                format!("{time}, {} operations a second", rounded(rate))
            },
        );
        match &self.event_lateness_ns {
            None => facts.extend([("simulated time", rate), ("wall time", wall(report))]),
            Some(lateness) => facts.extend([("real time", rate), ("late", lateness.sentence())]),
        }
        table::facts(&facts)
    }
}

fn wall(report: &Report) -> String {
    let rate = rounded(report.ops_per_wall_second);
    format!("{}, {rate} operations a second", seconds(report.wall_seconds))
}

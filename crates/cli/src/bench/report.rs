use super::faults::FaultsReport;
use super::fitted;
use super::index_table::IndexTable;
use super::power::PowerReport;
use crate::args::MeasureArgs;
use crate::breakdown;
use crate::flash::LoadedFlash;
use crate::lateness::LatenessReport;
use crate::number::{counted, grouped, percent, ratio, rounded, seconds};
use crate::rig::{CAPACITIES_MAX, Cut, Measured, Precondition};
use crate::table;
use crate::target::Target;
use base::{Nanos, human_bytes};
use node::FaultReport;
use serde::{Deserialize, Serialize};
use spec::Status;
use workload::{
    DeviceFigures, Fill, Kind, Load, Outcome, Pace, Plan, Report, Space, Tally, Trace, Until,
};

/// The load.
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

/// The precondition before the measurement.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum Before {
    Blank,
    Filled(Fill),
    Aged(Precondition),
}

/// Output of `kvasir bench`: the workload's report, and its setup.
#[derive(Debug, Serialize)]
pub(super) struct BenchReport {
    #[serde(flatten)]
    report: Report,
    /// Description of the device.
    device: String,
    /// Random seed of the operations and their values.
    seed: u64,
    /// Random seed of the device.
    device_seed: u64,
    /// The device's clock.
    clock: &'static str,
    load: LoadReport,
    #[serde(flatten)]
    subject: SubjectReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    precondition: Option<PreconditionReport>,
    /// Flash faults, if the device has a plan of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    faults: Option<FaultsReport>,
    /// The power loss, and what it left.
    #[serde(skip_serializing_if = "Option::is_none")]
    power: Option<PowerReport>,
    /// Parts of the load outside the points that the device was fitted to, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    beyond_fit: Option<String>,
    /// Duration of the run on the target's clock.
    simulated_seconds: f64,
    /// Lateness of the device's events, in real time.
    #[serde(skip_serializing_if = "Option::is_none")]
    event_lateness_ns: Option<LatenessReport>,
    #[serde(flatten)]
    flash: LoadedFlash,
    #[serde(skip_serializing_if = "Option::is_none")]
    index_table: Option<IndexTable>,
}

/// When operations were submitted.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub(super) enum LoadReport {
    /// This many outstanding.
    QueueDepth { queue_depth: u32 },
    /// This many due per second.
    Rate {
        rate: u64,
        /// Most outstanding operations, if bounded.
        #[serde(skip_serializing_if = "Option::is_none")]
        queue_depth: Option<u32>,
    },
    /// As the trace has them, or this many times as fast.
    Pace { pace: String },
}

/// Number of operations, and their keys and values.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub(super) enum SubjectReport {
    Plan {
        keys: u64,
        key_bytes: usize,
        /// Mean.
        value_bytes: f64,
        /// Name on the command line.
        value_sizes: String,
        distribution: &'static str,
    },
    Blocks {
        /// The namespace's id.
        namespace: u32,
        blocks: u64,
        block_bytes: u32,
        distribution: &'static str,
    },
    Replay {
        trace: TraceReport,
    },
}

/// How the device was aged before the measurement.
#[derive(Clone, Copy, Debug, Serialize)]
struct PreconditionReport {
    /// Filled share of the capacity.
    fill: f64,
    /// Bytes overwritten after the fill, in capacities.
    capacities_overwritten: u32,
    /// The limit of that, in capacities.
    capacities_max: u32,
    /// Write amplification of the last capacity.
    write_amplification: Option<f64>,
    /// Relative difference from that of the capacity before.
    change: Option<f64>,
    is_steady: bool,
    simulated_seconds: f64,
    wall_seconds: f64,
}

impl PreconditionReport {
    fn new(precondition: &Precondition) -> Self {
        Self {
            fill: precondition.fill,
            capacities_overwritten: precondition.capacities_overwritten,
            capacities_max: CAPACITIES_MAX,
            write_amplification: precondition.write_amplification,
            change: precondition.change,
            is_steady: precondition.is_steady,
            simulated_seconds: precondition.elapsed.as_secs_f64(),
            wall_seconds: precondition.wall_seconds,
        }
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        let (fill, time) = (percent(self.fill, 1.0), seconds(self.simulated_seconds));
        let wall = ("its wall time", seconds(self.wall_seconds));
        let Some(change) = self.change else {
            return vec![("preconditioned", format!("to {fill} in {time}")), wall];
        };
        let done = format!(
            "to {fill}, then {} capacities overwritten, in {time}",
            self.capacities_overwritten
        );
        let state = format!(
            "at write amplification {}, changed by {}",
            ratio(self.write_amplification),
            percent(change, 1.0)
        );
        let name = if self.is_steady { "steady" } else { "not steady" };
        vec![("preconditioned", done), (name, state), wall]
    }
}

/// Properties of a trace.
#[derive(Clone, Debug, Serialize)]
pub(super) struct TraceReport {
    file: String,
    operations: u64,
    keys: u32,
    /// Time from its first operation to its last.
    seconds: f64,
    /// Operations that do not find their key when the trace runs in order.
    misses: u64,
    /// Keys longer than 255 bytes, which are cut and end in a hash of the whole key.
    keys_shortened: u64,
    /// Values longer than 2 MiB, which are cut to 2 MiB.
    values_cut: u64,
}

impl LoadReport {
    pub(super) fn of(subject: &Subject<'_>) -> Self {
        match *subject {
            Subject::Plan(plan) => match plan.load {
                Load::QueueDepth(queue_depth) => Self::QueueDepth { queue_depth },
                Load::Rate { per_second: rate, outstanding: queue_depth } => {
                    Self::Rate { rate, queue_depth }
                }
            },
            Subject::Replay { pace: Pace::Full, queue_depth, .. } => {
                Self::QueueDepth { queue_depth }
            }
            Subject::Replay { pace, .. } => Self::Pace { pace: pace.to_string() },
        }
    }

    pub(super) fn sentence(&self) -> String {
        match self {
            Self::QueueDepth { queue_depth } => {
                format!("{} outstanding", grouped((*queue_depth).into()))
            }
            Self::Rate { rate, queue_depth: None } => format!("{} due in a second", grouped(*rate)),
            Self::Rate { rate, queue_depth: Some(depth) } => {
                let (rate, depth) = (grouped(*rate), grouped((*depth).into()));
                format!("{rate} due in a second, at most {depth} outstanding")
            }
            Self::Pace { pace } => format!("due as in the trace, {pace}"),
        }
    }
}

impl SubjectReport {
    pub(super) fn of(subject: &Subject<'_>) -> Self {
        match subject {
            Subject::Plan(plan) if plan.space != Space::Pairs => Self::Blocks {
                namespace: plan.nsid,
                blocks: plan.keys,
                block_bytes: plan.values.max(),
                distribution: plan.law().name(),
            },
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

    /// Describes the `misses` of a run, and those that the trace itself causes.
    fn misses(&self, misses: u64) -> String {
        match self {
            Self::Plan { .. } | Self::Blocks { .. } => grouped(misses),
            Self::Replay { trace } => {
                let in_order = grouped(trace.misses);
                format!("{}, and {in_order} if done one after the other", grouped(misses))
            }
        }
    }

    pub(super) fn facts(&self, seed: u64) -> Vec<(&'static str, String)> {
        match self {
            Self::Plan { keys, key_bytes, value_sizes, distribution, .. } => {
                let key = human_bytes(*key_bytes as u64);
                let pairs = format!(
                    "{} of {key} + {value_sizes}, {distribution}, seed {seed}",
                    grouped(*keys),
                );
                vec![("pairs", pairs)]
            }
            Self::Blocks { blocks, block_bytes, distribution, .. } => {
                let size = human_bytes((*block_bytes).into());
                let blocks = format!("{} of {size}, {distribution}, seed {seed}", grouped(*blocks));
                vec![("blocks", blocks)]
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
        before: Before,
        measured: &Measured,
        cut: Option<&Cut>,
    ) -> Self {
        let Measured { outcome, flash, wall_seconds, lateness, faults, .. } = measured;
        let of_both_lives = |faults: FaultReport| match cut {
            None => faults,
            Some(cut) => faults + cut.faults.clone(),
        };
        let device = device_figures(subject, measured);
        let fill = match before {
            Before::Filled(fill) => Some(fill),
            _ => None,
        };
        let precondition = match &before {
            Before::Aged(precondition) => Some(PreconditionReport::new(precondition)),
            _ => None,
        };
        let name = match subject {
            Subject::Plan(plan) => plan.operation.name(),
            Subject::Replay { .. } => "replay",
        };
        let report = Report::new(name, &target.uri, outcome, *wall_seconds, &device, fill);
        let index_table = IndexTable::new(&measured.window, report.ops);
        Self {
            report,
            device: target.profile.description.clone(),
            seed: args.seed,
            device_seed: target.seed.unwrap_or(args.seed),
            clock: target.clock.name(),
            load: LoadReport::of(subject),
            subject: SubjectReport::of(subject),
            precondition,
            faults: faults.clone().map(of_both_lives).as_ref().map(FaultsReport::new),
            power: cut.map(|cut| PowerReport::new(cut, ended(subject, outcome, cut))),
            beyond_fit: target.profile.fitted.as_ref().and_then(|it| fitted::beyond(it, subject)),
            simulated_seconds: outcome.elapsed().as_secs_f64(),
            event_lateness_ns: lateness.as_ref().map(LatenessReport::new),
            flash: *flash,
            index_table,
        }
    }

    /// Returns what was measured, in one line.
    pub(super) fn title(&self) -> String {
        format!("{} on {}", self.report.workload, self.report.target)
    }

    /// Returns how it was measured, in one line.
    pub(super) fn caption(&self) -> String {
        let facts = self.subject.facts(self.seed).into_iter();
        let facts = facts.chain([("operations", self.load.sentence())]);
        let facts: Vec<String> = facts.map(|(name, fact)| format!("{name}: {fact}")).collect();
        format!("{}; {}", self.device, facts.join("; "))
    }

    /// Returns the errors that no plan of faults caused, if there are any.
    pub(super) fn errors(&self) -> Option<String> {
        let Report { ops, errors_by_status, .. } = &self.report;
        let is_asked_for = |cause: &str| {
            let unreadable = [Status::UNRECOVERED_ERROR, Status::UNRECOVERED_READ_ERROR];
            self.faults.is_some() && unreadable.iter().any(|status| status.to_string() == cause)
        };
        let unwanted = || errors_by_status.iter().filter(|(cause, _)| !is_asked_for(cause));
        let errors: u64 = unwanted().map(|(_, count)| count).sum();
        let causes = unwanted().map(|(cause, count)| format!("{count} {cause}"));
        let causes = causes.collect::<Vec<_>>().join(", ");
        let first = self.report.mismatch.as_ref().map(|first| format!("; the first is {first}"));
        let first = first.unwrap_or_default();
        let failed =
            (errors > 0).then(|| format!("{errors} of {ops} operations failed: {causes}{first}"));
        failed.or_else(|| self.power.as_ref().and_then(PowerReport::errors))
    }

    /// Returns the report as text.
    pub(super) fn table(&self) -> String {
        let Report { write_amplification, flash_reads_per_retrieve, .. } = self.report;
        let index = self
            .index_table
            .as_ref()
            .map_or_else(String::new, |index| format!("index\n{}\n", table::facts(&index.facts())));
        [
            format!("{}\n{}\n", self.title(), self.device),
            self.facts(),
            breakdown::latencies(&self.report.latency_ns),
            breakdown::stages(&self.report.stages_ns),
            match &self.flash {
                LoadedFlash::Pairs(flash) => {
                    flash.table(write_amplification, flash_reads_per_retrieve)
                }
                LoadedFlash::Blocks(flash) => flash.table(write_amplification),
            },
            format!("{index}digest {}\n", self.report.digest),
        ]
        .join("\n")
    }

    fn facts(&self) -> String {
        let report = &self.report;
        let mut facts = self.subject.facts(self.seed);
        if let Some(fill) = &report.fill {
            facts.push(("stored before", format!("in {}, not measured", seconds(fill.seconds))));
        }
        facts.extend(self.precondition.iter().flat_map(PreconditionReport::facts));
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
        facts.extend(self.beyond_fit.iter().map(|beyond| ("beyond the fit", beyond.clone())));
        let rate = report.ops_per_second.map_or_else(
            || "no time passed".to_owned(),
            |rate| {
                let time = seconds(self.simulated_seconds);
                format!("{time}, {} operations a second", rounded(rate))
            },
        );
        match &self.event_lateness_ns {
            None => facts.extend([("simulated time", rate), ("wall time", wall(report))]),
            Some(lateness) => {
                facts.push(("real time", rate));
                facts.extend(lateness.facts());
            }
        }
        facts.extend(self.faults.iter().flat_map(FaultsReport::facts));
        facts.extend(self.power.iter().flat_map(PowerReport::facts));
        table::facts(&facts)
    }
}

/// Time of the end of the run, from its start, if it ended before the power loss.
fn ended(subject: &Subject<'_>, outcome: &Outcome, cut: &Cut) -> Option<Nanos> {
    let Subject::Plan(plan) = subject else { return None };
    let is_over = match plan.until {
        Until::Operations(operations) => outcome.operations() >= operations,
        Until::Time(time) => time <= cut.at && cut.findings.unanswered == 0,
    };
    is_over.then(|| outcome.elapsed())
}

/// Facts of the run that only the device knows.
fn device_figures(subject: &Subject<'_>, measured: &Measured) -> DeviceFigures {
    let Measured { outcome, window, .. } = measured;
    let counters = window.after.nand.words().to_vec();
    let blocks = match subject {
        Subject::Plan(plan) if plan.space != Space::Pairs => Some(plan.values.max()),
        _ => None,
    };
    match blocks {
        None => DeviceFigures {
            write_amplification: window.write_amplification(),
            flash_reads_per_retrieve: window.flash_reads_per_retrieve(outcome.retrieve_commands()),
            counters,
        },
        Some(block_bytes) => DeviceFigures {
            write_amplification: window.amplification_of(written_bytes(outcome, block_bytes)),
            flash_reads_per_retrieve: None,
            counters,
        },
    }
}

fn written_bytes(outcome: &Outcome, block_bytes: u32) -> u64 {
    outcome.tally(Kind::Write).map_or(0, Tally::count) * u64::from(block_bytes)
}

fn wall(report: &Report) -> String {
    let rate = rounded(report.ops_per_wall_second);
    format!("{}, {rate} operations a second", seconds(report.wall_seconds))
}

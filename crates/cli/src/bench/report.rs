use super::Measured;
use crate::breakdown;
use crate::flash::Flash;
use crate::number::{grouped, rounded, seconds};
use crate::table;
use crate::target::Target;
use base::human_bytes;
use serde::Serialize;
use workload::{DeviceFigures, Distribution, Kind, Load, Plan, Report};

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
    load: LoadReport,
    keys: u64,
    key_bytes: usize,
    value_bytes: u32,
    distribution: &'static str,
    /// How long the run took in the target's clock.
    simulated_seconds: f64,
    #[serde(flatten)]
    flash: Flash,
}

/// When operations were submitted.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum LoadReport {
    /// So many outstanding.
    QueueDepth(u32),
    /// So many due in a second.
    Rate(u64),
}

impl BenchReport {
    pub(super) fn new(target: &Target, plan: &Plan, device_seed: u64, measured: &Measured) -> Self {
        let Measured { outcome, fill, window, flash, wall_seconds } = measured;
        let retrieves = outcome.tally(Kind::Retrieve).map_or(0, workload::Tally::count);
        let device = DeviceFigures {
            write_amplification: window.write_amplification(),
            flash_reads_per_retrieve: window.flash_reads_per_retrieve(retrieves),
            counters: window.after.nand.words().to_vec(),
        };
        let name = plan.operation.name();
        Self {
            report: Report::new(name, &target.uri, outcome, *wall_seconds, &device, *fill),
            device: target.profile.description.clone(),
            seed: plan.seed,
            device_seed,
            load: match plan.load {
                Load::QueueDepth(depth) => LoadReport::QueueDepth(depth),
                Load::Rate { per_second } => LoadReport::Rate(per_second),
            },
            keys: plan.keys,
            key_bytes: plan.key_bytes,
            value_bytes: plan.value_bytes,
            distribution: match plan.distribution {
                Distribution::Uniform => "uniform",
                Distribution::Zipfian => "zipfian",
            },
            simulated_seconds: outcome.elapsed().as_secs_f64(),
            flash: *flash,
        }
    }

    /// What went wrong, if anything did.
    pub(super) fn errors(&self) -> Option<String> {
        let Report { ops, errors, errors_by_status, .. } = &self.report;
        let causes = errors_by_status.iter().map(|(cause, count)| format!("{count} {cause}"));
        let causes = causes.collect::<Vec<_>>().join(", ");
        (*errors > 0).then(|| format!("{errors} of {ops} operations failed: {causes}"))
    }

    /// As a person reads it.
    pub(super) fn table(&self, plan: &Plan) -> String {
        let Report { write_amplification, flash_reads_per_retrieve, .. } = self.report;
        let Report { workload, target, .. } = &self.report;
        [
            format!("{workload} on {target}\n{}\n", self.device),
            self.facts(plan),
            breakdown::latencies(&self.report.latency_ns),
            breakdown::stages(&self.report.stages_ns),
            self.flash.table(write_amplification, flash_reads_per_retrieve),
            format!("digest {}\n", self.report.digest),
        ]
        .join("\n")
    }

    fn facts(&self, plan: &Plan) -> String {
        let report = &self.report;
        let load = match self.load {
            LoadReport::QueueDepth(depth) => format!("{} outstanding", grouped(depth.into())),
            LoadReport::Rate(rate) => format!("{} due in a second", grouped(rate)),
        };
        let pairs = format!(
            "{} of {} + {}, {}, seed {}",
            grouped(self.keys),
            human_bytes(plan.key_bytes as u64),
            human_bytes(self.value_bytes.into()),
            self.distribution,
            self.seed,
        );
        let mut facts = vec![("pairs", pairs)];
        if let Some(fill) = &report.fill {
            facts.push(("stored before", format!("in {}, not measured", seconds(fill.seconds))));
        }
        let rate = report.ops_per_second.map_or_else(
            || "no time passed".to_owned(),
            |rate| {
                format!(
                    "{}, {} operations a second",
                    seconds(self.simulated_seconds),
                    rounded(rate)
                )
            },
        );
        facts.extend([
            ("operations", format!("{}, {load}", grouped(report.ops))),
            ("errors", grouped(report.errors)),
            ("simulated time", rate),
            ("wall time", wall(report)),
        ]);
        table::facts(&facts)
    }
}

fn wall(report: &Report) -> String {
    let rate = rounded(report.ops_per_wall_second);
    format!("{}, {rate} operations a second", seconds(report.wall_seconds))
}

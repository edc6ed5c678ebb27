use super::command::QUEUE_DEPTH;
use super::fault::{Fault, Faults};
use super::load::Loaded;
use super::phase::Phase;
use super::treatment::TreatmentReport;
use crate::args::DemoArgs;
use crate::breakdown::{self, Latencies, StageMeans};
use crate::flash::Flash;
use crate::lateness::LatenessReport;
use crate::number::{counted, grouped, seconds};
use crate::path::{shortened, shown};
use crate::table;
use base::human_bytes;
use node::Profile;
use reactor::Lateness;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::absolute;
use std::time::Duration;
use workload::{Kind, LatencyNanos, stages_ns};

/// The results of a run, of which the report is made.
pub(super) struct Ran {
    pub(super) loaded: Loaded,
    pub(super) retrieved: Phase,
    /// Bytes programmed for each byte stored.
    pub(super) write_amplification: Option<f64>,
    pub(super) flash_reads_per_retrieve: Option<f64>,
    pub(super) flash: Flash,
    pub(super) digest: u64,
    /// Lateness of the device's events, in real time.
    pub(super) lateness: Option<Lateness>,
}

/// Output of `kvasir demo`.
#[derive(Debug, Serialize)]
pub(super) struct DemoReport {
    path: String,
    device: String,
    description: String,
    seed: u64,
    /// Complete files on the device.
    files: u64,
    pairs: u64,
    key_bytes: u64,
    value_bytes: u64,
    /// Pairs that are missing or wrong.
    errors: u64,
    /// The first of these pairs.
    faults: Vec<Fault>,
    queue_depth: usize,
    /// The device's clock.
    clock: &'static str,
    simulated_seconds: Seconds,
    /// Lateness of the device's events, in real time.
    #[serde(skip_serializing_if = "Option::is_none")]
    event_lateness_ns: Option<LatenessReport>,
    wall_seconds: f64,
    latency_ns: Latencies,
    stages_ns: StageMeans,
    write_amplification: Option<f64>,
    flash_reads_per_retrieve: Option<f64>,
    #[serde(flatten)]
    flash: Flash,
    /// Memory limit for values, if there was one.
    memory_limit_bytes: Option<u64>,
    treatments: BTreeMap<&'static str, TreatmentReport>,
    digest: String,
    #[serde(skip)]
    treatment_table: String,
}

/// Time of each phase on the device's clock.
#[derive(Clone, Copy, Debug, Serialize)]
struct Seconds {
    store: f64,
    retrieve: f64,
}

/// Most faults in the table.
const FAULTS_SHOWN: usize = 10;

impl DemoReport {
    pub(super) fn new(
        args: &DemoArgs,
        profile: &Profile,
        ran: &mut Ran,
        memory_limit_bytes: Option<u64>,
        wall: Duration,
    ) -> Self {
        let Faults { count: errors, listed: faults } = std::mem::take(&mut ran.loaded.faults);
        let (loaded, retrieved) = (&ran.loaded, &ran.retrieved);
        let phases = [(Kind::Store, &loaded.phase), (Kind::Retrieve, retrieved)];
        let tallies: Vec<_> = phases
            .iter()
            .map(|(kind, phase)| (kind.name(), &phase.tally))
            .filter(|(_, tally)| tally.count() > 0)
            .collect();
        Self {
            path: shown(&absolute(&args.path).unwrap_or_else(|_| args.path.clone())),
            device: profile.name.clone(),
            description: profile.description.clone(),
            seed: args.seed,
            files: loaded.file_count(),
            pairs: loaded.pairs.len() as u64,
            key_bytes: loaded.key_bytes(),
            value_bytes: loaded.value_bytes(),
            errors,
            faults,
            queue_depth: QUEUE_DEPTH,
            clock: args.clock.name(),
            event_lateness_ns: ran.lateness.as_ref().map(LatenessReport::new),
            simulated_seconds: Seconds {
                store: loaded.phase.elapsed.as_secs_f64(),
                retrieve: retrieved.elapsed.as_secs_f64(),
            },
            wall_seconds: wall.as_secs_f64(),
            latency_ns: tallies
                .iter()
                .map(|(kind, tally)| (*kind, LatencyNanos::of(tally)))
                .collect(),
            stages_ns: tallies.iter().map(|(kind, tally)| (*kind, stages_ns(tally))).collect(),
            write_amplification: ran.write_amplification,
            flash_reads_per_retrieve: ran.flash_reads_per_retrieve,
            flash: ran.flash,
            memory_limit_bytes,
            treatments: loaded.treatments.report(),
            digest: format!("{:016x}", ran.digest),
            treatment_table: loaded.treatments.table(),
        }
    }

    /// Returns the errors, if there are any.
    pub(super) fn errors(&self) -> Option<String> {
        let first = self.faults.first()?.line();
        Some(format!("{} went wrong, the first is {first}", counted(self.errors, "pair")))
    }

    /// Returns the report as text.
    pub(super) fn table(&self) -> String {
        let mut sections = vec![
            format!("{} on {}\n{}\n", shortened(&self.path, 60), self.device, self.description),
            self.facts(),
        ];
        if self.pairs > 0 {
            sections.push(breakdown::latencies(&self.latency_ns));
            sections.push(breakdown::stages(&self.stages_ns));
        }
        sections.push(self.flash.table(self.write_amplification, self.flash_reads_per_retrieve));
        sections.push(self.treatment_table.clone());
        if !self.faults.is_empty() {
            let lines = self.faults.iter().take(FAULTS_SHOWN);
            let lines = lines.map(|fault| format!("  {}\n", shortened(&fault.line(), 76)));
            sections.push(format!("went wrong\n{}", lines.collect::<String>()));
        }
        sections.push(format!("digest {} of seed {}\n", self.digest, self.seed));
        sections.join("\n")
    }

    fn facts(&self) -> String {
        let bytes = human_bytes(self.key_bytes + self.value_bytes);
        let stored = format!(
            "{} as {}, {bytes} of keys and values",
            counted(self.files, "file"),
            counted(self.pairs, "pair"),
        );
        let read = match self.errors {
            0 if self.pairs == 0 => counted(self.pairs, "pair"),
            0 => format!("{}, every byte as it was stored", counted(self.pairs, "pair")),
            errors => format!("{} of {} wrong", grouped(errors), counted(self.pairs, "pair")),
        };
        let Seconds { store, retrieve } = self.simulated_seconds;
        let time = format!("{} storing, {} reading back", seconds(store), seconds(retrieve));
        let mut facts = vec![("stored", stored), ("read back", read)];
        match &self.event_lateness_ns {
            None => facts.push(("simulated time", time)),
            Some(lateness) => {
                facts.push(("real time", time));
                facts.extend(lateness.facts());
            }
        }
        facts.push(("wall time", seconds(self.wall_seconds)));
        facts.push(("queue depth", grouped(self.queue_depth as u64)));
        table::facts(&facts)
    }
}

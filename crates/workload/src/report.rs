use crate::driver::Fill;
use crate::kind::Kind;
use crate::mismatch::Mismatch;
use crate::outcome::{EarlyEnd, Outcome};
use crate::tally::Tally;
use base::Nanos;
use clock::Stage;
use serde::Serialize;
use std::collections::BTreeMap;

/// An outcome with the device's own figures: what `kvasir bench --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The name of what was measured.
    pub workload: String,
    /// The device that was measured.
    pub target: String,
    /// Operations that completed, in whatever way.
    pub ops: u64,
    /// Operations that did what they were asked, by kind.
    pub ops_by_kind: BTreeMap<&'static str, u64>,
    /// Why the run ended before its plan did, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub early_end: Option<&'static str>,
    /// Operations that did not do what they were asked.
    pub errors: u64,
    /// The same by the name of the status.
    pub errors_by_status: BTreeMap<String, u64>,
    /// The first operation that found other data than the run stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mismatch: Option<Mismatch>,
    /// [`Outcome::misses`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub misses: Option<u64>,
    /// Operations that did what they were asked, for each second of the target's clock; `None` if
    /// no time passed on it.
    pub ops_per_second: Option<f64>,
    /// How long the run took here.
    pub wall_seconds: f64,
    /// Operations that completed, for each second that the run took here.
    pub ops_per_wall_second: f64,
    /// Latency by kind of operation, in the target's clock.
    pub latency_ns: BTreeMap<&'static str, LatencyNanos>,
    /// Mean time by kind of operation and stage: the stages of a kind add up to its mean latency.
    pub stages_ns: BTreeMap<&'static str, BTreeMap<&'static str, f64>>,
    /// How late completions were seen, by kind of operation; none in virtual time.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub lateness_ns: BTreeMap<&'static str, LatenessNanos>,
    /// See [`DeviceFigures`].
    pub write_amplification: Option<f64>,
    /// See [`DeviceFigures`].
    pub flash_reads_per_retrieve: Option<f64>,
    /// [`Outcome::digest`] with the device's counters, as 16 hexadecimal digits.
    pub digest: String,
    /// The keys that were stored before the run, if any were.
    pub fill: Option<FillFigures>,
}

/// Latency of one kind of operation in nanoseconds. Mean and maximum are exact, quantiles have 3
/// digits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LatencyNanos {
    /// The mean.
    pub mean: f64,
    /// The median.
    pub p50: u64,
    /// What 99 of 100 did not exceed.
    pub p99: u64,
    /// What 999 of 1000 did not exceed.
    pub p999: u64,
    /// The longest.
    pub max: u64,
}

/// How late the operations of one kind were seen, in nanoseconds to 3 digits: see
/// [`Stage::Late`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LatenessNanos {
    /// The median.
    pub p50: u64,
    /// What 99 of 100 did not exceed.
    pub p99: u64,
    /// What 999 of 1000 did not exceed.
    pub p999: u64,
    /// The longest.
    pub max: u64,
}

/// Keys that were stored before the run, unmeasured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FillFigures {
    /// How many.
    pub keys: u64,
    /// How long that took in the target's clock.
    pub seconds: f64,
}

/// What only the device knows of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceFigures {
    /// Bytes programmed for each byte that the host stored during the run; `None` if it stored
    /// none.
    pub write_amplification: Option<f64>,
    /// Pages read for each retrieve of the run; `None` if there was none.
    pub flash_reads_per_retrieve: Option<f64>,
    /// The device's counters after the run, for the digest.
    pub counters: Vec<u64>,
}

impl Report {
    /// The report of a run of `workload` on `target` that took `wall_seconds` here.
    pub fn new(
        workload: &str,
        target: &str,
        outcome: &Outcome,
        wall_seconds: f64,
        device: &DeviceFigures,
        fill: Option<Fill>,
    ) -> Self {
        let (ops, errors) = (outcome.operations(), outcome.errors());
        let elapsed = outcome.elapsed();
        let tallies = || {
            let tally = |kind: Kind| outcome.tally(kind).map(|tally| (kind.name(), tally));
            Kind::ALL.into_iter().filter_map(tally)
        };
        Self {
            workload: workload.to_owned(),
            target: target.to_owned(),
            ops,
            ops_by_kind: tallies().map(|(kind, tally)| (kind, tally.count())).collect(),
            early_end: outcome.early_end().map(EarlyEnd::reason),
            errors,
            errors_by_status: outcome.errors_by_status(),
            mismatch: outcome.mismatch().cloned(),
            misses: outcome.misses(),
            ops_per_second: (elapsed > Nanos::ZERO)
                .then(|| per_second(ops - errors, elapsed.as_secs_f64())),
            wall_seconds,
            ops_per_wall_second: per_second(ops, wall_seconds),
            latency_ns: tallies().map(|(kind, tally)| (kind, LatencyNanos::of(tally))).collect(),
            stages_ns: tallies().map(|(kind, tally)| (kind, stages_ns(tally))).collect(),
            lateness_ns: tallies()
                .filter_map(|(kind, tally)| Some((kind, LatenessNanos::of(tally)?)))
                .collect(),
            write_amplification: device.write_amplification,
            flash_reads_per_retrieve: device.flash_reads_per_retrieve,
            digest: format!("{:016x}", outcome.digest(&device.counters)),
            fill: fill
                .map(|fill| FillFigures { keys: fill.keys, seconds: fill.elapsed.as_secs_f64() }),
        }
    }
}

impl LatencyNanos {
    /// That of `tally`.
    pub fn of(tally: &Tally) -> Self {
        Self {
            mean: tally.mean_ns(),
            p50: tally.latency(0.5).0,
            p99: tally.latency(0.99).0,
            p999: tally.latency(0.999).0,
            max: tally.max().0,
        }
    }
}

impl LatenessNanos {
    /// That of `tally`, if any of it was late.
    pub fn of(tally: &Tally) -> Option<Self> {
        let at = |quantile| tally.lateness(quantile).map(|late| late.0);
        Some(Self { p50: at(0.5)?, p99: at(0.99)?, p999: at(0.999)?, max: at(1.0)? })
    }
}

/// Mean time of the operations of `tally` in each stage, in nanoseconds, by the stage's name.
pub fn stages_ns(tally: &Tally) -> BTreeMap<&'static str, f64> {
    Stage::ALL.into_iter().map(|stage| (stage.name(), tally.stage_mean_ns(stage))).collect()
}

#[expect(clippy::cast_precision_loss, reason = "for reports, where 53 bits are plenty")]
fn per_second(count: u64, seconds: f64) -> f64 {
    count as f64 / seconds
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Finding;
    use crate::outcome::tests::{add, completion};
    use serde_json::json;
    use spec::Status;

    fn outcome() -> Outcome {
        let mut outcome = Outcome::new(Nanos(1_000));
        let missing = Finding::Failed(Status::KEY_DOES_NOT_EXIST);
        for (id, latency, finding) in [
            (0, 1_000, Finding::Right),
            (1, 2_000, Finding::Right),
            (2, 2_000, Finding::Wrong),
            (3, 1, missing),
        ] {
            add(&mut outcome, Kind::Retrieve, &completion(id, 1_000, latency), finding);
        }
        outcome
    }

    fn report(outcome: &Outcome) -> Report {
        let device = DeviceFigures {
            write_amplification: None,
            flash_reads_per_retrieve: Some(1.25),
            counters: vec![5],
        };
        let fill = Fill { keys: 10, elapsed: Nanos::from_millis(1_500) };
        Report::new("retrieve", "sim:moke", outcome, 0.5, &device, Some(fill))
    }

    #[test]
    fn a_report_has_the_keys_and_units_that_are_promised() {
        let outcome = outcome();
        let mut stages = json!({"link": 0.0, "handler": 0.0, "index": 0.0, "queue": 0.0});
        for stage in ["latch", "batch", "channel", "array", "gc", "core", "late"] {
            stages[stage] = json!(if stage == "array" { 1_500.0 } else { 0.0 });
        }
        let expected = json!({
            "workload": "retrieve",
            "target": "sim:moke",
            "ops": 4,
            "ops_by_kind": {"retrieve": 2},
            "errors": 2,
            "errors_by_status": {"KV Key Does Not Exist": 1, "Wrong Value": 1},
            "ops_per_second": 1e6,
            "wall_seconds": 0.5,
            "ops_per_wall_second": 8.0,
            "latency_ns": {"retrieve": {
                "mean": 1_500.0, "p50": 1_000, "p99": 2_000, "p999": 2_000, "max": 2_000,
            }},
            "stages_ns": {"retrieve": stages},
            "write_amplification": null,
            "flash_reads_per_retrieve": 1.25,
            "digest": format!("{:016x}", outcome.digest(&[5])),
            "fill": {"keys": 10, "seconds": 1.5},
        });
        assert_eq!(serde_json::to_value(report(&outcome)).unwrap(), expected);
    }

    #[test]
    fn misses_and_lateness_are_reported_where_there_are_any() {
        let mut outcome = Outcome::new(Nanos(1_000)).with_misses();
        let mut late = completion(0, 1_000, 2_000);
        late.stages = clock::Stages::default();
        late.stages.add(Stage::Array, Nanos(1_500));
        late.stages.add(Stage::Late, Nanos(500));
        add(&mut outcome, Kind::Retrieve, &late, Finding::Miss);
        let report = serde_json::to_value(report(&outcome)).unwrap();
        assert_eq!(report["misses"], 1);
        let expected = json!({"retrieve": {"p50": 500, "p99": 500, "p999": 500, "max": 500}});
        assert_eq!(report["lateness_ns"], expected);
    }

    #[test]
    fn a_run_without_operations_that_succeeded_or_time_has_no_such_figures() {
        let report = report(&Outcome::new(Nanos(7)));
        assert_eq!(report.ops_per_second, None);
        assert!(report.latency_ns.is_empty() && report.stages_ns.is_empty());
    }
}

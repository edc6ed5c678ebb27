//! The device and the load of MoKE, section III.

use super::run::Run;
use crate::args::Clock;
use crate::device;
use crate::output::Failure;
use crate::rig::{Measured, Rig, Setup};
use base::{Nanos, human_bytes};
use node::{Device, Profile};
use workload::{Distribution, Kind, Load, Operation, Payload, Plan, Space, Until, ValueSizes};

/// MoKE, section III: "2.6M KV pairs with 16B keys and 4KB values".
pub(super) const PAIRS: u64 = 2_600_000;

/// See [`PAIRS`].
pub(super) const KEY_BYTES: usize = 16;

/// See [`PAIRS`].
pub(super) const VALUE_BYTES: u32 = 4_096;

/// Operations of a figure: enough for means to settle. In virtual time nothing else disturbs them.
pub(super) const OPERATIONS: u64 = 260_000;

const SEED: u64 = 1;

/// Returns the device of the paper.
pub(super) fn profile() -> Result<Profile, Failure> {
    device::load("moke")
}

/// Returns a new device.
pub(super) fn rig(profile: &Profile, run: Run) -> Result<Rig<'_>, Failure> {
    Rig::new(Setup {
        profile,
        seed: SEED,
        shuffle: false,
        faults: None,
        clock: Clock::Virtual,
        timeline: None,
        progress: run.progress,
    })
}

/// Runs random operations on the pairs of the paper, `queue_depth` in flight.
pub(super) fn plan(operation: Operation, queue_depth: u32) -> Plan {
    Plan {
        operation,
        until: Until::Operations(OPERATIONS),
        load: Load::QueueDepth(queue_depth),
        nsid: Device::NAMESPACE,
        space: Space::Pairs,
        key_bytes: KEY_BYTES,
        values: ValueSizes::Fixed(VALUE_BYTES),
        keys: PAIRS,
        is_filled: false,
        seed: SEED,
        distribution: Distribution::Uniform,
        payload: Payload::None,
    }
}

/// Runs `plan`. Fails if an operation fails: all figures would be worthless.
pub(super) fn measure(rig: &mut Rig<'_>, plan: &Plan) -> Result<Measured, Failure> {
    let measured = rig.measure(plan)?;
    match measured.outcome.errors() {
        0 => Ok(measured),
        errors => Err(Failure::Broken(format!(
            "{errors} of {} operations of the experiment failed",
            measured.outcome.operations()
        ))),
    }
}

/// Returns the mean latency of `kind` in nanoseconds; there must be such operations.
pub(super) fn mean_ns(measured: &Measured, kind: Kind) -> f64 {
    measured.outcome.tally(kind).expect("operations of this kind succeeded").mean_ns()
}

/// Describes the device of the experiment, and `load`.
pub(super) fn setup(profile: &Profile, load: &str) -> String {
    let nand = &profile.nand;
    format!(
        "profile moke: {} channels x {} dies, pages of {}, read {}, program {}; {load}; values of \
         {}, seed {SEED}, virtual time",
        nand.channels,
        nand.dies_per_channel,
        human_bytes(nand.page_bytes.into()),
        nand.levels.read[0],
        nand.levels.program[0],
        human_bytes(VALUE_BYTES.into()),
    )
}

/// Returns the assumptions of `profile` about `keys`, followed by `own`.
pub(super) fn assumptions(profile: &Profile, keys: &[&str], own: &[&str]) -> Vec<String> {
    let of_profile = keys.iter().map(|&key| {
        let found = profile.assumptions().iter().find(|assumption| assumption.key == key);
        let assumption = found.unwrap_or_else(|| panic!("moke assumes nothing of {key}"));
        format!("{key} of the profile: {}", assumption.sentence.trim_end_matches('.'))
    });
    of_profile.chain(own.iter().map(|&own| own.to_owned())).collect()
}

/// Converts a time for arithmetic with means.
#[expect(clippy::cast_precision_loss, reason = "times of stages are far below 2^53")]
pub(super) const fn nanos(time: Nanos) -> f64 {
    time.0 as f64
}

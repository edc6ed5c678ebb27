//! What all experiments of `OctoKV` say of themselves.

use super::costs::Costs;
use super::testbed::{CORES, SEED};
use super::trial;
use crate::plot::{Axis, Scale, Unit};
use crate::reproduce::run::Run;
use base::Nanos;

/// Describes the target and `load`, of requests of 16 KiB.
pub(super) fn described(load: &str, run: Run, control: &str) -> String {
    let load = format!("{load}; requests of 16 KiB, seed {SEED}");
    described_for((trial::WARM_UP, trial::MEASURED), &load, run, control)
}

/// Describes the target and `load`, which is measured after a time of warm-up.
pub(super) fn described_for(
    (warm_up, measured): (Nanos, Nanos),
    load: &str,
    run: Run,
    control: &str,
) -> String {
    let costs = Costs::of_paper();
    let text = format!(
        "a target of {CORES} cores of 1.8 GHz, virtual time; {load}; {} s after {} s of warm-up; \
         stages of a command as measured on {}, scaled to 1.8 GHz",
        measured.as_secs_f64(),
        warm_up.as_secs_f64(),
        costs.processor,
    );
    if run.is_control { format!("{text}; control: {control}") } else { text }
}

/// Returns the assumptions on the target and on the paper's clients, and `own`.
pub(super) fn assumptions(own: &[&str]) -> Vec<String> {
    assumptions_on_target(&[&ON_CLIENTS, own].concat())
}

/// Returns the assumptions on the target, and `own`.
pub(super) fn assumptions_on_target(own: &[&str]) -> Vec<String> {
    ON_TARGET.iter().chain(own).map(|&text| text.to_owned()).collect()
}

const ON_TARGET: [&str; 4] = [
    "the slides give no times of stages: these are CPU times of Kvasir's server and of a bare \
     server over loopback (experiments/README.md, stages), multiplied by the ratio of clock rates; \
     times are exponential with these means",
    "stages that may move: kv, submit and complete. Of a put of 16 KiB, kv contains the R2T that \
     Kvasir sends for values above 8 KiB",
    "the drive takes 10 us for a command, exponential, and has no queue; the network takes no time",
    "a diverted command costs 150 ns, scaled as the stages, for each of four: two messages sent \
     and taken",
];

const ON_CLIENTS: [&str; 4] = [
    "the client has 20 processors, and so 20 queues, each a connection; connection n belongs to \
     core n mod 6, so that two cores have four and the others three; a thread runs on a processor \
     drawn anew for each operation",
    "a thread waits for each of its operations",
    "the store on the client takes two commands for an operation: the value, and 4 KiB of the file \
     system (to find it, or its journal), sent together; the client takes 3 us for a get and 15 us \
     for a put, in its store and its file system; the target looks up no key, which saves all that \
     a get of 4 KiB takes in the stage kv",
    "OctoKV takes one command for an operation, and the client 1 us",
];

pub(super) fn axis_of_cores() -> Axis {
    let names = (1..=CORES).map(|core| core.to_string()).collect();
    Axis { label: "core".to_owned(), scale: Scale::Categories(names), unit: Unit::Plain }
}

//! `kvasir bench`: a device under a load, measured.

mod report;

use crate::args::{BenchArgs, Distribution, Workload};
use crate::flash::{Flash, Window};
use crate::memory;
use crate::number::counted;
use crate::output::{Failure, Output};
use crate::progress::{Progress, Unit};
use crate::target::Target;
use base::human_bytes;
use base::limits::VALUE_BYTES_MAX;
use node::{Device, DeviceError};
use reactor::Reactor;
use report::BenchReport;
use std::time::Instant;
use workload::{Fill, FillError, Load, Operation, Outcome, Payload, Plan};

/// Keys where the load does not say how many.
const KEYS: u64 = 100_000;

/// Outstanding operations where neither depth nor rate is given.
const QUEUE_DEPTH: u32 = 64;

/// Operations of which 100 are this many retrieves, where a mixture does not say.
const READ_PERCENT: u8 = 50;

/// What was measured.
struct Measured {
    outcome: Outcome,
    fill: Option<Fill>,
    window: Window,
    flash: Flash,
    wall_seconds: f64,
}

/// Measures what `args` ask for.
pub(crate) fn run(args: &BenchArgs) -> Result<Output, Failure> {
    let target = Target::parse(&args.target)?;
    let plan = plan(args, target.payload)?;
    check_room(&plan, &target, memory::total_bytes())?;
    let seed = target.seed.unwrap_or(args.seed);
    let mut reactor = Reactor::new(target.shuffle.then_some(seed));
    let measured = reactor.run(measure(&target, &plan, seed, Progress::new(args.json)))?;
    let report = BenchReport::new(&target, &plan, seed, &measured);
    let errors = report.errors();
    let output = if args.json { Output::json(&report) } else { Output::new(report.table(&plan)) };
    Ok(output.with_errors(errors))
}

fn plan(args: &BenchArgs, payload: Payload) -> Result<Plan, Failure> {
    let operation = operation(args)?;
    let load = match args.rate {
        Some(per_second) => Load::Rate { per_second },
        None => Load::QueueDepth(args.queue_depth.unwrap_or(QUEUE_DEPTH)),
    };
    let value_bytes = u32::try_from(args.value_size).map_err(|_| {
        let (max, bytes) = (human_bytes(VALUE_BYTES_MAX.into()), human_bytes(args.value_size));
        Failure::Refused(format!("a value has at most {max}, not {bytes}"))
    })?;
    let plan = Plan {
        operation,
        operations: args.ops,
        load,
        nsid: Device::NAMESPACE,
        key_bytes: usize::try_from(args.key_size).unwrap_or(usize::MAX),
        value_bytes,
        keys: args.keys.unwrap_or(match operation {
            Operation::Store | Operation::Delete => args.ops,
            _ => KEYS,
        }),
        seed: args.seed,
        distribution: match args.distribution {
            Distribution::Uniform => workload::Distribution::Uniform,
            Distribution::Zipfian => workload::Distribution::Zipfian,
        },
        payload,
    };
    plan.validate().map_err(Failure::refused)?;
    Ok(plan)
}

fn operation(args: &BenchArgs) -> Result<Operation, Failure> {
    if args.read_percent.is_some() && args.workload != Workload::Mixed {
        return Err(Failure::refused("--read-percent is for the workload mixed only"));
    }
    Ok(match args.workload {
        Workload::Store => Operation::Store,
        Workload::Retrieve => Operation::Retrieve,
        Workload::Mixed => {
            Operation::Mixed { read_percent: args.read_percent.unwrap_or(READ_PERCENT) }
        }
        Workload::Delete => Operation::Delete,
        Workload::Exist => Operation::Exist,
    })
}

/// Refuses pairs that do not fit the device, or the machine's memory of `total` bytes.
fn check_room(plan: &Plan, target: &Target, total: Option<u64>) -> Result<(), Failure> {
    let pair = plan.key_bytes as u64 + u64::from(plan.value_bytes);
    let capacity = target.profile.namespace.size_bytes;
    // Below 2^32 keys of 2 MiB: far from overflow.
    if plan.keys * pair > capacity {
        return Err(Failure::Refused(format!(
            "{} of {} do not fit {}, which has {}",
            counted(plan.keys, "pair"),
            human_bytes(pair),
            target.profile.name,
            human_bytes(capacity),
        )));
    }
    let needed = memory_bytes(plan, target);
    match total {
        Some(total) if needed > total => Err(Failure::Refused(format!(
            "this would take about {} of memory, and there are {}: fewer keys or operations, or \
             payload=none, take less",
            human_bytes(needed),
            human_bytes(total),
        ))),
        _ => Ok(()),
    }
}

/// Memory of an emulated record beside its key and its value, measured: header, share of its page,
/// index entry.
const RECORD_MEMORY_BYTES: u64 = 200;

/// Memory for each byte of a key, measured: keys lie in pages and in summaries, and vectors have
/// room left.
const KEY_MEMORY_FACTOR: u64 = 3;

/// About how much memory the emulated flash and the index will take.
fn memory_bytes(plan: &Plan, target: &Target) -> u64 {
    let stores = match plan.operation {
        Operation::Store => plan.operations.max(plan.keys),
        Operation::Mixed { .. } => plan.keys + plan.operations,
        _ => plan.keys,
    };
    let value = if plan.payload == Payload::Full { u64::from(plan.value_bytes) } else { 0 };
    let flash = target.profile.nand.raw_bytes();
    // What was overwritten stays until its block is erased, so there is at most a full flash.
    let records_of_flash = flash / (plan.key_bytes as u64 + u64::from(plan.value_bytes)).max(16);
    let key = KEY_MEMORY_FACTOR * plan.key_bytes as u64;
    stores.min(records_of_flash) * (RECORD_MEMORY_BYTES + key + value)
}

async fn measure(
    target: &Target,
    plan: &Plan,
    seed: u64,
    progress: Progress,
) -> Result<Measured, Failure> {
    let profile = &target.profile;
    let cells = Device::manufacture(profile, seed);
    let device = Device::format(profile, cells, seed).await.map_err(device_failure)?;
    // The store keeps records of its own.
    let own_records = device.store().usage().values.records;
    let value_bytes_max = device.store().value_bytes_max();
    if plan.value_bytes > value_bytes_max {
        return Err(Failure::Refused(format!(
            "{} takes values of at most {}",
            profile.name,
            human_bytes(value_bytes_max.into())
        )));
    }
    let mut fill = None;
    if plan.needs_fill() {
        let mut bar = progress.bar("storing keys", Unit::Count);
        let queue = device.controller().queue_pair();
        let filled = workload::fill(&queue, plan, |done, total| bar.set(done, total)).await;
        fill = Some(filled.map_err(|error: FillError| Failure::Broken(error.to_string()))?);
    }
    // What is only buffered would be programmed, and read from memory, in the window.
    flush(&device).await?;
    let before = device.figures();
    let started = Instant::now();
    let mut bar = progress.bar("measuring", Unit::Count);
    let queue = device.controller().queue_pair();
    let outcome = workload::run(&queue, plan, |done, total| bar.set(done, total)).await;
    let wall_seconds = started.elapsed().as_secs_f64();
    // What the window's stores have to program counts as theirs, whenever they were answered.
    flush(&device).await?;
    let window = Window { before, after: device.figures() };
    let pairs = device.store().usage().values.records - own_records;
    let pair_bytes = plan.key_bytes as u64 + u64::from(plan.value_bytes);
    let flash = Flash::new(&device, &window, pairs, pairs * pair_bytes);
    Ok(Measured { outcome, fill, window, flash, wall_seconds })
}

/// Has everything on the flash that was answered.
pub(crate) async fn flush(device: &Device) -> Result<(), Failure> {
    let flushed = device.store().flush().await;
    flushed.map_err(|error| Failure::Broken(format!("the device cannot be flushed: {error}")))
}

/// What a device that cannot be built means for whoever asked for it.
pub(crate) fn device_failure(error: DeviceError) -> Failure {
    match error {
        DeviceError::TooSmall { .. } => Failure::refused(error),
        DeviceError::Store(_) => Failure::Broken(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{GIB, MIB};

    const PLAN: Plan = Plan {
        operation: Operation::Retrieve,
        operations: 1_000,
        load: Load::QueueDepth(1),
        nsid: 1,
        key_bytes: 16,
        value_bytes: 1 << 20,
        keys: 1_000,
        seed: 1,
        distribution: workload::Distribution::Uniform,
        payload: Payload::Full,
    };

    fn has_room(plan: Plan, total: u64) -> bool {
        let target = Target::parse("sim:moke").unwrap();
        check_room(&plan, &target, Some(total)).is_ok()
    }

    #[test]
    fn values_that_memory_cannot_hold_are_refused() {
        assert!(has_room(PLAN, GIB) && !has_room(PLAN, 999 * MIB));
        assert!(has_room(Plan { payload: Payload::None, ..PLAN }, MIB));
        let overwriting = Plan { operation: Operation::Mixed { read_percent: 50 }, ..PLAN };
        assert!(!has_room(overwriting, GIB) && has_room(overwriting, 2 * GIB));
    }

    #[test]
    fn overwriting_takes_no_more_memory_than_the_whole_flash() {
        let operations = 4_000_000_000;
        let overwriting = Plan { operation: Operation::Store, operations, ..PLAN };
        assert!(has_room(overwriting, 65 * GIB) && !has_room(overwriting, 64 * GIB));
    }

    #[test]
    fn pairs_that_the_device_cannot_hold_are_refused() {
        let keys = 64_000_000_000 / (16 + (1 << 20));
        let plan = Plan { payload: Payload::None, keys, ..PLAN };
        assert!(has_room(plan, GIB) && !has_room(Plan { keys: keys + 1, ..plan }, GIB));
    }
}

//! From the command line to a plan.

use super::room::Stored;
use crate::args::{self, BenchArgs, Workload};
use crate::output::Failure;
use node::Device;
use workload::{Distribution, Load, Operation, Payload, Plan, Until, ValueSizes, Ycsb};

/// Keys where the load does not say how many.
const KEYS: u64 = 100_000;

/// Operations where neither their number nor a time is given.
const OPERATIONS: u64 = 100_000;

/// Outstanding operations where neither depth nor rate is given.
pub(super) const QUEUE_DEPTH: u32 = 64;

/// Operations of which 100 are this many retrieves, where a mixture does not say.
const READ_PERCENT: u8 = 50;

/// The plan that `args` describe.
pub(super) fn of(args: &BenchArgs, payload: Payload) -> Result<Plan, Failure> {
    let operation = operation(args)?;
    let operations = args.ops.unwrap_or(OPERATIONS);
    let plan = Plan {
        operation,
        until: args.seconds.map_or(Until::Operations(operations), Until::Time),
        load: match args.rate {
            Some(per_second) => Load::Rate { per_second },
            None => Load::QueueDepth(args.queue_depth.unwrap_or(QUEUE_DEPTH)),
        },
        nsid: Device::NAMESPACE,
        key_bytes: usize::try_from(args.key_size).unwrap_or(usize::MAX),
        values: args.value_size.parse::<ValueSizes>().map_err(Failure::refused)?,
        keys: args.keys.unwrap_or(match (operation, args.seconds) {
            (Operation::Store | Operation::Delete, None) => operations,
            _ => KEYS,
        }),
        seed: args.measure.seed,
        distribution: distribution(args, operation),
        payload,
    };
    plan.validate().map_err(Failure::refused)?;
    check_distribution(args, &plan)?;
    Ok(plan)
}

fn operation(args: &BenchArgs) -> Result<Operation, Failure> {
    if args.read_percent.is_some() && args.workload != Some(Workload::Mixed) {
        return Err(Failure::refused("--read-percent is for the workload mixed only"));
    }
    let workload = args.workload.ok_or_else(|| Failure::refused("there is no workload"))?;
    Ok(match workload {
        Workload::Store => Operation::Store,
        Workload::Retrieve => Operation::Retrieve,
        Workload::Mixed => {
            Operation::Mixed { read_percent: args.read_percent.unwrap_or(READ_PERCENT) }
        }
        Workload::Delete => Operation::Delete,
        Workload::Exist => Operation::Exist,
        Workload::YcsbA => Operation::Ycsb(Ycsb::A),
        Workload::YcsbB => Operation::Ycsb(Ycsb::B),
        Workload::YcsbC => Operation::Ycsb(Ycsb::C),
        Workload::YcsbD => Operation::Ycsb(Ycsb::D),
        Workload::YcsbE => Operation::Ycsb(Ycsb::E),
        Workload::YcsbF => Operation::Ycsb(Ycsb::F),
    })
}

fn distribution(args: &BenchArgs, operation: Operation) -> Distribution {
    let Some(distribution) = args.distribution else {
        return match operation {
            Operation::Ycsb(ycsb) => ycsb.distribution(),
            _ => Distribution::Uniform,
        };
    };
    match distribution {
        args::Distribution::Uniform => Distribution::Uniform,
        args::Distribution::Zipfian => Distribution::Zipfian,
        args::Distribution::Latest => Distribution::Latest,
        args::Distribution::Sequential => Distribution::Sequential,
    }
}

/// Refuses a distribution that would change nothing.
fn check_distribution(args: &BenchArgs, plan: &Plan) -> Result<(), Failure> {
    let draws_no_key = match (plan.operation, plan.until) {
        (Operation::Delete, _) => true,
        (Operation::Store, Until::Operations(operations)) => operations <= plan.keys,
        _ => false,
    };
    if args.distribution.is_none() || !draws_no_key || plan.distribution == Distribution::Sequential
    {
        return Ok(());
    }
    Err(Failure::refused(
        "each key is stored or deleted once here, so the only distribution that changes anything \
         is sequential",
    ))
}

/// What `plan` stores. How much that is in a time is not known before.
#[expect(clippy::cast_precision_loss, reason = "for an estimate; a key has at most 255 bytes")]
pub(super) fn stored(plan: &Plan) -> Stored {
    let operations = match plan.until {
        Until::Operations(operations) => operations,
        Until::Time(_) => 0,
    };
    let inserts = operations * u64::from(plan.operation.insert_percent()) / 100;
    let overwrites = match plan.operation {
        Operation::Store => operations.saturating_sub(plan.keys),
        Operation::Mixed { .. } | Operation::Ycsb(Ycsb::A | Ycsb::B | Ycsb::F) => operations,
        _ => 0,
    };
    Stored {
        pairs: plan.keys + inserts,
        stores: plan.keys + inserts + overwrites,
        key_bytes: plan.key_bytes as f64,
        value_bytes: plan.values.mean(),
        has_bytes: plan.payload == Payload::Full,
    }
}

//! Turns the command line into a plan.

use super::room::Stored;
use crate::args::{self, BenchArgs, Workload};
use crate::output::Failure;
use base::limits::{BLOCK_BYTES, VALUE_BYTES_MAX};
use base::{KIB, human_bytes};
use workload::{Distribution, Load, Operation, Payload, Plan, Space, Until, ValueSizes, Ycsb};

/// Number of keys or blocks if the load does not say it.
const KEYS: u64 = 100_000;

/// Number of operations if neither their number nor a time is given.
const OPERATIONS: u64 = 100_000;

/// Outstanding operations if neither depth nor rate is given.
pub(super) const QUEUE_DEPTH: u32 = 64;

/// Bytes of a key if the load does not say it.
const KEY_BYTES: u64 = 16;

/// Bytes of a value if the load does not say it.
const VALUES: &str = "4KiB";

/// Retrieves of 100 operations of a mixture that does not say it.
const READ_PERCENT: u8 = 50;

/// A namespace, and the keys in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) nsid: u32,
    pub(super) space: Space,
    /// Keys or blocks of an earlier run, if there was one.
    pub(super) keys: Option<u64>,
}

/// Returns the plan of `operation` in `place` that `args` describe. The number of keys is unknown
/// here if a precondition stores them.
pub(super) fn of(
    args: &BenchArgs,
    operation: Operation,
    place: Place,
    payload: Payload,
) -> Result<Plan, Failure> {
    let operations = args.ops.unwrap_or(OPERATIONS);
    check_units(args, place.space)?;
    let plan = Plan {
        operation,
        until: args.seconds.map_or(Until::Operations(operations), Until::Time),
        load: match args.rate {
            Some(per_second) => Load::Rate { per_second, outstanding: args.queue_depth },
            None => Load::QueueDepth(args.queue_depth.unwrap_or(QUEUE_DEPTH)),
        },
        nsid: place.nsid,
        space: place.space,
        key_bytes: usize::try_from(args.key_size.unwrap_or(KEY_BYTES)).unwrap_or(usize::MAX),
        values: values(args, place.space)?,
        keys: args.keys.or(place.keys).unwrap_or(
            match (operation, args.seconds, args.precondition) {
                (Operation::Delete, None, _) | (Operation::Store, None, None) => operations,
                // A placeholder until the number is known.
                (_, _, Some(_)) => 1,
                _ => KEYS,
            },
        ),
        is_filled: false,
        seed: args.measure.seed,
        distribution: distribution(args, operation),
        payload,
    };
    plan.validate().map_err(Failure::refused)?;
    check_distribution(args, &plan)?;
    Ok(plan)
}

/// Refuses options for pairs on a namespace of blocks, and the reverse.
fn check_units(args: &BenchArgs, space: Space) -> Result<(), Failure> {
    let given = |is_given: bool, name| is_given.then_some(name);
    let (found, of, here) = if space == Space::Pairs {
        let found = given(args.block_size.is_some(), "--block-size");
        (found.or(given(args.span.is_some(), "--span")), "blocks", "pairs")
    } else {
        let found = given(args.key_size.is_some(), "--key-size")
            .or(given(args.value_size.is_some(), "--value-size"))
            .or(given(args.keys.is_some(), "--keys"));
        (found, "pairs", "blocks")
    };
    match found {
        None => Ok(()),
        Some(name) => {
            Err(Failure::Refused(format!("{name} is of {of}, but this workload is on {here}")))
        }
    }
}

fn values(args: &BenchArgs, space: Space) -> Result<ValueSizes, Failure> {
    if space == Space::Pairs {
        return args.value_size.as_deref().unwrap_or(VALUES).parse().map_err(Failure::refused);
    }
    let bytes = args.block_size.unwrap_or(4 * KIB);
    u32::try_from(bytes).map(ValueSizes::Fixed).map_err(|_| {
        let [unit, most] = [BLOCK_BYTES, VALUE_BYTES_MAX].map(|bytes| human_bytes(bytes.into()));
        let bytes = human_bytes(bytes);
        Failure::Refused(format!("a block is a multiple of {unit}, up to {most}, not {bytes}"))
    })
}

/// Returns the plan on as many blocks as `args` say, or as there is `room` for. Other code checks
/// that pairs fit, and the number of keys that a precondition or an earlier run stored.
pub(super) fn within(
    args: &BenchArgs,
    plan: Plan,
    place: Place,
    room: u64,
) -> Result<Plan, Failure> {
    let is_left = args.span.is_none() && place.keys.is_some();
    if plan.space == Space::Pairs || args.precondition.is_some() || is_left {
        return Ok(plan);
    }
    let bytes = u64::from(plan.values.max());
    let keys = args.span.map_or(KEYS.min(room), |span| span / bytes);
    if keys == 0 || keys > room {
        return Err(Failure::Refused(format!(
            "the namespace has room for 1 to {room} blocks of {}: {keys} cannot be used",
            human_bytes(bytes)
        )));
    }
    Ok(Plan { keys, ..plan })
}

/// What is measured.
pub(super) fn operation(args: &BenchArgs) -> Result<Operation, Failure> {
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
        Workload::Read => Operation::Read,
        Workload::Write => Operation::Write,
        Workload::RandRead => Operation::RandRead,
        Workload::RandWrite => Operation::RandWrite,
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

/// Refuses a distribution that has no effect on this operation.
fn check_distribution(args: &BenchArgs, plan: &Plan) -> Result<(), Failure> {
    if plan.operation.is_sequential() && args.distribution.is_some() {
        return Err(Failure::refused(
            "read and write take one block after the other; --distribution is for randread and \
             randwrite",
        ));
    }
    let draws_no_key = match (plan.operation, plan.until) {
        (Operation::Delete, _) => true,
        (Operation::Store, _) if args.precondition.is_some() => false,
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

/// Returns what `plan` stores, after a precondition of `aged_bytes` if there is one. For a plan
/// with a time limit the amount is not known in advance.
#[expect(clippy::cast_precision_loss, reason = "for an estimate; a key has at most 255 bytes")]
pub(super) fn stored(plan: &Plan, aged_bytes: Option<u64>) -> Stored {
    let operations = match plan.until {
        Until::Operations(operations) => operations,
        Until::Time(_) => 0,
    };
    let inserts = operations * u64::from(plan.operation.insert_percent()) / 100;
    let overwrites = match plan.operation {
        Operation::Store => operations.saturating_sub(plan.keys),
        Operation::Mixed { .. }
        | Operation::Ycsb(Ycsb::A | Ycsb::B | Ycsb::F)
        | Operation::Write
        | Operation::RandWrite => operations,
        _ => 0,
    };
    let is_pairs = plan.space == Space::Pairs;
    let stored = Stored {
        is_pairs,
        items: plan.keys + inserts,
        stores: plan.keys + inserts + overwrites,
        key_bytes: if is_pairs { plan.key_bytes as f64 } else { 0.0 },
        value_bytes: plan.values.mean(),
        has_bytes: plan.payload == Payload::Full,
    };
    match aged_bytes {
        None => stored,
        // Overwrites continue until the flash is full.
        Some(bytes) => Stored { items: stored.items_in(bytes), stores: u64::MAX, ..stored },
    }
}

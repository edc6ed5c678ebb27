//! A plan that fits a namespace over NVMe/TCP.

use crate::args::BenchArgs;
use crate::bench::plan::{self, Place};
use crate::kv::Limits;
use crate::number::grouped;
use crate::output::Failure;
use crate::remote::Connected;
use base::human_bytes;
use base::limits::{BLOCK_BYTES, KEY_BYTES_INLINE};
use client::{Namespace, Uri};
use spec::{CommandSet, IdentifyNamespace, KvNamespace};
use workload::{Operation, Payload, Plan, Space};

/// Refuses a load that no namespace accepts, before connecting.
pub(super) fn check(args: &BenchArgs, operation: Operation, uri: &Uri) -> Result<(), Failure> {
    let means_blocks = args.block_size.is_some() || args.span.is_some();
    let is_of_pairs = operation.is_for_pairs() && !(operation.is_for_blocks() && means_blocks);
    let space = if is_of_pairs { Space::Pairs } else { Space::Blocks };
    plan_of(args, operation, uri, space).map(drop)
}

/// Returns the plan for the connected namespace.
pub(super) fn plan(
    args: &BenchArgs,
    operation: Operation,
    uri: &Uri,
    connected: &Connected,
) -> Result<Plan, Failure> {
    match &connected.namespace {
        Namespace::Pairs(namespace) if operation.is_for_pairs() => {
            let plan = plan_of(args, operation, uri, Space::Pairs)?;
            check_pairs(&plan, namespace)?;
            Ok(plan)
        }
        Namespace::Blocks(namespace) if operation.is_for_blocks() => {
            let plan = plan_of(args, operation, uri, Space::Blocks)?;
            check_blocks(&plan, namespace, connected.association.transfer_max())?;
            let room = size_bytes(&connected.namespace) / u64::from(plan.values.max().max(1));
            plan::within(args, plan, place(uri, Space::Blocks), room)
        }
        namespace => Err(Failure::Refused(format!(
            "{} is not for namespace {}, which {}; the target's option ns= names another",
            operation.name(),
            uri.nsid,
            fitting(namespace)
        ))),
    }
}

/// Returns the bytes of a namespace.
pub(super) fn size_bytes(namespace: &Namespace) -> u64 {
    match namespace {
        Namespace::Pairs(namespace) => namespace.size.get(),
        Namespace::Blocks(namespace) => {
            let block_bytes = namespace.lba_format().block_bytes().unwrap_or_default();
            namespace.size.get().saturating_mul(block_bytes.into())
        }
        Namespace::Other(_) => 0,
    }
}

/// Describes a namespace and the loads that it accepts.
fn fitting(namespace: &Namespace) -> String {
    match namespace {
        Namespace::Pairs(_) => {
            "has pairs, for store, retrieve, mixed, delete, exist and ycsb-a to ycsb-f".to_owned()
        }
        Namespace::Blocks(_) => {
            "has blocks, for read, write, randread, randwrite and mixed".to_owned()
        }
        Namespace::Other(CommandSet::ZONED) => {
            "has zones, which are measured in this program, sim:PROFILE or emu:PROFILE".to_owned()
        }
        Namespace::Other(set) => format!("is of the command set {set}"),
    }
}

const fn place(uri: &Uri, space: Space) -> Place {
    Place { nsid: uri.nsid, space, keys: None }
}

fn plan_of(
    args: &BenchArgs,
    operation: Operation,
    uri: &Uri,
    space: Space,
) -> Result<Plan, Failure> {
    let plan = plan::of(args, operation, place(uri, space), Payload::Full)?;
    if space == Space::Pairs && plan.key_bytes > KEY_BYTES_INLINE {
        return Err(Failure::Refused(format!(
            "over NVMe/TCP a key has 1 to {KEY_BYTES_INLINE} bytes, and not {}",
            plan.key_bytes
        )));
    }
    Ok(plan)
}

/// Refuses pairs for which the namespace has no room.
fn check_pairs(plan: &Plan, namespace: &KvNamespace) -> Result<(), Failure> {
    let limits = Limits::of(namespace);
    if plan.key_bytes > usize::from(limits.key_bytes_max) {
        return Err(Failure::Refused(format!(
            "the namespace takes keys of up to {} bytes",
            limits.key_bytes_max
        )));
    }
    if plan.values.max() > limits.value_bytes_max {
        return Err(Failure::Refused(format!(
            "the namespace takes values of up to {}",
            human_bytes(limits.value_bytes_max.into())
        )));
    }
    let (stored, size) = (plan::stored(plan, None), namespace.size.get());
    let keys_max = limits.keys_max.map_or(u64::MAX, u64::from);
    if stored.items > keys_max || stored.items > stored.items_in(size) {
        return Err(Failure::Refused(format!(
            "{} pairs do not fit the namespace, which has {}: fewer are --keys or --ops",
            grouped(stored.items),
            human_bytes(size)
        )));
    }
    Ok(())
}

/// Refuses a namespace whose logical blocks are not of the size that plans use, and blocks larger
/// than the controller's transfer limit. [`plan::within`] checks that the blocks fit.
fn check_blocks(
    plan: &Plan,
    namespace: &IdentifyNamespace,
    transfer_max: Option<u64>,
) -> Result<(), Failure> {
    let format = namespace.lba_format();
    let bytes = format.block_bytes().unwrap_or_default();
    let metadata = format.metadata_bytes.get();
    if bytes != BLOCK_BYTES || metadata != 0 {
        let with = if metadata == 0 { "" } else { " and metadata" };
        return Err(Failure::Refused(format!(
            "the namespace has logical blocks of {bytes} bytes{with}, and what is measured here \
             has blocks of {BLOCK_BYTES} bytes; nvme format changes that where a target allows it"
        )));
    }
    let wanted = u64::from(plan.values.max());
    match transfer_max.filter(|most| wanted > *most) {
        None => Ok(()),
        Some(most) => Err(Failure::Refused(format!(
            "the target moves up to {} at a time, and --block-size is {}",
            human_bytes(most),
            human_bytes(wanted)
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Nanos;
    use spec::LbaFormat;
    use workload::{Distribution, Load, Until, ValueSizes};

    const PLAN: Plan = Plan {
        operation: Operation::RandRead,
        until: Until::Time(Nanos::from_secs(1)),
        load: Load::QueueDepth(1),
        nsid: 1,
        space: Space::Blocks,
        key_bytes: 16,
        values: ValueSizes::Fixed(8_192),
        keys: 1,
        is_filled: false,
        seed: 1,
        distribution: Distribution::Uniform,
        payload: Payload::Full,
    };

    fn namespace(block_bytes_log2: u8, metadata: u16) -> IdentifyNamespace {
        let mut namespace = IdentifyNamespace { size: 10.into(), ..IdentifyNamespace::default() };
        let metadata_bytes = metadata.into();
        namespace.formats[0] =
            LbaFormat { block_bytes_log2, metadata_bytes, ..LbaFormat::default() };
        namespace
    }

    #[test]
    fn blocks_that_cannot_be_measured_are_refused_with_the_reason() {
        for (log2, metadata, most, words) in [
            (12, 0, None, None),
            (12, 0, Some(8_192), None),
            (
                12,
                0,
                Some(4_096),
                Some("moves up to 4.0 KiB at a time, and --block-size is 8.0 KiB"),
            ),
            (9, 0, None, Some("logical blocks of 512 bytes, and")),
            (12, 8, None, Some("logical blocks of 4096 bytes and metadata, and")),
            (40, 0, None, Some("logical blocks of 0 bytes")),
        ] {
            match (check_blocks(&PLAN, &namespace(log2, metadata), most), words) {
                (Ok(()), None) => {}
                (Err(Failure::Refused(sentence)), Some(words)) => {
                    assert!(sentence.contains(words), "{sentence}");
                }
                other => panic!("{log2}, {metadata}, {most:?}: {other:?}"),
            }
        }
        let size = |log2| size_bytes(&Namespace::Blocks(Box::new(namespace(log2, 0))));
        assert_eq!([size(12), size(9)], [40_960, 5_120]);
    }
}

//! Identify structures of block namespaces.

use crate::admin::sharing::{ACCESS_GROUP, SHARED};
use crate::span::TRANSFER_BYTES_MAX;
use base::limits::BLOCK_BYTES;
use media::BlocksShape;
use spec::{IdentifyNamespace, LbaFormat};

/// DLFEAT: blocks that are deallocated read as zeros, and Write Zeroes can deallocate.
const DEALLOCATED_ARE_ZEROS: u8 = 0b001 | 1 << 3;

/// Maximum source ranges of a Copy, 0's based: the maximum of the field.
const COPY_RANGES_MAX: u8 = 255;

pub(super) fn namespace(shape: &BlocksShape, nguid: [u8; 16]) -> IdentifyNamespace {
    IdentifyNamespace { deallocation: DEALLOCATED_ARE_ZEROS, ..of(shape, nguid) }
}

/// Returns the structure of a namespace on blocks: all of its blocks can be written.
pub(super) fn of(shape: &BlocksShape, nguid: [u8; 16]) -> IdentifyNamespace {
    let copied_at_a_time = TRANSFER_BYTES_MAX / shape.block_bytes;
    let range_blocks_max = u16::try_from(copied_at_a_time).unwrap_or(u16::MAX);
    IdentifyNamespace {
        size: shape.blocks.into(),
        capacity: shape.blocks.into(),
        utilization: shape.blocks.into(),
        sharing: SHARED,
        capacity_bytes: (u128::from(shape.blocks) * u128::from(shape.block_bytes)).into(),
        copy_range_blocks_max: range_blocks_max.into(),
        copy_blocks_max: copied_at_a_time.into(),
        copy_ranges_max: COPY_RANGES_MAX,
        ana_group: ACCESS_GROUP.into(),
        nguid,
        ..with_format(shape.block_bytes)
    }
}

/// Returns the common values of all namespaces, also of those that a host may create.
pub(super) fn of_all() -> IdentifyNamespace {
    with_format(BLOCK_BYTES)
}

fn with_format(block_bytes: u32) -> IdentifyNamespace {
    let mut namespace = IdentifyNamespace::default();
    let [block_bytes_log2, ..] = block_bytes.ilog2().to_le_bytes();
    namespace.formats[0] = LbaFormat { block_bytes_log2, ..LbaFormat::default() };
    namespace
}

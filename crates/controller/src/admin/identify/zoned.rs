//! Identify structures of zoned namespaces.

use super::block;
use ftl::{Zones, ZonesShape};
use media::BlocksShape;
use spec::{IdentifyNamespace, ZoneFormat, ZonedNamespace};

/// Returns the size in blocks. Blocks at the end of zones cannot be written.
pub(super) fn in_blocks(shape: &ZonesShape, nguid: [u8; 16]) -> IdentifyNamespace {
    let blocks =
        BlocksShape { block_bytes: shape.block_bytes, blocks: shape.blocks(), parallelism: 1 };
    let capacity = shape.zone_capacity * u64::from(shape.zones);
    let bytes = u128::from(capacity) * u128::from(shape.block_bytes);
    IdentifyNamespace {
        capacity: capacity.into(),
        utilization: capacity.into(),
        capacity_bytes: bytes.into(),
        ..block::of(&blocks, nguid)
    }
}

pub(super) fn namespace(zones: &Zones) -> ZonedNamespace {
    let [open, active] = zones.limits();
    let zero_based = |max: Option<u32>| max.map_or(ZonedNamespace::NO_LIMIT, |max| max - 1);
    let mut namespace = ZonedNamespace {
        active_max: zero_based(active).into(),
        open_max: zero_based(open).into(),
        ..ZonedNamespace::default()
    };
    namespace.formats[0] =
        ZoneFormat { zone_blocks: zones.shape().zone_blocks.into(), ..ZoneFormat::default() };
    namespace
}

//! Identify structures of key-value namespaces.

use crate::admin::sharing::{ACCESS_GROUP, SHARED};
use crate::fabrics::Limits;
use base::limits::KEY_BYTES_INLINE;
use engine::Store;
use spec::{IdentifyNamespace, KvFormat, KvNamespace, LbaFormat};

/// Nominal block size for hosts that ignore command sets.
const NOMINAL_BLOCK_LOG2: u8 = 9;

/// Returns the size in blocks, for hosts that ignore namespaces without a size in blocks.
pub(super) fn in_blocks(store: &Store, nguid: [u8; 16]) -> IdentifyNamespace {
    let blocks = |bytes: u64| bytes >> NOMINAL_BLOCK_LOG2;
    let size = blocks(store.capacity_bytes()).max(1);
    let mut namespace = IdentifyNamespace {
        size: size.into(),
        capacity: size.into(),
        utilization: blocks(store.live_pairs().bytes).min(size).into(),
        sharing: SHARED,
        capacity_bytes: u128::from(store.capacity_bytes()).into(),
        ana_group: ACCESS_GROUP.into(),
        nguid,
        ..IdentifyNamespace::default()
    };
    namespace.formats[0] =
        LbaFormat { block_bytes_log2: NOMINAL_BLOCK_LOG2, ..LbaFormat::default() };
    namespace
}

/// Returns the structure. All key-value namespaces of a device share one capacity and report it in
/// full.
pub(super) fn namespace(store: &Store, limits: Limits, nguid: [u8; 16]) -> KvNamespace {
    KvNamespace {
        size: store.capacity_bytes().into(),
        utilization: store.live_pairs().bytes.into(),
        sharing: SHARED,
        ana_group: ACCESS_GROUP.into(),
        nguid,
        ..format(store, limits)
    }
}

/// Returns the format of keys and values for a host with these limits.
pub(super) fn format(store: &Store, limits: Limits) -> KvNamespace {
    let key_bytes_max = u16::try_from(KEY_BYTES_INLINE).expect("16 fit");
    let mut namespace = KvNamespace::default();
    namespace.formats[0] = KvFormat {
        key_bytes_max: key_bytes_max.into(),
        value_bytes_max: store.value_bytes_max().min(limits.value_bytes).into(),
        ..KvFormat::default()
    };
    namespace
}

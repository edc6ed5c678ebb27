use super::page::{Asked, VendorPage};
use crate::namespace::Namespace;
use engine::{Live, Store};
use spec::{LogPage, Status};
use std::sync::Arc;
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The entry in the list of vendor log pages.
pub(super) const PAGE: VendorPage = VendorPage { id: KeyCounts::LOG_PAGE, read };

/// NSID values that select all namespaces of the host.
const ALL: [u32; 2] = [0, u32::MAX];

/// Number of keys in the namespace of the command's NSID, and of those that List omits: log page
/// C1h. NSID 0 or `FFFFFFFFh` selects all key-value namespaces of the host. All fields are 64-bit
/// numbers, little endian.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct KeyCounts {
    /// 1, the version of this layout. Later ones only add fields.
    pub version: U64,
    /// Keys with a value. An expired key counts until it is cleaned.
    pub keys: U64,
    /// Keys of more than 16 bytes among them, which no command of a fabrics host can name.
    pub long_keys: U64,
}

impl KeyCounts {
    /// The id of the log page.
    pub const LOG_PAGE: LogPage = LogPage(0xc1);

    fn of(live: Live) -> Self {
        Self { version: 1.into(), keys: live.records.into(), long_keys: live.long_keys.into() }
    }
}

fn read(asked: &Asked<'_>) -> Result<Vec<u8>, Status> {
    let Asked { subsystem, association, command, .. } = asked;
    let device = &subsystem.device;
    let live = if ALL.contains(&command.nsid()) {
        let ids = device.namespace_ids().into_iter();
        let had = ids.filter_map(|id| Some((id, device.namespace_of(id, &association.host)?)));
        let each = had.filter_map(|(id, namespace)| Some(live_in(store_of(&namespace)?, id)));
        each.sum()
    } else {
        let namespace = device.namespace_of(command.nsid(), &association.host);
        let namespace = namespace.ok_or(Status::INVALID_NAMESPACE)?;
        live_in(store_of(&namespace).ok_or(Status::INVALID_FIELD)?, command.nsid())
    };
    Ok(KeyCounts::of(live).as_bytes().to_vec())
}

/// Returns the store of a key-value namespace.
fn store_of(namespace: &Namespace) -> Option<&Arc<Store>> {
    match namespace {
        Namespace::Kv(store) => Some(store),
        Namespace::Block(_) | Namespace::Zoned(_) => None,
    }
}

/// Returns the counts of a namespace's key space; zeros while it is created or deleted.
fn live_in(store: &Store, nsid: u32) -> Live {
    let space = u16::try_from(nsid).ok().map(engine::KeySpaceId);
    space.and_then(|space| store.live_in(space).ok()).unwrap_or_default()
}

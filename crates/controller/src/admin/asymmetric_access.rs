//! Asymmetric Namespace Access (Base 2.1, Asymmetric Namespace Access log page): a device has one
//! path, which is optimized for all of its namespaces.

use super::sharing::ACCESS_GROUP;
use crate::fabrics::{Association, Subsystem};
use spec::{AccessGroup, AccessHeader, Command};
use zerocopy::IntoBytes;

/// Bit of the log specific field: groups without their namespaces (RGO).
const GROUPS_ONLY: u8 = 1 << 0;

/// Returns the log page.
pub(super) fn page(association: &Association, subsystem: &Subsystem, command: &Command) -> Vec<u8> {
    let mut ids = subsystem.device.namespace_ids();
    ids.retain(|&nsid| association.namespace(nsid).is_some());
    if command.log_page_specific() & GROUPS_ONLY != 0 {
        ids.clear();
    }
    let header = AccessHeader { groups: 1.into(), ..AccessHeader::default() };
    let group = AccessGroup {
        group: ACCESS_GROUP.into(),
        namespaces: u32::try_from(ids.len()).expect("a device has few namespaces").into(),
        state: AccessGroup::OPTIMIZED,
        ..AccessGroup::default()
    };
    let ids = ids.iter().flat_map(|nsid| nsid.to_le_bytes());
    header.as_bytes().iter().chain(group.as_bytes()).copied().chain(ids).collect()
}

use crate::fabrics::rules::Rules;
use crate::fabrics::transport_address::TransportAddress;
use spec::{
    ConnectData, DiscoveryEntry, DiscoveryHeader, QualifiedName, SubsystemType, Text, TransportType,
};
use zerocopy::IntoBytes;

/// Minimum entries of an admin queue that a discovery controller supports (Base 2.1, Discovery Log
/// Page Entry data structure).
const ADMIN_QUEUE_ENTRIES_MIN: u16 = 32;

/// Returns the discovery log page with these entries (Base 2.1, Discovery log page).
pub(crate) fn discovery_log(generation: u64, entries: &[DiscoveryEntry]) -> Vec<u8> {
    let header = DiscoveryHeader {
        generation: generation.into(),
        records: (entries.len() as u64).into(),
        ..DiscoveryHeader::default()
    };
    let mut page = header.as_bytes().to_vec();
    for entry in entries {
        page.extend_from_slice(entry.as_bytes());
    }
    page
}

/// Returns the entries for `host`: every subsystem of `names` that it may connect to, at the
/// address that it used, and the referrals.
pub(crate) fn discovery_entries(
    names: &[String],
    rules: &Rules,
    used: &TransportAddress,
    host: &QualifiedName,
) -> Vec<DiscoveryEntry> {
    let host = host.as_str().unwrap_or_default();
    let seen = names.iter().filter(|name| rules.admit(name, host));
    let entries = seen.map(|name| DiscoveryEntry {
        subsystem_type: SubsystemType::NVM,
        requirements: DiscoveryEntry::NO_SECURE_CHANNEL
            | DiscoveryEntry::NO_FLOW_CONTROL
            | DiscoveryEntry::ZERO_HOST_ID,
        port_id: 1.into(),
        admin_queue_entries: rules.limits.queue_entries.into(),
        ..entry(used, name)
    });
    let referrals = rules.referrals.iter().map(|address| DiscoveryEntry {
        subsystem_type: SubsystemType::REFERRAL,
        admin_queue_entries: ADMIN_QUEUE_ENTRIES_MIN.into(),
        ..entry(address, QualifiedName::DISCOVERY)
    });
    entries.chain(referrals).collect()
}

fn entry(address: &TransportAddress, nqn: &str) -> DiscoveryEntry {
    DiscoveryEntry {
        transport_type: TransportType::TCP,
        address_family: address.family,
        controller_id: ConnectData::ANY_CONTROLLER.into(),
        service: Text::new(&address.port.to_string()),
        subsystem: QualifiedName::new(nqn),
        address: address.address,
        ..DiscoveryEntry::default()
    }
}

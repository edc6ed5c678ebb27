use crate::fabrics::port::Entrance;
use spec::{
    AddressFamily, ConnectData, DiscoveryEntry, DiscoveryHeader, QualifiedName, SubsystemType,
    Text, TransportType,
};
use zerocopy::IntoBytes;

/// Minimum entries of an admin queue that a discovery controller supports (Base 2.1, Discovery Log
/// Page Entry data structure).
const ADMIN_QUEUE_ENTRIES_MIN: u16 = 32;

/// An address where hosts reach a server by NVMe/TCP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransportAddress {
    /// The address family.
    pub family: AddressFamily,
    /// The IP address as text.
    pub address: Text<256>,
    /// The TCP port.
    pub port: u16,
}

/// Returns the discovery log page for `host`: every subsystem that it may connect to, at the
/// address that the host used, and the referrals (Base 2.1, Discovery log page).
pub(crate) fn discovery_log(entrance: &Entrance, host: &QualifiedName) -> Vec<u8> {
    let entries = discovery_entries(entrance, host);
    let header = DiscoveryHeader {
        generation: entrance.subsystems().generation().into(),
        records: (entries.len() as u64).into(),
        ..DiscoveryHeader::default()
    };
    let mut page = header.as_bytes().to_vec();
    for entry in &entries {
        page.extend_from_slice(entry.as_bytes());
    }
    page
}

/// Returns the entries of the page for `host`.
pub(crate) fn discovery_entries(entrance: &Entrance, host: &QualifiedName) -> Vec<DiscoveryEntry> {
    let rules = entrance.subsystems().rules();
    let host = host.as_str().unwrap_or_default();
    let names = entrance.subsystems().names();
    let seen = names.iter().filter(|name| rules.admit(name, host));
    let entries = seen.map(|name| DiscoveryEntry {
        subsystem_type: SubsystemType::NVM,
        requirements: DiscoveryEntry::NO_SECURE_CHANNEL
            | DiscoveryEntry::NO_FLOW_CONTROL
            | DiscoveryEntry::ZERO_HOST_ID,
        port_id: 1.into(),
        admin_queue_entries: rules.limits.queue_entries.into(),
        ..entry(entrance.address(), name)
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

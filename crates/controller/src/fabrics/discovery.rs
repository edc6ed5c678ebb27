use crate::fabrics::port::Entrance;
use crate::fabrics::property::QUEUE_ENTRIES;
use spec::{
    AddressFamily, ConnectData, DiscoveryEntry, DiscoveryHeader, QualifiedName, SubsystemType,
    Text, TransportType,
};
use zerocopy::IntoBytes;

/// Where hosts reach a server by NVMe/TCP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransportAddress {
    /// Which kind of address it is.
    pub family: AddressFamily,
    /// The address: an IP address as it is written.
    pub address: Text<256>,
    /// The port of TCP.
    pub port: u16,
}

/// The discovery log page: every subsystem, at the address by which the host came (Base 2.1,
/// Discovery log page).
pub(crate) fn discovery_log(entrance: &Entrance) -> Vec<u8> {
    let subsystems = entrance.subsystems().all();
    let header = DiscoveryHeader {
        generation: entrance.subsystems().generation().into(),
        records: (subsystems.len() as u64).into(),
        ..DiscoveryHeader::default()
    };
    let entries = subsystems.iter().map(|subsystem| entry(entrance.address(), subsystem.nqn()));
    let mut page = header.as_bytes().to_vec();
    entries.for_each(|entry| page.extend_from_slice(entry.as_bytes()));
    page
}

fn entry(address: &TransportAddress, nqn: &str) -> DiscoveryEntry {
    DiscoveryEntry {
        transport_type: TransportType::TCP,
        address_family: address.family,
        subsystem_type: SubsystemType::NVM,
        requirements: DiscoveryEntry::NO_SECURE_CHANNEL | DiscoveryEntry::NO_FLOW_CONTROL,
        port_id: 1.into(),
        controller_id: ConnectData::ANY_CONTROLLER.into(),
        admin_queue_entries: (QUEUE_ENTRIES + 1).into(),
        service: Text::new(&address.port.to_string()),
        subsystem: QualifiedName::new(nqn),
        address: address.address,
        ..DiscoveryEntry::default()
    }
}

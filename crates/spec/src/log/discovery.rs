use crate::reserved::Reserved;
use crate::{QualifiedName, Text};
use zerocopy::little_endian::{U16, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// How a subsystem is reached: TRTYPE (Base 2.1, Discovery Log Page Entry data structure).
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    FromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
    Unaligned,
)]
#[repr(transparent)]
pub struct TransportType(pub u8);

impl TransportType {
    /// NVMe/TCP.
    pub const TCP: Self = Self(3);
}

/// What kind of address a subsystem has: ADRFAM (Base 2.1, Discovery Log Page Entry data
/// structure).
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    FromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
    Unaligned,
)]
#[repr(transparent)]
pub struct AddressFamily(pub u8);

impl AddressFamily {
    /// IPv4, written in decimal.
    pub const IPV4: Self = Self(1);
    /// IPv6, written in hexadecimal.
    pub const IPV6: Self = Self(2);
}

/// What an entry of the discovery log page tells of: SUBTYPE (Base 2.1, Discovery Log Page Entry
/// data structure).
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    FromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
    Unaligned,
)]
#[repr(transparent)]
pub struct SubsystemType(pub u8);

impl SubsystemType {
    /// Another discovery subsystem, which tells of more.
    pub const REFERRAL: Self = Self(1);
    /// A subsystem with namespaces.
    pub const NVM: Self = Self(2);
    /// The discovery subsystem that is asked.
    pub const CURRENT_DISCOVERY: Self = Self(3);
}

/// How log page 70h starts (Base 2.1, Discovery log page).
#[derive(
    Clone, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct DiscoveryHeader {
    /// Generation Counter (GENCTR): changes with each change of the log page. A host that reads the
    /// page in parts reads it again if the counter changed.
    pub generation: U64,
    /// How many [`DiscoveryEntry`]s follow: NUMREC.
    pub records: U64,
    /// The format of the log page, of which there is only 0: RECFMT.
    pub record_format: U16,
    #[doc(hidden)]
    pub reserved_18: Reserved<1006>,
}

const _: () = assert!(size_of::<DiscoveryHeader>() == 1024, "log page 70h starts with 1,024 bytes");

/// One subsystem, at one address (Base 2.1, Discovery Log Page Entry data structure).
#[derive(
    Clone, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct DiscoveryEntry {
    /// How it is reached: TRTYPE.
    pub transport_type: TransportType,
    /// What kind of address `address` is: ADRFAM.
    pub address_family: AddressFamily,
    /// What it is: SUBTYPE.
    pub subsystem_type: SubsystemType,
    /// Bits 1:0 whether a secure channel is needed; bit 2 [`DiscoveryEntry::NO_FLOW_CONTROL`]; bit
    /// 3 [`DiscoveryEntry::ZERO_HOST_ID`]. TREQ.
    pub requirements: u8,
    /// Which port of its subsystem it is: PORTID.
    pub port_id: U16,
    /// The controller to connect to, or
    /// [`ConnectData::ANY_CONTROLLER`](crate::ConnectData::ANY_CONTROLLER): CNTLID.
    pub controller_id: U16,
    /// Entries of an admin queue at most, 32 or more: ASQSZ.
    pub admin_queue_entries: U16,
    /// [`DiscoveryEntry::SAME_INFORMATION`] and others: EFLAGS.
    pub flags: U16,
    #[doc(hidden)]
    pub reserved_12: Reserved<20>,
    /// The port number of TCP, in decimal: TRSVCID.
    pub service: Text<32>,
    #[doc(hidden)]
    pub reserved_64: Reserved<192>,
    /// The subsystem's name: SUBNQN.
    pub subsystem: QualifiedName,
    /// The address: TRADDR.
    pub address: Text<256>,
    /// What depends on the transport: of TCP, which security there is, 0 for none. TSAS.
    pub security: u8,
    #[doc(hidden)]
    pub reserved_769: Reserved<255>,
}

const _: () = assert!(size_of::<DiscoveryEntry>() == 1024, "an entry of log page 70h has 1,024 B");

impl DiscoveryEntry {
    /// Of `requirements`: no secure channel is needed.
    pub const NO_SECURE_CHANNEL: u8 = 0b10;
    /// Of `requirements`: a host may do without submission queue flow control.
    pub const NO_FLOW_CONTROL: u8 = 1 << 2;
    /// Of `requirements`: a host may connect with a host identifier of 0h (ZHIDS).
    pub const ZERO_HOST_ID: u8 = 1 << 3;
    /// Of `flags`: all addresses of the discovery subsystem tell the same (DUPRETINFO).
    pub const SAME_INFORMATION: u16 = 1 << 0;
    /// Of `flags`: connections to the discovery subsystem can be kept open (EPCSD).
    pub const PERSISTENT_CONNECTIONS: u16 = 1 << 1;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_has_the_specifications_bytes() {
        // Base 2.1, Discovery log page: GENCTR 7:0, NUMREC 15:8, RECFMT 17:16.
        let header = DiscoveryHeader {
            generation: 0x0102_0304_0506_0708.into(),
            records: 0x1112_1314_1516_1718.into(),
            record_format: 0x2122.into(),
            ..DiscoveryHeader::default()
        };
        let mut expected = [0; 1024];
        expected[..8].copy_from_slice(&[8, 7, 6, 5, 4, 3, 2, 1]);
        expected[8..18].copy_from_slice(&[0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11, 34, 33]);
        assert_eq!(header.as_bytes(), expected);
        assert_eq!(DiscoveryHeader::read_from_bytes(&expected), Ok(header));
    }

    #[test]
    fn an_entry_has_the_specifications_bytes() {
        // Base 2.1, Discovery Log Page Entry data structure: TRTYPE 0, ADRFAM 1, SUBTYPE 2, TREQ 3,
        // PORTID 5:4, CNTLID 7:6, ASQSZ 9:8, EFLAGS 11:10, TRSVCID 63:32, SUBNQN 511:256, TRADDR
        // 767:512, TSAS from 768 on.
        let entry = DiscoveryEntry {
            transport_type: TransportType::TCP,
            address_family: AddressFamily::IPV4,
            subsystem_type: SubsystemType::NVM,
            requirements: DiscoveryEntry::NO_SECURE_CHANNEL
                | DiscoveryEntry::NO_FLOW_CONTROL
                | DiscoveryEntry::ZERO_HOST_ID,
            port_id: 0x0102.into(),
            controller_id: 0xfffe.into(),
            admin_queue_entries: 32.into(),
            flags: (DiscoveryEntry::SAME_INFORMATION | DiscoveryEntry::PERSISTENT_CONNECTIONS)
                .into(),
            service: Text::new("4420"),
            subsystem: QualifiedName::new("nqn.x"),
            address: Text::new("10.0.2.2"),
            security: 2,
            ..DiscoveryEntry::default()
        };
        let mut expected = [0; 1024];
        expected[..12].copy_from_slice(&[3, 1, 2, 0x0e, 2, 1, 0xfe, 0xff, 32, 0, 3, 0]);
        expected[32..64].fill(b' ');
        expected[32..36].copy_from_slice(b"4420");
        expected[256..261].copy_from_slice(b"nqn.x");
        expected[512..768].fill(b' ');
        expected[512..520].copy_from_slice(b"10.0.2.2");
        expected[768] = 2;
        assert_eq!(entry.as_bytes(), expected);
        assert_eq!(DiscoveryEntry::read_from_bytes(&expected), Ok(entry));
    }

    #[test]
    fn numbers_are_the_specifications() {
        assert_eq!((AddressFamily::IPV6.0, SubsystemType::REFERRAL.0), (2, 1));
        assert_eq!(SubsystemType::CURRENT_DISCOVERY.0, 3);
    }
}

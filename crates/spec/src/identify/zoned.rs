use crate::reserved::Reserved;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The size of zones, for one size of logical blocks (ZNS 1.1a, LBA Format Extension data
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
#[repr(C)]
pub struct ZoneFormat {
    /// Logical blocks from the start of a zone to that of the next: ZSZE.
    pub zone_blocks: U64,
    /// What a report may say more of each zone, in units of 64 bytes: ZDES.
    pub descriptor_extension: u8,
    #[doc(hidden)]
    pub reserved_9: Reserved<7>,
}

/// What a namespace is in terms of the Zoned Namespace command set: CNS 05h, CSI 02h (ZNS 1.1a, I/O
/// Command Set Specific Identify Namespace data structure).
#[derive(Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct ZonedNamespace {
    /// Bit 0 the capacity of zones may change, bit 1 the device may finish zones by itself. ZOC.
    pub characteristics: U16,
    /// Bit 0: [`ZonedNamespace::READ_ACROSS_ZONES`]. OZCS.
    pub optional_capabilities: U16,
    /// Zones that may be active at a time, 0's based; [`ZonedNamespace::NO_LIMIT`]. MAR.
    pub active_max: U32,
    /// Zones that may be open at a time, 0's based; [`ZonedNamespace::NO_LIMIT`]. MOR.
    pub open_max: U32,
    #[doc(hidden)]
    pub reserved_12: Reserved<2804>,
    /// The sizes of zones, for each format of the namespace: LBAFE0 to LBAFE63.
    pub formats: [ZoneFormat; 64],
    #[doc(hidden)]
    pub vendor_3840: Reserved<256>,
}

const _: () = assert!(size_of::<ZoneFormat>() == 16, "an extension of a format has 16 bytes");
const _: () =
    assert!(size_of::<ZonedNamespace>() == 4096, "a structure of Identify has 4,096 bytes");

impl ZonedNamespace {
    /// Of `optional_capabilities`: a Read may reach from one zone into the next.
    pub const READ_ACROSS_ZONES: u16 = 1 << 0;
    /// Of `active_max` and `open_max`: any number of zones.
    pub const NO_LIMIT: u32 = u32::MAX;
}

impl Default for ZonedNamespace {
    /// Zeros, as a namespace that is not there has.
    fn default() -> Self {
        Self::new_zeroed()
    }
}

/// What a controller is in terms of the Zoned Namespace command set: CNS 06h, CSI 02h (ZNS 1.1a,
/// I/O Command Set Specific Identify Controller data structure).
#[derive(
    Clone, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct ZonedController {
    /// Most data of a Zone Append in memory pages, as a power of two; 0 for as much as any command
    /// has. ZASL.
    pub append_max_log2: u8,
    #[doc(hidden)]
    pub reserved_1: Reserved<4095>,
}

const _: () =
    assert!(size_of::<ZonedController>() == 4096, "a structure of Identify has 4,096 bytes");

#[cfg(test)]
mod tests {
    use super::*;
    use core::mem::offset_of;

    #[test]
    fn a_zoned_namespace_has_the_specifications_bytes() {
        // ZNS 1.1a: ZOC 1:0, OZCS 3:2, MAR 7:4, MOR 11:8, LBAFE0 2831:2816 with ZSZE 7:0, ZDES 8.
        let mut namespace = ZonedNamespace {
            characteristics: 0x0201.into(),
            optional_capabilities: 0x0403.into(),
            active_max: 0x0807_0605.into(),
            open_max: 0x0c0b_0a09.into(),
            ..ZonedNamespace::default()
        };
        namespace.formats[0] = ZoneFormat {
            zone_blocks: 0x0807_0605_0403_0201.into(),
            descriptor_extension: 9,
            ..ZoneFormat::default()
        };
        let mut expected = [0; 4096];
        expected[..12].copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
        expected[2816..2825].copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(namespace.as_bytes(), expected);
        assert_eq!(ZonedNamespace::read_from_bytes(&expected), Ok(namespace));
        assert_eq!(offset_of!(ZonedNamespace, vendor_3840), 3840);
        let controller = ZonedController { append_max_log2: 5, ..ZonedController::default() };
        assert_eq!(controller.as_bytes()[..2], [5, 0], "ZASL is byte 0");
    }
}

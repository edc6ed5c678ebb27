use crate::reserved::Reserved;
use zerocopy::little_endian::{U16, U32, U64, U128};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The size of logical blocks (NVM 1.1, LBA Format data structure).
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
pub struct LbaFormat {
    /// Bytes of metadata of each block: MS.
    pub metadata_bytes: U16,
    /// Bytes of a block as a power of two, 9 or more: LBADS.
    pub block_bytes_log2: u8,
    /// Bits 1:0: how fast it is beside the other formats, 0 for the best. RP.
    pub relative_performance: u8,
}

/// What a namespace of the NVM command set is: CNS 00h (NVM 1.1, Identify Namespace data
/// structure).
#[derive(Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct IdentifyNamespace {
    /// Size in logical blocks: NSZE.
    pub size: U64,
    /// How many logical blocks can be in use at a time: NCAP.
    pub capacity: U64,
    /// Logical blocks in use: NUSE.
    pub utilization: U64,
    /// Bit 0 thin provisioning, bit 2 deallocated blocks give an error if asked to, bit 3
    /// identifiers are never used again, bit 4 the optimal sizes below mean something. NSFEAT.
    pub features: u8,
    /// How many formats there are, 0's based: NLBAF.
    pub formats_len: u8,
    /// Which format it has: FLBAS.
    pub format: u8,
    /// How metadata is moved: MC.
    pub metadata_capabilities: u8,
    /// Which protection there is: DPC.
    pub protection_capabilities: u8,
    /// Which protection it has: DPS.
    pub protection: u8,
    /// Bit 0: more than one controller may have the namespace. NMIC.
    pub sharing: u8,
    /// Which reservations there are: RESCAP.
    pub reservations: u8,
    /// How far a format is: FPI.
    pub format_progress: u8,
    /// Bits 2:0: what a deallocated block reads as, 1 for zeros. Bit 3: Write Zeroes can
    /// deallocate. DLFEAT.
    pub deallocation: u8,
    /// Atomic sizes and boundaries: NAWUN, NAWUPF, NACWU, NABSN, NABO, NABSPF.
    pub atomicity: [U16; 6],
    /// Logical blocks that are good to stay within, 0 for no such boundary: NOIOB.
    pub optimal_boundary: U16,
    /// Size in bytes: NVMCAP.
    pub capacity_bytes: U128,
    /// Logical blocks that are good to write in multiples of, 0's based: NPWG.
    pub write_granularity: U16,
    /// Logical blocks that are good to write at multiples of, 0's based: NPWA.
    pub write_alignment: U16,
    /// Logical blocks that are good to deallocate in multiples of, 0's based: NPDG.
    pub deallocate_granularity: U16,
    /// Logical blocks that are good to deallocate at multiples of, 0's based: NPDA.
    pub deallocate_alignment: U16,
    /// Logical blocks that are good to write at a time, 0's based: NOWS.
    pub optimal_write: U16,
    /// Logical blocks of one source range of a Copy at most: MSSRL.
    pub copy_range_blocks_max: U16,
    /// Logical blocks of a Copy at most: MCL.
    pub copy_blocks_max: U32,
    /// Source ranges of a Copy at most, 0's based: MSRC.
    pub copy_ranges_max: u8,
    #[doc(hidden)]
    pub reserved_81: Reserved<11>,
    /// Asymmetric Namespace Access group: ANAGRPID.
    pub ana_group: U32,
    #[doc(hidden)]
    pub reserved_96: Reserved<3>,
    /// Bit 0: write protected. NSATTR.
    pub attributes: u8,
    /// NVM Set: NVMSETID.
    pub nvm_set: U16,
    /// Endurance Group: ENDGID.
    pub endurance_group: U16,
    /// Globally unique identifier, most significant byte first: NGUID.
    pub nguid: [u8; 16],
    /// IEEE Extended Unique Identifier, most significant byte first: EUI64.
    pub eui64: [u8; 8],
    /// The formats, the first `formats_len` + 1 of which mean something: LBAF0 to LBAF63.
    pub formats: [LbaFormat; 64],
    #[doc(hidden)]
    pub reserved_384: Reserved<3712>,
}

const _: () = assert!(size_of::<LbaFormat>() == 4, "an LBA format has 4 bytes");
const _: () =
    assert!(size_of::<IdentifyNamespace>() == 4096, "a structure of Identify has 4,096 bytes");

impl IdentifyNamespace {
    /// The format that it has: FLBAS bits 3:0, and above them bits 6:5.
    pub fn lba_format(&self) -> LbaFormat {
        let index = self.format & 0xf | (self.format & 0x60) >> 1;
        self.formats[usize::from(index)]
    }
}

impl LbaFormat {
    /// Bytes of a block, if they fit a number.
    pub fn block_bytes(&self) -> Option<u32> {
        1_u32.checked_shl(self.block_bytes_log2.into())
    }
}

impl Default for IdentifyNamespace {
    /// Zeros, as a namespace that is not there has.
    fn default() -> Self {
        Self::new_zeroed()
    }
}

/// What a namespace is in terms of the NVM command set: CNS 05h, CSI 00h (NVM 1.1, I/O Command Set
/// Specific Identify Namespace data structure). All zeros without protection information.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct NvmNamespace {
    /// Which bits of the storage tag a host may use: LBSTM.
    pub storage_tag_mask: U64,
    /// Which protection information there is beside that of DPC: PIC.
    pub protection_capabilities: u8,
    #[doc(hidden)]
    pub reserved_9: Reserved<4087>,
}

const _: () = assert!(size_of::<NvmNamespace>() == 4096, "a structure of Identify has 4,096 bytes");

/// What a namespace of any command set is: CNS 08h (Base 2.1, I/O Command Set Independent Identify
/// Namespace data structure).
#[derive(
    Clone, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct IndependentNamespace {
    /// Bit 3 identifiers are never used again, bit 4 the medium rotates. NSFEAT.
    pub features: u8,
    /// Bit 0: more than one controller may have the namespace. NMIC.
    pub sharing: u8,
    /// Which reservations there are: RESCAP.
    pub reservations: u8,
    /// How far a format is: FPI.
    pub format_progress: u8,
    /// Asymmetric Namespace Access group: ANAGRPID.
    pub ana_group: U32,
    /// Bit 0: write protected. NSATTR.
    pub attributes: u8,
    #[doc(hidden)]
    pub reserved_9: u8,
    /// NVM Set: NVMSETID.
    pub nvm_set: U16,
    /// Endurance Group: ENDGID.
    pub endurance_group: U16,
    /// Bit 0: [`IndependentNamespace::READY`]. NSTAT.
    pub status: u8,
    #[doc(hidden)]
    pub reserved_15: Reserved<4081>,
}

const _: () =
    assert!(size_of::<IndependentNamespace>() == 4096, "a structure of Identify has 4,096 bytes");

impl IndependentNamespace {
    /// NRDY of `status`: the namespace takes commands. Linux shows no other.
    pub const READY: u8 = 1 << 0;

    /// True when the namespace takes commands.
    pub fn is_ready(&self) -> bool {
        self.status & Self::READY != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::mem::offset_of;

    #[test]
    fn a_namespace_of_blocks_has_the_specifications_bytes() {
        // NVM 1.1, Identify Namespace data structure: NSZE 7:0, NCAP 15:8, LBAF0 131:128 with MS
        // 15:0, LBADS 23:16 and RP 25:24.
        let mut namespace = IdentifyNamespace {
            size: 0x0102_0304_0506_0708.into(),
            capacity: 0x1112_1314_1516_1718.into(),
            nguid: *b"0123456789abcdef",
            eui64: *b"ghijklmn",
            ..IdentifyNamespace::default()
        };
        namespace.formats[0] = LbaFormat {
            metadata_bytes: 0x0102.into(),
            block_bytes_log2: 12,
            relative_performance: 1,
        };
        let mut expected = [0; 4096];
        expected[..8].copy_from_slice(&[8, 7, 6, 5, 4, 3, 2, 1]);
        expected[8..16].copy_from_slice(&[0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11]);
        expected[104..128].copy_from_slice(b"0123456789abcdefghijklmn");
        expected[128..132].copy_from_slice(&[0x02, 0x01, 12, 1]);
        assert_eq!(namespace.as_bytes(), expected);
        assert_eq!(namespace.lba_format().block_bytes(), Some(4_096));
        assert_eq!(IdentifyNamespace::read_from_bytes(&expected), Ok(namespace));
    }

    /// FLBAS: bits 3:0 are the lower bits of the format's number, bits 6:5 the upper ones, and bit
    /// 4 is about metadata.
    #[test]
    fn a_namespace_has_the_format_that_its_number_names() {
        for (format, index) in [(0, 0), (0x1f, 15), (0x20, 16), (0x63, 51), (0x90, 0)] {
            let mut namespace = IdentifyNamespace { format, ..IdentifyNamespace::default() };
            namespace.formats[index].block_bytes_log2 = 9;
            assert_eq!(namespace.lba_format().block_bytes(), Some(512), "{format:x}");
        }
        let huge = LbaFormat { block_bytes_log2: 32, ..LbaFormat::default() };
        assert_eq!(huge.block_bytes(), None);
    }

    #[test]
    fn fields_of_a_namespace_of_blocks_are_where_the_specification_has_them() {
        // NVM 1.1, Identify Namespace data structure.
        for (offset, specified) in [
            (offset_of!(IdentifyNamespace, utilization), 16),
            (offset_of!(IdentifyNamespace, features), 24),
            (offset_of!(IdentifyNamespace, formats_len), 25),
            (offset_of!(IdentifyNamespace, format), 26),
            (offset_of!(IdentifyNamespace, metadata_capabilities), 27),
            (offset_of!(IdentifyNamespace, protection_capabilities), 28),
            (offset_of!(IdentifyNamespace, protection), 29),
            (offset_of!(IdentifyNamespace, sharing), 30),
            (offset_of!(IdentifyNamespace, reservations), 31),
            (offset_of!(IdentifyNamespace, format_progress), 32),
            (offset_of!(IdentifyNamespace, deallocation), 33),
            (offset_of!(IdentifyNamespace, atomicity), 34),
            (offset_of!(IdentifyNamespace, optimal_boundary), 46),
            (offset_of!(IdentifyNamespace, capacity_bytes), 48),
            (offset_of!(IdentifyNamespace, write_granularity), 64),
            (offset_of!(IdentifyNamespace, write_alignment), 66),
            (offset_of!(IdentifyNamespace, deallocate_granularity), 68),
            (offset_of!(IdentifyNamespace, deallocate_alignment), 70),
            (offset_of!(IdentifyNamespace, optimal_write), 72),
            (offset_of!(IdentifyNamespace, copy_range_blocks_max), 74),
            (offset_of!(IdentifyNamespace, copy_blocks_max), 76),
            (offset_of!(IdentifyNamespace, copy_ranges_max), 80),
            (offset_of!(IdentifyNamespace, ana_group), 92),
            (offset_of!(IdentifyNamespace, attributes), 99),
            (offset_of!(IdentifyNamespace, nvm_set), 100),
            (offset_of!(IdentifyNamespace, endurance_group), 102),
            (offset_of!(IdentifyNamespace, reserved_384), 384),
        ] {
            assert_eq!(offset, specified);
        }
    }

    #[test]
    fn a_namespace_of_any_set_has_the_specifications_bytes() {
        // Base 2.1, I/O Command Set Independent Identify Namespace data structure: NSFEAT 0, NMIC
        // 1, RESCAP 2, FPI 3, ANAGRPID 7:4, NSATTR 8, NVMSETID 11:10, ENDGID 13:12, NSTAT 14.
        let namespace = IndependentNamespace {
            features: 1,
            sharing: 2,
            reservations: 3,
            format_progress: 4,
            ana_group: 0x0807_0605.into(),
            attributes: 9,
            nvm_set: 0x0c0b.into(),
            endurance_group: 0x0e0d.into(),
            status: IndependentNamespace::READY,
            ..IndependentNamespace::default()
        };
        let mut expected = [0; 4096];
        expected[..15].copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 11, 12, 13, 14, 1]);
        assert_eq!(namespace.as_bytes(), expected);
        assert!(namespace.is_ready());
        assert!(!IndependentNamespace::default().is_ready());
    }
}

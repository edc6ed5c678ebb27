use crate::reserved::Reserved;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// What the keys and values of a namespace can be (KV 1.0d, KV Format data structure).
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
pub struct KvFormat {
    /// Longest key in bytes: KVKML.
    pub key_bytes_max: U16,
    #[doc(hidden)]
    pub reserved_2: u8,
    /// Bits 1:0: how fast it is beside the other formats, 0 for the best.
    pub relative_performance: u8,
    /// Longest value in bytes: KVVML.
    pub value_bytes_max: U32,
    /// How many keys there can be, 0 for no limit: MNKS.
    pub keys_max: U32,
    #[doc(hidden)]
    pub reserved_12: Reserved<4>,
}

/// What a namespace of the Key Value command set is: CNS 05h, CSI 01h (KV 1.0d, Identify Namespace
/// data structure for the Key Value Command Set).
#[derive(
    Clone, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct KvNamespace {
    /// Size in bytes: NSZE.
    pub size: U64,
    #[doc(hidden)]
    pub reserved_8: Reserved<8>,
    /// Bytes in use: NUSE.
    pub utilization: U64,
    /// Bit 3: identifiers are never used again. NSFEAT.
    pub features: u8,
    /// How many formats there are, 0's based: NKVF.
    pub formats_len: u8,
    /// Bit 0: more than one controller may have the namespace. NMIC.
    pub sharing: u8,
    /// Which reservations there are: RESCAP.
    pub reservations: u8,
    /// How far a format is: FPI.
    pub format_progress: u8,
    #[doc(hidden)]
    pub reserved_29: Reserved<3>,
    /// Bytes that are good to store values in multiples of: NOVG.
    pub value_granularity: U32,
    /// Asymmetric Namespace Access group: ANAGRPID.
    pub ana_group: U32,
    #[doc(hidden)]
    pub reserved_40: Reserved<3>,
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
    /// The formats, the first `formats_len` + 1 of which mean something: KVF0 to KVF15.
    pub formats: [KvFormat; 16],
    #[doc(hidden)]
    pub reserved_328: Reserved<3768>,
}

const _: () = assert!(size_of::<KvFormat>() == 16, "a KV format has 16 bytes");
const _: () = assert!(size_of::<KvNamespace>() == 4096, "a structure of Identify has 4,096 bytes");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kv_namespace_has_the_specifications_bytes() {
        // KV 1.0d, Identify Namespace data structure: NSZE 7:0, NUSE 23:16, NSFEAT 24, NKVF 25,
        // NMIC 26, RESCAP 27, FPI 28, NOVG 35:32, ANAGRPID 39:36, NSATTR 43, NVMSETID 45:44, ENDGID
        // 47:46, NGUID 63:48, EUI64 71:64, KVF0 87:72.
        let mut formats = [KvFormat::default(); 16];
        formats[0] = KvFormat {
            key_bytes_max: 16.into(),
            relative_performance: 2,
            value_bytes_max: 0x0020_0000.into(),
            keys_max: 0x0102_0304.into(),
            ..KvFormat::default()
        };
        formats[15].key_bytes_max = 8.into();
        let namespace = KvNamespace {
            size: 0x0102_0304_0506_0708.into(),
            utilization: 0x1112_1314_1516_1718.into(),
            features: 24,
            formats_len: 25,
            sharing: 26,
            reservations: 27,
            format_progress: 28,
            value_granularity: 0x2021_2223.into(),
            ana_group: 0x2425_2627.into(),
            attributes: 43,
            nvm_set: 0x2c2d.into(),
            endurance_group: 0x2e2f.into(),
            nguid: *b"0123456789abcdef",
            eui64: *b"ghijklmn",
            formats,
            ..KvNamespace::default()
        };
        let mut expected = [0; 4096];
        for (offset, part) in [
            (0, &[8, 7, 6, 5, 4, 3, 2, 1][..]),
            (16, &[0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11, 24, 25, 26, 27, 28]),
            (32, &[0x23, 0x22, 0x21, 0x20, 0x27, 0x26, 0x25, 0x24]),
            (43, &[43, 0x2d, 0x2c, 0x2f, 0x2e]),
            (48, b"0123456789abcdefghijklmn"),
            (72, &[16, 0, 0, 2, 0, 0, 0x20, 0, 4, 3, 2, 1]),
            (312, &[8]),
        ] {
            expected[offset..offset + part.len()].copy_from_slice(part);
        }
        assert_eq!(namespace.as_bytes(), expected);
        assert_eq!(KvNamespace::read_from_bytes(&expected), Ok(namespace));
    }
}

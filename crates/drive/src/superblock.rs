use crate::layout::{NOTE_BYTES, SUPERBLOCK_START};
use base::checksum::crc32c;

/// What a drive says of itself, twice: at byte 4096 and in the last whole 4 KiB. On the blocks,
/// little endian:
///
/// | bytes | what |
/// |---|---|
/// | 0..8 | magic, `KVASIRD` and a zero |
/// | 8..12 | format, 1 |
/// | 12..16 | CRC-32C of the 4096 bytes with zeros here |
/// | 16..32 | id: 16 random bytes, which hosts may be told |
/// | 32..48 | secret: 16 random bytes that stand in all that belongs to the drive; never told |
/// | 48..56 | bytes of all blocks |
/// | 56..64 | bytes of an extent |
/// | 64..68 | extents |
/// | 68..72 | bytes of a unit |
/// | 72..76 | mount: how often the drive was opened for writing |
/// | 76..80 | features in use that a reader must know: none yet |
/// | 80..4096 | zero |
///
/// Magic, format and checksum have this place in every format, so that a newer format is not
/// mistaken for damage. A feature gets its bit when the drive first uses it. Until then, versions
/// that do not know the feature can open the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Superblock {
    pub(crate) id: [u8; 16],
    pub(crate) secret: [u8; 16],
    pub(crate) size_bytes: u64,
    pub(crate) extent_bytes: u64,
    pub(crate) extents: u32,
    pub(crate) unit_bytes: u32,
    pub(crate) mount: u32,
    /// Bits of the features in use.
    pub(crate) features: u32,
}

/// What was found where a superblock should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Copy {
    Whole(Superblock),
    Newer {
        format: u32,
    },
    /// Bits of features that this version does not know.
    Unknown {
        features: u32,
    },
    Damaged,
    None,
}

/// The first bytes of a superblock in every format.
pub const MAGIC: [u8; 8] = *b"KVASIRD\0";

/// The position of the first superblock, in bytes from the start of the disk. The drive leaves
/// zeros before it: other bytes there show that another system has overwritten the disk.
pub const MAGIC_AT: u64 = SUPERBLOCK_START;

const CRC: usize = 12;

impl Superblock {
    /// The format of this version.
    pub(crate) const FORMAT: u32 = 1;

    /// The bits of the features that this version knows.
    const FEATURES: u32 = 0;

    pub(crate) fn encode(&self) -> [u8; NOTE_BYTES as usize] {
        let mut bytes = [0; NOTE_BYTES as usize];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&Self::FORMAT.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.id);
        bytes[32..48].copy_from_slice(&self.secret);
        bytes[48..56].copy_from_slice(&self.size_bytes.to_le_bytes());
        bytes[56..64].copy_from_slice(&self.extent_bytes.to_le_bytes());
        bytes[64..68].copy_from_slice(&self.extents.to_le_bytes());
        bytes[68..72].copy_from_slice(&self.unit_bytes.to_le_bytes());
        bytes[72..76].copy_from_slice(&self.mount.to_le_bytes());
        bytes[76..80].copy_from_slice(&self.features.to_le_bytes());
        let crc = crc32c(&bytes);
        bytes[CRC..CRC + 4].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Copy {
        let Some(bytes) = bytes.first_chunk::<{ NOTE_BYTES as usize }>() else {
            return Copy::None;
        };
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        let array = |at: usize| std::array::from_fn(|n| bytes[at + n]);
        if bytes[..8] != MAGIC {
            return Copy::None;
        }
        let mut without = *bytes;
        without[CRC..CRC + 4].fill(0);
        let is_whole = word(CRC) == crc32c(&without);
        let unknown = word(76) & !Self::FEATURES;
        match word(8) {
            Self::FORMAT if is_whole && unknown != 0 => Copy::Unknown { features: unknown },
            Self::FORMAT if is_whole => Copy::Whole(Self {
                id: array(16),
                secret: array(32),
                size_bytes: long(48),
                extent_bytes: long(56),
                extents: word(64),
                unit_bytes: word(68),
                mount: word(72),
                features: word(76),
            }),
            format if format > Self::FORMAT && is_whole => Copy::Newer { format },
            _ => Copy::Damaged,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUPERBLOCK: Superblock = Superblock {
        id: [0xA1; 16],
        secret: [0xB2; 16],
        size_bytes: 0x0102_0304_0506_0708,
        extent_bytes: 0x1112_1314_1516_1718,
        extents: 0x2122_2324,
        unit_bytes: 0x3132_3334,
        mount: 0x4142_4344,
        features: 0,
    };

    #[test]
    fn a_superblock_lies_as_its_table_says() {
        let bytes = SUPERBLOCK.encode();
        let mut expected = b"KVASIRD\0\x01\0\0\0\0\0\0\0".to_vec();
        expected.extend([0xA1; 16]);
        expected.extend([0xB2; 16]);
        expected.extend([8, 7, 6, 5, 4, 3, 2, 1, 0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11]);
        expected.extend([0x24, 0x23, 0x22, 0x21, 0x34, 0x33, 0x32, 0x31, 0x44, 0x43, 0x42, 0x41]);
        expected.resize(4_096, 0);
        let crc = crc32c(&expected);
        expected[12..16].copy_from_slice(&crc.to_le_bytes());
        assert!(bytes == expected[..]);
        assert_eq!(Superblock::decode(&bytes), Copy::Whole(SUPERBLOCK));
    }

    #[test]
    fn a_flipped_bit_makes_it_damaged_and_never_another() {
        let whole = SUPERBLOCK.encode();
        for bit in 0..8 * whole.len() {
            let mut bytes = whole;
            bytes[bit / 8] ^= 1 << (bit % 8);
            let expected = if bit < 64 { Copy::None } else { Copy::Damaged };
            assert_eq!(Superblock::decode(&bytes), expected, "bit {bit}");
        }
    }

    fn with_checksum(mut bytes: [u8; 4_096]) -> [u8; 4_096] {
        bytes[12..16].fill(0);
        let crc = crc32c(&bytes);
        bytes[12..16].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    #[test]
    fn an_unknown_feature_is_told_from_damage() {
        for bit in 0..32_usize {
            let mut bytes = SUPERBLOCK.encode();
            bytes[76 + bit / 8] = 1 << (bit % 8);
            assert_eq!(Superblock::decode(&bytes), Copy::Damaged);
            let copy = Superblock::decode(&with_checksum(bytes));
            assert_eq!(copy, Copy::Unknown { features: 1 << bit });
        }
    }

    #[test]
    fn a_newer_format_is_told_from_damage() {
        let mut bytes = SUPERBLOCK.encode();
        bytes[8] = 2;
        assert_eq!(Superblock::decode(&bytes), Copy::Damaged);
        let bytes = with_checksum(bytes);
        assert_eq!(Superblock::decode(&bytes), Copy::Newer { format: 2 });
        assert_eq!(Superblock::decode(&[0; 4_096]), Copy::None);
        assert_eq!(Superblock::decode(b"KVASIRD\0"), Copy::None);
    }
}

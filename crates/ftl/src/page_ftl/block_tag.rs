use base::checksum::crc32c;

/// The content of a block's tag, in its first page.
///
/// On flash, little endian:
///
/// | bytes | what |
/// |---|---|
/// | 0..4 | CRC-32C of the rest |
/// | 4 | format, 2 |
/// | 5 | which of its unit's frontiers it was opened for: 0 the host's, 1 the collector's |
/// | 6..8 | zero |
/// | 8..16 | sequence number of its opening |
/// | 16..24 | zero |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockTag {
    pub(crate) frontier: usize,
    pub(crate) born: u64,
}

const FORMAT: u8 = 2;

impl BlockTag {
    pub(crate) fn encode(self) -> nand::Tag {
        let mut bytes = [0; nand::TAG_BYTES];
        bytes[4] = FORMAT;
        bytes[5] = u8::from(self.frontier > 0);
        bytes[8..16].copy_from_slice(&self.born.to_le_bytes());
        let crc = crc32c(&bytes[4..]);
        bytes[..4].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Decodes a tag. `None` for bytes of another kind, or damaged ones.
    pub(crate) fn decode(bytes: &nand::Tag) -> Option<Self> {
        let [c0, c1, c2, c3, format, frontier, _, _, b0, b1, b2, b3, b4, b5, b6, b7, ..] = *bytes;
        if u32::from_le_bytes([c0, c1, c2, c3]) != crc32c(&bytes[4..]) || format != FORMAT {
            return None;
        }
        let born = u64::from_le_bytes([b0, b1, b2, b3, b4, b5, b6, b7]);
        Some(Self { frontier: usize::from(frontier > 0), born })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_tag_lies_on_flash_as_its_table_says() {
        let tag = BlockTag { frontier: 1, born: 0x0102_0304_0506_0708 };
        let bytes = tag.encode();
        assert_eq!(bytes[4..8], [2, 1, 0, 0]);
        assert_eq!(bytes[8..16], [8, 7, 6, 5, 4, 3, 2, 1]);
        assert_eq!(bytes[16..], [0; 8]);
        assert_eq!(BlockTag::decode(&bytes), Some(tag));
        for bit in 0..nand::TAG_BYTES * 8 {
            let mut bytes = bytes;
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(BlockTag::decode(&bytes), None);
        }
    }
}

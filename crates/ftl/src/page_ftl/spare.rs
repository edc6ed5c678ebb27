use crate::page_ftl::layout::NONE;
use base::checksum::crc32c;
use smallvec::SmallVec;

/// Bytes before the numbers.
const HEAD: usize = 12;

/// What the spare bytes of a page say: which logical blocks it holds, and when.
///
/// On flash, little endian:
///
/// | bytes | what |
/// |---|---|
/// | 0..4 | CRC-32C of the rest |
/// | 4..12 | sequence number of the page's closing |
/// | 12.. | 4 for each slot: its logical block; all ones for one that was dead by then |
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Spare {
    pub(crate) sequence: u64,
    /// [`NONE`] where a slot holds nothing.
    pub(crate) blocks: SmallVec<[u32; 4]>,
}

/// Spare bytes of a page with so many slots.
pub(crate) const fn spare_bytes(slots: u32) -> usize {
    HEAD + 4 * slots as usize
}

impl Spare {
    pub(crate) fn encode(&self) -> SmallVec<[u8; 64]> {
        let mut bytes = SmallVec::from_slice(&[0; HEAD]);
        bytes[4..].copy_from_slice(&self.sequence.to_le_bytes());
        for block in &self.blocks {
            bytes.extend_from_slice(&block.to_le_bytes());
        }
        let crc = crc32c(&bytes[4..]);
        bytes[..4].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// `None` for bytes that are not those of a page with `slots`.
    pub(crate) fn decode(bytes: &[u8], slots: u32) -> Option<Self> {
        if bytes.len() != spare_bytes(slots) {
            return None;
        }
        let (crc, rest) = bytes.split_first_chunk::<4>()?;
        if u32::from_le_bytes(*crc) != crc32c(rest) {
            return None;
        }
        let (sequence, blocks) = rest.split_first_chunk::<8>()?;
        let (blocks, _) = blocks.as_chunks::<4>();
        Some(Self {
            sequence: u64::from_le_bytes(*sequence),
            blocks: blocks.iter().map(|block| u32::from_le_bytes(*block)).collect(),
        })
    }

    /// The slots that hold something, with their logical blocks.
    pub(crate) fn held(&self) -> impl Iterator<Item = (u32, u32)> {
        (0..).zip(self.blocks.iter().copied()).filter(|(_, block)| *block != NONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smallvec::smallvec;

    #[test]
    fn spare_bytes_lie_on_flash_as_their_table_says() {
        let spare = Spare { sequence: 0x0102_0304_0506_0708, blocks: smallvec![0x1112_1314, NONE] };
        let bytes = spare.encode();
        assert_eq!(bytes[4..12], [8, 7, 6, 5, 4, 3, 2, 1]);
        assert_eq!(bytes[12..], [0x14, 0x13, 0x12, 0x11, 255, 255, 255, 255]);
        assert_eq!(bytes[..4], crc32c(&bytes[4..]).to_le_bytes());
        assert_eq!(Spare::decode(&bytes, 2).as_ref(), Some(&spare));
        assert_eq!(spare.held().collect::<Vec<_>>(), [(0, 0x1112_1314)]);
    }

    #[test]
    fn no_flipped_bit_and_no_other_length_is_taken() {
        let bytes = Spare { sequence: 7, blocks: smallvec![1, 2, 3] }.encode();
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Spare::decode(&bytes, 3), None);
        }
        assert_eq!(Spare::decode(&bytes, 2), None);
        assert_eq!(Spare::decode(&[], 1), None);
    }
}

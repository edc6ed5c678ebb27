use crate::extent::{ExtentId, Label, PageId, Stream};
use base::checksum::crc32c;

/// What the block beside a page's data says of the page.
///
/// It stands twice at the front of its block, so that a flipped bit does not lose the page. On the
/// medium, little endian:
///
/// | bytes | what |
/// |---|---|
/// | 0..4 | CRC-32C of the rest |
/// | 4..6 | magic, `0x4C4B` |
/// | 6 | format, 1 |
/// | 7 | kind: 1 page, 2 the extent was reset |
/// | 8..12 | extent |
/// | 12..16 | opening: how often the extent was opened |
/// | 16..20 | page |
/// | 20..24 | pages of the extent below which all had landed |
/// | 24..32 | epoch of the label |
/// | 32 | stream of the label |
/// | 33..36 | zero |
/// | 36..40 | bytes of data |
/// | 40..44 | bytes of the data's first segment |
/// | 44..46 | spare bytes |
/// | 46..48 | zero |
/// | 48..52 | checksum of data and spare bytes |
/// | 52..56 | zero |
///
/// Where the extent was reset all is zero from 16 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) extent: ExtentId,
    pub(super) opening: u32,
    /// `None` where the extent was reset.
    pub(super) page: Option<PageHeader>,
}

/// The part that pages have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageHeader {
    pub(super) page: u32,
    pub(super) landed: u32,
    pub(super) label: Label,
    pub(super) data_len: u32,
    pub(super) first_len: u32,
    pub(super) spare_len: u16,
    pub(super) checksum: u32,
}

/// Bytes of a header.
const HEADER_BYTES: usize = 56;
/// Bytes before the spare bytes of a page: both copies.
pub(super) const HEADERS_BYTES: usize = 2 * HEADER_BYTES;

const MAGIC: [u8; 2] = 0x4C4B_u16.to_le_bytes();
const FORMAT: u8 = 1;
const PAGE: u8 = 1;
const RESET: u8 = 2;

impl Header {
    /// Writes both copies to the front of `block`.
    pub(super) fn encode(&self, block: &mut [u8]) {
        let mut bytes = [0; HEADER_BYTES];
        bytes[4..6].copy_from_slice(&MAGIC);
        bytes[6] = FORMAT;
        bytes[7] = if self.page.is_some() { PAGE } else { RESET };
        bytes[8..12].copy_from_slice(&self.extent.0.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.opening.to_le_bytes());
        if let Some(page) = &self.page {
            bytes[16..20].copy_from_slice(&page.page.to_le_bytes());
            bytes[20..24].copy_from_slice(&page.landed.to_le_bytes());
            bytes[24..32].copy_from_slice(&page.label.epoch.to_le_bytes());
            bytes[32] = page.label.stream as u8;
            bytes[36..40].copy_from_slice(&page.data_len.to_le_bytes());
            bytes[40..44].copy_from_slice(&page.first_len.to_le_bytes());
            bytes[44..46].copy_from_slice(&page.spare_len.to_le_bytes());
            bytes[48..52].copy_from_slice(&page.checksum.to_le_bytes());
        }
        let crc = crc32c(&bytes[4..]);
        bytes[..4].copy_from_slice(&crc.to_le_bytes());
        block[..HEADER_BYTES].copy_from_slice(&bytes);
        block[HEADER_BYTES..HEADERS_BYTES].copy_from_slice(&bytes);
    }

    /// The header of a block, from the copy that is whole; `None` when neither is.
    pub(super) fn decode(block: &[u8]) -> Option<Self> {
        let (first, rest) = block.split_first_chunk()?;
        Self::decode_one(first).or_else(|| Self::decode_one(rest.first_chunk()?))
    }

    fn decode_one(bytes: &[u8; HEADER_BYTES]) -> Option<Self> {
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let is_whole = word(0) == crc32c(&bytes[4..]);
        if !is_whole || bytes[4..6] != MAGIC || bytes[6] != FORMAT {
            return None;
        }
        let stream = Stream::from_number(bytes[32])?;
        let page = match bytes[7] {
            RESET => None,
            PAGE => Some(PageHeader {
                page: word(16),
                landed: word(20),
                label: Label { stream, epoch: u64::from(word(28)) << 32 | u64::from(word(24)) },
                data_len: word(36),
                first_len: word(40),
                spare_len: u16::from_le_bytes([bytes[44], bytes[45]]),
                checksum: word(48),
            }),
            _ => return None,
        };
        Some(Self { extent: ExtentId(word(8)), opening: word(12), page })
    }

    /// What it says of the page, if it is that of `at` in its extent's opening `opening`.
    pub(super) fn page_at(&self, at: PageId, opening: u32) -> Option<&PageHeader> {
        let is_of_extent = self.extent == at.extent && self.opening == opening;
        self.page.as_ref().filter(|page| is_of_extent && page.page == at.page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: Header = Header {
        extent: ExtentId(0x0102_0304),
        opening: 0x0506_0708,
        page: Some(PageHeader {
            page: 0x1112_1314,
            landed: 0x1516_1718,
            label: Label { stream: Stream::Gc, epoch: 0x2122_2324_2526_2728 },
            data_len: 0x3132_3334,
            first_len: 0x3536_3738,
            spare_len: 0x4142,
            checksum: 0x5152_5354,
        }),
    };

    #[test]
    fn a_header_lies_in_its_block_as_its_table_says() {
        let mut block = [0xEE; HEADERS_BYTES];
        HEADER.encode(&mut block);
        let expected = [
            0x4B, 0x4C, 1, 1, 4, 3, 2, 1, 8, 7, 6, 5, 0x14, 0x13, 0x12, 0x11, 0x18, 0x17, 0x16,
            0x15, 0x28, 0x27, 0x26, 0x25, 0x24, 0x23, 0x22, 0x21, 1, 0, 0, 0, 0x34, 0x33, 0x32,
            0x31, 0x38, 0x37, 0x36, 0x35, 0x42, 0x41, 0, 0, 0x54, 0x53, 0x52, 0x51, 0, 0, 0, 0,
        ];
        assert_eq!(block[4..HEADER_BYTES], expected);
        assert_eq!(block[..4], crc32c(&expected).to_le_bytes());
        assert_eq!(block[..HEADER_BYTES], block[HEADER_BYTES..]);
        assert_eq!(Header::decode(&block), Some(HEADER));
        let reset = Header { page: None, ..HEADER };
        reset.encode(&mut block);
        assert_eq!((block[7], &block[16..HEADER_BYTES]), (2, &[0; 40][..]));
        assert_eq!(Header::decode(&block), Some(reset));
    }

    #[test]
    fn no_flipped_bit_loses_a_header_and_two_lose_it() {
        let bits = HEADER_BYTES * 8;
        for bit in 0..2 * bits {
            let mut block = [0; HEADERS_BYTES];
            HEADER.encode(&mut block);
            block[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Header::decode(&block), Some(HEADER));
            let other = (bit + bits) % (2 * bits);
            block[other / 8] ^= 1 << (other % 8);
            assert_eq!(Header::decode(&block), None);
        }
        assert_eq!(Header::decode(&[0; HEADERS_BYTES]), None);
    }
}

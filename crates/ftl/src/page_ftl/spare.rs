use crate::block_sum::block_sum;
use crate::page_ftl::layout::NONE;
use base::Buf;
use base::checksum::crc32c;
use base::limits::BLOCK_BYTES;
use media::{Page, Segments, cut};
use smallvec::SmallVec;

/// Bytes before the numbers.
const HEAD: usize = 12;

/// The spare bytes of a page: its logical blocks, and when it was closed.
///
/// On flash, little endian:
///
/// | bytes | what |
/// |---|---|
/// | 0..4 | CRC-32C of the rest |
/// | 4..12 | sequence number of the page's closing |
/// | 12.. | 8 for each slot: logical block, all ones for one that was dead by then; checksum |
/// | then | as many [`Name`]s as fit |
///
/// The checksum of a logical block that is lost is wrong on purpose.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Spare {
    pub(crate) sequence: u64,
    /// [`NONE`] where a slot holds nothing.
    pub(crate) blocks: SmallVec<[u32; 8]>,
    pub(crate) sums: SmallVec<[u32; 8]>,
    pub(crate) names: Vec<Name>,
}

/// What a page records about another page of its plane, so that the loss of that one is known.
///
/// On flash, little endian: 4 bytes for the page, all ones for none; 4 for how often its block had
/// been erased; 8 for its sequence number; 4 for each slot: its logical block, as in the page
/// itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) page: u32,
    pub(crate) erases: u32,
    pub(crate) sequence: u64,
    pub(crate) blocks: SmallVec<[u32; 8]>,
}

/// Returns the spare bytes of a page with `slots` slots that names `names` others.
pub(crate) const fn spare_bytes(slots: u32, names: u32) -> usize {
    HEAD + 8 * slots as usize + name_bytes(slots) * names as usize
}

const fn name_bytes(slots: u32) -> usize {
    16 + 4 * slots as usize
}

/// Returns the checksum that marks lost data, in place of which a page has `data`.
pub(crate) fn lost_sum(data: &[Buf]) -> u32 {
    !block_sum(data)
}

impl Spare {
    /// Encodes with room for `names` names.
    pub(crate) fn encode(&self, names: u32) -> SmallVec<[u8; 320]> {
        let mut bytes = SmallVec::from_slice(&[0; HEAD]);
        bytes[4..].copy_from_slice(&self.sequence.to_le_bytes());
        for (block, sum) in self.blocks.iter().zip(&self.sums) {
            bytes.extend_from_slice(&block.to_le_bytes());
            bytes.extend_from_slice(&sum.to_le_bytes());
        }
        for name in &self.names {
            bytes.extend_from_slice(&name.page.to_le_bytes());
            bytes.extend_from_slice(&name.erases.to_le_bytes());
            bytes.extend_from_slice(&name.sequence.to_le_bytes());
            for block in &name.blocks {
                bytes.extend_from_slice(&block.to_le_bytes());
            }
        }
        let slots = u32::try_from(self.blocks.len()).expect("a page has few slots");
        bytes.resize(spare_bytes(slots, names), 0xFF);
        let crc = crc32c(&bytes[4..]);
        bytes[..4].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Decodes. `None` for bytes that are not those of a page with `slots` slots.
    pub(crate) fn decode(bytes: &[u8], slots: u32) -> Option<Self> {
        let rest = checked(bytes, slots)?;
        let (sequence, rest) = rest.split_first_chunk::<8>()?;
        let (of_slots, names) = rest.split_at_checked(8 * slots as usize)?;
        let (of_slots, _) = of_slots.as_chunks::<8>();
        let word = |at: &[u8]| at.first_chunk().map_or(NONE, |word| u32::from_le_bytes(*word));
        let names = names.chunks_exact(name_bytes(slots)).map(|name| Name {
            page: word(name),
            erases: word(&name[4..]),
            sequence: u64::from(word(&name[12..])) << 32 | u64::from(word(&name[8..])),
            blocks: name[16..].chunks_exact(4).map(word).collect(),
        });
        Some(Self {
            sequence: u64::from_le_bytes(*sequence),
            blocks: of_slots.iter().map(|slot| word(slot)).collect(),
            sums: of_slots.iter().map(|slot| word(&slot[4..])).collect(),
            names: names.filter(|name| name.page != NONE).collect(),
        })
    }
}

/// Returns the bytes after the CRC of spare bytes, if that is right.
#[inline]
fn checked(bytes: &[u8], slots: u32) -> Option<&[u8]> {
    let names = bytes.len().checked_sub(spare_bytes(slots, 0))?;
    let (crc, rest) = bytes.split_first_chunk::<4>()?;
    let is_right = u32::from_le_bytes(*crc) == crc32c(rest);
    (is_right && names.is_multiple_of(name_bytes(slots))).then_some(rest)
}

/// Returns the same of a page. One with the CRCs of its segments is as it was programmed.
#[inline]
fn trusted(page: &Page, slots: u32) -> Option<&[u8]> {
    if page.has_crcs() { page.spare().get(4..) } else { checked(page.spare(), slots) }
}

/// Returns the content of `count` slots of `page` from `first`, or the first slot whose content
/// differs from what was written.
#[inline]
pub(crate) fn verified(page: &Page, first: u32, count: u32, slots: u32) -> Result<Segments, u32> {
    let data = page.segments_at(first * BLOCK_BYTES, count * BLOCK_BYTES);
    let (Some(rest), Some(data)) = (trusted(page, slots), data) else { return Err(first) };
    let (of_slots, _) = rest[8..].as_chunks::<8>();
    for at in 0..count {
        let [.., s0, s1, s2, s3] = of_slots[(first + at) as usize];
        let computed = || match count {
            1 => block_sum(&data),
            _ => block_sum(&cut(&data, at * BLOCK_BYTES, BLOCK_BYTES).unwrap_or_default()),
        };
        // A fault replaces the page by one without.
        let known = page.crc_at((first + at) * BLOCK_BYTES, BLOCK_BYTES);
        let sum = known.unwrap_or_else(computed);
        if sum != u32::from_le_bytes([s0, s1, s2, s3]) {
            return Err(first + at);
        }
    }
    Ok(data)
}

#[cfg(test)]
mod tests {
    use super::*;
    use smallvec::smallvec;

    fn spare() -> Spare {
        let name = Name {
            page: 0x2122_2324,
            erases: 0x2526_2728,
            sequence: 0x3132_3334_3536_3738,
            blocks: smallvec![5, NONE],
        };
        Spare {
            sequence: 0x0102_0304_0506_0708,
            blocks: smallvec![0x1112_1314, NONE],
            sums: smallvec![0x4142_4344, 0],
            names: vec![name],
        }
    }

    #[test]
    fn spare_bytes_lie_on_flash_as_their_table_says() {
        let bytes = spare().encode(2);
        assert_eq!(bytes.len(), 12 + 16 + 2 * 24);
        assert_eq!(bytes[4..12], [8, 7, 6, 5, 4, 3, 2, 1]);
        let slots =
            [0x14, 0x13, 0x12, 0x11, 0x44, 0x43, 0x42, 0x41, 255, 255, 255, 255, 0, 0, 0, 0];
        assert_eq!(bytes[12..28], slots);
        let name = [
            0x24, 0x23, 0x22, 0x21, 0x28, 0x27, 0x26, 0x25, 0x38, 0x37, 0x36, 0x35, 0x34, 0x33,
            0x32, 0x31, 5, 0, 0, 0, 255, 255, 255, 255,
        ];
        assert_eq!(bytes[28..52], name);
        assert_eq!(bytes[52..], [255; 24], "no name");
        assert_eq!(bytes[..4], crc32c(&bytes[4..]).to_le_bytes());
        assert_eq!(Spare::decode(&bytes, 2), Some(spare()));
    }

    #[test]
    fn no_flipped_bit_and_no_other_length_is_taken() {
        let bytes = spare().encode(1);
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Spare::decode(&bytes, 2), None);
        }
        assert_eq!(Spare::decode(&bytes, 3), None);
        assert_eq!(Spare::decode(&[], 1), None);
    }

    #[test]
    fn a_slot_is_refused_when_it_is_not_what_was_written_and_when_it_is_lost() {
        let data = [Buf::phantom(BLOCK_BYTES, 1), Buf::phantom(BLOCK_BYTES, 2)];
        let sums = smallvec![block_sum(&data[..1]), lost_sum(&data[1..])];
        let spare = Spare { sums, ..spare() };
        let page = Page::new(&spare.encode(1), data);
        assert_eq!(verified(&page, 0, 1, 2).map(|data| data.len()), Ok(1));
        assert_eq!(verified(&page, 1, 1, 2).err(), Some(1));
        assert_eq!(verified(&page, 0, 2, 2).err(), Some(1));
        assert_eq!(verified(&page.with_flipped_bit(0), 0, 1, 2).err(), Some(0));
        assert_eq!(verified(&page.with_flipped_bit(2), 0, 1, 2).err(), Some(0), "the spare bytes");
    }

    #[test]
    fn damage_is_found_in_a_page_whose_crcs_are_known() {
        let data = [1, 2].map(|byte| Buf::copy_from(&[byte; BLOCK_BYTES as usize]));
        let sums = [0, 1].map(|slot| block_sum(&data[slot..=slot]));
        let spare = Spare { sums: SmallVec::from_slice(&sums), ..spare() };
        let page = Page::new(&spare.encode(1), data).with_crcs(&sums);
        assert_eq!(verified(&page, 0, 2, 2).map(|data| data.len()), Ok(2));
        let damaged = |which| verified(&page.with_flipped_bit(which), 0, 2, 2).err();
        assert_eq!([0, 1, 2].map(damaged), [Some(0), Some(1), Some(0)]);
        let other = Spare { sums: smallvec![sums[0], !sums[1]], ..spare };
        let page = Page::new(&other.encode(1), page.segments()).with_crcs(&sums);
        assert_eq!(verified(&page, 1, 1, 2).err(), Some(1), "the spare bytes have another");
    }
}

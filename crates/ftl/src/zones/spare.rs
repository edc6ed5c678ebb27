use crate::block_sum::block_sum;
use base::checksum::crc32c;
use base::limits::BLOCK_BYTES;
use media::{Page, Segments, cut};

/// Bytes before the checksums.
const HEAD: usize = 36;
const FORMAT: u8 = 1;

/// The kind of a zone's page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// A page that is full, or ends a zone at its capacity.
    Data = 0,
    /// The last page of a zone that was finished.
    Finished = 1,
    /// The page was lost before it was copied here: it has no data.
    Lost = 2,
    /// Data that was in memory when power was lost.
    Saved = 3,
    /// The zone was read only when power was lost.
    ReadOnly = 4,
    /// The zone was offline when power was lost.
    Offline = 5,
}

/// The spare bytes of a zone's page.
///
/// On flash, little endian:
///
/// | bytes | what |
/// |---|---|
/// | 0..4 | CRC-32C of the rest |
/// | 4 | format, 1 |
/// | 5 | kind: see [`Kind`] |
/// | 6..8 | zero |
/// | 8..12 | zone |
/// | 12..16 | page, counted in its zone |
/// | 16..24 | filling of the zone, counted over all zones |
/// | 24..28 | pages of the zone below which all had landed |
/// | 28..32 | pages, from the first, that were copied from another extent |
/// | 32..36 | logical blocks of data |
/// | 36.. | 4 for each of them: its checksum |
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spare {
    pub(crate) kind: Kind,
    pub(crate) zone: u32,
    pub(crate) page: u32,
    pub(crate) fill: u64,
    pub(crate) landed: u32,
    pub(crate) copied: u32,
    pub(crate) blocks: u32,
}

/// Returns the spare bytes of a page with `blocks` logical blocks.
pub(crate) const fn spare_bytes(blocks: u32) -> usize {
    HEAD + 4 * blocks as usize
}

impl Spare {
    /// Returns the page of `data`, whole logical blocks, and sets [`Self::blocks`].
    pub(crate) fn page(mut self, data: Segments) -> Page {
        let bytes: u32 = data.iter().map(base::Buf::len).sum();
        self.blocks = bytes / BLOCK_BYTES;
        let sums = (0..self.blocks).map(|block| {
            let pieces = cut(&data, block * BLOCK_BYTES, BLOCK_BYTES);
            block_sum(&pieces.expect("it is within the data"))
        });
        let mut spare = vec![0; HEAD];
        spare[4] = FORMAT;
        spare[5] = self.kind as u8;
        spare[8..12].copy_from_slice(&self.zone.to_le_bytes());
        spare[12..16].copy_from_slice(&self.page.to_le_bytes());
        spare[16..24].copy_from_slice(&self.fill.to_le_bytes());
        spare[24..28].copy_from_slice(&self.landed.to_le_bytes());
        spare[28..32].copy_from_slice(&self.copied.to_le_bytes());
        spare[32..36].copy_from_slice(&self.blocks.to_le_bytes());
        spare.extend(sums.flat_map(u32::to_le_bytes));
        let crc = crc32c(&spare[4..]);
        spare[..4].copy_from_slice(&crc.to_le_bytes());
        Page::new(&spare, data)
    }

    /// Decodes a page's spare bytes. `None` for bytes of no zone's page, or damaged ones.
    pub(crate) fn of(page: &Page) -> Option<Self> {
        let bytes = page.spare();
        let word = |at: usize| {
            Some(u32::from_le_bytes([
                *bytes.get(at)?,
                *bytes.get(at + 1)?,
                *bytes.get(at + 2)?,
                *bytes.get(at + 3)?,
            ]))
        };
        if word(0)? != crc32c(bytes.get(4..)?) || *bytes.get(4)? != FORMAT {
            return None;
        }
        let spare = Self {
            kind: match bytes[5] {
                0 => Kind::Data,
                1 => Kind::Finished,
                2 => Kind::Lost,
                3 => Kind::Saved,
                4 => Kind::ReadOnly,
                5 => Kind::Offline,
                _ => return None,
            },
            zone: word(8)?,
            page: word(12)?,
            fill: u64::from(word(20)?) << 32 | u64::from(word(16)?),
            landed: word(24)?,
            copied: word(28)?,
            blocks: word(32)?,
        };
        (bytes.len() == spare_bytes(spare.blocks)).then_some(spare)
    }
}

/// Returns the `len` bytes of `page` from `start`, whole logical blocks; `None` when they differ
/// from what was written.
pub(crate) fn verified(page: &Page, start: u32, len: u32) -> Option<Segments> {
    let spare = Spare::of(page)?;
    let first = start / BLOCK_BYTES;
    let count = len / BLOCK_BYTES;
    if first.checked_add(count)? > spare.blocks {
        return None;
    }
    let data = page.segments_at(start, len)?;
    let (sums, _) = page.spare().get(HEAD..)?.as_chunks::<4>();
    for block in 0..count {
        let pieces = cut(&data, block * BLOCK_BYTES, BLOCK_BYTES)?;
        let sum = sums.get((first + block) as usize)?;
        if u32::from_le_bytes(*sum) != block_sum(&pieces) {
            return None;
        }
    }
    Some(data)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Buf;

    const SPARE: Spare = Spare {
        kind: Kind::Finished,
        zone: 0x0102_0304,
        page: 0x0506_0708,
        fill: 0x1112_1314_1516_1718,
        landed: 0x2122_2324,
        copied: 0x2526_2728,
        blocks: 2,
    };

    fn data() -> Segments {
        let bytes: Vec<u8> = (0..BLOCK_BYTES).map(|at| (at % 251) as u8).collect();
        Segments::from_iter([Buf::copy_from(&bytes), Buf::phantom(BLOCK_BYTES, 0x31)])
    }

    #[test]
    fn spare_bytes_of_zones_lie_on_flash_as_their_table_says() {
        let page = SPARE.page(data());
        let bytes = page.spare();
        let head = [
            1, 1, 0, 0, 4, 3, 2, 1, 8, 7, 6, 5, 0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11,
            0x24, 0x23, 0x22, 0x21, 0x28, 0x27, 0x26, 0x25, 2, 0, 0, 0,
        ];
        assert_eq!(bytes[4..HEAD], head);
        let sums = data().iter().flat_map(|of| of.crc32c().to_le_bytes()).collect::<Vec<_>>();
        assert_eq!(bytes[HEAD..], sums);
        assert_eq!(bytes[..4], crc32c(&bytes[4..]).to_le_bytes());
        assert_eq!(Spare::of(&page), Some(SPARE));
        assert_eq!(Spare::of(&Page::new(&[], [])), None);
    }

    #[test]
    fn a_flipped_bit_hurts_the_block_that_has_it_or_all_when_it_is_beside_them() {
        for which in 0..400 {
            let page = SPARE.page(data()).with_flipped_bit(which);
            let is_whole = |block: u32| verified(&page, block * BLOCK_BYTES, BLOCK_BYTES).is_some();
            let expected = match which % 3 {
                0 => [false, true],
                1 => [true, false],
                _ => [false, false],
            };
            assert_eq!([is_whole(0), is_whole(1)], expected, "bit {which}");
            assert!(verified(&page, 0, 2 * BLOCK_BYTES).is_none());
        }
        let page = SPARE.page(data());
        assert!(verified(&page, 0, 2 * BLOCK_BYTES).is_some());
        assert!(verified(&page, BLOCK_BYTES, 2 * BLOCK_BYTES).is_none(), "past the end");
    }
}

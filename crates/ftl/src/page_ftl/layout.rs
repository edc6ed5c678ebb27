use crate::region::Region;
use base::Divisor;
use base::limits::BLOCK_BYTES;
use nand::{BlockId, DieId, Geometry, Ppa};

/// Numbers of places on the flash.
///
/// Units, the planes of all dies, are numbered so that consecutive ones lie on different channels,
/// then on different dies, then on different planes. Blocks are numbered unit by unit, pages block
/// by block, and slots, each the place of a logical block, page by page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// Each read splits numbers by these four.
    by_dies: Divisor,
    by_blocks: Divisor,
    by_pages: Divisor,
    by_slots: Divisor,
    planes: u32,
    channels: u32,
    first_block: u32,
    pub(crate) units: u32,
    /// Of each unit, bad ones included.
    pub(crate) blocks: u32,
    /// Of each block.
    pub(crate) pages: u32,
    /// Of each page.
    pub(crate) slots: u32,
}

/// Means no slot, or no block.
pub(crate) const NONE: u32 = u32::MAX;

impl Layout {
    pub(crate) fn new(geometry: &Geometry, region: Region) -> Self {
        assert!(
            geometry.page_bytes >= BLOCK_BYTES && geometry.page_bytes.is_multiple_of(BLOCK_BYTES),
            "a page of flash holds whole logical blocks of {BLOCK_BYTES} bytes"
        );
        let layout = Self {
            by_dies: Divisor::new(geometry.dies().into()),
            by_blocks: Divisor::new(region.count.into()),
            by_pages: Divisor::new(geometry.pages_per_block.into()),
            by_slots: Divisor::new((geometry.page_bytes / BLOCK_BYTES).into()),
            planes: geometry.planes_per_die,
            channels: geometry.channels,
            first_block: region.first,
            units: geometry.dies() * geometry.planes_per_die,
            blocks: region.count,
            pages: geometry.pages_per_block,
            slots: geometry.page_bytes / BLOCK_BYTES,
        };
        let slots = u64::from(layout.all_blocks()) * u64::from(layout.block_slots());
        assert!(slots < u64::from(NONE), "a namespace has less than 2^32 logical blocks of flash");
        layout
    }

    pub(crate) const fn all_blocks(&self) -> u32 {
        self.units * self.blocks
    }

    #[inline]
    pub(crate) const fn block_slots(&self) -> u32 {
        self.pages * self.slots
    }

    /// Returns the numbers of a unit's blocks.
    #[inline]
    pub(crate) const fn blocks_of(&self, unit: u32) -> std::ops::Range<u32> {
        unit * self.blocks..(unit + 1) * self.blocks
    }

    #[inline]
    pub(crate) const fn unit_of(&self, block: u32) -> u32 {
        split(block, self.by_blocks).0
    }

    pub(crate) const fn channel_of(&self, unit: u32) -> u32 {
        split(unit, self.by_dies).1 % self.channels
    }

    #[inline]
    pub(crate) const fn block_of_page(&self, page: u32) -> u32 {
        self.split_page(page).0
    }

    #[inline]
    pub(crate) const fn block_of_slot(&self, slot: u32) -> u32 {
        slot / self.block_slots()
    }

    #[inline]
    pub(crate) const fn page_of_slot(&self, slot: u32) -> u32 {
        self.split_slot(slot).0
    }

    /// Returns the page of a slot, and its number in that page.
    #[inline]
    pub(crate) const fn split_slot(&self, slot: u32) -> (u32, u32) {
        split(slot, self.by_slots)
    }

    /// Returns the block of a page, and its number in that block.
    #[inline]
    pub(crate) const fn split_page(&self, page: u32) -> (u32, u32) {
        split(page, self.by_pages)
    }

    /// Returns how many pages `slots` logical blocks fill, the last one perhaps in part.
    #[inline]
    pub(crate) const fn pages_for(&self, slots: u32) -> u32 {
        slots.div_ceil(self.slots)
    }

    /// Returns the address on the array.
    #[inline]
    pub(crate) const fn block_id(&self, block: u32) -> BlockId {
        let (unit, number) = split(block, self.by_blocks);
        let (plane, die) = split(unit, self.by_dies);
        BlockId { die: DieId(die), block: (self.first_block + number) * self.planes + plane }
    }

    /// Returns the address on the array.
    #[inline]
    pub(crate) const fn ppa(&self, page: u32) -> Ppa {
        let (block, page) = self.split_page(page);
        Ppa { block: self.block_id(block), page }
    }
}

/// Returns the quotient and the rest.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "neither is greater than the number")]
const fn split(number: u32, by: Divisor) -> (u32, u32) {
    let (quotient, rest) = by.split(number as u64);
    (quotient as u32, rest as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_page_of_the_region_has_one_number() {
        let geometry = Geometry {
            channels: 2,
            dies_per_channel: 3,
            planes_per_die: 2,
            blocks_per_plane: 9,
            pages_per_block: 5,
            page_bytes: 8_192,
            spare_bytes: 64,
        };
        let region = Region { first: 4, count: 3 };
        let layout = Layout::new(&geometry, region);
        let pages = layout.all_blocks() * layout.pages;
        let ppas: BTreeSet<Ppa> = (0..pages).map(|page| layout.ppa(page)).collect();
        assert_eq!(ppas.len() as u64, 2 * 3 * 2 * 3 * 5);
        for page in 0..pages {
            let block = layout.block_of_page(page);
            let (unit, id) = (layout.unit_of(block), layout.ppa(page).block);
            assert!(region.has(&geometry, id), "{id} is of the region");
            assert_eq!(layout.channel_of(unit), geometry.channel_of(id.die));
            assert_eq!((id.die.0, id.block % 2), (unit % 6, unit / 6), "units are planes");
        }
    }
}

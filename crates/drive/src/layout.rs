use crate::ledger::ENTRY_BYTES;
use base::limits::VALUE_BYTES_MAX;
use media::{BlocksShape, ExtentId, Frames, PageId, Shape};

/// Bytes of a superblock, a mark and a footer: the most that a disk writes as one.
pub(crate) const NOTE_BYTES: u32 = 4_096;

/// Entries in a note of the ledger.
pub(crate) const NOTE_ENTRIES: u32 = NOTE_BYTES / ENTRY_BYTES;

/// Where the first superblock lies. What lies before it belongs to whoever boots from the disk.
pub(crate) const SUPERBLOCK_START: u64 = NOTE_BYTES as u64;

/// Where the first extent begins.
const EXTENTS_START: u64 = 2 * NOTE_BYTES as u64;

/// Bytes of an extent beside its frames: a mark before them, a mark and the footer after them.
pub(crate) const AROUND_BYTES: u64 = 3 * NOTE_BYTES as u64;

/// Bytes of a frame before its spare bytes.
pub(crate) const HEAD_BYTES: u32 = 64;

/// Bytes of a unit, unless that many units of the disk are more than 32 bits count.
const UNIT_BYTES: u32 = 512;

/// Spare bytes of a frame: with the head they fill the largest block.
pub(crate) const SPARE_BYTES: u32 = (NOTE_BYTES - HEAD_BYTES) & !7;

/// The longest page's share of its extent, for extents smaller than eight of the longest values: so
/// that a log has room for a few pages and their summary.
const EXTENT_SHARE: u64 = 4;

/// The smallest extent: it has room for its longest page with all spare bytes.
pub(crate) const EXTENT_BYTES_MIN: u64 = 32 << 10;

/// The sizes that a user gets who asks for none. 4 MiB hold the longest value with room to spare;
/// above 256 MiB the open extents and the reserve of a cleaner take too much of a disk.
const EXTENT_BYTES_USUAL: (u64, u64) = (4 << 20, 256 << 20);

/// How many extents a disk is cut into, within these bounds.
const EXTENTS_USUAL: u64 = 512;

/// Bytes of a unit on a disk of this size.
pub(crate) fn unit_bytes(size_bytes: u64) -> u32 {
    let mut unit_bytes = UNIT_BYTES;
    while size_bytes / u64::from(unit_bytes) > u32::MAX.into() && unit_bytes < NOTE_BYTES {
        unit_bytes *= 2;
    }
    unit_bytes
}

/// Where everything lies on the blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) block_bytes: u32,
    pub(crate) unit_bytes: u32,
    pub(crate) extent_bytes: u64,
    pub(crate) extents: u32,
    /// Bytes of all the blocks.
    pub(crate) size_bytes: u64,
}

/// Bytes of all blocks.
pub(crate) const fn size_bytes(blocks: BlocksShape) -> u64 {
    blocks.blocks * blocks.block_bytes as u64
}

/// Where the second superblock lies.
pub(crate) const fn second_superblock(size_bytes: u64) -> u64 {
    let note = NOTE_BYTES as u64;
    (size_bytes / note).saturating_sub(1) * note
}

/// Bytes of an extent on a disk of this size.
pub(crate) fn usual_extent_bytes(size_bytes: u64) -> u64 {
    let (min, max) = EXTENT_BYTES_USUAL;
    (size_bytes / EXTENTS_USUAL).max(1).next_power_of_two().clamp(min, max)
}

/// Notes of a ledger of so many extents.
const fn ledger_notes(extents: u64) -> u64 {
    extents.div_ceil(NOTE_ENTRIES as u64)
}

/// Bytes of both copies of it.
const fn ledgers_bytes(extents: u64) -> u64 {
    2 * ledger_notes(extents) * NOTE_BYTES as u64
}

/// How many extents of this size there is room for.
pub(crate) fn extents_on(size_bytes: u64, extent_bytes: u64) -> u32 {
    let room = second_superblock(size_bytes).saturating_sub(EXTENTS_START);
    let mut extents = room / extent_bytes;
    while extents * extent_bytes + ledgers_bytes(extents) > room {
        extents -= 1;
    }
    u32::try_from(extents).expect("extents of 32 KiB are counted in 32 bits")
}

/// The least bytes for so many extents of this size.
pub(crate) const fn least_bytes(extents: u32, extent_bytes: u64) -> u64 {
    let extents = extents as u64;
    EXTENTS_START + extents * extent_bytes + ledgers_bytes(extents) + NOTE_BYTES as u64
}

impl Layout {
    pub(crate) fn shape(&self, parallelism: u32) -> Shape {
        let longest = (self.extent_bytes / EXTENT_SHARE).min(VALUE_BYTES_MAX.into());
        let longest = u32::try_from(longest).expect("it is bounded");
        Shape {
            page_bytes: longest / self.unit_bytes * self.unit_bytes,
            spare_bytes: SPARE_BYTES,
            pages_per_extent: self.pages(),
            extents: self.extents,
            parallelism,
            frames: Some(self.frames()),
        }
    }

    pub(crate) const fn frames(&self) -> Frames {
        let block_units = NOTE_BYTES >> self.unit_bytes.trailing_zeros();
        Frames { unit_bytes: self.unit_bytes, block_units, head_bytes: HEAD_BYTES }
    }

    /// The first unit from this one on with which a block of the disk begins.
    pub(crate) const fn first_of_block(&self, unit: u32) -> u32 {
        if self.block_bytes <= self.unit_bytes {
            return unit;
        }
        // Both are powers of two.
        let last = (self.block_bytes >> self.unit_bytes.trailing_zeros()) - 1;
        (unit + last) & !last
    }

    /// Units of an extent that hold frames.
    pub(crate) fn pages(&self) -> u32 {
        let units = (self.extent_bytes - AROUND_BYTES) >> self.unit_bytes.trailing_zeros();
        u32::try_from(units).expect("an extent has far less than 2^32 units")
    }

    /// Where an extent begins, with its first mark.
    pub(crate) const fn extent_start(&self, extent: ExtentId) -> u64 {
        EXTENTS_START + extent.0 as u64 * self.extent_bytes
    }

    /// Where its second mark lies, right before the footer.
    pub(crate) const fn second_mark(&self, extent: ExtentId) -> u64 {
        self.extent_start(extent) + self.extent_bytes - 2 * NOTE_BYTES as u64
    }

    pub(crate) const fn footer(&self, extent: ExtentId) -> u64 {
        self.second_mark(extent) + NOTE_BYTES as u64
    }

    /// Where a frame begins.
    pub(crate) const fn frame_start(&self, at: PageId) -> u64 {
        let before = at.page as u64 * self.unit_bytes as u64;
        self.extent_start(at.extent) + NOTE_BYTES as u64 + before
    }

    /// Notes of each copy of the ledger.
    pub(crate) fn ledger_notes(&self) -> u32 {
        u32::try_from(ledger_notes(self.extents.into())).expect("they are fewer than the extents")
    }

    /// Where a note of the first or the second copy of the ledger lies: both end right before the
    /// second superblock.
    pub(crate) const fn ledger_note(&self, copy: u64, note: u32) -> u64 {
        let extents = self.extents as u64;
        let start = second_superblock(self.size_bytes) - ledgers_bytes(extents);
        start + (copy * ledger_notes(extents) + note as u64) * NOTE_BYTES as u64
    }

    /// Bytes of so many units; those of an extent at most.
    pub(crate) const fn units_bytes(&self, units: u32) -> u32 {
        units * self.unit_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_are_a_512th_of_the_disk_within_bounds() {
        let mib = |bytes| usual_extent_bytes(bytes) >> 20;
        let sizes = [1 << 20, 1 << 32, 10 << 30, 100 << 30, 1 << 40, 16 << 40];
        assert_eq!(sizes.map(mib), [4, 8, 32, 256, 256, 256]);
    }

    #[test]
    fn units_are_of_512_bytes_as_far_as_32_bits_count_them() {
        let units = [1 << 20, (2 << 40) - 512, 2 << 40, 5 << 40, 15 << 40].map(unit_bytes);
        assert_eq!(units, [512, 512, 1_024, 2_048, 4_096]);
    }

    #[test]
    fn blocks_begin_with_a_unit_or_within_one() {
        let of = |block_bytes, unit_bytes| {
            let (extent_bytes, size_bytes) = (64 << 10, 1 << 20);
            let layout = Layout { block_bytes, unit_bytes, extent_bytes, extents: 1, size_bytes };
            [0, 1, 7, 8, 9].map(|unit| layout.first_of_block(unit))
        };
        assert_eq!(of(4_096, 512), [0, 8, 8, 8, 16]);
        assert_eq!(of(1_024, 512), [0, 2, 8, 8, 10]);
        assert_eq!(of(512, 512), [0, 1, 7, 8, 9]);
        assert_eq!(of(512, 4_096), [0, 1, 7, 8, 9]);
    }

    #[test]
    fn extents_lie_between_the_superblocks_and_their_parts_side_by_side() {
        for (unit_bytes, odd) in [(512, 0), (512, 7 * 512), (4_096, 0)] {
            let size_bytes = 10 * (64 << 10) + 5 * 4_096 + odd;
            let (extent_bytes, extents) = (64 << 10, extents_on(size_bytes, 64 << 10));
            assert_eq!(extents, 10);
            let layout = Layout { block_bytes: 512, unit_bytes, extent_bytes, extents, size_bytes };
            assert_eq!(layout.extent_start(ExtentId(0)), 8_192);
            let last = ExtentId(9);
            assert_eq!(layout.footer(last) + 4_096, layout.ledger_note(0, 0));
            assert_eq!(layout.ledger_note(0, 0) + 4_096, layout.ledger_note(1, 0));
            assert_eq!(layout.ledger_note(1, 0) + 4_096, second_superblock(size_bytes));
            let frames = u64::from(layout.pages()) * u64::from(unit_bytes);
            let first = PageId { extent: last, page: 0 };
            assert_eq!(layout.frame_start(first), layout.extent_start(last) + 4_096);
            assert_eq!(layout.frame_start(first) + frames, layout.second_mark(last));
            assert_eq!(extents_on(size_bytes - 4_096, extent_bytes), 9);
            for extents in [1, 16, 129] {
                let least = least_bytes(extents, extent_bytes);
                assert_eq!(extents_on(least, extent_bytes), extents);
                assert_eq!(extents_on(least - 4_096, extent_bytes), extents - 1);
            }
        }
    }

    #[test]
    fn ledgers_have_an_entry_for_each_extent() {
        for (extents, notes) in [(1, 1), (128, 1), (129, 2), (256, 2), (257, 3)] {
            let extent_bytes = EXTENT_BYTES_MIN;
            let size_bytes = 3 * 4_096 + u64::from(extents) * extent_bytes + 2 * notes * 4_096;
            assert_eq!(extents_on(size_bytes, extent_bytes), extents);
            assert_eq!(extents_on(size_bytes - 4_096, extent_bytes), extents - 1);
            let layout =
                Layout { block_bytes: 512, unit_bytes: 512, extent_bytes, extents, size_bytes };
            assert_eq!(u64::from(layout.ledger_notes()), notes);
            let end = layout.footer(ExtentId(extents - 1)) + 4_096;
            assert_eq!(layout.ledger_note(0, 0), end);
            assert_eq!(layout.ledger_note(1, 0), end + notes * 4_096);
        }
    }

    #[test]
    fn the_smallest_extent_has_room_for_its_longest_page() {
        for unit_bytes in [512, 4_096] {
            let size_bytes = 1 << 20;
            let extent_bytes = EXTENT_BYTES_MIN;
            let layout =
                Layout { block_bytes: 512, unit_bytes, extent_bytes, extents: 1, size_bytes };
            let shape = layout.shape(1);
            assert!(shape.numbers(shape.spare_bytes, shape.page_bytes) <= shape.pages_per_extent);
            assert_eq!((shape.page_bytes, shape.spare_bytes), (8_192, 4_032));
        }
    }
}

//! The NVM command set: opcodes, the fields of commands, and ranges of blocks.

use crate::{Command, Opcode};
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

const FORCE_UNIT_ACCESS: u32 = 1 << 30;
const DEALLOCATE: u32 = 1 << 2;
const DEALLOCATE_ZEROES: u32 = 1 << 25;

/// The NVM command set (NVM 1.1, opcodes for I/O commands).
impl Opcode {
    /// Makes durable what was written before.
    pub const FLUSH: Self = Self(0x00);
    /// Writes logical blocks.
    pub const WRITE: Self = Self(0x01);
    /// Reads logical blocks.
    pub const READ: Self = Self(0x02);
    /// Compares logical blocks with data of the host.
    pub const COMPARE: Self = Self(0x05);
    /// Makes logical blocks zero without moving data.
    pub const WRITE_ZEROES: Self = Self(0x08);
    /// Says what ranges of logical blocks are for, or that they are no longer wanted.
    pub const DATASET_MANAGEMENT: Self = Self(0x09);
    /// Reads logical blocks without moving data, to see whether they can be.
    pub const VERIFY: Self = Self(0x0c);
    /// Copies ranges of logical blocks to one place, within the device.
    pub const COPY: Self = Self(0x19);
}

/// The NVM command set (NVM 1.1, Write, Read, Compare, Verify, Write Zeroes, Dataset Management and
/// Copy commands; Base 2.1, Flush command).
impl Command {
    /// Asks that all that was written before be durable.
    #[inline]
    pub fn flush(nsid: u32) -> Self {
        Self::new(Opcode::FLUSH, nsid, [0; 6])
    }

    /// Asks to write `blocks` logical blocks from `lba` on, of 1 to 65,536.
    #[inline]
    pub fn write(nsid: u32, lba: u64, blocks: u32) -> Self {
        Self::on_blocks(Opcode::WRITE, nsid, lba, blocks)
    }

    /// Asks for `blocks` logical blocks from `lba` on, of 1 to 65,536.
    #[inline]
    pub fn read(nsid: u32, lba: u64, blocks: u32) -> Self {
        Self::on_blocks(Opcode::READ, nsid, lba, blocks)
    }

    /// Compares `blocks` logical blocks (1 to 65,536) from `lba` with the command's data.
    #[inline]
    pub fn compare(nsid: u32, lba: u64, blocks: u32) -> Self {
        Self::on_blocks(Opcode::COMPARE, nsid, lba, blocks)
    }

    /// Asks whether `blocks` logical blocks from `lba` on, of 1 to 65,536, can be read.
    #[inline]
    pub fn verify(nsid: u32, lba: u64, blocks: u32) -> Self {
        Self::on_blocks(Opcode::VERIFY, nsid, lba, blocks)
    }

    /// Asks that `blocks` logical blocks from `lba` on, of 1 to 65,536, be zeros.
    #[inline]
    pub fn write_zeroes(nsid: u32, lba: u64, blocks: u32) -> Self {
        Self::on_blocks(Opcode::WRITE_ZEROES, nsid, lba, blocks)
    }

    /// The same Write Zeroes, whose blocks may be deallocated if they then read as zeros.
    #[inline]
    #[must_use]
    pub fn with_deallocation(self) -> Self {
        self.with_dword::<12>(self.dword::<12>() | DEALLOCATE_ZEROES)
    }

    /// Says that the blocks of `ranges` [`BlockRange`]s, of 1 to 256, which come as data, are no
    /// longer wanted.
    #[inline]
    pub fn deallocate(nsid: u32, ranges: u32) -> Self {
        let count = zero_based(ranges, 0xff);
        Self::new(Opcode::DATASET_MANAGEMENT, nsid, [count, DEALLOCATE, 0, 0, 0, 0])
    }

    /// Asks to copy the blocks of `ranges` [`CopyRange`]s, of 1 to 256, which come as data, to the
    /// blocks from `lba` on, one range after the other.
    #[inline]
    pub fn copy(nsid: u32, lba: u64, ranges: u32) -> Self {
        let [low, high] = halves(lba);
        Self::new(Opcode::COPY, nsid, [low, high, zero_based(ranges, 0xff), 0, 0, 0])
    }

    #[inline]
    pub(crate) fn on_blocks(opcode: Opcode, nsid: u32, lba: u64, blocks: u32) -> Self {
        let [low, high] = halves(lba);
        Self::new(opcode, nsid, [low, high, zero_based(blocks, 0xffff), 0, 0, 0])
    }

    /// The same Write, Read, Zone Append or Copy, to be done on the medium itself.
    #[inline]
    #[must_use]
    pub fn with_force_unit_access(self) -> Self {
        self.with_dword::<12>(self.dword::<12>() | FORCE_UNIT_ACCESS)
    }

    /// The first logical block: CDW10 and CDW11. Of a Copy, the first one that is written; of a
    /// command on zones, the first one of the zone.
    #[inline]
    pub fn lba(&self) -> u64 {
        u64::from(self.dword::<11>()) << 32 | u64::from(self.dword::<10>())
    }

    /// How many logical blocks: 1 to 65,536 (CDW12 bits 15:0, of which 0 is 1).
    #[inline]
    pub fn blocks(&self) -> u32 {
        (self.dword::<12>() & 0xffff) + 1
    }

    /// True when a Write, Read, Zone Append or Copy is to be done on the medium itself: CDW12 bit
    /// 30.
    #[inline]
    pub fn force_unit_access(&self) -> bool {
        self.dword::<12>() & FORCE_UNIT_ACCESS != 0
    }

    /// How many ranges a Dataset Management has: 1 to 256 (CDW10 bits 7:0, of which 0 is 1).
    #[inline]
    pub fn block_ranges(&self) -> u32 {
        (self.dword::<10>() & 0xff) + 1
    }

    /// True when a Dataset Management says that its blocks are no longer wanted: CDW11 bit 2 (AD).
    #[inline]
    pub fn is_deallocate(&self) -> bool {
        self.dword::<11>() & DEALLOCATE != 0
    }

    /// True when the blocks of a Write Zeroes may be deallocated: CDW12 bit 25 (DEAC).
    #[inline]
    pub fn may_deallocate(&self) -> bool {
        self.dword::<12>() & DEALLOCATE_ZEROES != 0
    }

    /// How many source ranges a Copy has: 1 to 256 (CDW12 bits 7:0, of which 0 is 1).
    #[inline]
    pub fn copy_ranges(&self) -> u32 {
        (self.dword::<12>() & 0xff) + 1
    }

    /// The format of a Copy's source ranges: CDW12 bits 11:8. [`CopyRange`] is format 0.
    #[inline]
    pub fn copy_format(&self) -> u8 {
        self.dword::<12>().to_le_bytes()[1] & 0xf
    }
}

/// The low and the high dword of a logical block's address.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the rest is in the other half")]
pub(crate) const fn halves(lba: u64) -> [u32; 2] {
    [lba as u32, (lba >> 32) as u32]
}

/// `count` as the specification writes counts that are never zero.
#[inline]
fn zero_based(count: u32, max: u32) -> u32 {
    assert!((1..=max + 1).contains(&count), "a command has 1 to {} of them, not {count}", max + 1);
    count - 1
}

/// A range of a Dataset Management (NVM 1.1, Dataset Management - Range Definition).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct BlockRange {
    context_attributes: U32,
    blocks: U32,
    lba: U64,
}

/// Bytes of a range of a Dataset Management.
pub const BLOCK_RANGE_BYTES: u32 = 16;

const _: () = assert!(size_of::<BlockRange>() == BLOCK_RANGE_BYTES as usize);

impl BlockRange {
    /// The `blocks` logical blocks from `lba` on.
    #[inline]
    pub const fn new(lba: u64, blocks: u32) -> Self {
        Self { context_attributes: U32::ZERO, blocks: U32::new(blocks), lba: U64::new(lba) }
    }

    /// The ranges in `bytes`, which have the length of whole ones; else `None`.
    #[inline]
    pub fn all_in(bytes: &[u8]) -> Option<&[Self]> {
        <[Self]>::ref_from_bytes(bytes).ok()
    }

    /// The first logical block: bytes 15:8.
    #[inline]
    pub fn lba(&self) -> u64 {
        self.lba.get()
    }

    /// How many logical blocks, from 0: bytes 7:4.
    #[inline]
    pub fn blocks(&self) -> u32 {
        self.blocks.get()
    }
}

/// A source range of a Copy, without protection information (NVM 1.1, Copy - Source Range Entries
/// Descriptor Format 0h).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct CopyRange {
    reserved: [u8; 8],
    lba: U64,
    blocks: U16,
    options: [u8; 6],
    protection: [u8; 8],
}

/// Bytes of a source range of a Copy.
pub const COPY_RANGE_BYTES: u32 = 32;

const _: () = assert!(size_of::<CopyRange>() == COPY_RANGE_BYTES as usize);

impl CopyRange {
    /// The `blocks` logical blocks from `lba` on, of 1 to 65,536.
    #[inline]
    pub fn new(lba: u64, blocks: u32) -> Self {
        let blocks = u16::try_from(zero_based(blocks, 0xffff)).expect("checked a line above");
        Self {
            reserved: [0; 8],
            lba: lba.into(),
            blocks: blocks.into(),
            options: [0; 6],
            protection: [0; 8],
        }
    }

    /// The ranges in `bytes`, which have the length of whole ones; else `None`.
    #[inline]
    pub fn all_in(bytes: &[u8]) -> Option<&[Self]> {
        <[Self]>::ref_from_bytes(bytes).ok()
    }

    /// The first logical block: bytes 15:8.
    #[inline]
    pub fn lba(&self) -> u64 {
        self.lba.get()
    }

    /// How many logical blocks: 1 to 65,536 (bytes 17:16, of which 0 is 1).
    #[inline]
    pub fn blocks(&self) -> u32 {
        u32::from(self.blocks.get()) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::tests::{counting, entry};

    const LBA: u64 = 0x0102_0304_0506_0708;
    const LBA_BYTES: &[u8] = &[8, 7, 6, 5, 4, 3, 2, 1];

    #[test]
    fn reads_and_writes_have_the_specifications_bytes() {
        // NVM 1.1, Read, Write and Write Zeroes commands: CDW10 and 11 SLBA, CDW12 bits 15:0 NLB
        // and bit 30 FUA.
        let expected = |opcode, fua| {
            entry(&[(0, &[opcode]), (4, &[7]), (40, LBA_BYTES), (48, &[0x33, 0x12, 0, fua])])
        };
        assert_eq!(Command::write(7, LBA, 0x1234).as_bytes(), expected(0x01, 0));
        assert_eq!(Command::read(7, LBA, 0x1234).as_bytes(), expected(0x02, 0));
        assert_eq!(Command::write_zeroes(7, LBA, 0x1234).as_bytes(), expected(0x08, 0));
        assert_eq!(Command::compare(7, LBA, 0x1234).as_bytes(), expected(0x05, 0));
        assert_eq!(Command::verify(7, LBA, 0x1234).as_bytes(), expected(0x0c, 0));
        let gone = Command::write_zeroes(7, LBA, 0x1234).with_deallocation();
        assert_eq!(gone.as_bytes(), expected(0x08, 0x02));
        assert!(gone.may_deallocate() && !Command::write_zeroes(7, LBA, 1).may_deallocate());
        let forced = Command::write(7, LBA, 0x1234).with_force_unit_access();
        assert_eq!(forced.as_bytes(), expected(0x01, 0x40));
        assert_eq!(Command::flush(7).as_bytes(), entry(&[(4, &[7])]));
    }

    #[test]
    fn a_dataset_management_and_a_copy_have_the_specifications_bytes() {
        // NVM 1.1, Dataset Management: CDW10 bits 7:0 NR, CDW11 bit 2 AD. Copy: CDW10 and 11 SDLBA,
        // CDW12 bits 7:0 NR and bits 11:8 descriptor format.
        let expected = entry(&[(0, &[0x09]), (4, &[7]), (40, &[0xff]), (44, &[0x04])]);
        assert_eq!(Command::deallocate(7, 256).as_bytes(), expected);
        let expected = entry(&[(0, &[0x19]), (4, &[7]), (40, LBA_BYTES), (48, &[2])]);
        assert_eq!(Command::copy(7, LBA, 3).as_bytes(), expected);
    }

    #[test]
    fn accessors_read_each_field_from_the_specifications_place() {
        let command = counting();
        assert_eq!(command.lba(), 0x302f_2e2d_2c2b_2a29);
        assert_eq!(command.blocks(), 0x3231 + 1);
        assert_eq!(command.block_ranges(), 0x29 + 1);
        assert_eq!(command.copy_ranges(), 0x31 + 1);
        assert_eq!(command.copy_format(), 0x2);
        // Byte 44 is 2Dh, with bit 2, and byte 51 is 34h, without bit 6.
        assert!(command.is_deallocate() && !command.force_unit_access());
        assert!(command.with_force_unit_access().force_unit_access());
    }

    #[test]
    fn ranges_have_the_specifications_bytes() {
        // NVM 1.1, Range Definition: bytes 3:0 context attributes, 7:4 length, 15:8 starting LBA.
        let block = BlockRange::new(LBA, 0x0a0b_0c0d);
        assert_eq!(block.as_bytes()[..8], [0, 0, 0, 0, 0x0d, 0x0c, 0x0b, 0x0a]);
        assert_eq!(&block.as_bytes()[8..], LBA_BYTES);
        assert_eq!((block.lba(), block.blocks()), (LBA, 0x0a0b_0c0d));
        // NVM 1.1, Source Range Entries Descriptor Format 0h: bytes 15:8 SLBA, 17:16 NLB.
        let copy = CopyRange::new(LBA, 65_536);
        assert_eq!(copy.as_bytes()[..8], [0; 8]);
        assert_eq!(&copy.as_bytes()[8..16], LBA_BYTES);
        assert_eq!(copy.as_bytes()[16..18], [0xff, 0xff]);
        assert_eq!(copy.as_bytes()[18..], [0; 14]);
        assert_eq!((copy.lba(), copy.blocks()), (LBA, 65_536));
    }

    #[test]
    fn only_whole_ranges_are_read() {
        let bytes = [0xff; 96];
        for len in 0..=bytes.len() {
            let (blocks, copies) =
                (BlockRange::all_in(&bytes[..len]), CopyRange::all_in(&bytes[..len]));
            assert_eq!(blocks.map(<[_]>::len), (len % 16 == 0).then_some(len / 16));
            assert_eq!(copies.map(<[_]>::len), (len % 32 == 0).then_some(len / 32));
        }
    }

    #[test]
    #[should_panic(expected = "1 to 65536 of them, not 65537")]
    fn more_blocks_than_a_command_can_name_are_refused() {
        let _ = Command::read(1, 0, 65_537);
    }

    #[test]
    #[should_panic(expected = "1 to 256 of them, not 0")]
    fn no_range_at_all_is_refused() {
        let _ = Command::copy(1, 0, 0);
    }
}

//! The layout of base address register 0 (NVMe over PCIe 1.1, Controller Registers): properties,
//! doorbells, and what MSI-X needs.

use std::ops::Range;

/// Bytes of BAR 0. Windows requires at least 16 KiB.
pub(crate) const BAR0_BYTES: u64 = 16_384;

/// Where the doorbells are in BAR 0: a page of their own, which a host may map.
pub const DOORBELLS: Range<u64> = 0x1000..0x2000;

/// Where the MSI-X table begins. The transport keeps the table; its bytes here are zeros.
pub(crate) const MSIX_TABLE_OFFSET: u32 = 0x2000;

/// Where the pending bits of MSI-X begin.
pub(crate) const MSIX_PENDING_OFFSET: u32 = 0x3000;

/// Bytes of an entry of the MSI-X table.
const MSIX_ENTRY_BYTES: u32 = 16;

/// Maximum I/O queues: each has two doorbells of 4 bytes, and so do the admin queues. A vector for
/// each, and one for the admin queue, are not more than the 128 at which Windows stops.
pub(crate) const IO_QUEUES_MAX: u16 = 127;

const _: () =
    assert!((IO_QUEUES_MAX as u64 + 1) * 8 <= DOORBELLS.end - DOORBELLS.start, "doorbells fit");
const _: () = assert!(
    (IO_QUEUES_MAX as u32 + 1) * MSIX_ENTRY_BYTES <= MSIX_PENDING_OFFSET - MSIX_TABLE_OFFSET,
    "the MSI-X table fits"
);

/// A doorbell by its place: the tail of a submission queue, or the head of a completion queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doorbell {
    Tail(u16),
    Head(u16),
}

impl Doorbell {
    /// Returns the doorbell at `offset` of BAR 0, if there is one. The stride is 4 bytes
    /// (CAP.DSTRD is 0).
    pub(crate) fn at(offset: u64) -> Option<Self> {
        let place = DOORBELLS.contains(&offset).then(|| offset - DOORBELLS.start)?;
        let queue = u16::try_from(place / 8).ok()?;
        match place % 8 {
            0 => Some(Self::Tail(queue)),
            4 => Some(Self::Head(queue)),
            _ => None,
        }
    }

    /// Returns the id of its queue.
    #[inline]
    pub(crate) fn queue(self) -> u16 {
        let (Self::Tail(queue) | Self::Head(queue)) = self;
        queue
    }

    /// Returns the offset of the doorbell from the first one: in BAR 0, and in pages that are
    /// polled.
    pub(crate) fn offset(self) -> u64 {
        match self {
            Self::Tail(queue) => u64::from(queue) * 8,
            Self::Head(queue) => u64::from(queue) * 8 + 4,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doorbells_are_where_the_specification_has_them() {
        // NVMe over PCIe 1.1: 1000h + 2y * 4 is the tail of submission queue y, 4 bytes further the
        // head of completion queue y. Linux and SeaBIOS write 1000h, 1004h, 1008h, 100Ch.
        for (offset, doorbell) in [
            (0x1000, Some(Doorbell::Tail(0))),
            (0x1004, Some(Doorbell::Head(0))),
            (0x1008, Some(Doorbell::Tail(1))),
            (0x100c, Some(Doorbell::Head(1))),
            (0x1ffc, Some(Doorbell::Head(511))),
            (0x1002, None),
            (0x0ffc, None),
            (0x2000, None),
        ] {
            assert_eq!(Doorbell::at(offset), doorbell, "{offset:x}");
            if let Some(doorbell) = doorbell {
                assert_eq!(doorbell.offset() + 0x1000, offset);
            }
        }
    }
}

//! How records lie in a page.
//!
//! ```text
//! spare area:  | prologue | header+key | header+key | ...
//! data:        | headers that did not fit above | end of a value from the page before | values |
//! ```
//! On a medium without spare area the prologue and all headers stand at the front of the data. A
//! record that fits a page does not cross one; a longer value fills this page and goes on in the
//! next.

use crate::record::Header;
use crate::summary::SUMMARY_ENTRY_BYTES;
use base::checksum::{crc32c, crc32c_append};
use media::Shape;
use std::ops::Range;

const MAGIC: u16 = 0x564B;
const FORMAT: u8 = 2;
/// Bytes of the prologue: magic, kind, format, checksum, bytes of headers in spare and front, bytes
/// of continuation, page.
pub(crate) const PROLOGUE_BYTES: usize = 24;
/// Where in the prologue begins what an extent's summary repeats of it.
pub(crate) const PROLOGUE_ENTRY: usize = 8;
const CRC: Range<usize> = 4..8;
/// The same, as a length in a page.
pub(crate) const PROLOGUE_LEN: u32 = 24;

/// What a page is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum PageKind {
    Records = 1,
    Summary = 2,
}

/// What a page says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prologue {
    pub(crate) kind: PageKind,
    pub(crate) spare_len: u32,
    pub(crate) front_len: u32,
    /// Bytes of a value that began on a page before; on a summary page its number in the summary.
    pub(crate) continuation: u32,
    /// The page's number in its extent.
    pub(crate) page: u32,
}

impl Prologue {
    pub(crate) fn encode(self) -> [u8; PROLOGUE_BYTES] {
        let mut bytes = [0; PROLOGUE_BYTES];
        bytes[0..2].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[2] = self.kind as u8;
        bytes[3] = FORMAT;
        bytes[8..12].copy_from_slice(&self.spare_len.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.front_len.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.continuation.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.page.to_le_bytes());
        let crc = checksum(&bytes);
        bytes[CRC].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; PROLOGUE_BYTES] = bytes.first_chunk()?;
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let whole = word(CRC.start) == checksum(bytes);
        if !whole || bytes[0..2] != MAGIC.to_le_bytes() || bytes[3] != FORMAT {
            return None;
        }
        let kind = match bytes[2] {
            1 => PageKind::Records,
            2 => PageKind::Summary,
            _ => return None,
        };
        let (spare_len, front_len) = (word(8), word(12));
        Some(Self { kind, spare_len, front_len, continuation: word(16), page: word(20) })
    }
}

/// Of all but the checksum itself.
fn checksum(prologue: &[u8; PROLOGUE_BYTES]) -> u32 {
    crc32c_append(crc32c(&prologue[..CRC.start]), &prologue[CRC.end..])
}

/// The sizes that the layout follows from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) page_bytes: u32,
    /// Spare bytes used for headers; 0 when the area could not even hold a prologue.
    pub(crate) spare_bytes: u32,
    pages_per_extent: u32,
}

impl Layout {
    pub(crate) fn new(shape: &Shape) -> Self {
        let usable = shape.spare_bytes & !7;
        let spare_bytes = if (usable as usize) < PROLOGUE_BYTES { 0 } else { usable };
        let Shape { page_bytes, pages_per_extent, .. } = *shape;
        Self { page_bytes, spare_bytes, pages_per_extent }
    }

    /// Bytes at the front of a page without headers.
    pub(crate) const fn bare_front(self) -> u32 {
        if self.spare_bytes == 0 { PROLOGUE_LEN } else { 0 }
    }

    /// Offsets of the first header in the spare area and in the front.
    pub(crate) const fn first_offsets(self) -> (usize, usize) {
        if self.spare_bytes == 0 {
            (PROLOGUE_BYTES, PROLOGUE_BYTES)
        } else {
            (PROLOGUE_BYTES, self.spare_bytes as usize)
        }
    }

    fn extent_bytes(self) -> u64 {
        u64::from(self.page_bytes) * u64::from(self.pages_per_extent)
    }

    /// Value bytes that an extent of long values holds: all but the pages kept for its summary, of
    /// which there are three while the headers are few.
    fn extent_room(self) -> u64 {
        u64::from(self.bare_room()) * u64::from(self.pages_per_extent.saturating_sub(3))
    }

    /// Value bytes that a page without headers holds.
    pub(crate) const fn bare_room(self) -> u32 {
        self.page_bytes - self.bare_front()
    }

    /// True when a record of this size goes on one page.
    pub(crate) fn fits_page(self, header_len: usize, value_len: u32) -> bool {
        let header = u64::try_from(header_len).expect("a header is a few hundred bytes");
        let is_spare = u64::from(PROLOGUE_LEN) + header <= u64::from(self.spare_bytes);
        let front = if is_spare { 0 } else { header };
        u64::from(value_len) + front <= u64::from(self.bare_room())
    }

    /// The longest value that goes on one page with its header.
    pub(crate) fn page_value_max(self, header_len: usize) -> u32 {
        let most = self.bare_room();
        if self.fits_page(header_len, most) {
            return most;
        }
        most - u32::try_from(header_len).expect("a header is a few hundred bytes")
    }

    /// Bytes of the medium that a record stands for while it lives: its share of a page, or of an
    /// extent when it is longer than a page, that is filled with records of its size, padding
    /// included, and its entry in the summary. A function of its size alone, so that live bytes can
    /// be counted exactly.
    pub(crate) fn footprint(self, header_len: usize, value_len: u32) -> u64 {
        let header = header_len as u64;
        let entry = SUMMARY_ENTRY_BYTES as u64;
        if !self.fits_page(header_len, value_len) {
            let records = (self.extent_room() / u64::from(value_len)).max(1);
            let share = self.extent_bytes().div_ceil(records);
            return share.max(u64::from(value_len) + 2 * header + entry);
        }
        let (page, value) = (u64::from(self.bare_room()), u64::from(value_len));
        let in_spare = u64::from(self.spare_bytes).saturating_sub(PROLOGUE_BYTES as u64) / header;
        let records = match page.checked_div(value) {
            Some(records) if records <= in_spare => records,
            _ => (page + in_spare * header) / (value + header),
        };
        let records = records.max(1);
        page.div_ceil(records) + header + entry.div_ceil(records)
    }

    /// The footprint of the record that `header` heads.
    pub(crate) fn footprint_of(self, header: &Header<'_>) -> u64 {
        self.footprint(header.len(), header.value_len)
    }
}

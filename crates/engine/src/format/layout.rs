//! How records lie in a page.
//!
//! ```text
//! spare area:  | prologue | header+key | header+key | ...
//! data:        | headers that did not fit above | end of a value from the page before | values |
//! ```
//! On a medium without spare area the prologue and all headers stand at the front of the data. A
//! record that fits a page does not cross one; a longer value fills this page and continues on
//! the next.
//!
//! Where pages are frames all headers are spare, and every record fits a page. A value of a logical
//! block or more has one to itself, so that one read gets it and its header and nothing else: its
//! address says how long that is. Smaller ones share a page of a block of data.

use crate::format::address::{Address, PageNumber};
use crate::format::record::{Header, header_len};
use base::Divisor;
use base::checksum::crc32c;
use base::limits::{BLOCK_BYTES, KEY_BYTES_MAX, VALUE_BYTES_MAX};
use clock::UnixMillis;
use media::{ExtentId, Frames, PageId, Shape, Span};
use std::ops::Range;

/// The same, as a length in a page.
pub(crate) const SUMMARY_ENTRY_LEN: u32 = 16;

/// Bytes of an entry beside the headers.
pub(crate) const SUMMARY_ENTRY_BYTES: usize = PROLOGUE_BYTES - PROLOGUE_ENTRY;

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
        let whole: &[u8; PROLOGUE_BYTES] = bytes.first_chunk()?;
        let is_whole = whole[CRC] == checksum(whole).to_le_bytes();
        if is_whole { Self::decode_vouched(bytes) } else { None }
    }

    /// The same, but checks no checksum: of bytes that cannot have changed.
    #[inline]
    pub(crate) fn decode_vouched(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; PROLOGUE_BYTES] = bytes.first_chunk()?;
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        if bytes[0..2] != MAGIC.to_le_bytes() || bytes[3] != FORMAT {
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
    const LEN: usize = PROLOGUE_BYTES - (CRC.end - CRC.start);
    // One pass over a copy takes half of what two passes take.
    let mut covered = [0; LEN];
    covered[..CRC.start].copy_from_slice(&prologue[..CRC.start]);
    covered[CRC.start..].copy_from_slice(&prologue[CRC.end..]);
    crc32c(&covered)
}

/// The sizes that the layout follows from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) page_bytes: u32,
    /// Spare bytes used for headers; 0 when the area could not even hold a prologue.
    pub(crate) spare_bytes: u32,
    pages_per_extent: u32,
    /// The same, to divide by.
    by_extent: Divisor,
    /// See [`Self::full_numbers`].
    full_numbers: u32,
    /// See [`media::Media::vouches_for_headers`].
    pub(crate) is_vouched: bool,
    /// Headers have checksums: the medium does not vouch for all that it returns.
    pub(crate) is_checked: bool,
    pub(crate) frames: Option<Frames>,
}

/// Where pages are frames: values below this share them, and have less than this on each.
pub(crate) const SHARED_BYTES: u32 = BLOCK_BYTES;

/// Set in an address where the record has a page to itself, whose units the other bits are.
const ALONE: u16 = 1 << 15;

impl Layout {
    pub(crate) fn new(shape: &Shape) -> Self {
        let usable = shape.spare_bytes & !7;
        let spare_bytes = if (usable as usize) < PROLOGUE_BYTES { 0 } else { usable };
        let Shape { page_bytes, pages_per_extent, frames, .. } = *shape;
        let sizes = frames.map(|frames| [frames.unit_bytes, frames.block_units]);
        let is_by_shifts =
            sizes.is_none_or(|sizes| sizes.iter().all(|size| size.is_power_of_two()));
        assert!(is_by_shifts, "{frames:?} have sizes that are powers of two");
        let by_extent = Divisor::new(pages_per_extent.into());
        let mut layout = Self {
            page_bytes,
            spare_bytes,
            pages_per_extent,
            by_extent,
            full_numbers: 0,
            is_vouched: false,
            is_checked: true,
            frames,
        };
        let most = layout.numbers(PROLOGUE_BYTES, page_bytes);
        layout.full_numbers =
            frames.map_or(most, |frames| most / frames.block_units * frames.block_units);
        layout
    }

    /// The same of a medium that vouches for headers, if it `is_vouched`: no checksum of a prologue
    /// or a header is checked then.
    pub(crate) const fn vouched(self, is_vouched: bool) -> Self {
        Self { is_vouched, ..self }
    }

    /// The same of a medium that vouches for all that it returns, unless it `is_checked`: headers
    /// have no checksum then.
    pub(crate) const fn checked(self, is_checked: bool) -> Self {
        Self { is_checked, ..self }
    }

    /// How many of the `value_len` bytes of a value that begins at `start` of a page's data are on
    /// that page.
    #[inline]
    pub(crate) fn part_len(self, start: u32, value_len: u32) -> u32 {
        value_len.min(self.page_bytes.saturating_sub(start))
    }

    /// The page of this number.
    #[inline]
    pub(crate) fn page_id(self, number: PageNumber) -> PageId {
        let (extent, page) = self.by_extent.split(number.0.into());
        #[expect(clippy::cast_possible_truncation, reason = "both are at most the number")]
        let (extent, page) = (ExtentId(extent as u32), page as u32);
        PageId { extent, page }
    }

    /// Whether a value of this length has a page to itself.
    #[inline]
    pub(crate) const fn is_alone(self, value_len: u32) -> bool {
        self.frames.is_some() && value_len >= SHARED_BYTES
    }

    /// Page numbers that a page takes with so many bytes of headers, prologue included, and data.
    pub(crate) fn numbers(self, spare_len: usize, data_len: u32) -> u32 {
        match self.frames {
            Some(frames) => frames.units(len32(spare_len), data_len),
            None => 1,
        }
    }

    /// The number of the page after one that ends before `number`, at most: see
    /// [`media::OnDisk::place`].
    pub(crate) fn aligned(self, number: u32) -> u32 {
        self.frames.map_or(number, |frames| frames.aligned(number))
    }

    /// The same at most, of pages that records share.
    pub(crate) fn shared_numbers(self) -> u32 {
        self.numbers(self.spare_bytes as usize, SHARED_BYTES)
    }

    /// Bytes of headers on a page, prologue included, at most.
    pub(crate) const fn headers_max(self) -> usize {
        match self.frames {
            Some(_) => self.spare_bytes as usize,
            None => (self.page_bytes + self.spare_bytes) as usize,
        }
    }

    /// The address of the record whose header is at `offset` of a page.
    #[inline]
    pub(crate) fn address(
        self,
        page: PageNumber,
        offset: usize,
        header_len: usize,
        value_len: u32,
    ) -> Address {
        if !self.is_alone(value_len) {
            return Address::new(page, offset);
        }
        let units = self.numbers(PROLOGUE_BYTES + header_len, value_len);
        let units = u16::try_from(units).ok().filter(|units| units & ALONE == 0);
        Address::with_unit(page, ALONE | units.expect("a page has far fewer units"))
    }

    /// The units of the page at `address`, if a record has it to itself.
    #[inline]
    fn units_alone(self, address: Address) -> Option<u32> {
        let unit = address.unit();
        (self.frames.is_some() && unit & ALONE != 0).then_some(u32::from(unit & !ALONE))
    }

    /// Where in its page's headers the record at `address` has its own.
    #[inline]
    pub(crate) fn offset(self, address: Address) -> usize {
        match self.units_alone(address) {
            Some(_) => PROLOGUE_BYTES,
            None => address.offset(),
        }
    }

    /// What to read for the record at `address`.
    #[inline]
    pub(crate) fn span(self, address: Address) -> Span {
        let at = self.page_id(address.page());
        let units = match (self.frames, self.units_alone(address)) {
            (Some(_), Some(units)) => units,
            (Some(_), None) => self.shared_numbers(),
            (None, _) => 1,
        };
        Span { at, units }
    }

    /// What to read for its header alone.
    #[inline]
    pub(crate) fn header_span(self, address: Address) -> Span {
        let at = self.page_id(address.page());
        match (self.frames, self.units_alone(address)) {
            (Some(frames), Some(_)) => {
                let header = header_len(KEY_BYTES_MAX, Some(UnixMillis::MAX));
                Span { at, units: frames.head_units(len32(PROLOGUE_BYTES + header)) }
            }
            _ => self.headers_span(at),
        }
    }

    /// What to read for all headers of a page.
    pub(crate) fn headers_span(self, at: PageId) -> Span {
        let units = self.frames.map_or(1, |frames| frames.head_units(self.spare_bytes));
        Span { at, units }
    }

    /// Page numbers of the summary pages before the last, which are full. Where pages are frames
    /// they end with a block, so that the next one is sure to lie right behind.
    pub(crate) const fn full_numbers(self) -> u32 {
        self.full_numbers
    }

    /// Bytes of the summary on each of these.
    pub(crate) fn full_room(self) -> u32 {
        match self.frames {
            Some(frames) => {
                let head = frames.head_units(PROLOGUE_LEN);
                (self.full_numbers() - head) * frames.unit_bytes
            }
            None => self.bare_room(),
        }
    }

    /// What to read for the pages of a summary that begins on page `first` and ends before `end`.
    pub(crate) fn summary_spans(self, at: PageId, end: u32) -> impl Iterator<Item = Span> + use<> {
        let full = self.full_numbers();
        let starts = (at.page..end).step_by(full as usize);
        starts.map(move |page| Span { at: PageId { page, ..at }, units: full.min(end - page) })
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

    /// Returns true when a record of this size fits one page.
    pub(crate) fn fits_page(self, header_len: usize, value_len: u32) -> bool {
        if self.frames.is_some() {
            return value_len <= self.page_bytes;
        }
        let header = u64::try_from(header_len).expect("a header is a few hundred bytes");
        let is_spare = u64::from(PROLOGUE_LEN) + header <= u64::from(self.spare_bytes);
        let front = if is_spare { 0 } else { header };
        u64::from(value_len) + front <= u64::from(self.bare_room())
    }

    /// Returns the length of the longest value that fits one page with its header.
    pub(crate) fn page_value_max(self, header_len: usize) -> u32 {
        let most = self.bare_room();
        if self.fits_page(header_len, most) {
            return most;
        }
        most - u32::try_from(header_len).expect("a header is a few hundred bytes")
    }

    /// The longest value in extents of so many bytes: see [`crate::Store::value_bytes_max`].
    pub(crate) fn value_bytes_max(self, extent_bytes: u64) -> u32 {
        let half = u32::try_from(extent_bytes / 2).unwrap_or(u32::MAX);
        if self.frames.is_some() {
            return self.page_bytes.min(half).min(VALUE_BYTES_MAX);
        }
        let pages = u64::from(self.pages_per_extent.saturating_sub(5));
        let has_room = u64::from(self.bare_room()) * pages >= u64::from(VALUE_BYTES_MAX);
        if has_room { VALUE_BYTES_MAX } else { half.min(VALUE_BYTES_MAX) }
    }

    /// Bytes of the medium that a record stands for while it lives: its share of a page, or of an
    /// extent when it is longer than a page, that is filled with records of its size, padding
    /// included, and its entry in the summary. A function of its size alone, so that live bytes can
    /// be counted exactly.
    pub(crate) fn footprint(self, header_len: usize, value_len: u32) -> u64 {
        let header = header_len as u64;
        let entry = SUMMARY_ENTRY_BYTES as u64;
        if let Some(frames) = self.frames {
            let records = self.records_of_frame(header_len, value_len);
            let spare = PROLOGUE_BYTES + records as usize * header_len;
            let bytes = self.numbers(spare, records * value_len) * frames.unit_bytes;
            if records == 1 {
                return u64::from(bytes) + header + entry;
            }
            let share = |bytes: u32| u64::from(quotient(bytes + records - 1, records));
            return share(bytes) + header + share(SUMMARY_ENTRY_LEN);
        }
        if !self.fits_page(header_len, value_len) {
            let records = (self.extent_room() / u64::from(value_len)).max(1);
            let share = self.extent_bytes().div_ceil(records);
            return share.max(u64::from(value_len) + 2 * header + entry);
        }
        let (page, header_len) = (self.bare_room(), len32(header_len));
        let in_spare = quotient(self.spare_bytes.saturating_sub(PROLOGUE_LEN), header_len);
        let of_values = if value_len == 0 { u32::MAX } else { quotient(page, value_len) };
        let records = if of_values <= in_spare {
            of_values
        } else {
            quotient(page + in_spare * header_len, value_len + header_len)
        };
        let records = records.max(1);
        let share = |bytes: u32| u64::from(quotient(bytes + records - 1, records));
        share(page) + header + share(SUMMARY_ENTRY_LEN)
    }

    /// How many records of a size share a frame.
    fn records_of_frame(self, header_len: usize, value_len: u32) -> u32 {
        if self.is_alone(value_len) {
            return 1;
        }
        let in_spare = quotient(self.spare_bytes - PROLOGUE_LEN, len32(header_len));
        let in_data = if value_len == 0 { u32::MAX } else { quotient(SHARED_BYTES - 1, value_len) };
        in_spare.min(in_data).max(1)
    }

    /// The footprint of the record that `header` heads.
    pub(crate) fn footprint_of(self, header: &Header<'_>) -> u64 {
        self.footprint(header.len(), header.value_len)
    }
}

/// Divisors up to this are looked up.
const RECIPROCALS: usize = SHARED_BYTES as usize;

/// 2^32 divided by each divisor from 2 on, rounded up.
static RECIPROCAL: [u32; RECIPROCALS] = {
    let mut all = [0; RECIPROCALS];
    let mut by = 2;
    while by < RECIPROCALS {
        #[expect(clippy::cast_possible_truncation, reason = "at most 2^31")]
        let reciprocal = (1_u64 << 32).div_ceil(by as u64) as u32;
        all[by] = reciprocal;
        by += 1;
    }
    all
};

/// `number / by`: both are looked up or multiplied, as divisions take far longer.
#[inline]
fn quotient(number: u32, by: u32) -> u32 {
    match RECIPROCAL.get(by as usize) {
        // The error of a reciprocal is less than 1, so that of the product is less than 1 / by.
        Some(reciprocal) if by > 1 && u64::from(number) * u64::from(by) < 1 << 32 => {
            ((u64::from(number) * u64::from(*reciprocal)) >> 32) as u32
        }
        _ => number / by,
    }
}

fn len32(len: usize) -> u32 {
    u32::try_from(len).expect("headers are far smaller than 4 GiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_are_those_of_divisions() {
        let ends = |by: u32| [by - 1, by, by + 1, 3 * by - 1, 3 * by, 4_095, 8_191, 8_192, 1 << 20];
        for by in 1..5_000 {
            for number in ends(by).into_iter().chain([0, u32::MAX]) {
                assert_eq!(quotient(number, by), number / by, "{number} / {by}");
            }
        }
    }

    /// As the bytes of a record were counted with divisions.
    #[test]
    fn a_footprint_is_the_share_of_a_frame_full_of_such_records() {
        for unit_bytes in [512, 4_096] {
            let frames = Frames { unit_bytes, block_units: 4_096 / unit_bytes, head_bytes: 64 };
            let layout = Layout::new(&Shape {
                page_bytes: 2 << 20,
                spare_bytes: 4_032,
                pages_per_extent: 65_512,
                extents: 8,
                parallelism: 1,
                frames: Some(frames),
            });
            for header_len in (40..=296_u32).step_by(8) {
                for value_len in (0..4_200).chain([8_192, 2 << 20]) {
                    let in_data = 4_095_u32.checked_div(value_len).unwrap_or(u32::MAX);
                    let is_alone = value_len >= 4_096;
                    let most = ((4_032 - 24) / header_len).min(in_data).max(1);
                    let records = if is_alone { 1 } else { most };
                    let head = (64 + 24 + records * header_len).div_ceil(unit_bytes);
                    let units = head + (records * value_len).div_ceil(unit_bytes);
                    let share = (units * unit_bytes).div_ceil(records) + 16_u32.div_ceil(records);
                    let found = layout.footprint(header_len as usize, value_len);
                    assert_eq!(found, u64::from(share + header_len), "{header_len} {value_len}");
                }
            }
        }
    }

    #[test]
    fn a_footprint_is_the_share_of_a_page_full_of_such_records() {
        for (page_bytes, spare_bytes) in [(4_096, 0), (16_384, 1_024), (65_536, 4_096)] {
            let layout = Layout::new(&Shape {
                page_bytes,
                spare_bytes,
                pages_per_extent: 256,
                extents: 8,
                parallelism: 1,
                frames: None,
            });
            let page = u64::from(layout.bare_room());
            for header_len in (40..=296_usize).step_by(8) {
                for value_len in (0..3_000).chain([4_095, 4_096, 9_000, 16_000]) {
                    let (header, value) = (header_len as u64, u64::from(value_len));
                    if !layout.fits_page(header_len, value_len) {
                        continue;
                    }
                    let in_spare = u64::from(spare_bytes).saturating_sub(24) / header;
                    let of_values = page.checked_div(value).filter(|of| *of <= in_spare);
                    let both = (page + in_spare * header) / (value + header);
                    let records = of_values.unwrap_or(both).max(1);
                    let share = page.div_ceil(records) + header + 16_u64.div_ceil(records);
                    assert_eq!(layout.footprint(header_len, value_len), share, "{header} {value}");
                }
            }
        }
    }

    #[test]
    fn a_page_number_is_split_as_it_was_made() {
        for pages_per_extent in [1, 2, 7, 65_512, 524_264, u32::MAX] {
            let (page_bytes, spare_bytes, extents, parallelism) = (4_096, 256, 1, 1);
            let shape = Shape {
                page_bytes,
                spare_bytes,
                pages_per_extent,
                extents,
                parallelism,
                frames: None,
            };
            let layout = Layout::new(&shape);
            for number in [0, 1, 6, 7, 8, 65_511, 65_512, 1 << 31, u32::MAX - 1, u32::MAX] {
                let number = PageNumber(number);
                assert_eq!(layout.page_id(number), number.id(pages_per_extent));
            }
        }
    }
}

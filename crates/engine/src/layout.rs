//! How records lie in a page.
//!
//! ```text
//! spare area:  | prologue | header+key | header+key | ...
//! data:        | headers that did not fit above | end of a value from the page before | values |
//! ```
//! On a medium without spare area the prologue and all headers stand at the front of the data. A
//! record that fits a page does not cross one; a longer value fills this page and goes on in the next.

use crate::record::{Header, Kind, header_len};
use base::Buf;
use base::checksum::crc32c;
use media::{Page, Shape};

const MAGIC: u16 = 0x564B;
const FORMAT: u8 = 1;
/// Bytes of the prologue: magic, kind, format, bytes of headers in spare and front, bytes of
/// continuation, padding, checksum.
const PROLOGUE_BYTES: usize = 24;
const PROLOGUE_LEN: u32 = 24;
/// A summary begins with its length and its checksum.
pub(crate) const SUMMARY_HEAD_BYTES: usize = 8;
/// What an extent's summary holds for each page beside its headers.
pub(crate) const SUMMARY_ENTRY_BYTES: usize = 16;

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
}

impl Prologue {
    fn encode(&self) -> [u8; PROLOGUE_BYTES] {
        let mut bytes = [0; PROLOGUE_BYTES];
        bytes[0..2].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[2] = self.kind as u8;
        bytes[3] = FORMAT;
        bytes[4..8].copy_from_slice(&self.spare_len.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.front_len.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.continuation.to_le_bytes());
        let crc = crc32c(&bytes[..PROLOGUE_BYTES - 4]);
        bytes[PROLOGUE_BYTES - 4..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; PROLOGUE_BYTES] = bytes.first_chunk()?;
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let whole = word(PROLOGUE_BYTES - 4) == crc32c(&bytes[..PROLOGUE_BYTES - 4]);
        if !whole || bytes[0..2] != MAGIC.to_le_bytes() || bytes[3] != FORMAT {
            return None;
        }
        let kind = match bytes[2] {
            1 => PageKind::Records,
            2 => PageKind::Summary,
            _ => return None,
        };
        Some(Self { kind, spare_len: word(4), front_len: word(8), continuation: word(12) })
    }
}

/// The sizes that the layout follows from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) page_bytes: u32,
    /// Spare bytes used for headers; 0 when the area could not even hold a prologue.
    spare_bytes: u32,
}

impl Layout {
    pub(crate) fn new(shape: &Shape) -> Self {
        let usable = shape.spare_bytes & !7;
        let spare_bytes = if (usable as usize) < PROLOGUE_BYTES { 0 } else { usable };
        Self { page_bytes: shape.page_bytes, spare_bytes }
    }

    /// Bytes at the front of a page without headers.
    pub(crate) const fn bare_front(self) -> u32 {
        if self.spare_bytes == 0 { PROLOGUE_LEN } else { 0 }
    }

    /// Offsets of the first header in the spare area and in the front.
    const fn first_offsets(self) -> (usize, usize) {
        if self.spare_bytes == 0 {
            (PROLOGUE_BYTES, PROLOGUE_BYTES)
        } else {
            (PROLOGUE_BYTES, self.spare_bytes as usize)
        }
    }

    /// Value bytes that a page without headers holds.
    pub(crate) const fn bare_room(self) -> u32 {
        self.page_bytes - self.bare_front()
    }

    /// True when a record of this size goes on one page.
    pub(crate) fn fits_page(self, key_len: usize, value_len: u32) -> bool {
        PageBuilder::new(self).fits(header_len(key_len), value_len)
    }

    /// Bytes of the medium that a record stands for while it lives: its share of a page filled with
    /// records of its size, padding included, and its entry in the summary. A function of its size
    /// alone, so that live bytes can be counted exactly.
    pub(crate) fn footprint(self, key_len: usize, value_len: u32) -> u64 {
        let header = header_len(key_len) as u64;
        let summary = header + 1;
        if !self.fits_page(key_len, value_len) {
            return u64::from(value_len) + header + summary;
        }
        let (page, value) = (u64::from(self.bare_room()), u64::from(value_len));
        let in_spare = u64::from(self.spare_bytes).saturating_sub(PROLOGUE_BYTES as u64) / header;
        let records = match page.checked_div(value) {
            Some(records) if records <= in_spare => records,
            _ => (page + in_spare * header) / (value + header),
        };
        page.div_ceil(records.max(1)) + summary
    }
}

/// A page being filled.
#[derive(Debug)]
pub(crate) struct PageBuilder {
    layout: Layout,
    spare: Vec<u8>,
    front: Vec<u8>,
    continuation: Option<Buf>,
    values: Vec<Buf>,
    value_bytes: u32,
    records: u32,
}

impl PageBuilder {
    pub(crate) fn new(layout: Layout) -> Self {
        let (mut spare, mut front) = (Vec::new(), Vec::new());
        if layout.spare_bytes == 0 {
            front.resize(PROLOGUE_BYTES, 0);
        } else {
            spare.resize(PROLOGUE_BYTES, 0);
        }
        Self {
            layout,
            spare,
            front,
            continuation: None,
            values: Vec::new(),
            value_bytes: 0,
            records: 0,
        }
    }

    /// A page that begins with the end of a value from the page before.
    pub(crate) fn continuing(layout: Layout, part: Buf) -> Self {
        assert!(part.len() <= layout.bare_room(), "the rest of a value is cut to the page");
        Self { continuation: Some(part), ..Self::new(layout) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.records == 0 && self.continuation.is_none()
    }

    /// The end of a value that began on the page before.
    pub(crate) fn continuation(&self) -> Option<Buf> {
        self.continuation.clone()
    }

    fn continuation_len(&self) -> u32 {
        self.continuation.as_ref().map_or(0, Buf::len)
    }

    fn goes_to_spare(&self, header_len: usize) -> bool {
        self.front.len() <= self.layout.bare_front() as usize
            && self.spare.len() + header_len <= self.layout.spare_bytes as usize
    }

    /// Value bytes that still fit together with a header of `header_len` bytes; `None` when not even
    /// the header does.
    pub(crate) fn room(&self, header_len: usize) -> Option<u32> {
        let front = if self.goes_to_spare(header_len) { 0 } else { header_len };
        let used = self.front.len() + front;
        let used = u32::try_from(used).ok()? + self.continuation_len() + self.value_bytes;
        self.layout.page_bytes.checked_sub(used)
    }

    pub(crate) fn fits(&self, header_len: usize, value_len: u32) -> bool {
        self.room(header_len).is_some_and(|room| value_len <= room)
    }

    /// Adds a record, or the first part of a long one, and returns its header's offset.
    pub(crate) fn push(&mut self, mut header: Header<'_>, part: Buf) -> usize {
        assert!(self.fits(header.len(), part.len()), "the page has room for the record");
        header.value_offset = u16::try_from(self.value_bytes).expect("a page has at most 64 KiB");
        let offset = if self.goes_to_spare(header.len()) {
            let offset = self.spare.len();
            header.encode(&mut self.spare);
            offset
        } else {
            let offset = self.layout.spare_bytes as usize + self.front.len();
            header.encode(&mut self.front);
            offset
        };
        self.value_bytes += part.len();
        self.records += 1;
        if part.len() > 0 {
            self.values.push(part);
        }
        offset
    }

    /// The header at `offset` and the part of its value on this page.
    pub(crate) fn record(&self, offset: usize) -> Option<(Header<'_>, Buf)> {
        let spare_bytes = self.layout.spare_bytes as usize;
        let bytes = match offset.checked_sub(spare_bytes) {
            Some(offset) => self.front.get(offset..)?,
            None => self.spare.get(offset..)?,
        };
        let header = Header::decode(bytes)?;
        let mut at = 0;
        for value in &self.values {
            if at == u32::from(header.value_offset) {
                return Some((header, value.slice(0..value.len().min(header.value_len))));
            }
            at += value.len();
        }
        Some((header, Buf::phantom(0, 0)))
    }

    /// The finished page.
    pub(crate) fn close(mut self) -> Page {
        let prologue = Prologue {
            kind: PageKind::Records,
            spare_len: len32(&self.spare),
            front_len: len32(&self.front),
            continuation: self.continuation_len(),
        };
        let home = if self.spare.is_empty() { &mut self.front } else { &mut self.spare };
        home[..PROLOGUE_BYTES].copy_from_slice(&prologue.encode());
        let front = (!self.front.is_empty()).then(|| Buf::copy_from(&self.front));
        let data = front.into_iter().chain(self.continuation).chain(self.values);
        Page::new(&self.spare, data)
    }

    /// What the extent's summary keeps of this page.
    pub(crate) fn summarize(&self, page: u32, summary: &mut Vec<u8>) {
        if self.records == 0 {
            return;
        }
        let skip = if self.spare.is_empty() { (0, PROLOGUE_BYTES) } else { (PROLOGUE_BYTES, 0) };
        let spare = &self.spare[skip.0..];
        let front = &self.front[skip.1..];
        for word in [page, len32(spare), len32(front), self.continuation_len()] {
            summary.extend_from_slice(&word.to_le_bytes());
        }
        summary.extend_from_slice(spare);
        summary.extend_from_slice(front);
    }
}

fn len32(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).expect("a page is far smaller than 4 GiB")
}

/// Seals a summary with its checksum and cuts it into pages. Each says in its prologue which of them it
/// is. An empty summary has none.
pub(crate) fn summary_pages(layout: Layout, summary: &mut [u8]) -> Vec<Page> {
    if summary.len() <= SUMMARY_HEAD_BYTES {
        return Vec::new();
    }
    let (head, body) = summary.split_at_mut(SUMMARY_HEAD_BYTES);
    head[..4].copy_from_slice(&len32(body).to_le_bytes());
    head[4..].copy_from_slice(&crc32c(body).to_le_bytes());
    let chunks = summary.chunks(layout.bare_room() as usize).zip(0..);
    let page = |(chunk, number): (&[u8], u32)| {
        let spare_len = if layout.spare_bytes == 0 { 0 } else { PROLOGUE_LEN };
        let prologue = Prologue {
            kind: PageKind::Summary,
            spare_len,
            front_len: layout.bare_front(),
            continuation: number,
        };
        let prologue = prologue.encode();
        if layout.spare_bytes == 0 {
            let mut data = prologue.to_vec();
            data.extend_from_slice(chunk);
            Page::new(&[], [Buf::copy_from(&data)])
        } else {
            Page::new(&prologue, [Buf::copy_from(chunk)])
        }
    };
    chunks.map(page).collect()
}

/// Pages that a summary of `bytes` bytes takes.
pub(crate) const fn summary_page_count(layout: Layout, bytes: usize) -> u32 {
    #[expect(clippy::cast_possible_truncation, reason = "a summary is smaller than its extent")]
    let bytes = bytes as u32;
    bytes.div_ceil(layout.bare_room())
}

/// A page that was read back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageView<'a> {
    page: &'a Page,
    spare_bytes: usize,
    pub(crate) prologue: Prologue,
}

impl<'a> PageView<'a> {
    /// `None` when the prologue is not whole.
    pub(crate) fn new(layout: Layout, page: &'a Page) -> Option<Self> {
        let home =
            if layout.spare_bytes == 0 { page.data().first()?.bytes()? } else { page.spare() };
        let prologue = Prologue::decode(home)?;
        Some(Self { page, spare_bytes: layout.spare_bytes as usize, prologue })
    }

    /// The bytes of a summary page.
    pub(crate) fn summary(&self) -> Option<&'a [u8]> {
        self.page.data().first()?.bytes()?.get(self.prologue.front_len as usize..)
    }

    /// The header at `offset`; `None` when it is not whole.
    pub(crate) fn header(&self, offset: usize) -> Option<Header<'a>> {
        Header::decode(self.stream(offset)?)
    }

    fn stream(&self, offset: usize) -> Option<&'a [u8]> {
        match offset.checked_sub(self.spare_bytes) {
            None => self.page.spare().get(..self.prologue.spare_len as usize)?.get(offset..),
            Some(offset) => {
                let front = self.page.data().first()?.bytes()?;
                front.get(..self.prologue.front_len as usize)?.get(offset..)
            }
        }
    }

    /// Bytes of the value of `header` that lie on this page.
    pub(crate) fn part_len(&self, header: &Header<'_>, layout: Layout) -> u32 {
        let start = self.values_start() + u32::from(header.value_offset);
        header.value_len.min(layout.page_bytes.saturating_sub(start))
    }

    /// The part of the value of `header` on this page.
    pub(crate) fn part(&self, header: &Header<'_>, layout: Layout) -> Option<Buf> {
        let start = self.values_start() + u32::from(header.value_offset);
        self.page.data_at(start, self.part_len(header, layout))
    }

    /// Data bytes up to the end of the value that began on a page before.
    pub(crate) fn continues(&self) -> u32 {
        self.prologue.front_len.saturating_add(self.prologue.continuation)
    }

    /// The end of a value that began on a page before.
    pub(crate) fn continuation(&self) -> Option<Buf> {
        self.page.data_at(self.prologue.front_len, self.prologue.continuation)
    }

    pub(crate) fn values_start(&self) -> u32 {
        self.continues()
    }

    /// Data bytes that must cross the bus to read the header at `offset`: none when it is spare.
    pub(crate) fn front_wanted(&self, offset: usize) -> u32 {
        if offset < self.spare_bytes { 0 } else { self.prologue.front_len }
    }

    /// Headers with their offsets, in the order of writing, up to the first that is not whole.
    pub(crate) fn headers(
        &self,
        layout: Layout,
    ) -> impl Iterator<Item = (usize, Header<'a>)> + use<'a> {
        let view = *self;
        let spare_end = view.prologue.spare_len as usize;
        let front_end = view.spare_bytes + view.prologue.front_len as usize;
        let (mut offset, front_first) = layout.first_offsets();
        std::iter::from_fn(move || {
            if offset == spare_end && offset < front_first {
                offset = front_first;
            }
            if offset >= front_end.max(spare_end) {
                return None;
            }
            let header = view.header(offset)?;
            let at = offset;
            offset += header.len();
            Some((at, header))
        })
    }
}

/// A record as an extent's summary, or its page, tells of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Listed<'a> {
    pub(crate) page: u32,
    /// Of the header in the page.
    pub(crate) offset: usize,
    /// Of the first value in the page's data.
    pub(crate) values_start: u32,
    pub(crate) header: Header<'a>,
}

/// Calls `visit` for every record of a summary. False when the summary is not whole.
pub(crate) fn read_summary(
    layout: Layout,
    summary: &[u8],
    mut visit: impl FnMut(Listed<'_>),
) -> bool {
    let Some((head, body)) = summary.split_at_checked(SUMMARY_HEAD_BYTES) else { return false };
    let word = |bytes: &[u8], at: usize| {
        u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
    };
    let Some(mut rest) = body.get(..word(head, 0) as usize) else { return false };
    if word(head, 4) != crc32c(rest) {
        return false;
    }
    let (spare_first, front_first) = layout.first_offsets();
    while let Some((entry, headers)) = rest.split_at_checked(SUMMARY_ENTRY_BYTES) {
        let (page, spare_len, front_len) = (word(entry, 0), word(entry, 4), word(entry, 8));
        let values_start = layout.bare_front() + front_len + word(entry, 12);
        let (spare, after) = headers.split_at(spare_len as usize);
        let (front, after) = after.split_at(front_len as usize);
        for (mut bytes, mut offset) in [(spare, spare_first), (front, front_first)] {
            while let Some(header) = Header::decode(bytes) {
                visit(Listed { page, offset, values_start, header });
                bytes = &bytes[header.len()..];
                offset += header.len();
            }
        }
        rest = after;
    }
    true
}

/// The tombstone or value kind decides how many value bytes a header stands for.
pub(crate) fn footprint_of(layout: Layout, header: &Header<'_>) -> u64 {
    match header.kind {
        Kind::Value => layout.footprint(header.key.len(), header.value_len),
        Kind::Tombstone => layout.footprint(header.key.len(), 0),
    }
}

//! An extent's summary: the headers of all its records, on its last pages, under one checksum.
//!
//! ```text
//! | length | crc32c | entry | entry | ...
//! entry:  | spare bytes | front bytes | continuation | page | headers |
//! ```
//! An entry is the end of its page's prologue and then the headers, all as they lie on the page. So
//! on media that keep pages in memory, it can be a reference to its page.

use crate::format::layout::{
    Layout, PROLOGUE_BYTES, PROLOGUE_ENTRY, PROLOGUE_LEN, PageKind, Prologue, SUMMARY_ENTRY_BYTES,
};
use crate::format::record::Header;
use base::Buf;
use base::checksum::{crc32c, crc32c_append};
use media::{Page, Segments};
use serde::{Deserialize, Serialize};

/// Bytes of the length and the checksum.
pub(crate) const SUMMARY_HEAD_BYTES: usize = 8;
pub(crate) fn len32(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).expect("a page is far smaller than 4 GiB")
}

/// Bytes of copied entries in one piece of memory.
const COPIED_BYTES: usize = 4_096;

/// The summary of an extent that is being filled.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Summary {
    /// Parts of pages, or copies of them.
    entries: Vec<Buf>,
    len: u32,
    /// Of `entries`.
    crc: u32,
    /// The last copies, which follow `entries`. A saved state has none.
    #[serde(skip)]
    last: Vec<u8>,
}

impl Summary {
    /// Adds the entry of a page of records, with `front_len` bytes of headers at its front, by
    /// reference: for media that keep the page in memory.
    pub(crate) fn add(&mut self, page: &Page, front_len: usize) {
        for part in page.headers(PROLOGUE_ENTRY, front_len) {
            self.len += part.len();
            self.crc = crc32c_append(self.crc, part.bytes().expect("headers are bytes"));
            self.entries.push(part);
        }
    }

    /// Adds a copy of the entry of a page of records with these spare bytes and no front: for
    /// media that do not keep the page in memory.
    pub(crate) fn add_copy(&mut self, spare: &[u8]) {
        let entry = &spare[PROLOGUE_ENTRY..];
        if self.last.len() + entry.len() > COPIED_BYTES {
            self.end_copies();
        }
        self.len += len32(entry);
        self.last.extend_from_slice(entry);
    }

    fn end_copies(&mut self) {
        if !self.last.is_empty() {
            self.crc = crc32c_append(self.crc, &self.last);
            self.entries.push(Buf::copy_from(&self.last));
            self.last.clear();
        }
    }

    /// A copy of what there is up to now.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let crc = crc32c_append(self.crc, &self.last);
        let mut bytes = [self.len.to_le_bytes(), crc.to_le_bytes()].concat();
        let entries = self.entries.iter().filter_map(Buf::bytes);
        entries.for_each(|entry| bytes.extend_from_slice(entry));
        bytes.extend_from_slice(&self.last);
        bytes
    }

    /// Bytes of the whole, as it lies on its pages.
    pub(crate) const fn bytes(&self) -> usize {
        SUMMARY_HEAD_BYTES + self.len as usize
    }

    /// Cuts the summary into pages, the first of which is number `page` of the extent and begins a
    /// block where pages are frames. Each says in
    /// its prologue which of them it is. An empty summary has none.
    pub(crate) fn into_pages(mut self, layout: Layout, mut page: u32) -> Vec<Page> {
        self.end_copies();
        if self.entries.is_empty() {
            return Vec::new();
        }
        let head = [self.len.to_le_bytes(), self.crc.to_le_bytes()];
        let head = Buf::copy_from(head.as_flattened());
        let (mut pages, mut data, mut room) = (Vec::new(), Segments::new(), layout.full_room());
        for mut part in std::iter::once(head).chain(self.entries) {
            while part.len() > room {
                data.extend((room > 0).then(|| part.slice(0..room)));
                part = part.slice(room..part.len());
                pages.push(summary_page(layout, page, &pages, std::mem::take(&mut data)));
                room = layout.full_room();
                page += layout.full_numbers();
            }
            room -= part.len();
            data.push(part);
        }
        pages.push(summary_page(layout, page, &pages, data));
        pages
    }
}

/// The page after those `before` it.
fn summary_page(layout: Layout, page: u32, before: &[Page], data: Segments) -> Page {
    let prologue = Prologue {
        kind: PageKind::Summary,
        spare_len: if layout.spare_bytes == 0 { 0 } else { PROLOGUE_LEN },
        front_len: layout.bare_front(),
        continuation: u32::try_from(before.len()).expect("an extent has far fewer pages"),
        page,
    };
    let prologue = prologue.encode();
    if layout.spare_bytes == 0 {
        Page::with_front(&[], &prologue, data)
    } else {
        Page::new(&prologue, data)
    }
}

/// Page numbers that a summary of `bytes` bytes takes at most.
pub(crate) fn summary_numbers(layout: Layout, bytes: usize) -> u32 {
    let bytes = u32::try_from(bytes).expect("a summary is smaller than its extent");
    let room = layout.full_room();
    let (full, rest) = if bytes < room { (0, bytes) } else { (bytes / room, bytes % room) };
    let rest = if rest == 0 { 0 } else { layout.numbers(PROLOGUE_BYTES, rest) };
    full * layout.full_numbers() + rest
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
    let Some(pages) = ListedPages::new(layout, summary) else { return false };
    pages.for_each(|page| page.records(&mut visit));
    true
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Bytes of a summary that are checked before others have a turn: some 20 us.
const CHECKED_BYTES: usize = 128 << 10;

/// The pages of records that a whole summary lists.
pub(crate) struct ListedPages<'a> {
    layout: Layout,
    rest: &'a [u8],
}

impl<'a> ListedPages<'a> {
    /// `None` when the summary is not whole.
    pub(crate) fn new(layout: Layout, summary: &'a [u8]) -> Option<Self> {
        let (rest, crc) = Self::parts(summary)?;
        (crc == crc32c(rest)).then_some(Self { layout, rest })
    }

    /// As [`Self::new`], but gives way to other tasks: a summary may have many MiB.
    pub(crate) async fn checked_in_turns(layout: Layout, summary: &'a [u8]) -> Option<Self> {
        let (rest, crc) = Self::parts(summary)?;
        let mut found = 0;
        for part in rest.chunks(CHECKED_BYTES) {
            found = crc32c_append(found, part);
            clock::give_way().await;
        }
        (crc == found).then_some(Self { layout, rest })
    }

    /// Returns the bytes of the pages, and their checksum as the head has it.
    fn parts(summary: &'a [u8]) -> Option<(&'a [u8], u32)> {
        let (head, body) = summary.split_at_checked(SUMMARY_HEAD_BYTES)?;
        Some((body.get(..word(head, 0) as usize)?, word(head, 4)))
    }
}

impl<'a> Iterator for ListedPages<'a> {
    type Item = ListedPage<'a>;

    fn next(&mut self) -> Option<ListedPage<'a>> {
        let (entry, headers) = self.rest.split_at_checked(SUMMARY_ENTRY_BYTES)?;
        let (spare_len, front_len) = (word(entry, 0) as usize, word(entry, 4) as usize);
        let (spare_first, front_first) = self.layout.first_offsets();
        let (spare, after) = headers.split_at(spare_len.saturating_sub(spare_first));
        let in_front = self.layout.spare_bytes as usize + front_len - front_first;
        let (front, after) = after.split_at(in_front);
        self.rest = after;
        Some(ListedPage {
            page: word(entry, 12),
            values_start: word(entry, 4) + word(entry, 8),
            headers: [(spare, spare_first), (front, front_first)],
        })
    }
}

/// A page of records as a summary lists it.
pub(crate) struct ListedPage<'a> {
    page: u32,
    values_start: u32,
    /// Headers in the spare area and in the front, with the offset of the first.
    headers: [(&'a [u8], usize); 2],
}

impl<'a> ListedPage<'a> {
    /// Calls `visit` for every record of the page.
    pub(crate) fn records(self, mut visit: impl FnMut(Listed<'a>)) {
        let Self { page, values_start, headers } = self;
        for (mut bytes, mut offset) in headers {
            // The checksum of the summary covers them.
            while let Some(header) = Header::decode_vouched(bytes) {
                let len = header.len();
                visit(Listed { page, offset, values_start, header });
                bytes = &bytes[len..];
                offset += len;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KeySpaceId;
    use crate::format::page_builder::PageBuilder;
    use crate::format::page_view::PageView;
    use crate::format::record::{InBatch, Kind, Sequence};
    use crate::key_space::TableId;
    use media::{Memory, Shape};

    fn shape(spare_bytes: u32) -> Shape {
        let (page_bytes, pages_per_extent) = (4_096, 64);
        Shape {
            page_bytes,
            spare_bytes,
            pages_per_extent,
            extents: 8,
            parallelism: 1,
            frames: None,
        }
    }

    fn layout(spare_bytes: u32) -> Layout {
        Layout::new(&shape(spare_bytes))
    }

    /// The page number and key of each record, as they were pushed.
    type Pushed = Vec<(u32, Vec<u8>)>;

    /// Pages of records, of three one with the end of a value before, and one with only that, and
    /// their summary.
    fn pages(layout: Layout, count: u32) -> (Vec<Page>, Summary, Pushed) {
        pages_of(layout, count, |len| Buf::phantom(len, 9), |page| page)
    }

    fn pages_of(
        layout: Layout,
        count: u32,
        value: fn(u32) -> Buf,
        gathered: impl Fn(Page) -> Page,
    ) -> (Vec<Page>, Summary, Pushed) {
        let (mut summary, mut pushed) = (Summary::default(), Pushed::new());
        let pages = (0..count).map(|page| {
            let mut builder = match page % 3 {
                0 => PageBuilder::new(layout),
                _ => PageBuilder::continuing(layout, value(9)),
            };
            let records = if page % 3 == 2 { 0 } else { 7 };
            for number in 0..records {
                let key = format!("key {number} of page {page}").into_bytes();
                let header = Header {
                    sequence: Sequence(77),
                    kind: Kind::Value,
                    table: TableId { space: KeySpaceId(1), generation: 3 },
                    value_len: 10,
                    value_crc: 5,
                    value_offset: 0,
                    expires: None,
                    batch: InBatch::default(),
                    key: &key,
                };
                builder.push(&mut header.clone(), &value(10));
                pushed.push((page, key));
            }
            builder.close(page, &mut summary, &mut Vec::new(), &gathered)
        });
        (pages.collect(), summary, pushed)
    }

    #[test]
    fn a_summary_on_its_pages_lists_every_record_of_the_extent() {
        for spare_bytes in [0, 128, 256, 1_000] {
            let layout = layout(spare_bytes);
            for count in [1, 2, 30, 60] {
                let (pages, summary, pushed) = pages(layout, count);
                let len = summary.bytes();
                let on_pages = summary.into_pages(layout, count);
                assert_eq!(on_pages.len(), summary_numbers(layout, len) as usize);
                let mut read = Vec::new();
                for (number, page) in (0..).zip(&on_pages) {
                    let view = PageView::new(layout, page).expect("a whole prologue");
                    assert_eq!(view.prologue.kind, PageKind::Summary);
                    let Prologue { continuation, page, .. } = view.prologue;
                    assert_eq!((continuation, page), (number, count + number));
                    view.read_summary(&mut read).expect("a summary is bytes");
                }
                let mut listed = Pushed::new();
                let whole = read_summary(layout, &read, |record| {
                    let view = PageView::new(layout, &pages[record.page as usize]);
                    let view = view.expect("a whole prologue");
                    let there = view.header(record.offset).expect("a header");
                    assert_eq!(there.key, record.header.key);
                    assert_eq!(view.values_start(), record.values_start);
                    listed.push((record.page, record.header.key.to_vec()));
                });
                assert!(whole && listed == pushed, "{count} pages with {spare_bytes} B of spare");
            }
        }
    }

    #[test]
    fn a_summary_holds_no_headers_of_its_own() {
        let memory = Memory::new(shape(1_000));
        let value = |len: u32| Buf::copy_from(&vec![9; len as usize]);
        let in_memory = pages_of(layout(1_000), 3, value, |page| memory.gathered(page));
        are_the_pages_own(in_memory);
        are_the_pages_own(pages(layout(1_000), 3));
    }

    fn are_the_pages_own((pages, summary, _): (Vec<Page>, Summary, Pushed)) {
        let entries: Vec<_> = summary.entries.iter().filter_map(Buf::bytes).collect();
        let own: Vec<_> = pages[..2].iter().map(|page| &page.spare()[PROLOGUE_ENTRY..]).collect();
        assert_eq!(entries, own);
        assert!(entries.iter().zip(&own).all(|(entry, own)| entry.as_ptr() == own.as_ptr()));
    }

    #[test]
    fn copied_headers_make_the_same_summary() {
        let layout = layout(1_000);
        let (pages, referred, _) = pages(layout, 60);
        let mut copied = Summary::default();
        for page in pages.chunks(3).flat_map(|pages| &pages[..2]) {
            copied.add_copy(page.spare());
        }
        assert_eq!(copied.to_bytes(), referred.to_bytes());
        assert!((2..10).contains(&copied.entries.len()), "they are in few pieces");
        let read = |summary: Summary| {
            let mut read = Vec::new();
            for page in summary.into_pages(layout, 60) {
                let view = PageView::new(layout, &page).expect("a whole prologue");
                view.read_summary(&mut read).expect("a summary is bytes");
            }
            read
        };
        assert_eq!(read(copied), read(referred));
    }

    #[test]
    fn a_summary_with_a_flipped_bit_is_not_whole() {
        let layout = layout(256);
        let (_, summary, _) = pages(layout, 2);
        let whole = summary.to_bytes();
        assert!(read_summary(layout, &whole, |_| ()));
        for bit in 0..whole.len() * 8 {
            let mut damaged = whole.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(!read_summary(layout, &damaged, |_| ()), "bit {bit}");
        }
    }
}

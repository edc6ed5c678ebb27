use crate::format::layout::{Layout, Prologue};
use crate::format::record::Header;
use base::{Buf, Key};
use media::Page;

/// A page that was read back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageView<'a> {
    page: &'a Page,
    spare_bytes: usize,
    is_vouched: bool,
    pub(crate) prologue: Prologue,
}

/// What a page says of a record. Does not borrow from the page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<'k> {
    /// `None` if it is of another key.
    pub(crate) header: Option<Header<'k>>,
    /// Where among the page's data the value begins.
    pub(crate) value_start: u32,
}

impl<'a> PageView<'a> {
    /// `None` when the prologue is not whole.
    #[inline]
    pub(crate) fn new(layout: Layout, page: &'a Page) -> Option<Self> {
        let home = if layout.spare_bytes == 0 { page.front()? } else { page.spare() };
        let (spare_bytes, is_vouched) = (layout.spare_bytes as usize, layout.is_vouched);
        let prologue =
            if is_vouched { Prologue::decode_vouched(home) } else { Prologue::decode(home) };
        Some(Self { page, spare_bytes, is_vouched, prologue: prologue? })
    }

    /// Adds the bytes of a summary page to `summary`; `None` when they are not bytes.
    pub(crate) fn read_summary(&self, summary: &mut Vec<u8>) -> Option<()> {
        let front = self.prologue.front_len;
        let len = self.page.data_bytes().checked_sub(front)?;
        for part in self.page.segments_at(front, len)? {
            summary.extend_from_slice(part.bytes()?);
        }
        Some(())
    }

    /// The header at `offset`; `None` when it is not whole.
    #[inline]
    pub(crate) fn header(&self, offset: usize) -> Option<Header<'a>> {
        let bytes = self.stream(offset)?;
        if self.is_vouched { Header::decode_vouched(bytes) } else { Header::decode(bytes) }
    }

    /// The record at `offset`, where one of `key` is looked for. `None` when its header is not
    /// whole.
    #[inline]
    pub(crate) fn record_of<'k>(&self, key: &'k Key, offset: usize) -> Option<Record<'k>> {
        let header = self.header(offset)?;
        let value_start = self.value_start(&header);
        let header = key.is(header.key).then(|| header.with_key(key.as_bytes()));
        Some(Record { header, value_start })
    }

    #[inline]
    fn stream(&self, offset: usize) -> Option<&'a [u8]> {
        match offset.checked_sub(self.spare_bytes) {
            None => self.page.spare().get(..self.prologue.spare_len as usize)?.get(offset..),
            Some(offset) => {
                let front = self.page.front()?;
                front.get(..self.prologue.front_len as usize)?.get(offset..)
            }
        }
    }

    /// Where among the page's data the value of `header` begins.
    #[inline]
    pub(crate) fn value_start(&self, header: &Header<'_>) -> u32 {
        self.values_start() + u32::from(header.value_offset)
    }

    /// Bytes of the value of `header` that lie on this page.
    #[inline]
    pub(crate) fn part_len(&self, header: &Header<'_>, layout: Layout) -> u32 {
        layout.part_len(self.value_start(header), header.value_len)
    }

    /// The part of the value of `header` on this page.
    #[inline]
    pub(crate) fn part(&self, header: &Header<'_>, layout: Layout) -> Option<Buf> {
        self.page.data_at(self.value_start(header), self.part_len(header, layout))
    }

    /// Data bytes up to the end of the value that began on a page before.
    #[inline]
    pub(crate) fn continues(&self) -> u32 {
        self.prologue.front_len.saturating_add(self.prologue.continuation)
    }

    /// The end of a value that began on a page before.
    pub(crate) fn continuation(&self) -> Option<Buf> {
        self.page.data_at(self.prologue.front_len, self.prologue.continuation)
    }

    #[inline]
    pub(crate) fn values_start(&self) -> u32 {
        self.continues()
    }

    /// Data bytes that must cross the bus to read the header at `offset`: none when it is spare.
    pub(crate) fn front_wanted(&self, offset: usize) -> u32 {
        if offset < self.spare_bytes { 0 } else { self.prologue.front_len }
    }

    /// True when no header has been damaged.
    pub(crate) fn has_all_headers(&self, layout: Layout) -> bool {
        let (spare_first, front_first) = layout.first_offsets();
        let ends = [
            (self.prologue.spare_len as usize).saturating_sub(spare_first),
            (self.spare_bytes + self.prologue.front_len as usize).saturating_sub(front_first),
        ];
        let found: usize = self.headers(layout).map(|(_, header)| header.len()).sum();
        found == ends.iter().sum()
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

/// The header at `offset` of a page in memory, which an index entry names, and where among the
/// page's data its value begins. `None` when the prologue or the header is not whole.
#[inline]
pub(crate) fn vouched_record<'a>(
    layout: &Layout,
    page: &'a Page,
    offset: usize,
) -> Option<(Header<'a>, u32)> {
    let home = if layout.spare_bytes == 0 { page.front()? } else { page.spare() };
    let prologue = Prologue::decode_vouched(home)?;
    let header = vouched_header(layout, page, offset)?;
    let values_start = prologue.front_len.saturating_add(prologue.continuation);
    let start = values_start + u32::from(header.value_offset);
    Some((header, start))
}

/// The header at `offset` of a page in memory, which an index entry names. `None` when the header
/// is not whole. The prologue is not read.
#[expect(clippy::inline_always, reason = "a caller needs a few of the fields that a call stores")]
#[inline(always)]
pub(crate) fn vouched_header<'a>(
    layout: &Layout,
    page: &'a Page,
    offset: usize,
) -> Option<Header<'a>> {
    assert!(layout.is_vouched, "only memory vouches for its pages");
    let bytes = match offset.checked_sub(layout.spare_bytes as usize) {
        None => page.spare().get(offset..)?,
        Some(offset) => page.front()?.get(offset..)?,
    };
    Header::decode_vouched(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KeySpaceId;
    use crate::format::page_builder::PageBuilder;
    use crate::format::record::{InBatch, Kind, Sequence};
    use crate::format::summary::Summary;
    use crate::key_space::TableId;
    use media::Shape;

    #[test]
    fn checksums_are_checked_unless_the_medium_vouches() {
        let layout = Layout::new(&Shape {
            page_bytes: 4_096,
            spare_bytes: 256,
            pages_per_extent: 64,
            extents: 8,
            parallelism: 1,
            frames: None,
        });
        let header = Header {
            sequence: Sequence(1),
            kind: Kind::Value,
            table: TableId { space: KeySpaceId(1), generation: 3 },
            value_len: 0,
            value_crc: 0,
            value_offset: 0,
            expires: None,
            batch: InBatch::default(),
            key: b"key",
        };
        let mut builder = PageBuilder::new(layout);
        let offset = builder.push(&mut header.clone(), &Buf::phantom(0, 0));
        let whole = builder.close(5, &mut Summary::default(), &mut Vec::new(), |page| page);
        let key = |layout, page: &Page| {
            let view = PageView::new(layout, page)?;
            Some(view.header(offset)?.key.to_vec())
        };
        // A bit of the prologue's checksum, and one of the header's.
        for (at, is_read) in [(4, false), (24, false), (200, true)] {
            let mut spare = whole.spare().to_vec();
            spare.resize(256, 0);
            spare[at] ^= 1;
            let page = Page::new(&spare, []);
            assert_eq!(key(layout, &page).is_some(), is_read, "byte {at}");
            assert_eq!(key(layout.vouched(true), &page).as_deref(), Some(&b"key"[..]));
            let header = vouched_header(&layout.vouched(true), &page, offset);
            assert_eq!(header.map(|header| header.key), Some(&b"key"[..]), "byte {at}");
        }
    }
}

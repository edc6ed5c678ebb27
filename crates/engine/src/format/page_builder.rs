use crate::format::layout::{Layout, PROLOGUE_BYTES, PageKind, Prologue, SHARED_BYTES};
use crate::format::record::Header;
use crate::format::summary::{Summary, len32};
use base::Buf;
use media::Page;

/// A page being filled.
#[derive(Debug)]
pub(crate) struct PageBuilder {
    layout: Layout,
    spare: Vec<u8>,
    front: Vec<u8>,
    continuation: Option<Buf>,
    /// Values, each with its first byte among all of them: in rising order.
    values: Vec<(u32, Value)>,
    value_bytes: u32,
    /// The bytes of all short values.
    short: Vec<u8>,
    records: u32,
    /// Headers have the CRC-32C of their values' bytes, or 0.
    has_crcs: bool,
    /// That of the first value.
    crc: Option<u32>,
}

/// The value of a record, or the first part of a long one.
#[derive(Debug)]
enum Value {
    /// The number of its first byte among those of all short values, and its length.
    Short(u32, u32),
    Long(Buf),
}

impl PageBuilder {
    pub(crate) fn new(layout: Layout) -> Self {
        let mut empty = Self {
            layout,
            spare: Vec::new(),
            front: Vec::new(),
            continuation: None,
            values: Vec::new(),
            value_bytes: 0,
            short: Vec::new(),
            records: 0,
            has_crcs: false,
            crc: None,
        };
        empty.clear();
        empty
    }

    /// The same, but a page of a single value tells the medium the CRC-32C of its header, if
    /// `has_crcs`. Not of copies: a damaged value moves as it is, and keeps the one that it had.
    pub(crate) fn with_crcs(self, has_crcs: bool) -> Self {
        Self { has_crcs, ..self }
    }

    /// A page that begins with the end of a value from the page before.
    pub(crate) fn continuing(layout: Layout, part: Buf) -> Self {
        let mut page = Self::new(layout);
        page.continue_with(part);
        page
    }

    /// Begins the page, which is empty, with the end of a value from the page before.
    pub(crate) fn continue_with(&mut self, part: Buf) {
        assert!(self.is_empty(), "a page begins with the end of a value");
        assert!(part.len() <= self.layout.bare_room(), "the rest of a value is cut to the page");
        self.continuation = Some(part);
    }

    /// Makes the page empty; its memory stays, as the next page needs about as much.
    fn clear(&mut self) {
        self.spare.clear();
        self.front.clear();
        let home = if self.layout.spare_bytes == 0 { &mut self.front } else { &mut self.spare };
        home.resize(PROLOGUE_BYTES, 0);
        self.values.clear();
        self.short.clear();
        (self.continuation, self.crc) = (None, None);
        (self.value_bytes, self.records) = (0, 0);
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

    /// As [`Self::room`], where pages are frames.
    fn room_of_frame(&self, header_len: usize) -> Option<u32> {
        if self.is_empty() {
            return Some(self.layout.page_bytes);
        }
        let is_shared = !self.layout.is_alone(self.value_bytes);
        (is_shared && self.goes_to_spare(header_len)).then(|| SHARED_BYTES - 1 - self.value_bytes)
    }

    /// Page numbers that it takes as it is.
    pub(crate) fn numbers(&self) -> u32 {
        self.layout.numbers(self.spare.len(), self.continuation_len() + self.value_bytes)
    }

    /// Value bytes that still fit together with a header of `header_len` bytes; `None` when not
    /// even the header does.
    pub(crate) fn room(&self, header_len: usize) -> Option<u32> {
        if self.layout.frames.is_some() {
            return self.room_of_frame(header_len);
        }
        // The header says in 16 bits where the value begins.
        u16::try_from(self.value_bytes).ok()?;
        let front = if self.goes_to_spare(header_len) { 0 } else { header_len };
        let used = self.front.len() + front;
        let used = u32::try_from(used).ok()? + self.continuation_len() + self.value_bytes;
        self.layout.page_bytes.checked_sub(used)
    }

    /// Adds a record, or the first part of a long one, and returns its header's offset. There is
    /// room for it. Notes in the header where the value begins.
    pub(crate) fn push(&mut self, header: &mut Header<'_>, part: &Buf) -> usize {
        header.value_offset = u16::try_from(self.value_bytes).expect("a page with room has less");
        let offset = if self.goes_to_spare(header.len()) {
            let offset = self.spare.len();
            header.encode(&mut self.spare, self.layout.is_checked);
            offset
        } else {
            let offset = self.layout.spare_bytes as usize + self.front.len();
            header.encode(&mut self.front, self.layout.is_checked);
            offset
        };
        let is_first = self.values.is_empty() && part.len() == header.value_len;
        if is_first && self.has_crcs && header.value_crc != 0 {
            self.crc = Some(header.value_crc);
        }
        let start = self.value_bytes;
        self.value_bytes += part.len();
        self.records += 1;
        if part.len() > 0 {
            let value = self.taken(part);
            self.values.push((start, value));
        }
        assert!(self.is_within_page(), "the page has room for the record");
        offset
    }

    /// Returns true if what it holds fits the page, where records may share it.
    #[inline]
    fn is_within_page(&self) -> bool {
        let (front, data) = (self.front.len() as u64, u64::from(self.value_bytes));
        let bytes = front + data + u64::from(self.continuation_len());
        let is_alone = self.layout.is_alone(self.value_bytes);
        bytes <= self.layout.page_bytes.into() && (self.records == 1 || !is_alone)
    }

    /// Copies a short value, and keeps a long one by reference.
    #[inline]
    fn taken(&mut self, part: &Buf) -> Value {
        match part.bytes().filter(|bytes| bytes.len() <= Page::FLAT_VALUE_BYTES_MAX) {
            Some(bytes) => {
                let start = len32(&self.short);
                self.short.extend_from_slice(bytes);
                Value::Short(start, part.len())
            }
            None => Value::Long(part.clone()),
        }
    }

    /// The bytes from `offset` on of the headers.
    fn headers(&self, offset: usize) -> Option<&[u8]> {
        match offset.checked_sub(self.layout.spare_bytes as usize) {
            Some(offset) => self.front.get(offset..),
            None => self.spare.get(offset..),
        }
    }

    /// Returns the header at `offset`.
    pub(crate) fn header(&self, offset: usize) -> Option<Header<'_>> {
        Header::decode_vouched(self.headers(offset)?)
    }

    /// Returns the part of a header's value on this page. An empty value begins where the next one
    /// does.
    pub(crate) fn part(&self, header: &Header<'_>) -> Buf {
        let at = self.values.binary_search_by_key(&header.value_offset.into(), |(start, _)| *start);
        match at.map(|at| &self.values[at].1) {
            Ok(Value::Short(start, len)) => {
                let value = &self.short[*start as usize..][..*len as usize];
                Buf::copy_from(&value[..value.len().min(header.value_len as usize)])
            }
            Ok(Value::Long(value)) => value.slice(0..value.len().min(header.value_len)),
            Err(_) => Buf::phantom(0, 0),
        }
    }

    /// Releases the memory of the value of the record at `offset`, which is dead. The record keeps
    /// its place.
    pub(crate) fn release(&mut self, offset: usize) {
        let header = self.headers(offset).and_then(Header::decode_vouched);
        let Some(header) = header else { return };
        let (start, len) = (u32::from(header.value_offset), header.value_len);
        let at = self.values.binary_search_by_key(&start, |(start, _)| *start);
        if let Ok(at) = at
            && let Value::Long(value) = &mut self.values[at].1
            && value.len() == len
        {
            *value = Buf::phantom(len, 0);
        }
    }

    /// The finished page, which is number `page` of its extent, as `gathered` makes it. The
    /// extent's summary repeats its headers. Leaves an empty one. May use the memory of an
    /// `emptied` page.
    pub(crate) fn close(
        &mut self,
        page: u32,
        summary: &mut Summary,
        emptied: &mut Vec<Page>,
        gathered: impl FnOnce(Page) -> Page,
    ) -> Page {
        let prologue = Prologue {
            kind: PageKind::Records,
            spare_len: len32(&self.spare),
            front_len: len32(&self.front),
            continuation: self.continuation_len(),
            page,
        };
        let home = if self.spare.is_empty() { &mut self.front } else { &mut self.spare };
        home[..PROLOGUE_BYTES].copy_from_slice(&prologue.encode());
        let (lists, is_frame) = (self.records > 0, self.layout.frames.is_some());
        if lists && is_frame {
            summary.add_copy(&self.spare);
        }
        let content = gathered(self.content(emptied));
        if lists && !is_frame {
            summary.add(&content, self.front.len());
        }
        self.clear();
        content
    }

    fn content(&mut self, emptied: &mut Vec<Page>) -> Page {
        let (count, continues) = (self.values.len(), self.continuation.is_some());
        if count > 1 && !continues && len32(&self.short) == self.value_bytes {
            return Page::flat(&self.spare, &self.front, &self.short);
        }
        let is_empty = self.short.is_empty();
        let short = if is_empty { Buf::phantom(0, 0) } else { Buf::copy_from(&self.short) };
        let mut values = self.values.drain(..).map(|(_, value)| match value {
            Value::Short(start, len) => short.slice(start..start + len),
            Value::Long(value) => value,
        });
        if count == 1
            && !continues
            && self.front.is_empty()
            && let Some(value) = values.next()
        {
            return match self.crc {
                Some(crc) => Page::with_crc(emptied.pop(), &self.spare, value, crc),
                None => Page::new(&self.spare, [value]),
            };
        }
        let data = self.continuation.take().into_iter().chain(values);
        if self.front.is_empty() {
            Page::new(&self.spare, data)
        } else {
            Page::with_front(&self.spare, &self.front, data)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KeySpaceId;
    use crate::format::page_view::PageView;
    use crate::format::record::{InBatch, Kind, Sequence};
    use crate::key_space::TableId;
    use media::{Frames, Shape};

    fn header(value_crc: u32) -> Header<'static> {
        Header {
            sequence: Sequence(1),
            kind: Kind::Value,
            table: TableId { space: KeySpaceId(1), generation: 3 },
            value_len: 500,
            value_crc,
            value_offset: 0,
            expires: None,
            batch: InBatch::default(),
            key: b"key",
        }
    }

    fn closed(builder: PageBuilder, value_crc: u32) -> Page {
        let mut builder = builder;
        builder.push(&mut header(value_crc), &value());
        builder.close(0, &mut Summary::default(), &mut Vec::new(), |page| page)
    }

    fn value() -> Buf {
        Buf::copy_from(&[7; 500])
    }

    fn builder() -> PageBuilder {
        builder_for(None)
    }

    fn builder_for(frames: Option<Frames>) -> PageBuilder {
        let (page_bytes, spare_bytes, pages_per_extent) = (4_096, 256, 64);
        let (extents, parallelism) = (8, 1);
        PageBuilder::new(Layout::new(&Shape {
            page_bytes,
            spare_bytes,
            pages_per_extent,
            extents,
            parallelism,
            frames,
        }))
    }

    #[test]
    #[should_panic(expected = "the page has room for the record")]
    fn a_page_takes_no_more_than_it_holds() {
        let mut builder = builder();
        for _ in 0..=4_096 / 500 {
            builder.push(&mut header(0), &value());
        }
    }

    #[test]
    #[should_panic(expected = "the page has room for the record")]
    fn a_value_of_a_block_shares_no_frame() {
        let mut builder =
            builder_for(Some(Frames { unit_bytes: 64, block_units: 64, head_bytes: 64 }));
        builder.push(&mut header(0), &value());
        let value = Buf::copy_from(&[7; 4_096 - 500]);
        builder.push(&mut Header { value_len: value.len(), ..header(0) }, &value);
    }

    #[test]
    fn a_lone_value_is_on_its_page_whether_its_crc_is_told_or_not() {
        let pages = [
            closed(builder().with_crcs(true), value().crc32c()),
            closed(builder().with_crcs(true), 0),
            closed(builder(), value().crc32c()),
        ];
        for page in pages {
            let view = PageView::new(builder().layout, &page).expect("a whole prologue");
            assert_eq!((view.values_start(), page.data_bytes()), (0, 500));
            assert_eq!(page.data_at(0, 500).unwrap().bytes(), value().bytes());
        }
    }

    #[test]
    fn values_of_an_open_page_are_those_of_the_closed_one() {
        let mut builder = builder();
        let lens = [0_usize, 7, 0, 0, 500, 600, 0, 512, 513, 0];
        let values = lens.map(|len| Buf::copy_from(&vec![len.to_le_bytes()[0]; len]));
        let offsets = values.each_ref().map(|value| {
            let mut header = Header { value_len: value.len(), ..header(0) };
            builder.push(&mut header, value)
        });
        let found = offsets.map(|offset| builder.part(&builder.header(offset).unwrap()));
        let (layout, page) = (
            builder.layout,
            builder.close(0, &mut Summary::default(), &mut Vec::new(), |page| page),
        );
        let view = PageView::new(layout, &page).expect("a whole prologue");
        for ((value, offset), found) in values.iter().zip(offsets).zip(found) {
            let header = view.header(offset).unwrap();
            let closed = view.part(&header, layout).unwrap();
            let bytes = |value: &Buf| value.bytes().unwrap_or_default().to_vec();
            assert_eq!((bytes(&found), bytes(&closed)), (bytes(value), bytes(value)));
        }
    }

    /// The medium computes it in builds with debug assertions.
    #[test]
    #[should_panic(expected = "00000007 is the CRC of the data")]
    fn the_medium_is_told_the_crc_of_the_header() {
        closed(builder().with_crcs(true), 7);
    }

    #[test]
    fn the_medium_is_not_told_the_crc_of_a_copy() {
        closed(builder(), 7);
    }
}

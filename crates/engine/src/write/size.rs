//! The space that a batch takes in an extent.

use crate::format::layout::Layout;
use crate::format::layout::SUMMARY_ENTRY_BYTES;
use crate::format::page_builder::PageBuilder;
use crate::format::record::Kind;
use crate::format::summary::{Summary, summary_numbers};
use crate::log::{Log, NoRoom, Part, Writer, reserve};
use crate::write::change::{Change, Effect};
use base::Buf;
use media::Stream;
use std::sync::Arc;

/// An upper bound of the space that a batch takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    /// The kind of record that must leave the most space free.
    pub(crate) kind: Kind,
    headers: usize,
    values: u64,
    /// The longest value.
    longest: u32,
    /// Page numbers after the page that is open.
    pages: u32,
}

impl Size {
    pub(crate) fn new<'a>(layout: Layout, changes: impl Iterator<Item = Change<'a>>) -> Self {
        // Earlier records may fill the open page, so the batch is counted from the next page.
        let mut size = Self { kind: Kind::Tombstone, headers: 0, values: 0, longest: 0, pages: 0 };
        let mut page = PageBuilder::new(layout);
        // Members that join the open page shift the others, so pages may group other records than
        // here. Where pages are frames each may then be as long as a shared page.
        let shared = layout.frames.map_or(0, |_| layout.shared_numbers());
        let most = |page: &PageBuilder| layout.aligned(page.numbers().max(shared));
        for change in changes {
            let (header_len, value_len) = (change.header_len(), change.value_len());
            size.headers += header_len;
            size.values += u64::from(value_len);
            size.longest = size.longest.max(value_len);
            if matches!(change.effect, Effect::Put { .. }) {
                size.kind = Kind::Value;
            }
            let on_one_page = layout.fits_page(header_len, value_len);
            let least = if on_one_page { value_len } else { 1 };
            if page.room(header_len).is_none_or(|room| room < least) {
                size.pages += most(&page);
                page = PageBuilder::new(layout);
            }
            let room = page.room(header_len).expect("an empty page has room for a header");
            let mut done = room.min(value_len);
            page.push(&mut change.header(), &Buf::phantom(done, 0));
            while done < value_len {
                size.pages += most(&page);
                let part = layout.bare_room().min(value_len - done);
                done += part;
                page = PageBuilder::continuing(layout, Buf::phantom(part, 0));
            }
        }
        size.pages += most(&page);
        size
    }

    /// Returns the bytes of headers and values.
    pub(crate) fn bytes(&self) -> u64 {
        self.headers as u64 + self.values
    }

    /// Returns the same without the longest value.
    pub(crate) fn bytes_but_longest(&self) -> u64 {
        self.bytes() - u64::from(self.longest)
    }
}

impl Log {
    /// Makes room for a host's batch in one extent, with no other records between its own.
    pub(crate) fn make_room_for(
        self: &Arc<Self>,
        part: &mut Part<'_, '_>,
        size: Size,
    ) -> Result<(), NoRoom> {
        let is_open = part.writer.frontiers.of(Stream::Host).is_some();
        if is_open && !self.has_room_for(part.writer, size) {
            self.seal(part, Stream::Host);
        }
        if part.writer.frontiers.of(Stream::Host).is_none() {
            self.open_extent(part, Stream::Host, reserve(Stream::Host, size.kind))?;
        }
        assert!(self.has_room_for(part.writer, size), "an empty extent has room for any batch");
        Ok(())
    }

    /// Returns true when the open extent of hosts takes the batch and then still its summary.
    fn has_room_for(&self, writer: &Writer, size: Size) -> bool {
        let Some(frontier) = writer.frontiers.of(Stream::Host) else { return false };
        let open = frontier.builder.numbers().max(self.layout.shared_numbers());
        let next = self.layout.aligned(self.layout.aligned(frontier.page()) + open);
        self.fits_from(next, frontier.summary.bytes(), size)
    }

    /// Returns true when an empty extent has room for the batch and its summary.
    pub(crate) fn fits_empty_extent(&self, size: Size) -> bool {
        let next = self.layout.aligned(self.layout.shared_numbers());
        self.fits_from(next, Summary::default().bytes(), size)
    }

    /// Returns true when the batch fits behind the page before `next`, with a summary of which the
    /// pages before the open one have taken `summary_bytes`.
    fn fits_from(&self, next: u32, summary_bytes: usize, size: Size) -> bool {
        // The headers of the open page are not in the summary yet, and as for a long record two
        // more pages are kept for what others add.
        let page = SUMMARY_ENTRY_BYTES + self.layout.headers_max();
        let entries = size.pages as usize * SUMMARY_ENTRY_BYTES;
        let summary = summary_bytes + 3 * page + entries + size.headers;
        let reserved = summary_numbers(self.layout, summary);
        next + size.pages + reserved <= self.shape.pages_per_extent
    }
}

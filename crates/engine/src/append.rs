//! The write side of the log: records to pages, pages to extents, extents to their end.

use crate::address::Address;
use crate::extent::{Extent, class_of};
use crate::log::{Appended, Frontier, Log, NewRecord, NoRoom, State, reserve};
use crate::page_builder::PageBuilder;
use crate::page_view::PageView;
use crate::pending::Pending;
use crate::rebuild::Listing;
use crate::record::{Header, Kind, header_len};
use crate::summary::{SUMMARY_ENTRY_BYTES, Summary, summary_page_count};
use base::{Buf, Key};
use media::{ExtentId, Label, Page, PageId, Stream};
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

impl Log {
    /// Appends a record. The caller has it indexed before it awaits anything.
    pub(crate) fn append(
        self: &Arc<Self>,
        state: &mut State,
        stream: Stream,
        record: &NewRecord<'_>,
    ) -> Result<Appended, NoRoom> {
        let header_len = header_len(record.key.len(), record.expires);
        let on_one_page = self.layout.fits_page(header_len, record.value.len());
        let reserved = reserve(stream, record.kind);
        self.make_room(state, stream, reserved, header_len, record.value.len(), on_one_page)?;
        let extent = frontier(state, stream).extent;
        state.extents.get(extent).note_expiry(record.expires);
        let sequence = record.sequence.unwrap_or_else(|| {
            state.sequence.0 += 1;
            state.sequence
        });
        let header = Header {
            sequence,
            kind: record.kind,
            table: record.table,
            value_len: record.value.len(),
            value_crc: record.value_crc,
            value_offset: 0,
            expires: record.expires,
            batch: record.batch,
            key: record.key,
        };
        if on_one_page {
            let (address, page) = self.push(state, stream, header, record.value.clone());
            return Ok(Appended { address, pages: smallvec![page] });
        }
        Ok(self.append_long(state, stream, header, record.value))
    }

    /// Adds a record, or its first part, to the stream's open page.
    fn push(
        &self,
        state: &mut State,
        stream: Stream,
        header: Header<'_>,
        part: Buf,
    ) -> (Address, Arc<Pending>) {
        let frontier = frontier(state, stream);
        let offset = frontier.builder.push(header, part);
        let address = Address::new(self.number(frontier.extent, frontier.page), offset);
        let pending = frontier.pending.clone();
        if stream == Stream::Host && header.kind == Kind::Tombstone {
            let key = Key::new(header.key).expect("it is that of a host's command");
            state.deleting.insert(address, (header.table, key));
        }
        (address, pending)
    }

    /// Fills this page with the first part of a value, and as many of the next as it takes.
    fn append_long(
        self: &Arc<Self>,
        state: &mut State,
        stream: Stream,
        header: Header<'_>,
        value: &Buf,
    ) -> Appended {
        let room = frontier(state, stream).builder.room(header.len());
        let mut done = room.expect("room was made for the header").min(value.len());
        let (address, page) = self.push(state, stream, header, value.slice(0..done));
        let mut pages: SmallVec<[Arc<Pending>; 1]> = smallvec![page];
        while done < value.len() {
            self.next_page(state, stream);
            let part = value.slice(done..value.len().min(done + self.layout.bare_room()));
            done += part.len();
            let frontier = frontier(state, stream);
            frontier.builder.continue_with(part);
            pages.push(frontier.pending.clone());
        }
        Appended { address, pages }
    }

    /// Turns pages, and opens an extent, until the stream's open page takes the record.
    fn make_room(
        self: &Arc<Self>,
        state: &mut State,
        stream: Stream,
        reserved: u32,
        header_len: usize,
        value_len: u32,
        on_one_page: bool,
    ) -> Result<(), NoRoom> {
        for _ in 0..5 {
            let Some(frontier) = &state.frontiers[stream as usize] else {
                self.open_extent(state, stream, reserved)?;
                continue;
            };
            let room = frontier.builder.room(header_len);
            let fits = match room {
                Some(room) if on_one_page => value_len <= room,
                Some(room) if room > 0 => {
                    let more = (value_len - room.min(value_len)).div_ceil(self.layout.bare_room());
                    if !self.has_pages(frontier, more) {
                        self.seal(state, stream);
                        continue;
                    }
                    true
                }
                _ => false,
            };
            if fits {
                return Ok(());
            }
            self.turn_page(state, stream);
        }
        panic!("an empty extent has room for the longest record");
    }

    /// True when the extent has `more` pages after the open one, and room for their summary.
    fn has_pages(&self, frontier: &Frontier, more: u32) -> bool {
        // The open page's headers, at most a page and its spare area, are not yet in the summary;
        // nor are those on the last of `more` pages, which other records join.
        let page = SUMMARY_ENTRY_BYTES + (self.shape.page_bytes + self.shape.spare_bytes) as usize;
        let open_pages = if more == 0 { 1 } else { 2 };
        let summary = frontier.summary.bytes() + open_pages * page;
        let reserved = summary_page_count(self.layout, summary);
        frontier.page + more + reserved < self.shape.pages_per_extent
    }

    pub(crate) fn open_extent(
        &self,
        state: &mut State,
        stream: Stream,
        reserved: u32,
    ) -> Result<(), NoRoom> {
        let free = match stream {
            // What is kept for table pages is for them.
            Stream::Index if self.kept_extents(state) > 0 => u32::MAX,
            _ => self.free_extents(state),
        };
        if free <= reserved {
            return Err(NoRoom);
        }
        state.sequence.0 += 1;
        let epoch = match stream {
            Stream::Host | Stream::Index => state.sequence,
            Stream::Gc => state.cleaning_since,
        };
        let label = Label { stream, epoch: epoch.0 };
        let extent = self.media.open(label).map_err(|_| NoRoom)?;
        state.extents.insert(extent, Extent::new(label));
        state.table_extents_used += u32::from(stream == Stream::Index);
        let builder = PageBuilder::new(self.layout);
        state.frontiers[stream as usize] = Some(Frontier {
            extent,
            page: 0,
            builder,
            pending: self.expect_page(state, extent, 0),
            summary: Summary::default(),
        });
        Ok(())
    }

    pub(crate) fn expect_page(
        &self,
        state: &mut State,
        extent: ExtentId,
        page: u32,
    ) -> Arc<Pending> {
        let pending = Arc::new(Pending::default());
        state.pending.insert(self.number(extent, page), pending.clone());
        let extent = state.extents.get(extent);
        extent.pages = page + 1;
        extent.in_flight += 1;
        pending
    }

    /// Closes the stream's open page, starts its program, and opens the next one. Seals the extent
    /// when that leaves no room for a page and the summary.
    pub(crate) fn turn_page(self: &Arc<Self>, state: &mut State, stream: Stream) {
        self.next_page(state, stream);
        if !self.has_pages(frontier(state, stream), 0) {
            self.seal(state, stream);
        }
    }

    /// As [`Self::turn_page`], but never seals: within a record, whose pages are in one extent.
    fn next_page(self: &Arc<Self>, state: &mut State, stream: Stream) {
        let frontier = frontier(state, stream);
        let (extent, page, pending) = (frontier.extent, frontier.page, frontier.pending.clone());
        let content = frontier.builder.close(page, &mut frontier.summary);
        self.program(state, PageId { extent, page }, stream, pending, content);
        let next = self.expect_page(state, extent, page + 1);
        let frontier = state.frontiers[stream as usize].as_mut().expect("it was there above");
        frontier.page += 1;
        frontier.pending = next;
    }

    /// Ends the stream's extent with its summary.
    pub(crate) fn seal(self: &Arc<Self>, state: &mut State, stream: Stream) {
        let mut frontier = state.frontiers[stream as usize].take().expect("an open extent");
        let extent = frontier.extent;
        let mut page = frontier.page;
        let mut pending = frontier.pending;
        if !frontier.builder.is_empty() {
            let content = frontier.builder.close(page, &mut frontier.summary);
            self.program(state, PageId { extent, page }, stream, pending, content);
            page += 1;
            pending = self.expect_page(state, extent, page);
        }
        let first = page;
        let pages = frontier.summary.into_pages(self.layout, first);
        let last = pages.len().saturating_sub(1);
        if pages.is_empty() {
            self.unexpect_page(state, extent, page);
        }
        for (number, content) in pages.into_iter().enumerate() {
            let at = PageId { extent, page };
            self.program(state, at, stream, pending.clone(), content);
            if number < last {
                page += 1;
                pending = self.expect_page(state, extent, page);
            }
        }
        assert!(page < self.shape.pages_per_extent, "an extent keeps room for its summary");
        let extent = state.extents.get(extent);
        extent.sealed = true;
        extent.summary = Some(first).filter(|first| *first < extent.pages);
    }

    /// The page at `at` has not landed, and nothing more is appended to its extent. It is a hole,
    /// as it will be on opening: nobody was told of what it held. But what hosts were told of from
    /// a buffer stays known, for cleaning to say that it is lost.
    pub(crate) fn give_up(self: &Arc<Self>, state: &mut State, at: PageId, stream: Stream) {
        let open = state.frontiers[stream as usize].as_ref();
        let is_open = open.is_some_and(|frontier| frontier.extent == at.extent);
        let summary = if is_open { Some(self.close_extent(state, stream)) } else { None };
        let was_told = stream == Stream::Host && self.answers_early;
        let extent = state.extents.get(at.extent);
        if !was_told || extent.summary.is_some_and(|first| at.page >= first) {
            let place = extent.holes.partition_point(|hole| *hole < at.page);
            extent.holes.insert(place, at.page);
        } else if extent.listing.is_none() {
            let summary = summary.or_else(|| self.unlanded_summary(state, at.extent));
            let records = summary.and_then(|summary| self.listed(at.extent, &summary));
            let listing = records.map(|records| Listing { records, lost: Vec::new() });
            state.extents.get(at.extent).listing = listing.map(Arc::new);
            state.extents.get(at.extent).has_lost = true;
        }
    }

    /// Ends the stream's extent without a summary, and returns what that would have said.
    fn close_extent(self: &Arc<Self>, state: &mut State, stream: Stream) -> Vec<u8> {
        let mut frontier = state.frontiers[stream as usize].take().expect("an open extent");
        let at = PageId { extent: frontier.extent, page: frontier.page };
        if frontier.builder.is_empty() {
            self.unexpect_page(state, at.extent, at.page);
        } else {
            let content = frontier.builder.close(at.page, &mut frontier.summary);
            self.program(state, at, stream, frontier.pending, content);
        }
        state.extents.get(at.extent).sealed = true;
        frontier.summary.to_bytes()
    }

    /// The summary of an extent, of which no page has landed.
    fn unlanded_summary(&self, state: &mut State, extent: ExtentId) -> Option<Vec<u8>> {
        let (first, end) = (state.extents.get(extent).summary?, state.extents.get(extent).pages);
        let mut summary = Vec::new();
        for page in first..end {
            let pages = state.pending.get(&self.number(extent, page))?;
            PageView::new(self.layout, pages.page()?)?.read_summary(&mut summary)?;
        }
        Some(summary)
    }

    pub(crate) fn unexpect_page(&self, state: &mut State, extent: ExtentId, page: u32) {
        state.pending.remove(&self.number(extent, page));
        let extent = state.extents.get(extent);
        extent.pages = page;
        extent.in_flight -= 1;
    }

    fn program(
        self: &Arc<Self>,
        state: &mut State,
        at: PageId,
        stream: Stream,
        pending: Arc<Pending>,
        page: Page,
    ) {
        pending.close(page.clone());
        state.host_pages_in_flight += u32::from(stream == Stream::Host);
        state.pages_since += u64::from(stream != Stream::Index);
        let log = self.clone();
        clock::spawn(async move {
            let result = log.media.append(at, page, class_of(stream)).await;
            log.landed(at, stream, result);
            pending.land(clock::stages(), result);
        });
    }
}

fn frontier(state: &mut State, stream: Stream) -> &mut Frontier {
    state.frontiers[stream as usize].as_mut().expect("room was made in the stream's extent")
}

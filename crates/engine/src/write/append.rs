//! The write side of the log: records to pages, pages to extents, extents to their end.

use crate::extent::{Extent, class_of};
use crate::format::layout::PROLOGUE_BYTES;
use crate::format::layout::SUMMARY_ENTRY_BYTES;
use crate::format::page_builder::PageBuilder;
use crate::format::page_view::PageView;
use crate::format::record::{Header, Kind, Sequence};
use crate::format::summary::{Summary, summary_numbers};
use crate::log::{
    Appended, Frontier, Log, NoRoom, Part, Pin, PinOf, Program, Whole, Writer, reserve,
};
use crate::recover::listing::Listing;
use crate::write::pending::{Pending, durable};
use base::{Buf, Key};
use clock::{Rank, Stage};
use media::{ExtentId, Label, Page, PageId, Stream};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Log {
    /// Appends a record with this header, which gets the next sequence number unless it has one.
    /// The caller points the index to it, and notes its header, before its next await.
    pub(crate) fn append(
        self: &Arc<Self>,
        part: &mut Part<'_, '_>,
        stream: Stream,
        header: &mut Header<'_>,
        value: &Buf,
    ) -> Result<Appended, NoRoom> {
        let (header_len, value_len) = (header.len(), value.len());
        let room = self.make_room(part, stream, header.kind, header_len, value_len)?;
        if header.sequence == Sequence::default() {
            header.sequence = part.writer.next_sequence();
        }
        let is_alone = self.layout.is_alone(value_len);
        if frontier(part, stream).builder.is_empty() {
            self.place(part, stream, is_alone);
        }
        // In early-ack mode hosts do not wait for their pages, so a host's record gets none.
        let is_awaited = stream != Stream::Host || !self.answers_early;
        let mut pages = SmallVec::new();
        let open = frontier(part, stream);
        if is_awaited {
            pages.push(open.pending.clone());
        }
        let (extent, mut done) = (open.extent, room.min(value_len));
        let offset = if done == value_len {
            open.builder.push(header, value)
        } else {
            open.builder.push(header, &value.slice(0..done))
        };
        let number = self.number(extent, open.page());
        let address = self.layout.address(number, offset, header_len, value_len);
        if let Some(date) = header.expires {
            let first = &mut part.writer.tally.of(extent).expires_first;
            *first = Some(first.map_or(date, |first| first.min(date)));
        }
        if stream == Stream::Host && header.kind == Kind::Tombstone {
            let key = Key::new(header.key).expect("it is that of a host's command");
            part.shared.get().copies.begin_deleting(address, header.table, key);
        }
        while done < value_len {
            self.next_page(part, stream);
            let data = value.slice(done..value_len.min(done + self.layout.bare_room()));
            done += data.len();
            let open = frontier(part, stream);
            open.builder.continue_with(data);
            if is_awaited {
                pages.push(open.pending.clone());
            }
        }
        // No other record joins this page. The cleaner's pages are programmed together, so its page
        // waits for the next one.
        if is_alone && stream != Stream::Gc {
            self.next_page(part, stream);
        }
        Ok(Appended { address, extent, pages })
    }

    /// Fixes the number of the stream's open page, which is empty. `is_alone` says that a record
    /// has the page to itself. A shared host page must not delay earlier pages: in early-ack mode
    /// no later write would close them.
    fn place(&self, part: &mut Part<'_, '_>, stream: Stream, is_alone: bool) {
        let frontier = frontier(part, stream);
        let before = PageId { extent: frontier.extent, page: frontier.page() };
        let holds = stream != Stream::Host || is_alone;
        let may_wait = holds || !self.answers_early;
        let least = if may_wait { before.page } else { self.layout.aligned(before.page) };
        let page = self.place_page(PageId { page: least, ..before }, holds);
        frontier.place(page);
        self.expect_at(part, before, page);
    }

    /// Returns the number of an extent's next page: see [`media::OnDisk::place`].
    fn place_page(&self, from: PageId, holds: bool) -> u32 {
        self.media.as_disk().map_or(from.page, |disk| disk.place(from, holds))
    }

    /// Turns pages, and opens an extent, until the stream's open page has room for the record, or
    /// for the first part of a value longer than a page, and the extent for the rest. Returns the
    /// bytes of a value that fit the page.
    fn make_room(
        self: &Arc<Self>,
        part: &mut Part<'_, '_>,
        stream: Stream,
        kind: Kind,
        header_len: usize,
        value_len: u32,
    ) -> Result<u32, NoRoom> {
        let on_one_page = self.layout.fits_page(header_len, value_len);
        let least = if on_one_page { value_len } else { 1 };
        for _ in 0..5 {
            let Some(frontier) = part.writer.frontiers.of(stream) else {
                self.open_extent(part, stream, reserve(stream, kind))?;
                continue;
            };
            let room = frontier.builder.room(header_len).filter(|room| *room >= least);
            let Some(room) = room else {
                self.turn_page(part, stream);
                continue;
            };
            let more = || value_len.saturating_sub(room).div_ceil(self.layout.bare_room());
            let fits = if self.layout.frames.is_some() {
                self.has_units(frontier, header_len, value_len)
            } else {
                on_one_page || self.has_pages(frontier, more())
            };
            if fits {
                return Ok(room);
            }
            self.seal(part, stream);
        }
        panic!("an empty extent has room for the longest record");
    }

    /// Returns true when the open page, with a record that joins it, and then a summary fit the
    /// extent, where pages are frames.
    fn has_units(&self, frontier: &Frontier, header_len: usize, value_len: u32) -> bool {
        let page = if self.layout.is_alone(value_len) {
            self.layout.numbers(PROLOGUE_BYTES + header_len, value_len)
        } else {
            self.layout.shared_numbers()
        };
        let entry = SUMMARY_ENTRY_BYTES + self.layout.headers_max();
        let reserved = summary_numbers(self.layout, frontier.summary.bytes() + entry);
        let end = self.layout.aligned(self.layout.aligned(frontier.page()) + page);
        end + reserved <= self.shape.pages_per_extent
    }

    /// Returns true when the extent has `more` pages after the open one, and room for their
    /// summary. Where pages are frames, when that one may be of any size that records share.
    fn has_pages(&self, frontier: &Frontier, more: u32) -> bool {
        if self.layout.frames.is_some() {
            return self.has_units(frontier, 0, 0);
        }
        // The open page's headers, at most a page and its spare area, are not yet in the summary;
        // nor are those on the last of `more` pages, which other records join.
        let page = SUMMARY_ENTRY_BYTES + self.layout.headers_max();
        let open_pages = if more == 0 { 1 } else { 2 };
        let summary = frontier.summary.bytes() + open_pages * page;
        let reserved = summary_numbers(self.layout, summary);
        frontier.page() + more + reserved < self.shape.pages_per_extent
    }

    pub(crate) fn open_extent(
        &self,
        part: &mut Part<'_, '_>,
        stream: Stream,
        reserved: u32,
    ) -> Result<(), NoRoom> {
        let state = part.shared.get();
        let free = match stream {
            // Table pages use the extents kept for them.
            Stream::Index if state.space.kept() > 0 => u32::MAX,
            _ => self.free_extents(state),
        };
        if free <= reserved {
            return Err(NoRoom);
        }
        // What the writer appends to the extent comes after it was opened.
        part.writer.clock.merge(&mut state.sequence);
        let next = state.next_sequence();
        part.writer.clock = next;
        let epoch = match stream {
            Stream::Host | Stream::Index => next,
            Stream::Gc => state.copies.since(),
        };
        let label = Label { stream, epoch: epoch.0 };
        let extent = self.media.open(label).map_err(|_| NoRoom)?;
        state.extents.insert(extent, Extent::new(label));
        match stream {
            Stream::Host => state.cleaning.note_opened(),
            Stream::Gc | Stream::Index => state.cleaning.note_fewer(),
        }
        state.space.open(stream);
        self.owners.set(extent, part.writer.number);
        self.lives.begin(extent);
        self.windows.forget_extent(extent);
        let builder = PageBuilder::new(self.layout).with_crcs(stream != Stream::Gc);
        self.open_frontier(part, stream, PageId { extent, page: 0 }, builder, Summary::default());
        Ok(())
    }

    /// Opens the frontier of a stream at an empty page.
    pub(crate) fn open_frontier(
        &self,
        part: &mut Part<'_, '_>,
        stream: Stream,
        at: PageId,
        builder: PageBuilder,
        summary: Summary,
    ) {
        // All pages before the open one have landed, of a new extent none.
        self.settled.set(at.extent, at.page);
        let pending = self.expect_page(part, stream, at.extent, at.page);
        let place = (at.extent, at.page, self.shape.pages_per_extent);
        let frontier = Frontier::new(place, builder, pending, summary);
        let extent = part.shared.get().extents.get(at.extent);
        part.writer.frontiers.open(stream, frontier, extent);
    }

    fn expect_page(
        &self,
        part: &mut Part<'_, '_>,
        stream: Stream,
        extent: ExtentId,
        page: u32,
    ) -> Arc<Pending> {
        let pending = Arc::new(Pending::default());
        let (first, number) = (self.number(extent, 0), self.number(extent, page));
        assert!(!self.settled.has(PageId { extent, page }), "a page settles after it was filled");
        part.writer.unlanded.expect(stream, first, number, pending.clone());
        part.writer.tally.of(extent).in_flight += 1;
        pending
    }

    /// A page that was expected at `before` is now at number `page`.
    fn expect_at(&self, part: &mut Part<'_, '_>, before: PageId, page: u32) {
        if page != before.page {
            let number = self.number(before.extent, before.page);
            part.writer.unlanded.renumber(number, self.number(before.extent, page));
        }
    }

    /// Closes the stream's open page, starts its program, and opens the next one. Seals the extent
    /// when that leaves no room for a page and the summary.
    pub(crate) fn turn_page(self: &Arc<Self>, part: &mut Part<'_, '_>, stream: Stream) {
        self.next_page(part, stream);
        if !self.has_pages(frontier(part, stream), 0) {
            self.seal(part, stream);
        }
    }

    /// As [`Self::turn_page`], but never seals: all pages of a record are in one extent.
    fn next_page(self: &Arc<Self>, part: &mut Part<'_, '_>, stream: Stream) {
        let Writer { frontiers, unlanded, .. } = &mut *part.writer;
        let frontier = frontiers.of_mut(stream).expect("it has an open page");
        let (extent, page) = (frontier.extent, frontier.page());
        let numbers = frontier.builder.numbers();
        let content = self.closed(frontier, page, &mut unlanded.emptied);
        self.program(part, PageId { extent, page }, stream, numbers, content);
        let next = self.expect_page(part, stream, extent, page + numbers);
        self::frontier(part, stream).next(numbers, next);
    }

    /// Ends the stream's extent with its summary.
    pub(crate) fn seal(self: &Arc<Self>, part: &mut Part<'_, '_>, stream: Stream) {
        let mut frontier = part.writer.frontiers.close(stream);
        let extent = frontier.extent;
        let mut page = frontier.page();
        let mut pending = frontier.pending.clone();
        if !frontier.builder.is_empty() {
            let numbers = frontier.builder.numbers();
            let content = self.closed(&mut frontier, page, &mut part.writer.unlanded.emptied);
            self.program(part, PageId { extent, page }, stream, numbers, content);
            page += numbers;
            pending = self.expect_page(part, stream, extent, page);
        }
        let first = self.layout.aligned(page);
        let pages = frontier.summary.into_pages(self.layout, first);
        let last = pages.len().saturating_sub(1);
        let mut end = page;
        if pages.is_empty() {
            self.unexpect_page(part, extent, page);
        } else {
            self.expect_at(part, PageId { extent, page }, first);
            page = first;
        }
        for (number, content) in pages.into_iter().enumerate() {
            let at = PageId { extent, page };
            let placed = self.place_page(at, true);
            assert_eq!(placed, page, "a place that begins a block is to be had");
            let numbers = self.layout.numbers(content.spare().len(), content.data_bytes());
            self.program(part, at, stream, numbers, content);
            end = page + numbers;
            if number < last {
                page = end;
                pending = self.expect_page(part, stream, extent, page);
            }
        }
        self.count_written(std::mem::take(&mut part.writer.numbers_since));
        let summary = Some(first).filter(|first| *first < end);
        let (id, state) = (extent, part.shared.get());
        state.extents.get(id).seal(end, summary);
        if self.layout.frames.is_some() && summary.is_some() {
            state.sealing.begin();
            self.pins.add(id, PinOf::Reader);
            clock::spawn(self.clone().note_sealed(id, first, pending));
        }
    }

    /// Tells the medium that an extent is full, once the last page of its summary has landed. The
    /// caller has pinned it.
    async fn note_sealed(self: Arc<Self>, extent: ExtentId, summary: u32, last: Arc<Pending>) {
        let _pin = Pin::taken(&self, extent);
        if durable(&[last]).await.is_ok()
            && let Some(disk) = self.media.as_disk()
        {
            // If the medium loses the note, opening scans the extent and finds the same.
            let _ = disk.seal(extent, summary).await;
        }
        self.whole().sealing.end();
    }

    /// Waits until the medium knows all full extents as full.
    pub(crate) async fn all_sealed(&self) {
        let waits = self.whole().sealing.await_all();
        if waits {
            clock::park(Rank::Free, Stage::Batch).await;
        }
    }

    /// The page at `at` has not landed, and nothing more is appended to its extent. It is a hole,
    /// as it will be on opening: no host was told that its records were stored. In early-ack mode
    /// hosts were: then a listing keeps those records, and cleaning reports them as lost.
    pub(crate) fn give_up(self: &Arc<Self>, state: &mut Whole<'_>, at: PageId, stream: Stream) {
        let open = state.owner(at.extent).frontiers.of(stream);
        let is_open = open.is_some_and(|frontier| frontier.extent == at.extent);
        let summary = is_open.then(|| self.close_extent(&mut state.part_of(at.extent), stream));
        self.has_given_up.store(true, Ordering::Relaxed);
        let was_told = stream == Stream::Host && self.answers_early;
        let extent = state.extents.get(at.extent);
        if !was_told || extent.summary().is_some_and(|first| at.page >= first) {
            extent.add_hole(at.page);
        } else if extent.listing.is_none() {
            let summary = summary.or_else(|| self.unlanded_summary(state, at.extent));
            let records = summary.and_then(|summary| self.listed(at.extent, &summary));
            let listing = records.map(|records| Listing { records, lost: Vec::new() });
            let extent = state.extents.get(at.extent);
            extent.listing = listing.map(Arc::new);
            extent.has_lost = true;
        }
    }

    /// Closes the open page, which is number `page` of its extent, and returns it.
    fn closed(&self, frontier: &mut Frontier, page: u32, emptied: &mut Vec<Page>) -> Page {
        let gathered = |page| match self.media.as_memory() {
            Some(memory) => memory.gathered(page),
            None => page,
        };
        frontier.builder.close(page, &mut frontier.summary, emptied, gathered)
    }

    /// Ends the stream's extent without a summary, and returns the summary's bytes.
    fn close_extent(self: &Arc<Self>, part: &mut Part<'_, '_>, stream: Stream) -> Vec<u8> {
        let mut frontier = part.writer.frontiers.close(stream);
        let at = PageId { extent: frontier.extent, page: frontier.page() };
        let mut end = at.page;
        if frontier.builder.is_empty() {
            self.unexpect_page(part, at.extent, at.page);
        } else {
            let numbers = frontier.builder.numbers();
            let content = self.closed(&mut frontier, at.page, &mut part.writer.unlanded.emptied);
            self.program(part, at, stream, numbers, content);
            end += numbers;
        }
        part.shared.get().extents.get(at.extent).seal(end, None);
        frontier.summary.to_bytes()
    }

    /// Returns the summary of an extent while no page of the summary has landed.
    fn unlanded_summary(&self, state: &mut Whole<'_>, extent: ExtentId) -> Option<Vec<u8>> {
        let of = state.extents.get(extent);
        let (first, end) = (of.summary()?, of.pages());
        let mut summary = Vec::new();
        for page in first..end {
            let unlanded = &state.owner(extent).unlanded;
            let page = unlanded.get(self.number(extent, page))?.page.as_ref()?;
            PageView::new(self.layout, page)?.read_summary(&mut summary)?;
        }
        Some(summary)
    }

    pub(crate) fn unexpect_page(&self, part: &mut Part<'_, '_>, extent: ExtentId, page: u32) {
        part.writer.unlanded.remove(self.number(extent, page));
        part.writer.tally.of(extent).in_flight -= 1;
    }

    /// Starts the program of a closed page, which takes so many `numbers`.
    fn program(
        self: &Arc<Self>,
        part: &mut Part<'_, '_>,
        at: PageId,
        stream: Stream,
        numbers: u32,
        page: Page,
    ) {
        part.writer.unlanded.close(self.number(at.extent, at.page), page.clone());
        if stream == Stream::Host {
            part.writer.buffer.begin_page();
        }
        let is_within = at.page + numbers <= self.shape.pages_per_extent;
        assert!(is_within, "an extent keeps room for its summary");
        if stream != Stream::Index {
            part.writer.numbers_since += u64::from(numbers);
        }
        let Some(disk) = self.media.as_disk() else {
            part.writer.unlanded.push_program(at, stream);
            clock::spawn(self.clone().program_next(part.writer.number));
            return;
        };
        if let Err(error) = disk.queue(at, page, class_of(stream)) {
            part.writer.unlanded.refuse(self.number(at.extent, at.page), error);
            let log = self.clone();
            clock::spawn(async move { log.land_refused(at.extent) });
        }
    }

    /// Programs the page of a writer that has waited longest, which need not be the page that this
    /// task was started for. Tasks of several reactors begin in any order, and pages of an extent
    /// are appended in the order of their numbers.
    async fn program_next(self: Arc<Self>, writer: usize) {
        clock::name_task("page program");
        let Program { at, stream, page, pending } =
            self.writing_of(writer).writer().unlanded.take_program();
        pending.begin();
        let result = self.media.append(at, page, class_of(stream)).await;
        self.landed(at, result);
        pending.land(clock::stages(), result);
    }
}

fn frontier<'a>(part: &'a mut Part<'_, '_>, stream: Stream) -> &'a mut Frontier {
    part.writer.frontiers.of_mut(stream).expect("room was made in the stream's extent")
}

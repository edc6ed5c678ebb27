//! The write side of the log: records to pages, pages to extents, extents to their end.

use crate::extent::{Extent, class_of};
use crate::format::address::Address;
use crate::format::layout::PROLOGUE_BYTES;
use crate::format::layout::SUMMARY_ENTRY_BYTES;
use crate::format::page_builder::PageBuilder;
use crate::format::page_view::PageView;
use crate::format::record::NewRecord;
use crate::format::record::{Header, Kind, header_len};
use crate::format::summary::{Summary, summary_numbers};
use crate::log::{Appended, Frontier, Log, NoRoom, Pin, Program, State, reserve};
use crate::recover::listing::Listing;
use crate::write::pending::{Pending, durable};
use base::{Buf, Key};
use clock::{Rank, Stage};
use media::{ExtentId, Label, Page, PageId, Stream};
use smallvec::SmallVec;
use std::sync::Arc;

impl Log {
    /// Appends a record. The caller points the index to it, and notes its header, before its next
    /// await.
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
        let sequence = record.sequence.unwrap_or_else(|| state.next_sequence());
        let header = record.header(sequence);
        if on_one_page {
            let mut pages = SmallVec::new();
            self.note_page(state, stream, &mut pages);
            let address = self.push(state, stream, header, record.value);
            // No other record joins this page. The cleaner's pages are programmed together, so its
            // page waits for the next one.
            if self.layout.is_alone(record.value.len()) && stream != Stream::Gc {
                self.next_page(state, stream);
            }
            return Ok(Appended { address, sequence, pages });
        }
        Ok(self.append_long(state, stream, header, record.value))
    }

    /// Fixes the number of the stream's open page, which is empty. `is_alone` says that a record
    /// has the page to itself. A shared host page must not delay earlier pages: in early-ack mode
    /// no later write would close them.
    fn place(&self, state: &mut State, stream: Stream, is_alone: bool) {
        let frontier = frontier(state, stream);
        let before = PageId { extent: frontier.extent, page: frontier.page() };
        let holds = stream != Stream::Host || is_alone;
        let may_wait = holds || !self.answers_early;
        let least = if may_wait { before.page } else { self.layout.aligned(before.page) };
        let page = self.place_page(PageId { page: least, ..before }, holds);
        frontier.place(page);
        self.expect_at(state, before, page);
    }

    /// Returns the number of an extent's next page: see [`media::OnDisk::place`].
    fn place_page(&self, from: PageId, holds: bool) -> u32 {
        self.media.as_disk().map_or(from.page, |disk| disk.place(from, holds))
    }

    /// Adds a record, or its first part, to the stream's open page.
    fn push(&self, state: &mut State, stream: Stream, header: Header<'_>, part: &Buf) -> Address {
        if frontier(state, stream).builder.is_empty() {
            self.place(state, stream, self.layout.is_alone(part.len()));
        }
        let frontier = frontier(state, stream);
        let offset = frontier.builder.push(header, part);
        let number = self.number(frontier.extent, frontier.page());
        let address = self.layout.address(number, offset, header.len(), header.value_len);
        if stream == Stream::Host && header.kind == Kind::Tombstone {
            let key = Key::new(header.key).expect("it is that of a host's command");
            state.copies.begin_deleting(address, header.table, key);
        }
        address
    }

    /// Adds the stream's open page to the pages of a record. In early-ack mode hosts do not wait
    /// for their pages, so a host's record gets none.
    fn note_page(
        &self,
        state: &mut State,
        stream: Stream,
        pages: &mut SmallVec<[Arc<Pending>; 1]>,
    ) {
        if stream != Stream::Host || !self.answers_early {
            pages.push(frontier(state, stream).pending.clone());
        }
    }

    /// Fills the open page with the first part of a value, and the next pages with the rest.
    fn append_long(
        self: &Arc<Self>,
        state: &mut State,
        stream: Stream,
        header: Header<'_>,
        value: &Buf,
    ) -> Appended {
        let room = frontier(state, stream).builder.room(header.len());
        let mut done = room.expect("room was made for the header").min(value.len());
        let mut pages = SmallVec::new();
        self.note_page(state, stream, &mut pages);
        let address = self.push(state, stream, header, &value.slice(0..done));
        while done < value.len() {
            self.next_page(state, stream);
            let part = value.slice(done..value.len().min(done + self.layout.bare_room()));
            done += part.len();
            frontier(state, stream).builder.continue_with(part);
            self.note_page(state, stream, &mut pages);
        }
        Appended { address, sequence: header.sequence, pages }
    }

    /// Turns pages, and opens an extent, until the stream's open page has room for the record.
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
            let Some(frontier) = state.frontiers.of(stream) else {
                self.open_extent(state, stream, reserved)?;
                continue;
            };
            let room = frontier.builder.room(header_len);
            let fits = match room {
                Some(room) if self.layout.frames.is_some() && value_len <= room => {
                    if !self.has_units(frontier, header_len, value_len) {
                        self.seal(state, stream);
                        continue;
                    }
                    true
                }
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
        state: &mut State,
        stream: Stream,
        reserved: u32,
    ) -> Result<(), NoRoom> {
        let free = match stream {
            // Table pages use the extents kept for them.
            Stream::Index if state.space.kept() > 0 => u32::MAX,
            _ => self.free_extents(state),
        };
        if free <= reserved {
            return Err(NoRoom);
        }
        let next = state.next_sequence();
        let epoch = match stream {
            Stream::Host | Stream::Index => next,
            Stream::Gc => state.copies.since(),
        };
        let label = Label { stream, epoch: epoch.0 };
        let extent = self.media.open(label).map_err(|_| NoRoom)?;
        state.extents.insert(extent, Extent::new(label));
        state.cleaning.note_fewer();
        self.lives.begin(extent);
        self.windows.forget_extent(extent);
        state.space.open(stream);
        let builder = PageBuilder::new(self.layout).with_crcs(stream != Stream::Gc);
        self.open_frontier(state, stream, PageId { extent, page: 0 }, builder, Summary::default());
        Ok(())
    }

    /// Opens the frontier of a stream at an empty page.
    pub(crate) fn open_frontier(
        &self,
        state: &mut State,
        stream: Stream,
        at: PageId,
        builder: PageBuilder,
        summary: Summary,
    ) {
        // All pages before the open one have landed, of a new extent none.
        self.settled.set(at.extent, at.page);
        let pending = self.expect_page(state, at.extent, at.page);
        let place = (at.extent, at.page, self.shape.pages_per_extent);
        let frontier = Frontier::new(place, builder, pending, summary);
        state.frontiers.open(stream, frontier, state.extents.get(at.extent));
    }

    fn expect_page(&self, state: &mut State, extent: ExtentId, page: u32) -> Arc<Pending> {
        let pending = Arc::new(Pending::default());
        let (first, number) = (self.number(extent, 0), self.number(extent, page));
        assert!(!self.settled.has(PageId { extent, page }), "a page settles after it was filled");
        state.unlanded.expect(first, number, pending.clone());
        state.extents.get(extent).expect_page(page);
        pending
    }

    /// A page that was expected at `before` is now at number `page`.
    fn expect_at(&self, state: &mut State, before: PageId, page: u32) {
        if page != before.page {
            state.extents.get(before.extent).move_page(before.page, page);
            let number = self.number(before.extent, before.page);
            state.unlanded.renumber(number, self.number(before.extent, page));
        }
    }

    /// Closes the stream's open page, starts its program, and opens the next one. Seals the extent
    /// when that leaves no room for a page and the summary.
    pub(crate) fn turn_page(self: &Arc<Self>, state: &mut State, stream: Stream) {
        self.next_page(state, stream);
        if !self.has_pages(frontier(state, stream), 0) {
            self.seal(state, stream);
        }
    }

    /// As [`Self::turn_page`], but never seals: all pages of a record are in one extent.
    fn next_page(self: &Arc<Self>, state: &mut State, stream: Stream) {
        let frontier = frontier(state, stream);
        let (extent, page) = (frontier.extent, frontier.page());
        let numbers = frontier.builder.numbers();
        let content = self.closed(frontier, page);
        self.program(state, PageId { extent, page }, stream, numbers, content);
        let next = self.expect_page(state, extent, page + numbers);
        self::frontier(state, stream).next(numbers, next);
    }

    /// Ends the stream's extent with its summary.
    pub(crate) fn seal(self: &Arc<Self>, state: &mut State, stream: Stream) {
        let mut frontier = state.frontiers.close(stream);
        let extent = frontier.extent;
        let mut page = frontier.page();
        let mut pending = frontier.pending.clone();
        if !frontier.builder.is_empty() {
            let numbers = frontier.builder.numbers();
            let content = self.closed(&mut frontier, page);
            self.program(state, PageId { extent, page }, stream, numbers, content);
            page += numbers;
            pending = self.expect_page(state, extent, page);
        }
        let first = self.layout.aligned(page);
        let pages = frontier.summary.into_pages(self.layout, first);
        let last = pages.len().saturating_sub(1);
        if pages.is_empty() {
            self.unexpect_page(state, extent, page);
        } else {
            self.expect_at(state, PageId { extent, page }, first);
            page = first;
        }
        for (number, content) in pages.into_iter().enumerate() {
            let at = PageId { extent, page };
            let placed = self.place_page(at, true);
            assert_eq!(placed, page, "a place that begins a block is to be had");
            let numbers = self.layout.numbers(content.spare().len(), content.data_bytes());
            self.program(state, at, stream, numbers, content);
            if number < last {
                page += numbers;
                pending = self.expect_page(state, extent, page);
            }
        }
        let id = extent;
        let extent = state.extents.get(id);
        extent.seal(Some(first).filter(|first| *first < extent.pages()));
        if self.layout.frames.is_some() && extent.summary().is_some() {
            extent.pin();
            state.sealing.begin();
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
        self.state().sealing.end();
    }

    /// Waits until the medium knows all full extents as full.
    pub(crate) async fn all_sealed(&self) {
        let waits = self.state().sealing.await_all();
        if waits {
            clock::park(Rank::Free, Stage::Batch).await;
        }
    }

    /// The page at `at` has not landed, and nothing more is appended to its extent. It is a hole,
    /// as it will be on opening: no host was told that its records were stored. In early-ack mode
    /// hosts were: then a listing keeps those records, and cleaning reports them as lost.
    pub(crate) fn give_up(self: &Arc<Self>, state: &mut State, at: PageId, stream: Stream) {
        let open = state.frontiers.of(stream);
        let is_open = open.is_some_and(|frontier| frontier.extent == at.extent);
        let summary = if is_open { Some(self.close_extent(state, stream)) } else { None };
        let was_told = stream == Stream::Host && self.answers_early;
        let extent = state.extents.get(at.extent);
        if !was_told || extent.summary().is_some_and(|first| at.page >= first) {
            extent.add_hole(at.page);
        } else if extent.listing.is_none() {
            let summary = summary.or_else(|| self.unlanded_summary(state, at.extent));
            let records = summary.and_then(|summary| self.listed(at.extent, &summary));
            let listing = records.map(|records| Listing { records, lost: Vec::new() });
            state.extents.get(at.extent).listing = listing.map(Arc::new);
            state.extents.get(at.extent).has_lost = true;
        }
    }

    /// Closes the open page, which is number `page` of its extent, and returns it.
    fn closed(&self, frontier: &mut Frontier, page: u32) -> Page {
        let gathered = |page| match self.media.as_memory() {
            Some(memory) => memory.gathered(page),
            None => page,
        };
        frontier.builder.close(page, &mut frontier.summary, gathered)
    }

    /// Ends the stream's extent without a summary, and returns the summary's bytes.
    fn close_extent(self: &Arc<Self>, state: &mut State, stream: Stream) -> Vec<u8> {
        let mut frontier = state.frontiers.close(stream);
        let at = PageId { extent: frontier.extent, page: frontier.page() };
        if frontier.builder.is_empty() {
            self.unexpect_page(state, at.extent, at.page);
        } else {
            let numbers = frontier.builder.numbers();
            let content = self.closed(&mut frontier, at.page);
            self.program(state, at, stream, numbers, content);
        }
        state.extents.get(at.extent).seal(None);
        frontier.summary.to_bytes()
    }

    /// Returns the summary of an extent while no page of the summary has landed.
    fn unlanded_summary(&self, state: &mut State, extent: ExtentId) -> Option<Vec<u8>> {
        let of = state.extents.get(extent);
        let (first, end) = (of.summary()?, of.pages());
        let mut summary = Vec::new();
        for page in first..end {
            let page = state.unlanded.get(self.number(extent, page))?.page.as_ref()?;
            PageView::new(self.layout, page)?.read_summary(&mut summary)?;
        }
        Some(summary)
    }

    pub(crate) fn unexpect_page(&self, state: &mut State, extent: ExtentId, page: u32) {
        state.unlanded.remove(self.number(extent, page));
        state.extents.get(extent).unexpect_page(page);
    }

    /// Starts the program of a closed page, which takes so many `numbers`.
    fn program(
        self: &Arc<Self>,
        state: &mut State,
        at: PageId,
        stream: Stream,
        numbers: u32,
        page: Page,
    ) {
        state.unlanded.close(self.number(at.extent, at.page), page.clone());
        if stream == Stream::Host {
            state.buffer.begin_page();
        }
        let extent = state.extents.get(at.extent);
        extent.program_page(at.page + numbers, self.shape.pages_per_extent);
        if stream != Stream::Index {
            state.unlanded.numbers_since += u64::from(numbers);
        }
        let Some(disk) = self.media.as_disk() else {
            state.unlanded.push_program(at);
            clock::spawn(self.clone().program_next());
            return;
        };
        if let Err(error) = disk.queue(at, page, class_of(stream)) {
            state.unlanded.refuse(self.number(at.extent, at.page), error);
            let log = self.clone();
            clock::spawn(async move { log.land_refused(at.extent) });
        }
    }

    /// Programs the page that has waited longest, which need not be the page that this task was
    /// started for. Tasks of several reactors begin in any order, and pages of an extent are
    /// appended in the order of their numbers.
    async fn program_next(self: Arc<Self>) {
        clock::name_task("page program");
        let (Program { at, page, pending }, stream) = {
            let state = &mut *self.state();
            let program = state.unlanded.take_program();
            let stream = state.extents.get(program.at.extent).label.stream;
            (program, stream)
        };
        pending.begin();
        let result = self.media.append(at, page, class_of(stream)).await;
        self.landed(at, result);
        pending.land(clock::stages(), result);
    }
}

fn frontier(state: &mut State, stream: Stream) -> &mut Frontier {
    state.frontiers.of_mut(stream).expect("room was made in the stream's extent")
}

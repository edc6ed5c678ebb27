//! The log: records are appended to pages, pages to extents, extents are cleaned and reset.

use crate::address::{Address, PageNumber};
use crate::extent::{Extent, Extents, Live, class_of};
use crate::key_space::TableId;
use crate::layout::{
    Layout, PageBuilder, PageView, SUMMARY_ENTRY_BYTES, SUMMARY_HEAD_BYTES, summary_page_count,
    summary_pages,
};
use crate::pending::Pending;
use crate::record::{Header, Kind, Sequence, header_len};
use crate::store::Ack;
use base::{Buf, Key};
use clock::{Rank, Stage, TaskId};
use hashbrown::HashMap;
use media::{ExtentId, Label, Media, Page, PageId, Shape, Stream};
use smallvec::{SmallVec, smallvec};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type Hasher = foldhash::fast::FixedState;

/// See the module's documentation.
pub(crate) struct Log {
    pub(crate) media: Arc<dyn Media>,
    pub(crate) shape: Shape,
    pub(crate) layout: Layout,
    state: Mutex<State>,
}

/// What changes in the log. Never locked over an await.
pub(crate) struct State {
    pub(crate) extents: Extents,
    frontiers: [Option<Frontier>; 2],
    pending: HashMap<PageNumber, Arc<Pending>, Hasher>,
    pub(crate) sequence: Sequence,
    cleaning_since: Sequence,
    /// Live values of all tables.
    pub(crate) values: Live,
    /// Tombstones that older versions may still need.
    pub(crate) tombstones: Live,
    /// Stores that have been accepted and are about to join a page.
    joining: u32,
    /// Pages of hosts that are being programmed, and who waits for one to land.
    host_pages_in_flight: u32,
    buffer_waiters: Vec<TaskId>,
    /// Pages that were programmed with room left, because nobody was about to join them.
    pub(crate) padded_pages: u64,
}

/// Where a stream goes on.
struct Frontier {
    extent: ExtentId,
    page: u32,
    builder: PageBuilder,
    pending: Arc<Pending>,
    summary: Vec<u8>,
}

/// A record to append.
#[derive(Clone, Copy)]
pub(crate) struct NewRecord<'a> {
    /// `None` takes the next number; a copy keeps its own.
    pub(crate) sequence: Option<Sequence>,
    pub(crate) kind: Kind,
    pub(crate) table: TableId,
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a Buf,
    pub(crate) value_crc: u32,
}

/// Where a record went, and the pages that must land before it is durable.
#[derive(Debug)]
pub(crate) struct Appended {
    pub(crate) address: Address,
    pub(crate) pages: SmallVec<[Arc<Pending>; 1]>,
}

/// The stream would need an extent that is kept for garbage collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoRoom;

/// Extents that only garbage collection may take. Cleaning a victim moves at most an extent's worth
/// of records, whose pages pack at worst into one extent beside the one that is open, and the one
/// more holds the summaries.
pub(crate) const RESERVED_EXTENTS: u32 = 2;

/// Extents beside those that the capacity fills: the reserve, the open extents of both streams, and one
/// for hosts to write to while the cleaner works.
pub const SPARE_EXTENTS_MIN: u32 = RESERVED_EXTENTS + 3;

/// What a store would have to wait for before it can be appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shortage {
    /// An extent.
    Extent,
    /// Room in the protected buffer.
    Buffer,
}

/// A record that has not landed yet.
pub(crate) struct Unlanded {
    pub(crate) pages: Arc<Pending>,
    pub(crate) header: OwnedHeader,
    /// The value, or of a long one the part on the first page.
    pub(crate) part: Buf,
}

/// A header with a key of its own.
#[derive(Clone, Debug)]
pub(crate) struct OwnedHeader {
    pub(crate) sequence: Sequence,
    pub(crate) kind: Kind,
    pub(crate) table: TableId,
    pub(crate) value_len: u32,
    pub(crate) value_crc: u32,
    pub(crate) key: Key,
}

impl OwnedHeader {
    pub(crate) fn new(header: &Header<'_>) -> Self {
        Self {
            sequence: header.sequence,
            kind: header.kind,
            table: header.table,
            value_len: header.value_len,
            value_crc: header.value_crc,
            key: Key::new(header.key).expect("a stored key has 1 to 255 bytes"),
        }
    }
}

impl State {
    /// A full buffer, if stores are answered from one. What is open counts as a page.
    pub(crate) fn buffer_shortage(
        &self,
        ack: Ack,
        page_bytes: u32,
        value_len: u32,
    ) -> Option<Shortage> {
        let Ack::Buffer { bytes } = ack else { return None };
        let pages = u64::from(self.host_pages_in_flight) + 1;
        let used = pages * u64::from(page_bytes) + u64::from(value_len);
        (used > bytes && self.host_pages_in_flight > 0).then_some(Shortage::Buffer)
    }

    /// A live value of `bytes` lies in `extent` from here on.
    pub(crate) fn count_value(&mut self, extent: ExtentId, table: TableId, bytes: u64) {
        self.extents.get(extent).values_of(table).add(bytes);
        self.values.add(bytes);
    }

    /// A value of `bytes` in `extent` is dead from here on.
    pub(crate) fn uncount_value(&mut self, extent: ExtentId, table: TableId, bytes: u64) {
        self.extents.get(extent).values_of(table).remove(bytes);
        self.values.remove(bytes);
    }

    /// A tombstone of `bytes` lies in `extent` from here on.
    pub(crate) fn count_tombstone(&mut self, extent: ExtentId, bytes: u64) {
        self.extents.get(extent).tombstones.add(bytes);
        self.tombstones.add(bytes);
    }

    /// All values of `table` are dead from here on.
    pub(crate) fn uncount_table(&mut self, table: TableId) {
        for extent in self.extents.iter_mut() {
            let dead = extent.drop_table(table);
            self.values.remove_all(dead);
        }
    }

    /// Takes `victim` for cleaning. Extents that the cleaner opens from here on count as opened now: what
    /// it copies was live now, so a tombstone written later may stand for a copy.
    pub(crate) fn begin_cleaning(&mut self, victim: ExtentId) {
        self.extents.get(victim).victim = true;
        self.sequence.0 += 1;
        self.cleaning_since = self.sequence;
    }

    /// Takes an extent that was cleaned out of the log.
    pub(crate) fn forget(&mut self, extent: ExtentId) {
        let extent = self.extents.remove(extent);
        assert!(extent.pins == 0, "an extent is reset when nobody reads it");
        assert!(extent.values.iter().all(|(_, live)| live.records == 0), "nor holds live values");
        self.tombstones.remove_all(extent.tombstones);
    }
}

/// A reader at a record. The record's extent is not reset before this drops.
pub(crate) struct Visit<'a> {
    pub(crate) address: Address,
    /// The record, if its page had not landed when the visit began.
    pub(crate) unlanded: Option<Unlanded>,
    _pin: Pin<'a>,
}

struct Pin<'a> {
    log: &'a Log,
    extent: ExtentId,
}

impl Drop for Pin<'_> {
    fn drop(&mut self) {
        let mut state = self.log.state();
        let extent = state.extents.get(self.extent);
        extent.pins -= 1;
        if extent.pins == 0
            && let Some(cleaner) = extent.last_reader.take()
        {
            clock::wake(cleaner);
        }
    }
}

impl Log {
    /// A log on a medium whose extents are as given; numbering goes on after `sequence`.
    pub(crate) fn new(media: Arc<dyn Media>, extents: Extents, sequence: Sequence) -> Self {
        let shape = media.shape();
        let state = State {
            extents,
            frontiers: [None, None],
            pending: HashMap::with_hasher(Hasher::with_seed(0)),
            sequence,
            cleaning_since: sequence,
            values: Live::default(),
            tombstones: Live::default(),
            joining: 0,
            host_pages_in_flight: 0,
            buffer_waiters: Vec::new(),
            padded_pages: 0,
        };
        Self { media, shape, layout: Layout::new(&shape), state: Mutex::new(state) }
    }

    #[inline]
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    pub(crate) fn page_id(&self, address: Address) -> PageId {
        address.page().id(self.shape.pages_per_extent)
    }

    #[inline]
    fn number(&self, extent: ExtentId, page: u32) -> PageNumber {
        PageNumber::new(PageId { extent, page }, self.shape.pages_per_extent)
    }

    /// Begins to read the record at `address`, which the index has just named.
    #[inline]
    pub(crate) fn visit(&self, address: Address) -> Visit<'_> {
        let extent = self.page_id(address).extent;
        let mut state = self.state();
        state.extents.get(extent).pins += 1;
        let unlanded = self.unlanded(&state, address);
        Visit { address, unlanded, _pin: Pin { log: self, extent } }
    }

    #[inline]
    fn unlanded(&self, state: &State, address: Address) -> Option<Unlanded> {
        let pages = state.pending.get(&address.page())?;
        if let Some(page) = pages.page() {
            let view = PageView::new(self.layout, page)?;
            let header = view.header(address.offset())?;
            let part = view.part(&header, self.layout)?;
            return Some(Unlanded {
                pages: pages.clone(),
                header: OwnedHeader::new(&header),
                part,
            });
        }
        let filling = state.frontiers.iter().flatten().find(|f| Arc::ptr_eq(&f.pending, pages));
        let (header, part) = filling?.builder.record(address.offset())?;
        Some(Unlanded { pages: pages.clone(), header: OwnedHeader::new(&header), part })
    }

    /// The part of a long value that begins page `number`, if that page has not landed yet.
    pub(crate) fn unlanded_continuation(&self, number: PageNumber) -> Option<(Arc<Pending>, Buf)> {
        let state = self.state();
        let pages = state.pending.get(&number)?;
        let part = match pages.page() {
            Some(page) => PageView::new(self.layout, page)?.continuation()?,
            None => {
                let mut frontiers = state.frontiers.iter().flatten();
                let filling = frontiers.find(|f| Arc::ptr_eq(&f.pending, pages))?;
                filling.builder.continuation()?
            }
        };
        Some((pages.clone(), part))
    }

    /// What keeps a host's record with a value of `value_len` bytes from being appended, if anything.
    pub(crate) fn shortage(&self, ack: Ack, value_len: u32) -> Option<Shortage> {
        let state = self.state();
        if state.frontiers[Stream::Host as usize].is_none()
            && self.media.free_extents() <= RESERVED_EXTENTS
        {
            return Some(Shortage::Extent);
        }
        state.buffer_shortage(ack, self.shape.page_bytes, value_len)
    }

    /// Waits until a page of a host has landed.
    pub(crate) async fn landing(&self) {
        self.state().buffer_waiters.push(clock::current());
        clock::park(Rank::Credit, Stage::Queue).await;
    }

    /// Announces a store that is about to join a page.
    pub(crate) fn announce(&self) {
        self.state().joining += 1;
    }

    /// One announced store has joined, or never will. The last one out closes the page for those that
    /// wait in it.
    pub(crate) fn retract(self: &Arc<Self>, pads: bool) {
        let mut state = self.state();
        state.joining -= 1;
        if state.joining == 0 && pads {
            self.pad(&mut state, Stream::Host);
        }
    }

    /// Programs what a stream's open page holds.
    pub(crate) fn pad(self: &Arc<Self>, state: &mut State, stream: Stream) {
        let Some(frontier) = &state.frontiers[stream as usize] else { return };
        if !frontier.builder.is_empty() {
            state.padded_pages += 1;
            self.turn_page(state, stream);
        }
    }

    /// Programs all open pages, and returns every page that has not landed.
    pub(crate) fn close_all(self: &Arc<Self>) -> Vec<Arc<Pending>> {
        let mut state = self.state();
        self.pad(&mut state, Stream::Host);
        self.pad(&mut state, Stream::Gc);
        let mut pages: Vec<_> = state.pending.iter().collect();
        pages.sort_unstable_by_key(|(number, _)| **number);
        pages.into_iter().filter(|(_, p)| p.page().is_some()).map(|(_, p)| p.clone()).collect()
    }

    /// Appends a record. The caller has it indexed before it awaits anything.
    pub(crate) fn append(
        self: &Arc<Self>,
        state: &mut State,
        stream: Stream,
        record: &NewRecord<'_>,
    ) -> Result<Appended, NoRoom> {
        let header_len = header_len(record.key.len());
        let on_one_page = self.layout.fits_page(record.key.len(), record.value.len());
        self.make_room(state, stream, header_len, record.value.len(), on_one_page)?;
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
        let number = self.number(frontier.extent, frontier.page);
        (Address::new(number, offset), frontier.pending.clone())
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
            self.turn_page(state, stream);
            let part = value.slice(done..value.len().min(done + self.layout.bare_room()));
            done += part.len();
            let frontier = frontier(state, stream);
            frontier.builder = PageBuilder::continuing(self.layout, part);
            pages.push(frontier.pending.clone());
        }
        Appended { address, pages }
    }

    /// Turns pages, and opens an extent, until the stream's open page takes the record.
    fn make_room(
        self: &Arc<Self>,
        state: &mut State,
        stream: Stream,
        header_len: usize,
        value_len: u32,
        on_one_page: bool,
    ) -> Result<(), NoRoom> {
        for _ in 0..5 {
            let Some(frontier) = &state.frontiers[stream as usize] else {
                self.open_extent(state, stream)?;
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
        // The open page's headers, at most a page and its spare area, are not yet in the summary.
        let page = SUMMARY_ENTRY_BYTES + (self.shape.page_bytes + self.shape.spare_bytes) as usize;
        let summary = frontier.summary.len() + 2 * page;
        let reserved = summary_page_count(self.layout, summary);
        frontier.page + more + reserved < self.shape.pages_per_extent
    }

    fn open_extent(&self, state: &mut State, stream: Stream) -> Result<(), NoRoom> {
        if stream == Stream::Host && self.media.free_extents() <= RESERVED_EXTENTS {
            return Err(NoRoom);
        }
        state.sequence.0 += 1;
        let epoch = match stream {
            Stream::Host => state.sequence,
            Stream::Gc => state.cleaning_since,
        };
        let label = Label { stream, epoch: epoch.0 };
        let extent = self.media.open(label).map_err(|_| NoRoom)?;
        state.extents.insert(extent, Extent::new(label));
        let builder = PageBuilder::new(self.layout);
        state.frontiers[stream as usize] = Some(Frontier {
            extent,
            page: 0,
            builder,
            pending: self.expect_page(state, extent, 0),
            summary: vec![0; SUMMARY_HEAD_BYTES],
        });
        Ok(())
    }

    fn expect_page(&self, state: &mut State, extent: ExtentId, page: u32) -> Arc<Pending> {
        let pending = Arc::new(Pending::default());
        state.pending.insert(self.number(extent, page), pending.clone());
        let extent = state.extents.get(extent);
        extent.pages = page + 1;
        extent.in_flight += 1;
        pending
    }

    /// Closes the stream's open page, starts its program, and opens the next one. Seals the extent
    /// when that leaves no room for a page and the summary.
    fn turn_page(self: &Arc<Self>, state: &mut State, stream: Stream) {
        let frontier = frontier(state, stream);
        let builder = std::mem::replace(&mut frontier.builder, PageBuilder::new(self.layout));
        builder.summarize(frontier.page, &mut frontier.summary);
        let (extent, page, pending) = (frontier.extent, frontier.page, frontier.pending.clone());
        self.program(state, PageId { extent, page }, stream, pending, builder.close());
        let next = self.expect_page(state, extent, page + 1);
        let frontier = state.frontiers[stream as usize].as_mut().expect("it was there above");
        frontier.page += 1;
        frontier.pending = next;
        if !self.has_pages(frontier, 0) {
            self.seal(state, stream);
        }
    }

    /// Ends the stream's extent with its summary.
    fn seal(self: &Arc<Self>, state: &mut State, stream: Stream) {
        let mut frontier = state.frontiers[stream as usize].take().expect("an open extent");
        let extent = frontier.extent;
        let mut page = frontier.page;
        let mut pending = frontier.pending;
        if !frontier.builder.is_empty() {
            frontier.builder.summarize(page, &mut frontier.summary);
            let content = frontier.builder.close();
            self.program(state, PageId { extent, page }, stream, pending, content);
            page += 1;
            pending = self.expect_page(state, extent, page);
        }
        let first = page;
        let pages = summary_pages(self.layout, &mut frontier.summary);
        let last = pages.len().saturating_sub(1);
        if pages.is_empty() {
            self.unexpect_page(state, extent, page);
        }
        for (number, content) in pages.into_iter().enumerate() {
            self.program(state, PageId { extent, page }, stream, pending.clone(), content);
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

    fn unexpect_page(&self, state: &mut State, extent: ExtentId, page: u32) {
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
        let page = Arc::new(page);
        pending.close(page.clone());
        state.host_pages_in_flight += u32::from(stream == Stream::Host);
        let log = self.clone();
        clock::spawn(async move {
            let result = log.media.append(at, page, class_of(stream)).await;
            log.landed(at, stream);
            pending.land(clock::stages(), result);
        });
    }

    fn landed(&self, at: PageId, stream: Stream) {
        let mut state = self.state();
        state.pending.remove(&self.number(at.extent, at.page));
        state.extents.get(at.extent).in_flight -= 1;
        if stream == Stream::Host {
            state.host_pages_in_flight -= 1;
            state.buffer_waiters.drain(..).for_each(clock::wake);
        }
    }
}

fn frontier(state: &mut State, stream: Stream) -> &mut Frontier {
    state.frontiers[stream as usize].as_mut().expect("room was made in the stream's extent")
}

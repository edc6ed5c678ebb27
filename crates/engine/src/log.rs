//! The log: what it knows of its extents and pages, and how its records are visited. `append`
//! writes it, `clean` takes it back.

use crate::address::{Address, PageNumber};
use crate::extent::{Extents, Live};
use crate::key_space::TableId;
use crate::layout::Layout;
use crate::page_builder::PageBuilder;
use crate::page_view::PageView;
use crate::pending::Pending;
use crate::record::{Header, Kind, Sequence};
use crate::store::Ack;
use base::{Buf, Key};
use clock::{Rank, Stage, TaskId};
use hashbrown::HashMap;
use media::{ExtentId, Media, PageId, Shape, Stream};
use smallvec::SmallVec;
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
    pub(crate) frontiers: [Option<Frontier>; 2],
    pub(crate) pending: HashMap<PageNumber, Arc<Pending>, Hasher>,
    pub(crate) sequence: Sequence,
    /// When the cleaner took its last victim.
    pub(crate) cleaning_since: Sequence,
    /// Live values of all tables.
    pub(crate) values: Live,
    /// Tombstones that older versions may still need.
    pub(crate) tombstones: Live,
    /// Stores that have been accepted and are about to join a page.
    joining: u32,
    /// Pages of hosts that are being programmed, and who waits for one to land.
    pub(crate) host_pages_in_flight: u32,
    buffer_waiters: Vec<TaskId>,
    /// Pages that were programmed with room left, because nobody was about to join them.
    pub(crate) padded_pages: u64,
}

/// Where a stream goes on.
pub(crate) struct Frontier {
    pub(crate) extent: ExtentId,
    /// The number of the page that `builder` fills.
    pub(crate) page: u32,
    pub(crate) builder: PageBuilder,
    pub(crate) pending: Arc<Pending>,
    pub(crate) summary: Vec<u8>,
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

/// Extents that stores must leave. Cleaning a victim moves at most an extent's worth of records,
/// which fill the cleaner's open extent and, where they pack worse than before, up to two more; the
/// third is for tombstones, which take little and make room.
pub(crate) const RESERVED_EXTENTS: u32 = 3;

/// Extents that must stay free when `stream` opens one for a record of `kind`.
pub(crate) const fn reserve(stream: Stream, kind: Kind) -> u32 {
    match (stream, kind) {
        (Stream::Host, Kind::Value) => RESERVED_EXTENTS,
        (Stream::Host, Kind::Tombstone) => RESERVED_EXTENTS - 1,
        (Stream::Gc, _) => 0,
    }
}

/// Extents beside those that the capacity fills: the reserve, the open extents of both streams, and
/// one for hosts to write to while the cleaner works.
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

    /// Takes `victim` for cleaning. Extents that the cleaner opens from here on count as opened
    /// now: what it copies was live now, so a tombstone written later may stand for a copy.
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
    pub(crate) fn number(&self, extent: ExtentId, page: u32) -> PageNumber {
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

    /// What keeps a host's record with a value of `value_len` bytes from being appended, if
    /// anything.
    pub(crate) fn shortage(&self, ack: Ack, kind: Kind, value_len: u32) -> Option<Shortage> {
        let state = self.state();
        if state.frontiers[Stream::Host as usize].is_none()
            && self.media.free_extents() <= reserve(Stream::Host, kind)
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

    /// One announced store has joined, or never will. The last one out closes the page for those
    /// that wait in it.
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

    /// Pages of hosts that hold something and have not landed.
    pub(crate) fn unlanded_host_pages(&self) -> Vec<Arc<Pending>> {
        let state = self.state();
        let open = state.frontiers[Stream::Host as usize].as_ref();
        let filling = open.filter(|frontier| !frontier.builder.is_empty());
        let closed = state.pending.values().filter(|pages| pages.page().is_some());
        closed.chain(filling.map(|frontier| &frontier.pending)).cloned().collect()
    }

    /// The page at `at` is on the medium, or lost.
    pub(crate) fn landed(&self, at: PageId, stream: Stream) {
        let mut state = self.state();
        state.pending.remove(&self.number(at.extent, at.page));
        state.extents.get(at.extent).in_flight -= 1;
        if stream == Stream::Host {
            state.host_pages_in_flight -= 1;
            state.buffer_waiters.drain(..).for_each(clock::wake);
        }
    }
}

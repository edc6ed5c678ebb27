//! The log: the state of its extents and pages, and visits of its records. `append` writes the log,
//! `clean` frees its extents.

use crate::ack::Ack;
use crate::clean::expiring::Expiring;
use crate::extent::{Extent, Extents, Live};
use crate::format::address::{Address, PageNumber};
use crate::format::layout::Layout;
use crate::format::page_builder::PageBuilder;
use crate::format::page_view::PageView;
use crate::format::record::{Header, Kind, OwnedHeader, Sequence};
use crate::format::summary::Summary;
use crate::key_space::TableId;
use crate::read::headers::Headers;
use crate::read::key_window::KeyWindows;
use crate::read::values::Values;
use crate::write::lander::Lander;
use crate::write::pending::{Pending, UnlandedBatch};
use base::{Buf, Key};
use clock::{Class, Rank, Stage, TaskId, UnixMillis};
use hashbrown::HashMap;
use media::{ExtentId, Label, Media, Page, PageId, Shape, Stream};
use smallvec::SmallVec;
use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type Hasher = foldhash::fast::FixedState;

/// See the module's documentation.
pub(crate) struct Log {
    pub(crate) media: Arc<dyn Media>,
    pub(crate) shape: Shape,
    pub(crate) layout: Layout,
    pub(crate) headers: Headers,
    pub(crate) values: Values,
    pub(crate) windows: KeyWindows,
    /// Hosts are answered before their pages have landed.
    pub(crate) answers_early: bool,
    /// Extents that are kept for the index's table pages.
    table_extents: AtomicU32,
    /// How many pages have landed or failed records were undone. It changes under the lock of
    /// `state`, and is read without it.
    decisions: AtomicU64,
    state: Mutex<State>,
}

/// The mutable state of the log. Never locked over an await.
pub(crate) struct State {
    pub(crate) extents: Extents,
    pub(crate) frontiers: [Option<Frontier>; Stream::COUNT],
    pub(crate) pending: HashMap<PageNumber, Arc<Pending>, Hasher>,
    /// Closed pages whose programs are about to begin, in the order of their closing.
    pub(crate) programs: VecDeque<Program>,
    /// Pages that a disk has queued.
    pub(crate) landers: Vec<Lander>,
    pub(crate) sequence: Sequence,
    /// Batches of which some page has not landed.
    pub(crate) batches: Vec<UnlandedBatch>,
    /// When the cleaner took its last victim.
    pub(crate) cleaning_since: Sequence,
    /// Live values of all tables.
    pub(crate) values: Live,
    /// Those of them that expire.
    pub(crate) expiring: Expiring,
    /// All tombstones, and the footprints of those that are known to be needless.
    pub(crate) tombstones: Live,
    pub(crate) needless_bytes: u64,
    /// Stores that have been accepted and are about to join a page.
    pub(crate) joining: u32,
    /// Number of host pages that are being programmed, and the tasks that wait for one to land.
    pub(crate) host_pages_in_flight: u32,
    pub(crate) buffer_waiters: Vec<TaskId>,
    /// Tasks that wait until a page lands or a record is undone.
    undecided: Vec<TaskId>,
    /// Pages that were programmed with room left, because no announced store was to join them.
    pub(crate) padded_pages: u64,
    /// Extents that hold table pages.
    pub(crate) table_extents_used: u32,
    /// Of the extents to be kept for table pages, those that hold records until the cleaner has
    /// freed others: see [`Log::owe_extents`].
    pub(crate) table_extents_owed: u32,
    /// Tombstones that the index holds, by their addresses.
    pub(crate) deleting: BTreeMap<Address, (TableId, Key)>,
    /// Tombstones that it held when the cleaner took its victim, or later, and does not hold now.
    pub(crate) deleted: Vec<(TableId, Key, Address)>,
    /// The place of the cleaner's stream when it took the victim that it is copying.
    pub(crate) copying: Option<Copying>,
    /// Extents that are out of use and not erased yet.
    pub(crate) erasing: Vec<(ExtentId, Label)>,
    /// Page numbers that records were written to since the last checkpoint.
    pub(crate) numbers_since: u64,
    /// Number of full extents that the medium is still to note as sealed, and the tasks that wait
    /// for that.
    pub(crate) sealing: u32,
    pub(crate) sealing_waiters: Vec<TaskId>,
    /// Extents of which the headers are to be recalled, one after the other; there is a task for
    /// them as long as it is not `None`.
    pub(crate) recalls: Option<VecDeque<ExtentId>>,
    pub(crate) cleaning: CleaningDue,
    /// The medium is memory: a dead extent is best reset at once, because its space serves others.
    shares_space: bool,
    /// Power is lost: the energy of the capacitors is for the pages in the buffer.
    pub(crate) is_saving: bool,
}

/// Work for the cleaner that it has not seen yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CleaningDue {
    /// Free extents may be few: one was opened since they were last counted, or they are.
    pub(crate) may_be_low: bool,
    /// An extent is to be cleaned before others.
    pub(crate) is_urgent: bool,
}

/// The state of the cleaner's open extent, at the start of a page, when the cleaner begins to copy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copying {
    /// `None` when none is open.
    pub(crate) open: Option<(ExtentId, u32)>,
    /// The tombstones in it.
    pub(crate) tombstones: Live,
}

/// The frontier of a stream: its open extent and page.
pub(crate) struct Frontier {
    pub(crate) extent: ExtentId,
    /// The number of the page that `builder` fills.
    pub(crate) page: u32,
    pub(crate) builder: PageBuilder,
    pub(crate) pending: Arc<Pending>,
    pub(crate) summary: Summary,
}

/// A closed page on its way to the medium.
pub(crate) struct Program {
    pub(crate) at: PageId,
    pub(crate) stream: Stream,
    pub(crate) pending: Arc<Pending>,
    pub(crate) page: Page,
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

/// Returns the number of extents that must stay free, beside those kept for an index, when `stream`
/// opens one for a record of `kind`. Table pages beyond what is kept for them leave hosts one.
pub(crate) const fn reserve(stream: Stream, kind: Kind) -> u32 {
    match (stream, kind) {
        (Stream::Host, Kind::Tombstone) => RESERVED_EXTENTS - 1,
        (Stream::Host, _) => RESERVED_EXTENTS,
        (Stream::Gc, _) => 0,
        (Stream::Index, _) => RESERVED_EXTENTS + 1,
    }
}

/// Extents beside those that the capacity fills: the reserve, the open extents of both streams, and
/// one for hosts to write to while the cleaner works.
pub const SPARE_EXTENTS_MIN: u32 = RESERVED_EXTENTS + 3;

/// The resource that a store has to wait for before it can be appended.
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

/// The parts of a record in memory that are not durable yet.
#[derive(Default)]
pub(crate) struct OnItsWay {
    /// The record, while its first page has not landed.
    pub(crate) record: Option<Unlanded>,
    /// All pages of its batch, while one of them has not landed.
    pub(crate) batch: Option<Arc<[Arc<Pending>]>>,
}

impl State {
    /// Returns all pages of the batch that has a record at `address`, unless all have landed.
    #[inline]
    pub(crate) fn batch_of(&self, address: Address) -> Option<Arc<[Arc<Pending>]>> {
        let is_in = |batch: &&UnlandedBatch| (batch.first..=batch.last).contains(&address);
        self.batches.iter().find(is_in).map(|batch| batch.pages.clone())
    }

    /// Returns a shortage if stores are answered from a buffer and it is full. The open page
    /// counts.
    pub(crate) fn buffer_shortage(
        &self,
        ack: Ack,
        page_bytes: u32,
        value_len: u32,
    ) -> Option<Shortage> {
        let Ack::Buffer { bytes } = ack else { return None };
        let pages = u64::from(self.host_pages_in_flight) + 1;
        let used = pages * u64::from(page_bytes) + u64::from(value_len);
        let is_full = used > bytes && self.host_pages_in_flight > 0;
        (is_full || self.is_saving).then_some(Shortage::Buffer)
    }

    /// Counts a new live value of `bytes` in `extent`, whose key has `key_len` bytes.
    pub(crate) fn count_value(
        &mut self,
        extent: ExtentId,
        table: TableId,
        key_len: usize,
        bytes: u64,
    ) {
        self.extents.get(extent).values_of(table).add_value(key_len, bytes);
        self.values.add_value(key_len, bytes);
    }

    /// Counts a value of `bytes` in `extent` as dead; its key has `key_len` bytes.
    pub(crate) fn uncount_value(
        &mut self,
        extent: ExtentId,
        table: TableId,
        key_len: usize,
        bytes: u64,
    ) {
        let extent = self.extents.get(extent);
        extent.values_of(table).remove_value(key_len, bytes);
        self.cleaning.is_urgent |= self.shares_space && extent.sealed && extent.is_dead();
        self.values.remove_value(key_len, bytes);
    }

    /// Changes the counts by a value at `at` in `extent`, if it has a date and those of its extent
    /// are counted that far: `change` is [`Expiring::add`] or [`Expiring::remove`].
    pub(crate) fn count_expiring(
        &mut self,
        change: fn(&mut Expiring, TableId, UnixMillis),
        (extent, at): (ExtentId, Address),
        table: TableId,
        date: Option<UnixMillis>,
    ) {
        if let Some(date) = date
            && self.extents.get(extent).expiring_until >= Some(at)
        {
            change(&mut self.expiring, table, date);
        }
    }

    /// Counts a new tombstone of `bytes` in `extent`.
    pub(crate) fn count_tombstone(&mut self, extent: ExtentId, bytes: u64) {
        self.extents.get(extent).tombstones.add(bytes);
        self.tombstones.add(bytes);
    }

    /// Takes a tombstone of `bytes` in `extent` off the counts: its delete was undone.
    pub(crate) fn uncount_tombstone(&mut self, extent: ExtentId, bytes: u64) {
        self.extents.get(extent).tombstones.remove(bytes);
        self.tombstones.remove(bytes);
    }

    /// Notes a counted tombstone that cleaning may drop.
    pub(crate) fn note_needless(&mut self, address: Address, extent: ExtentId, bytes: u64) {
        let extent = self.extents.get(extent);
        extent.needless.push(address);
        extent.needless_bytes += bytes;
        self.needless_bytes += bytes;
    }

    /// Counts all values of `table` as dead.
    pub(crate) fn uncount_table(&mut self, table: TableId) {
        for extent in self.extents.iter_mut() {
            let dead = extent.drop_table(table);
            self.values.remove_all(dead);
        }
        self.expiring.forget_table(table);
    }

    /// Takes `victim` for cleaning. Extents that the cleaner opens for it get the current sequence
    /// number as epoch: the copied records were live now, so a tombstone written later may delete a
    /// copy.
    pub(crate) fn begin_cleaning(&mut self, victim: ExtentId) {
        let extent = self.extents.get(victim);
        extent.victim = true;
        extent.expired_first = extent.expires_first.take().or(extent.expired_first);
        self.sequence.0 += 1;
        self.cleaning_since = self.sequence;
        let open = self.frontiers[Stream::Gc as usize].as_ref();
        let open = open.map(|frontier| (frontier.extent, frontier.page));
        let tombstones = open.map(|(extent, _)| self.extents.get(extent).tombstones);
        self.copying = Some(Copying { open, tombstones: tombstones.unwrap_or_default() });
    }

    /// Ends copying: all copies are indexed or dead.
    pub(crate) fn end_copying(&mut self) {
        self.copying = None;
        self.deleted.clear();
    }

    /// Notes that this tombstone has left the index. While the cleaner copies, a copy of the
    /// deleted record may exist, so the tombstone is kept in `deleted`.
    pub(crate) fn end_deleting(&mut self, at: Address) {
        let ended = self.deleting.remove(&at);
        let ended = ended.filter(|_| self.copying.is_some());
        self.deleted.extend(ended.map(|(table, key)| (table, key, at)));
    }

    /// Returns whether any record may have to be undone by its writer.
    pub(crate) fn may_take_back(&self) -> bool {
        self.extents.iter().any(|(_, extent)| extent.revocable > 0)
    }

    /// Takes one pin off an extent.
    pub(crate) fn unpin(&mut self, id: ExtentId) {
        let extent = self.extents.get(id);
        extent.pins -= 1;
        if extent.pins == 0
            && let Some(cleaner) = extent.last_reader.take()
        {
            clock::wake(cleaner);
        }
    }

    /// Takes an extent without needed records out of the log.
    pub(crate) fn forget(&mut self, id: ExtentId) {
        let extent = self.extents.remove(id);
        self.erasing.push((id, extent.label));
        self.table_extents_used -= u32::from(extent.label.stream == Stream::Index);
        assert!(extent.pins == 0, "an extent is reset when no reader has it pinned");
        assert!(extent.values.iter().all(|(_, live)| live.records == 0), "nor holds live values");
        self.tombstones.remove_all(extent.tombstones);
        self.needless_bytes -= extent.needless_bytes;
    }
}

/// A reader at a record. The record's extent is not reset before this drops.
pub(crate) struct Visit<'a> {
    pub(crate) address: Address,
    /// As it was when the visit began.
    pub(crate) on_its_way: OnItsWay,
    _pin: Pin<'a>,
}

/// An extent that is not reset before this drops.
pub(crate) struct Pin<'a> {
    log: &'a Log,
    extent: ExtentId,
}

impl<'a> Pin<'a> {
    /// For an extent that has been pinned already.
    pub(crate) const fn taken(log: &'a Log, extent: ExtentId) -> Self {
        Self { log, extent }
    }
}

impl Drop for Pin<'_> {
    fn drop(&mut self) {
        self.log.state().unpin(self.extent);
    }
}

impl Log {
    /// Makes a log on a medium with these extents; the next sequence number comes after `sequence`.
    pub(crate) fn new(media: Arc<dyn Media>, extents: Extents, sequence: Sequence) -> Self {
        let shape = media.shape();
        let tables = extents.iter().filter(|(_, extent)| extent.label.stream == Stream::Index);
        let table_extents_used = u32::try_from(tables.count()).expect("counted in 32 bits");
        let state = State {
            extents,
            frontiers: [const { None }; Stream::COUNT],
            pending: HashMap::with_hasher(Hasher::with_seed(0)),
            programs: VecDeque::new(),
            landers: Vec::new(),
            sequence,
            batches: Vec::new(),
            cleaning_since: sequence,
            values: Live::default(),
            expiring: Expiring::default(),
            tombstones: Live::default(),
            needless_bytes: 0,
            joining: 0,
            host_pages_in_flight: 0,
            buffer_waiters: Vec::new(),
            undecided: Vec::new(),
            padded_pages: 0,
            table_extents_used,
            table_extents_owed: 0,
            deleting: BTreeMap::new(),
            deleted: Vec::new(),
            copying: None,
            erasing: Vec::new(),
            numbers_since: 0,
            sealing: 0,
            sealing_waiters: Vec::new(),
            recalls: None,
            cleaning: CleaningDue { may_be_low: true, is_urgent: false },
            shares_space: media.as_memory().is_some(),
            is_saving: false,
        };
        let (layout, table_extents) =
            (Layout::new(&shape).vouched(media.vouches_for_headers()), AtomicU32::new(0));
        let state = Mutex::new(state);
        let (headers, values) = (Headers::new(0), Values::new(0, &shape));
        let decisions = AtomicU64::new(0);
        let (windows, answers_early) = (KeyWindows::new(0), false);
        Self {
            media,
            shape,
            layout,
            headers,
            values,
            windows,
            answers_early,
            table_extents,
            decisions,
            state,
        }
    }

    #[inline]
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps this many extents for table pages.
    pub(crate) fn keep_extents(&self, extents: u32) {
        self.table_extents.store(extents, Ordering::Relaxed);
    }

    /// Leaves the cleaner an extent to copy to, where records take extents that are kept for table
    /// pages: the store was filled by an index that keeps fewer. The index gets its extents back
    /// once the cleaner has its reserve, before hosts open an extent.
    pub(crate) fn owe_extents(&self) {
        let mut state = self.state();
        let wanted = self.unused_table_extents(&state).saturating_add(1);
        state.table_extents_owed = wanted.saturating_sub(self.media.free_extents());
    }

    fn pay_extents(&self, state: &mut State) {
        if state.table_extents_owed > 0 {
            let wanted = self.unused_table_extents(state).saturating_add(RESERVED_EXTENTS);
            let lacking = wanted.saturating_sub(self.media.free_extents());
            state.table_extents_owed = state.table_extents_owed.min(lacking);
            state.cleaning.may_be_low = true;
        }
    }

    /// Returns how many of the extents kept for table pages are unused, without those owed.
    pub(crate) fn kept_extents(&self, state: &State) -> u32 {
        self.unused_table_extents(state).saturating_sub(state.table_extents_owed)
    }

    /// Returns the same with those owed. An extent that is being erased is not free yet.
    fn unused_table_extents(&self, state: &State) -> u32 {
        let of_tables = |(_, label): &&(ExtentId, Label)| label.stream == Stream::Index;
        let erasing = state.erasing.iter().filter(of_tables).count();
        let erasing = u32::try_from(erasing).expect("counted in 32 bits");
        let used = state.table_extents_used + erasing;
        self.table_extents.load(Ordering::Relaxed).saturating_sub(used)
    }

    /// Free extents beside those kept for table pages.
    pub(crate) fn free_extents(&self, state: &State) -> u32 {
        self.media.free_extents().saturating_sub(self.kept_extents(state))
    }

    /// Returns the checksum of `value`, or 0 where the medium vouches for its bytes.
    #[inline]
    pub(crate) fn value_crc(&self, value: &Buf) -> u32 {
        if value.len() == 0 || self.media.vouches() { 0 } else { value.crc32c() }
    }

    #[inline]
    pub(crate) fn page_id(&self, address: Address) -> PageId {
        self.layout.page_id(address.page())
    }

    #[inline]
    pub(crate) fn number(&self, extent: ExtentId, page: u32) -> PageNumber {
        PageNumber::new(PageId { extent, page }, self.shape.pages_per_extent)
    }

    /// Begins a visit of the record at `address`, which the index has just returned.
    #[inline]
    pub(crate) fn visit(&self, address: Address) -> Visit<'_> {
        let extent = self.page_id(address).extent;
        let mut state = self.state();
        state.extents.get(extent).pins += 1;
        let (record, batch) = (self.unlanded(&state, address), state.batch_of(address));
        let on_its_way = OnItsWay { record, batch };
        Visit { address, on_its_way, _pin: Pin { log: self, extent } }
    }

    /// Returns whether a record has not landed yet, or one of its batch has not.
    pub(crate) fn is_on_its_way(&self, address: Address) -> bool {
        let state = self.state();
        state.pending.contains_key(&address.page()) || state.batch_of(address).is_some()
    }

    /// Returns whether the record at `address` and its batch have landed, in an extent of which
    /// every page has landed. Its key may be reported at once, if its value is on one page.
    pub(crate) fn has_settled(&self, address: Address) -> bool {
        let state = self.state();
        if state.pending.contains_key(&address.page()) || state.batch_of(address).is_some() {
            return false;
        }
        let extent = state.extents.find(self.page_id(address).extent);
        extent.is_some_and(|extent| !extent.gave_up_in(state.sequence.mount()))
    }

    /// Keeps the records of `extent` where they are, if it is in use.
    pub(crate) fn pin_used(&self, extent: ExtentId) -> Option<Pin<'_>> {
        let mut state = self.state();
        state.extents.find(extent)?;
        Some(self.pin(&mut state, extent))
    }

    /// Returns whether one of `pages` failed to land since the store was opened. Readers must not
    /// see its records, which are undone, even if the medium has them. For an extent that was reset
    /// it returns false.
    pub(crate) fn has_failed(&self, extent: ExtentId, pages: RangeInclusive<u32>) -> bool {
        let state = self.state();
        let has_failed = |extent: &Extent| {
            let gave_up = extent.gave_up_in(state.sequence.mount());
            gave_up && extent.holes.iter().any(|hole| pages.contains(hole))
        };
        state.extents.find(extent).is_some_and(has_failed)
    }

    /// Keeps `extent` from being reset.
    pub(crate) fn pin(&self, state: &mut State, extent: ExtentId) -> Pin<'_> {
        state.extents.get(extent).pins += 1;
        Pin { log: self, extent }
    }

    /// Returns what `read` makes of the header of a record whose page has not landed, with that
    /// page. Also returns the pages of its batch, unless all have landed.
    #[expect(clippy::type_complexity, reason = "it is taken apart at once")]
    pub(crate) fn unlanded_header<T>(
        &self,
        address: Address,
        read: impl FnOnce(&Header<'_>) -> T,
    ) -> (Option<(T, Arc<Pending>)>, Option<Arc<[Arc<Pending>]>>) {
        let state = self.state();
        let unlanded = self
            .with_unlanded(&state, address, |pages, header, _| Some((read(header), pages.clone())));
        (unlanded, state.batch_of(address))
    }

    /// Returns a record whose page has not landed.
    pub(crate) fn unlanded_record(&self, address: Address) -> Option<Unlanded> {
        self.unlanded(&self.state(), address)
    }

    #[inline]
    fn unlanded(&self, state: &State, address: Address) -> Option<Unlanded> {
        self.with_unlanded(state, address, |pages, header, part| {
            let (pages, header) = (pages.clone(), OwnedHeader::new(header));
            Some(Unlanded { pages, header, part: part()? })
        })
    }

    /// Returns what `read` makes of a record whose page has not landed: of the page, the header,
    /// and the function that returns the part of the value there.
    #[inline]
    fn with_unlanded<T>(
        &self,
        state: &State,
        address: Address,
        read: impl FnOnce(&Arc<Pending>, &Header<'_>, &dyn Fn() -> Option<Buf>) -> Option<T>,
    ) -> Option<T> {
        let pages = state.pending.get(&address.page())?;
        let offset = self.layout.offset(address);
        if let Some(page) = pages.page() {
            let view = PageView::new(self.layout, page)?;
            let header = view.header(offset)?;
            return read(pages, &header, &|| view.part(&header, self.layout));
        }
        let filling = state.frontiers.iter().flatten().find(|f| Arc::ptr_eq(&f.pending, pages));
        let builder = &filling?.builder;
        let header = builder.header(offset)?;
        read(pages, &header, &|| Some(builder.part(&header)))
    }

    /// Returns the part of a long value that begins page `number`, if that page has not landed yet.
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

    /// Returns the resource that a host's record with a value of `value_len` bytes lacks, if any.
    pub(crate) fn shortage(&self, ack: Ack, kind: Kind, value_len: u32) -> Option<Shortage> {
        let state = self.state();
        if state.frontiers[Stream::Host as usize].is_none()
            && self.free_extents(&state) <= reserve(Stream::Host, kind)
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

    /// Returns how many pages have landed or failed records were undone so far, for
    /// [`Self::decision_after`].
    pub(crate) fn decisions(&self) -> u64 {
        self.decisions.load(Ordering::Relaxed)
    }

    /// Counts a decision, and wakes the tasks that wait for one: a page has landed, or a failed
    /// record was undone.
    pub(crate) fn note_decision(&self, state: &mut State) {
        self.decisions.store(self.decisions() + 1, Ordering::Relaxed);
        state.undecided.drain(..).for_each(clock::wake);
    }

    /// Waits until a page has landed, or a record that did not was undone, since there were `seen`
    /// of these. The caller knows that one of the two happens.
    pub(crate) async fn decision_after(&self, seen: u64) {
        {
            let mut state = self.state();
            if self.decisions() != seen {
                return;
            }
            state.undecided.push(clock::current());
        }
        clock::park(Rank::Free, Stage::Latch).await;
    }

    /// Announces a store that is about to join a page.
    pub(crate) fn announce(&self) {
        self.state().joining += 1;
    }

    /// Notes that an announced store has joined a page, or never will. The last one closes the
    /// page, so that its writers need not wait.
    pub(crate) fn retract(self: &Arc<Self>) {
        let mut state = self.state();
        assert!(state.joining > 0, "what was announced is counted");
        state.joining -= 1;
        if state.joining == 0 {
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

    /// Returns the pages of hosts that hold something and have not landed.
    pub(crate) fn unlanded_host_pages(&self) -> Vec<Arc<Pending>> {
        let state = self.state();
        let open = state.frontiers[Stream::Host as usize].as_ref();
        let filling = open.filter(|frontier| !frontier.builder.is_empty());
        let closed = state.pending.values().filter(|pages| pages.page().is_some());
        closed.chain(filling.map(|frontier| &frontier.pending)).cloned().collect()
    }

    /// Erases an extent that was forgotten. The medium keeps what it cannot erase; the log has one
    /// extent less then.
    pub(crate) async fn erase(&self, extent: ExtentId, class: Class) {
        if self.media.reset(extent, class).await.is_ok() {
            let mut state = self.state();
            state.erasing.retain(|(id, _)| *id != extent);
            self.pay_extents(&mut state);
        }
    }

    /// Drops cached headers and values for the page at `at` after its program failed.
    fn forget_headers(&self, state: &State, at: PageId) {
        let number = self.number(at.extent, at.page);
        let page = state.pending.get(&number).and_then(|pages| pages.page());
        let Some(view) = page.and_then(|page| PageView::new(self.layout, page)) else { return };
        for (offset, header) in view.headers(self.layout) {
            let address = self.layout.address(number, offset, header.len(), header.value_len);
            self.headers.forget(address);
            self.values.forget(header.table, header.key);
        }
    }

    /// Handles the end of a page's program, which may have failed.
    pub(crate) fn landed(
        self: &Arc<Self>,
        at: PageId,
        stream: Stream,
        result: Result<(), media::Error>,
    ) {
        let mut state = self.state();
        if result.is_err_and(|error| error != media::Error::PowerLost) && stream != Stream::Index {
            self.forget_headers(&state, at);
            self.give_up(&mut state, at, stream);
        }
        state.pending.remove(&self.number(at.extent, at.page));
        let extent = state.extents.get(at.extent);
        extent.in_flight -= 1;
        let is_urgent = extent.has_lost && extent.in_flight == 0;
        state.cleaning.is_urgent |= is_urgent;
        self.note_decision(&mut state);
        if stream == Stream::Host {
            state.host_pages_in_flight -= 1;
            state.buffer_waiters.drain(..).for_each(clock::wake);
        }
    }
}

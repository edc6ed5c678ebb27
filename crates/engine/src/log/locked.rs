//! The locks of a log: those of its writers, and that of what they share.

use super::copies::Copying;
use super::writer::Writer;
use super::{CountedValue, Log, State};
use crate::format::address::PageNumber;
use crate::format::record::Sequence;
use crate::write::pending::Pending;
use clock::{Guard, Order, Section};
use media::{ExtentId, Stream};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// The state that all writers share, which is locked when it is first asked for.
pub(crate) struct LateState<'l> {
    log: &'l Log,
    state: Option<Guard<'l, State>>,
}

impl<'l> LateState<'l> {
    const fn new(log: &'l Log) -> Self {
        Self { log, state: None }
    }

    #[inline]
    pub(crate) fn get(&mut self) -> &mut State {
        self.state.get_or_insert_with(|| self.log.state.lock())
    }
}

/// A locked writer, and the shared state for what is not its own.
pub(crate) struct Part<'a, 'l> {
    pub(crate) writer: &'a mut Writer,
    pub(crate) shared: &'a mut LateState<'l>,
}

impl Part<'_, '_> {
    /// Counts a new live value.
    #[inline]
    pub(crate) fn count_value(&mut self, value: CountedValue) {
        self.writer.tally.count(&value, 1);
        if value.expires.is_some() {
            self.shared.get().count_date(value);
        }
    }

    /// Counts a live value as dead.
    #[inline]
    pub(crate) fn uncount_value(&mut self, value: CountedValue) {
        self.writer.tally.count(&value, -1);
        if value.expires.is_some() {
            self.shared.get().uncount_date(value);
        }
    }
}

/// The locks of one writer, or of all and of the state that they share.
pub(crate) struct Writing<'l> {
    log: &'l Log,
    writers: Section<'l, Writer>,
    shared: LateState<'l>,
    /// The writer whose part this is.
    own: usize,
    is_whole: bool,
}

/// The whole log, which is locked when it is first asked for: at most once in a stretch.
pub(crate) struct LateWhole<'a> {
    log: &'a Log,
    whole: Option<Whole<'a>>,
}

impl<'a> LateWhole<'a> {
    pub(crate) fn get(&mut self) -> &mut Whole<'a> {
        self.whole.get_or_insert_with(|| self.log.whole())
    }

    /// Returns true when it is locked.
    pub(crate) const fn is_locked(&self) -> bool {
        self.whole.is_some()
    }
}

/// Which writers a stretch locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// That of its reactor.
    Own,
    All,
}

/// What is asked for may be with a writer that is not locked.
#[derive(Debug)]
pub(crate) struct NotLocked;

/// The whole state of a log: all writers are locked, and all that they have counted is in the
/// shared state.
pub(crate) struct Whole<'l>(Writing<'l>);

impl Log {
    /// As [`Self::whole`], but locks it later, if at all.
    pub(crate) const fn late_whole(&self) -> LateWhole<'_> {
        LateWhole { log: self, whole: None }
    }

    /// Locks the whole log.
    #[track_caller]
    pub(crate) fn whole(&self) -> Whole<'_> {
        Whole(self.writing_in(Reach::All))
    }

    /// Locks the writer of this reactor.
    #[inline]
    #[track_caller]
    pub(crate) fn writing(&self) -> Writing<'_> {
        self.writing_of(self.own_writer())
    }

    /// Locks the writer of this reactor, or the whole log.
    #[inline]
    #[track_caller]
    pub(crate) fn writing_in(&self, reach: Reach) -> Writing<'_> {
        match reach {
            Reach::Own => self.writing(),
            Reach::All => self.writing_all(),
        }
    }

    #[track_caller]
    fn writing_all(&self) -> Writing<'_> {
        let own = self.own_writer();
        let mut writers = Section::all(Order::Writer, &self.writers);
        let mut shared = LateState::new(self);
        settle(self, &mut writers, shared.get());
        Writing { log: self, writers, shared, own, is_whole: true }
    }

    /// Locks one writer.
    #[inline]
    #[track_caller]
    pub(crate) fn writing_of(&self, own: usize) -> Writing<'_> {
        let writers = Section::one(Order::Writer, &self.writers, own);
        Writing { log: self, writers, shared: LateState::new(self), own, is_whole: false }
    }

    /// Locks the writer that has the streams of the cleaner and of the index.
    #[track_caller]
    pub(crate) fn writing_copies(&self) -> Writing<'_> {
        self.writing_of(0)
    }

    /// Locks the writer that has the pages of `extent` that have not landed.
    #[inline]
    #[track_caller]
    pub(crate) fn writing_to(&self, extent: ExtentId) -> Writing<'_> {
        self.writing_of(self.owners.of(extent))
    }
}

impl<'l> Writing<'l> {
    #[inline]
    pub(crate) fn part(&mut self) -> Part<'_, 'l> {
        Part { writer: self.writers.get(self.own), shared: &mut self.shared }
    }

    /// Returns the writer whose part this is.
    #[inline]
    pub(crate) fn writer(&mut self) -> &mut Writer {
        self.writers.get(self.own)
    }

    /// Returns the bytes that live values may take more of the capacity: of what is left, the share
    /// of the locked writer, or all.
    #[inline]
    pub(crate) fn credit(&mut self) -> u64 {
        if self.is_whole { left(self.log, self.shared.get()) } else { self.writer().credit }
    }

    /// Returns true when all writers are locked.
    #[inline]
    pub(crate) const fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Returns the writer that has the pages of `extent` that have not landed, if it is locked.
    #[inline]
    pub(crate) fn owner(&self, extent: ExtentId) -> Result<&Writer, NotLocked> {
        let owner = self.log.owners.of(extent);
        let is_locked = self.is_whole || owner == self.own;
        if is_locked { Ok(self.writers.peek(owner)) } else { Err(NotLocked) }
    }

    /// Makes this the part of another writer that has an open extent of hosts, if there is one. All
    /// writers are locked.
    pub(crate) fn share_open_extent(&mut self) -> bool {
        assert!(self.is_whole, "a writer is chosen among all");
        let has_open = |writer: &&Writer| writer.frontiers.of(Stream::Host).is_some();
        let open = self.writers.iter().find(has_open).map(|writer| writer.number);
        self.own = open.unwrap_or(self.own);
        open.is_some()
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        if self.is_whole && !std::thread::panicking() {
            settle(self.log, &mut self.writers, self.shared.get());
        }
    }
}

impl<'l> Whole<'l> {
    /// Returns the part of the writer that has the pages of `extent` that have not landed.
    pub(crate) fn part_of(&mut self, extent: ExtentId) -> Part<'_, 'l> {
        self.part_at(self.0.log.owners.of(extent))
    }

    /// Returns the part of the writer that has the streams of the cleaner and of the index.
    pub(crate) fn first(&mut self) -> Part<'_, 'l> {
        self.part_at(0)
    }

    pub(crate) fn part_at(&mut self, number: usize) -> Part<'_, 'l> {
        Part { writer: self.0.writers.get(number), shared: &mut self.0.shared }
    }

    /// Returns the writer that has the pages of `extent` that have not landed.
    pub(crate) fn owner(&self, extent: ExtentId) -> &Writer {
        self.0.writers.peek(self.0.log.owners.of(extent))
    }

    pub(crate) fn writers(&self) -> impl Iterator<Item = &Writer> {
        self.0.writers.iter()
    }

    /// Returns the writers that have an open extent of hosts: the bit of each is set.
    pub(crate) fn with_open_extents(&self) -> u64 {
        let has_open = |writer: &Writer| writer.frontiers.of(Stream::Host).is_some();
        self.writers().map(|writer| u64::from(has_open(writer)) << writer.number).sum()
    }

    /// Returns the closed pages that have not landed, in the order of their numbers.
    pub(crate) fn closed_in_order(&self) -> Vec<(PageNumber, Arc<Pending>)> {
        let closed = self.writers().flat_map(|writer| writer.unlanded.closed());
        let mut closed: Vec<_> = closed.map(|(at, pending)| (at, pending.clone())).collect();
        closed.sort_unstable_by_key(|(at, _)| *at);
        closed
    }

    pub(crate) fn writers_mut(&mut self) -> impl Iterator<Item = &mut Writer> {
        self.0.writers.iter_mut()
    }

    /// Returns the part of the writer of this reactor, or of one that it shares.
    pub(crate) fn writing(&mut self) -> &mut Writing<'l> {
        &mut self.0
    }

    /// Begins to copy the records of victims, which were taken. Extents that the cleaner opens for
    /// them get the current sequence number as epoch: the copied records were live now, so a
    /// tombstone written later may delete a copy.
    pub(crate) fn begin_copying(&mut self) {
        let since = self.next_sequence();
        let open = self.first().writer.frontiers.of(Stream::Gc);
        let open = open.map(|frontier| (frontier.extent, frontier.page()));
        let tombstones = open.map(|(extent, _)| self.extents.get(extent).tombstones());
        let tombstones = tombstones.unwrap_or_default();
        self.copies.begin(since, Copying { open, tombstones });
    }

    /// Adds what the writers have counted in this stretch.
    pub(crate) fn settle(&mut self) {
        settle(self.0.log, &mut self.0.writers, self.0.shared.get());
    }
}

impl Deref for Whole<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        self.0.shared.state.as_ref().expect("all is locked")
    }
}

impl DerefMut for Whole<'_> {
    fn deref_mut(&mut self) -> &mut State {
        self.0.shared.get()
    }
}

/// Adds what the writers have counted to the shared state, brings all clocks to the same number,
/// and deals out what is left of the capacity.
fn settle(log: &Log, writers: &mut Section<'_, Writer>, state: &mut State) {
    settle_counts(writers, state);
    let mut clock = state.sequence;
    for writer in writers.iter_mut() {
        for frontier in writer.frontiers.iter() {
            state.extents.get(frontier.extent).note_open_page(frontier.page());
        }
        log.count_written(std::mem::take(&mut writer.numbers_since));
        clock = clock.max(writer.clock);
    }
    state.sequence = clock;
    let credit = left(log, state) / log.writers.len() as u64;
    for writer in writers.iter_mut() {
        (writer.clock, writer.credit) = (clock, credit);
    }
}

/// Adds what all writers have counted. One may have taken off what another has added, so only their
/// sum is right.
fn settle_counts(writers: &mut Section<'_, Writer>, state: &mut State) {
    let mut writers = writers.iter_mut();
    let Writer { tally, .. } = writers.next().expect("a log has a writer");
    writers.for_each(|writer| tally.take(&mut writer.tally));
    let State { extents, live, cleaning, .. } = state;
    tally.settle(extents, live, cleaning);
}

/// Returns the bytes of the capacity that live values leave.
fn left(log: &Log, state: &State) -> u64 {
    log.capacity_bytes.saturating_sub(state.live.values().bytes)
}

impl Sequence {
    /// Brings two clocks to the later of their numbers.
    #[inline]
    pub(crate) fn merge(&mut self, other: &mut Self) {
        let later = (*self).max(*other);
        (*self, *other) = (later, later);
    }
}

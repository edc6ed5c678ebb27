//! The way of pages to the medium: stores that join them, their closing, and their landing.

use super::room::{Shortage, reserve};
use super::unlanded::Ended;
use super::writer::Writer;
use super::{Log, Part, Whole, Writing};
use crate::ack::Ack;
use crate::format::address::Address;
use crate::format::page_view::PageView;
use crate::format::record::Kind;
use crate::write::pending::Pending;
use base::checksum::hash64;
use clock::{Class, Rank, Stage};
use media::{ExtentId, Landings, PageId, Stream};
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Log {
    /// Returns the resource that a host's record with a value of `value_len` bytes lacks, if any.
    /// If the whole log is locked, a writer without an open extent shares that of another.
    pub(crate) fn shortage(
        &self,
        writing: &mut Writing<'_>,
        ack: Ack,
        kind: Kind,
        value_len: u32,
    ) -> Option<Shortage> {
        let Part { writer, shared } = writing.part();
        if writer.frontiers.of(Stream::Host).is_some() {
            return self.buffer_shortage(writer, ack, value_len);
        }
        if self.free_extents(shared.get()) <= reserve(Stream::Host, kind)
            && !(writing.is_whole() && writing.share_open_extent())
        {
            return Some(Shortage::Extent);
        }
        self.buffer_shortage(writing.writer(), ack, value_len)
    }

    /// Returns a shortage if hosts are answered from a buffer and the share of `writer` is full.
    pub(crate) fn buffer_shortage(
        &self,
        writer: &Writer,
        ack: Ack,
        value_len: u32,
    ) -> Option<Shortage> {
        writer.buffer.shortage(ack, self.writers(), self.shape.page_bytes, value_len)
    }

    /// Returns how many decisions there were so far, for [`Self::decision_after`]: pages that have
    /// landed and, while a task watches, records that need no longer be undone. The caller looks
    /// afterwards whether a decision has to come.
    pub(crate) fn watch_decisions(&self) -> u64 {
        // First the count, then the mark. See `note_decision`.
        let seen = self.owners.decisions();
        self.is_decision_watched.store(true, Ordering::SeqCst);
        seen
    }

    /// Counts a decision, and wakes the tasks that wait for one.
    #[inline]
    fn note_decision(&self, part: &mut Part<'_, '_>) {
        // First the mark, then the count: a task whose mark this takes has not seen the count.
        let is_watched = self.is_decision_watched.load(Ordering::SeqCst);
        if is_watched {
            self.is_decision_watched.store(false, Ordering::SeqCst);
        }
        self.owners.count_decision(part.writer.number);
        if is_watched {
            part.shared.get().undecided.drain(..).for_each(clock::wake);
        }
    }

    /// A record need no longer be undone, and its pins are gone. In the one order of these
    /// operations either this finds the mark of a task that watches, or the task finds the pins
    /// gone.
    #[inline]
    pub(crate) fn note_final(&self) {
        if self.is_decision_watched.load(Ordering::SeqCst) {
            self.note_decision(&mut self.writing().part());
        }
    }

    /// Waits until there have been more decisions than `seen`, by [`Self::watch_decisions`].
    pub(crate) async fn decision_after(&self, seen: u64) {
        {
            let mut state = self.whole();
            if self.owners.decisions() != seen {
                return;
            }
            let is_watched = self.is_decision_watched.load(Ordering::SeqCst);
            assert!(is_watched, "a task watches decisions before it waits for one");
            state.undecided.push(clock::current());
        }
        clock::park(Rank::Free, Stage::Latch).await;
    }

    /// Notes that an announced store has joined a page, or never will. The last one closes the
    /// page, so that its writers need not wait.
    #[inline]
    pub(crate) fn retract(self: &Arc<Self>, part: &mut Part<'_, '_>) {
        if part.writer.buffer.retract() {
            self.pad(part, Stream::Host);
        }
    }

    /// Closes the open page of hosts if no announced store is to join it.
    pub(crate) fn pad_unannounced(self: &Arc<Self>, part: &mut Part<'_, '_>) {
        if !part.writer.buffer.is_announced() {
            self.pad(part, Stream::Host);
        }
    }

    /// Programs what a stream's open page holds.
    pub(crate) fn pad(self: &Arc<Self>, part: &mut Part<'_, '_>, stream: Stream) {
        let Some(frontier) = part.writer.frontiers.of(stream) else { return };
        if !frontier.builder.is_empty() {
            part.writer.unlanded.padded += 1;
            self.turn_page(part, stream);
        }
    }

    /// Programs what the open pages of all hosts hold.
    pub(crate) fn pad_hosts(self: &Arc<Self>, state: &mut Whole<'_>) {
        (0..self.writers.len()).for_each(|at| self.pad(&mut state.part_at(at), Stream::Host));
        state.settle();
    }

    /// Programs what all open pages of records hold.
    pub(crate) fn pad_records(self: &Arc<Self>, state: &mut Whole<'_>) {
        self.pad_hosts(state);
        self.pad(&mut state.first(), Stream::Gc);
        state.settle();
    }

    /// Programs all open pages, and returns every page that has not landed.
    pub(crate) fn close_all(self: &Arc<Self>) -> Vec<Arc<Pending>> {
        let mut state = self.whole();
        self.pad_records(&mut state);
        state.closed_in_order().into_iter().map(|(_, pages)| pages).collect()
    }

    /// Returns the pages of hosts that hold something and have not landed.
    pub(crate) fn unlanded_host_pages(&self) -> Vec<Arc<Pending>> {
        let state = self.whole();
        let of_writer = |writer: &Writer| {
            let open = writer.frontiers.of(Stream::Host);
            let filling = open.filter(|frontier| !frontier.builder.is_empty());
            let closed = writer.unlanded.closed().map(|(_, pending)| pending.clone());
            closed.chain(filling.map(|frontier| frontier.pending.clone())).collect::<Vec<_>>()
        };
        state.writers().flat_map(of_writer).collect()
    }

    /// Erases an extent that was forgotten. Returns false if the medium cannot erase it: the log
    /// has one extent less then, for good on flash, and on a disk until it is erased again.
    pub(crate) async fn erase(&self, extent: ExtentId, class: Class) -> bool {
        let is_erased = self.media.reset(extent, class).await.is_ok();
        let mut state = self.whole();
        if is_erased {
            state.space.erased(extent);
            if state.space.pay(self.media.free_extents()) {
                state.cleaning.note_fewer();
            }
        } else if self.media.as_disk().is_some() {
            state.space.not_erased(extent);
        }
        is_erased
    }

    /// Erases the extents that a disk could not erase before, up to the first that it still cannot.
    /// Returns whether it has erased one.
    pub(crate) async fn erase_again(&self) -> bool {
        let mut has_erased = false;
        while let Some(extent) = self.next_failed() {
            if !self.erase(extent, Class::Gc).await {
                break;
            }
            has_erased = true;
        }
        has_erased
    }

    fn next_failed(&self) -> Option<ExtentId> {
        self.whole().space.next_failed()
    }

    /// Drops cached headers and values for the page at `at` after its program failed.
    fn forget_headers(&self, at: PageId) -> Option<()> {
        let number = self.number(at.extent, at.page);
        let page = self.writing_to(at.extent).writer().unlanded.get(number)?.page.clone()?;
        let view = PageView::new(self.layout, &page)?;
        for (offset, header) in view.headers(self.layout) {
            let address = self.layout.address(number, offset, header.len(), header.value_len);
            let hash = hash64(header.key);
            let mut lanes = self.lanes.lock(hash);
            let lane = lanes.of(hash);
            lane.headers.forget(hash, address);
            if let Some(values) = &mut lane.values {
                values.forget(header.table, hash);
            }
        }
        Some(())
    }

    /// Handles the end of a page's program, which may have failed.
    pub(crate) fn landed(self: &Arc<Self>, at: PageId, result: Result<(), media::Error>) {
        if result.is_err_and(|error| error != media::Error::PowerLost) {
            self.not_landed(at);
        }
        let mut writing = self.writing_to(at.extent);
        let stream = writing.writer().unlanded.remove(self.number(at.extent, at.page));
        self.note_landed(&mut writing.part(), at.extent, stream);
    }

    fn not_landed(self: &Arc<Self>, at: PageId) {
        let stream = self.whole().extents.get(at.extent).label.stream;
        if stream != Stream::Index {
            self.forget_headers(at);
            self.give_up(&mut self.whole(), at, stream);
        }
    }

    /// Tells readers which pages of an extent have settled.
    #[inline]
    fn note_settled(&self, writer: &Writer, id: ExtentId) {
        // An extent without any has no open page: it is full.
        let unsettled = writer.unlanded.first_unsettled(self.number(id, 0));
        self.settled.set(id, unsettled.unwrap_or(self.shape.pages_per_extent));
    }

    /// Forgets the batch that begins at `first`, which has landed or was undone.
    /// The extent is pinned for the batch.
    pub(crate) fn end_batch(&self, first: Address) {
        let id = self.page_id(first).extent;
        let mut writing = self.writing_to(id);
        writing.writer().unlanded.end_batch(first);
        self.note_settled(writing.writer(), id);
    }

    /// Notes that a page of `extent` is no longer on its way.
    #[inline]
    fn note_landed(&self, part: &mut Part<'_, '_>, id: ExtentId, stream: Stream) {
        part.writer.tally.of(id).in_flight -= 1;
        if !part.writer.unlanded.has_any_of(self.number(id, 0)) {
            let state = part.shared.get();
            state.cleaning.note_landed(state.extents.get(id));
        }
        self.note_settled(part.writer, id);
        self.note_decision(part);
        if stream == Stream::Host {
            part.writer.buffer.end_page();
        }
    }

    /// Handles the pages of `extent` that have landed, up to the first that has failed, which it
    /// returns for the caller to handle.
    fn land_ended(&self, extent: ExtentId) -> Option<Ended> {
        let (mut writing, first) = (self.writing_to(extent), self.number(extent, 0));
        let mut part = writing.part();
        // With its writer locked no extent is reset that has a page in the list.
        let ends = self.media.as_disk()?.ends(extent);
        while let Some(ended) = part.writer.unlanded.next_ended(first, &ends) {
            if ended.result.is_err() {
                return Some(ended);
            }
            self.note_landed(&mut part, extent, ended.stream);
            ended.pending.land_here(Ok(()));
        }
        None
    }

    /// Handles the pages of `extent` that the disk did not take. If pages before them have not
    /// ended, the end of those does it.
    pub(crate) fn land_refused(self: Arc<Self>, extent: ExtentId) {
        clock::name_task("page program");
        self.land(extent);
    }
}

impl Landings for Log {
    fn land(self: Arc<Self>, extent: ExtentId) {
        while let Some(Ended { page, pending, result, .. }) = self.land_ended(extent) {
            self.landed(PageId { extent, page }, result);
            pending.land_here(result);
        }
    }
}

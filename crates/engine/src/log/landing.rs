//! The way of pages to the medium: stores that join them, their closing, and their landing.

use super::room::{Shortage, reserve};
use super::unlanded::Ended;
use super::{Log, State};
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
    pub(crate) fn shortage(
        &self,
        state: &State,
        ack: Ack,
        kind: Kind,
        value_len: u32,
    ) -> Option<Shortage> {
        if state.frontiers.of(Stream::Host).is_none()
            && self.free_extents(state) <= reserve(Stream::Host, kind)
        {
            return Some(Shortage::Extent);
        }
        state.buffer.shortage(ack, self.shape.page_bytes, value_len)
    }

    /// Waits until a page of a host has landed.
    pub(crate) async fn landing(&self) {
        self.state().buffer.await_page();
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
        state.unlanded.decide();
    }

    /// Waits until a page has landed, or a record that did not was undone, since there were `seen`
    /// of these. The caller knows that one of the two happens.
    pub(crate) async fn decision_after(&self, seen: u64) {
        {
            let mut state = self.state();
            if self.decisions() != seen {
                return;
            }
            state.unlanded.await_decision();
        }
        clock::park(Rank::Free, Stage::Latch).await;
    }

    /// Notes that an announced store has joined a page, or never will. The last one closes the
    /// page, so that its writers need not wait.
    pub(crate) fn retract(self: &Arc<Self>, state: &mut State) {
        if state.buffer.retract() {
            self.pad(state, Stream::Host);
        }
    }

    /// Programs what a stream's open page holds.
    pub(crate) fn pad(self: &Arc<Self>, state: &mut State, stream: Stream) {
        let Some(frontier) = state.frontiers.of(stream) else { return };
        if !frontier.builder.is_empty() {
            state.unlanded.padded += 1;
            self.turn_page(state, stream);
        }
    }

    /// Programs all open pages, and returns every page that has not landed.
    pub(crate) fn close_all(self: &Arc<Self>) -> Vec<Arc<Pending>> {
        let mut state = self.state();
        self.pad(&mut state, Stream::Host);
        self.pad(&mut state, Stream::Gc);
        state.unlanded.closed_in_order().into_iter().map(|(_, pages)| pages).collect()
    }

    /// Returns the pages of hosts that hold something and have not landed.
    pub(crate) fn unlanded_host_pages(&self) -> Vec<Arc<Pending>> {
        let state = self.state();
        let open = state.frontiers.of(Stream::Host);
        let filling = open.filter(|frontier| !frontier.builder.is_empty());
        let closed = state.unlanded.closed();
        let closed = closed.map(|(_, pending)| pending);
        closed.chain(filling.map(|frontier| &frontier.pending)).cloned().collect()
    }

    /// Erases an extent that was forgotten. Returns false if the medium cannot erase it: the log
    /// has one extent less then, for good on flash, and on a disk until it is erased again.
    pub(crate) async fn erase(&self, extent: ExtentId, class: Class) -> bool {
        let is_erased = self.media.reset(extent, class).await.is_ok();
        let mut state = self.state();
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
        self.state().space.next_failed()
    }

    /// Drops cached headers and values for the page at `at` after its program failed.
    fn forget_headers(&self, at: PageId) {
        let number = self.number(at.extent, at.page);
        let page = self.state().unlanded.get(number).and_then(|it| it.page.clone());
        let Some(view) = page.as_ref().and_then(|page| PageView::new(self.layout, page)) else {
            return;
        };
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
    }

    /// Handles the end of a page's program, which may have failed.
    pub(crate) fn landed(self: &Arc<Self>, at: PageId, result: Result<(), media::Error>) {
        if result.is_err_and(|error| error != media::Error::PowerLost) {
            self.not_landed(at);
        }
        let state = &mut *self.state();
        state.unlanded.remove(self.number(at.extent, at.page));
        self.note_landed(state, at.extent);
    }

    fn not_landed(self: &Arc<Self>, at: PageId) {
        let stream = self.state().extents.get(at.extent).label.stream;
        if stream != Stream::Index {
            self.forget_headers(at);
            self.give_up(&mut self.state(), at, stream);
        }
    }

    /// Tells readers which pages of an extent have settled.
    fn note_settled(&self, state: &mut State, id: ExtentId) {
        let unsettled = state.unlanded.first_unsettled(self.number(id, 0));
        let end = unsettled.unwrap_or_else(|| state.extents.get(id).pages());
        self.settled.set(id, end);
    }

    /// Forgets the batch that begins at `first`, which has landed or was undone.
    pub(crate) fn end_batch(&self, state: &mut State, first: Address) {
        state.unlanded.end_batch(first);
        let id = self.page_id(first).extent;
        if state.extents.find(id).is_some() {
            self.note_settled(state, id);
        }
    }

    /// Notes that a page of `extent` is no longer on its way.
    fn note_landed(&self, state: &mut State, id: ExtentId) {
        let extent = state.extents.get(id);
        extent.land_page();
        state.cleaning.note_landed(extent);
        let is_of_host = extent.label.stream == Stream::Host;
        self.note_settled(state, id);
        self.note_decision(state);
        if is_of_host {
            state.buffer.end_page();
        }
    }

    /// Handles the pages of `extent` that have landed, up to the first that has failed, which it
    /// returns for the caller to handle.
    fn land_ended(&self, extent: ExtentId) -> Option<Ended> {
        let (state, first) = (&mut *self.state(), self.number(extent, 0));
        // With the state locked no extent is reset that has a page in the list.
        let ends = self.media.as_disk()?.ends(extent);
        while let Some(ended) = state.unlanded.next_ended(first, &ends) {
            if ended.result.is_err() {
                return Some(ended);
            }
            self.note_landed(state, extent);
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
        while let Some(Ended { page, pending, result }) = self.land_ended(extent) {
            self.landed(PageId { extent, page }, result);
            pending.land_here(result);
        }
    }
}

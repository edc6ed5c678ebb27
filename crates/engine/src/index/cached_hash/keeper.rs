//! The keeper: writes dirty leaves, and frees their extents.
//!
//! A leaf is never rewritten in place. Its old page stays for the checkpoint that leads to it. An
//! extent is reset when it has no current leaf and a later checkpoint is complete. When the extents
//! that are kept for the index run low, the keeper moves the current leaves of those that have the
//! fewest, and asks for a checkpoint.

use super::Shared;
use super::fetch::Read;
use super::leaf::{ENTRY_BYTES, HEAD_BYTES, LeafId};
use super::state::State;
use crate::error::Error;
use crate::format::address::Address;
use crate::index::tables::TablePageName;
use base::Buf;
use clock::{Rank, Stage};
use media::ExtentId;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Most leaves that are written at a time: enough to keep many dies busy.
const BATCH_MAX: usize = 256;

/// Bytes that a leaf's record takes beside it.
const RECORD_BYTES: usize = 80;

/// Leaves that are moved at a time.
const MOVED_AT_A_TIME: usize = 32;

/// A leaf that is moved as it is, from where it lay.
type Moving = (LeafId, Address);

impl Shared {
    /// The background task of an index.
    pub(super) async fn keep_forever(self: Arc<Self>) {
        loop {
            if self.state().wants_writing(self.frames_max) && self.tables().begin_keeping() {
                self.turn_of_writing().await;
                self.tables().end_keeping();
            } else {
                self.state().idle = Some(clock::current());
                clock::park(Rank::Free, Stage::Index).await;
            }
        }
    }

    async fn turn_of_writing(self: &Arc<Self>) {
        let mut written = Ok(());
        if self.is_short() {
            written = self.win_back().await;
        }
        if written.is_ok() {
            self.take_writer().await;
            written = self.write_back((self.frames_max / 4).clamp(1, BATCH_MAX)).await;
            self.give_writer();
        }
        if written.is_err() {
            self.fail();
        }
    }

    /// Notes that the medium takes no more leaves. From then, only clean leaves are evicted, and
    /// dirty ones stay in memory.
    fn fail(&self) {
        let mut state = self.state();
        state.has_failed = true;
        state.grant(self.frames_max);
    }

    /// Waits until no other task writes leaves. The caller holds no latch and no permit.
    pub(super) async fn take_writer(&self) {
        let is_free = {
            let mut state = self.state();
            let is_free = !std::mem::replace(&mut state.writer.is_taken, true);
            if !is_free {
                state.writer.waiting.push_back(clock::current());
            }
            is_free
        };
        if !is_free {
            clock::park(Rank::Free, Stage::Index).await;
        }
    }

    pub(super) fn give_writer(&self) {
        let mut state = self.state();
        match state.writer.waiting.pop_front() {
            Some(next) => clock::wake(next),
            None => state.writer.is_taken = false,
        }
    }

    /// Writes up to `count` dirty leaves. The caller is the writer.
    pub(super) async fn write_back(&self, count: usize) -> Result<(), Error> {
        let extent_of = |address| self.tables().extent_of(address);
        let leaves = self.state().begin_writing(count, extent_of);
        let pages = leaves.iter().map(|(id, page)| (*id, page.clone())).collect();
        let written = self.write(pages).await;
        let mut state = self.state();
        for (number, (id, _)) in leaves.iter().enumerate() {
            let address = written.as_ref().ok().map(|addresses| addresses[number]);
            state.end_writing(*id, address, extent_of);
        }
        state.grant(self.frames_max);
        written.map(drop)
    }

    async fn write(&self, leaves: Vec<(LeafId, Buf)>) -> Result<Vec<Address>, Error> {
        self.state().counted.page_writes += leaves.len() as u64;
        let pages = leaves.into_iter().map(|(id, page)| (TablePageName(id.name()), page)).collect();
        self.tables().write_all(pages).await
    }

    fn is_short(&self) -> bool {
        self.tables().extents_left() <= self.reserve()
    }

    /// Unopened extents that the next checkpoint may need: to move the leaves of an extent, to
    /// write what is dirty, and for the root. The rest of the open extent does not count: a loss of
    /// power or a failed checkpoint loses it.
    fn reserve(&self) -> u32 {
        let shape = self.tables().log.shape;
        let extent_bytes = shape.extent_bytes();
        let state = self.state();
        let table = state.leaves() * state.leaf_bytes();
        let dirty = (self.frames_max as u64 * state.leaf_bytes()).min(table);
        // A quarter more for pages that are not full, and some whole pages.
        let written = (dirty + state.root_bytes()) * 5 / 4 + extent_bytes / 8;
        let bytes = table.min(extent_bytes) + written;
        u32::try_from(bytes.div_ceil(extent_bytes)).unwrap_or(u32::MAX)
    }

    /// Sealed extents of table pages, each with the current leaves in it, those with the fewest
    /// first.
    fn sealed(&self) -> Vec<(u32, ExtentId)> {
        let extents = self.tables().extents();
        let state = self.state();
        let sealed = extents.iter().filter(|extent| extent.is_sealed);
        let leaves_in = |id| state.leaves_in.get(&id).copied().unwrap_or(0);
        let mut sealed: Vec<_> = sealed.map(|extent| (leaves_in(extent.id), extent.id)).collect();
        sealed.sort_unstable();
        sealed
    }

    /// Frees extents: at once those that no checkpoint needs. If that is not enough, it moves the
    /// leaves of others, and the next checkpoint frees those.
    async fn win_back(self: &Arc<Self>) -> Result<(), Error> {
        self.reset_needless().await;
        if !self.is_short() {
            return Ok(());
        }
        self.empty_extents().await?;
        if self.tables().makes_checkpoints() {
            self.tables().checkpoint_ended().await;
        } else {
            // While a store is being opened it makes no checkpoint. If power is lost before the
            // next one, opening scans.
            self.tables().forget_checkpoint();
            self.reset_needless().await;
        }
        Ok(())
    }

    async fn reset_needless(&self) {
        self.tables().reset_needless(|| self.extents_in_use()).await;
    }

    /// Moves leaves out of extents until an eighth of all have none beside the reserve, as far as
    /// there is room to move them to.
    async fn empty_extents(self: &Arc<Self>) -> Result<(), Error> {
        let used = self.tables().extents().len();
        let (reserve, left) = (self.reserve() as usize, self.tables().extents_left() as usize);
        let wanted = reserve + (reserve + 2).max((used + left) / 8);
        let sealed = self.sealed();
        let (empty, filled): (Vec<_>, Vec<_>) =
            sealed.into_iter().partition(|(leaves, _)| *leaves == 0);
        let mut room = self.tables().log.shape.extent_bytes() / self.state().leaf_bytes();
        for (leaves, extent) in filled.into_iter().take(wanted.saturating_sub(left + empty.len())) {
            let Some(rest) = room.checked_sub(leaves.into()) else { break };
            room = rest;
            self.move_leaves(extent).await?;
        }
        Ok(())
    }

    /// Writes the current leaves of `extent` elsewhere, as they are.
    async fn move_leaves(self: &Arc<Self>, extent: ExtentId) -> Result<(), Error> {
        let leaves = self.state().leaves_of(|address| self.tables().extent_of(address) == extent);
        for some in leaves.chunks(MOVED_AT_A_TIME) {
            self.take_writer().await;
            let moved = self.move_some(some).await;
            self.give_writer();
            moved?;
        }
        Ok(())
    }

    async fn move_some(self: &Arc<Self>, leaves: &[Moving]) -> Result<(), Error> {
        let reads = leaves.iter().map(|&(id, address)| {
            let index = self.clone();
            async move { index.content_of(id, address).await }
        });
        let read = clock::join_all(reads.collect()).await;
        let moving: Vec<(Moving, Read)> = leaves
            .iter()
            .zip(read)
            .filter_map(|(leaf, read)| read.map(|read| (*leaf, read)))
            .collect();
        let pages = moving.iter().map(|((id, _), read)| (*id, read.leaf.encode(*id))).collect();
        let written = self.write(pages).await?;
        let mut state = self.state();
        for (((id, from), _), to) in moving.into_iter().zip(written) {
            if state.is_at(id, from) {
                state.point(id, Some(to), |address| self.tables().extent_of(address));
            }
        }
        Ok(())
    }

    /// Returns the leaf at `address`, unless the leaf is dirty, being written, or current
    /// elsewhere.
    async fn content_of(&self, id: LeafId, address: Address) -> Option<Read> {
        {
            let state = self.state();
            if !state.is_at(id, address) {
                return None;
            }
            if let Some(frame) = state.frames.peek(id) {
                return (!frame.dirty && !frame.writing).then(|| Read::of(frame.leaf.clone()));
            }
        }
        self.read_to_move(id, address).await
    }

    /// Returns the extents of current leaves.
    pub(super) fn extents_in_use(&self) -> BTreeSet<ExtentId> {
        self.state().leaves_in.keys().copied().collect()
    }
}

impl State {
    /// Returns the bytes that a leaf takes on flash at most, with its header, its name and its part
    /// of a summary.
    const fn leaf_bytes(&self) -> u64 {
        (HEAD_BYTES + self.entries_max * ENTRY_BYTES + RECORD_BYTES) as u64
    }

    /// Takes up to `count` dirty leaves to be written; an empty one needs no page.
    fn begin_writing(
        &mut self,
        count: usize,
        extent_of: impl Fn(Address) -> ExtentId + Copy,
    ) -> Vec<(LeafId, Buf)> {
        let mut pages = Vec::new();
        for id in self.frames.coldest_dirty(count) {
            let mut page = None;
            self.frames.update(id, |frame| {
                frame.dirty = false;
                frame.writing = frame.leaf.len() > 0;
                page = frame.writing.then(|| frame.leaf.encode(id));
            });
            match page {
                Some(page) => pages.push((id, page)),
                None => self.point(id, None, extent_of),
            }
        }
        pages
    }

    /// Handles the end of a leaf's writing to `address`; `None` when that failed.
    fn end_writing(
        &mut self,
        id: LeafId,
        address: Option<Address>,
        extent_of: impl Fn(Address) -> ExtentId,
    ) {
        if self.frames.peek(id).is_none() {
            // Its table was dropped.
            return;
        }
        self.frames.update(id, |frame| {
            frame.writing = false;
            frame.dirty |= address.is_none();
        });
        if address.is_some() {
            self.point(id, address, extent_of);
        }
    }

    /// Returns the leaves on flash for whose addresses `is_there`.
    fn leaves_of(&self, is_there: impl Fn(Address) -> bool) -> Vec<Moving> {
        let all = self.tables.iter().flat_map(|(id, table)| {
            table.directory.iter().map(|place| (*id, place.first, place.address))
        });
        all.filter_map(|(table, first, address)| {
            let address = address.filter(|address| is_there(*address))?;
            Some((LeafId { table, first }, address))
        })
        .collect()
    }

    /// Returns true when leaf `id` is current at `address`.
    pub(super) fn is_at(&self, id: LeafId, address: Address) -> bool {
        let table = self.tables.get(&id.table);
        table.is_some_and(|table| table.directory.leaf_of(id.first).address == Some(address))
    }
}

//! Reads leaves into memory. One task at a time reads a leaf, and waits for dies and channels only
//! ([`Rank::Page`]). Other tasks wait for that one.

use super::leaf::{HASH_BITS, Leaf, LeafId, kept};
use super::state::{Seek, State};
use super::{CachedHashIndex, Shared};
use crate::format::address::{Address, Candidates};
use crate::index::{Index, IndexEntry};
use crate::key_space::TableId;
use clock::{Class, Held, Rank, Stage};
use std::collections::BTreeMap;

/// A leaf as it was read.
pub(super) struct Read {
    pub(super) leaf: Leaf,
    /// It differs from the leaf on flash: a task with a permit keeps it in memory as dirty.
    is_changed: bool,
}

/// The outcome of reading a leaf.
enum Outcome {
    Read(Read),
    /// It is damaged; a task with a permit can rebuild it.
    Damaged,
    /// Another task read it, and has ended.
    Waited,
}

impl Read {
    /// Makes a leaf that equals the one on flash.
    pub(super) const fn of(leaf: Leaf) -> Self {
        Self { leaf, is_changed: false }
    }
}

impl CachedHashIndex {
    pub(super) async fn lookup_on_flash(&self, table: TableId, hash: u64) -> Candidates {
        let shared = &self.0;
        loop {
            let seek = self.state().seek(table, hash);
            let (id, address) = match seek {
                Seek::Nothing => return Candidates::new(),
                Seek::InMemory(id) => return self.state().candidates(id, hash),
                Seek::OnFlash(id, address) => (id, address),
            };
            let read = match shared.read_once(id, address, false).await {
                Outcome::Read(read) => read,
                Outcome::Damaged => {
                    self.mend(table, hash).await;
                    continue;
                }
                Outcome::Waited => continue,
            };
            let mut state = self.state();
            if state.seek(table, hash) == seek {
                let found = read.leaf.of(hash).collect();
                state.offer(id, read, shared.frames_max);
                return found;
            }
        }
    }

    /// Returns the entries from `from` on, at least `limit` if there are as many.
    pub(super) async fn scan_on_flash(
        &self,
        table: TableId,
        from: Option<u64>,
        limit: usize,
    ) -> Vec<IndexEntry> {
        let mut read = BTreeMap::new();
        loop {
            let missing = match self.state().gather(table, from.unwrap_or(0), limit, &read) {
                Ok(found) => return found,
                Err(missing) => missing,
            };
            let (id, address) = missing;
            match self.0.read_once(id, address, false).await {
                Outcome::Read(Read { leaf, .. }) => drop(read.insert(missing, leaf)),
                Outcome::Damaged => self.mend(table, id.first).await,
                Outcome::Waited => {}
            }
        }
    }

    /// Rebuilds the damaged leaf of `hash`, which makes it dirty. The caller holds no latch and no
    /// permit.
    async fn mend(&self, table: TableId, hash: u64) {
        let permit = self.admit(1).await;
        permit.note(self.0.load(table, hash).await);
    }
}

impl Shared {
    /// Brings the leaf of `hash` into memory, for a task that has a permit for it, and returns the
    /// number by which it is held there.
    pub(super) async fn load(&self, table: TableId, hash: u64) -> u64 {
        loop {
            let seek = self.state().seek(table, hash);
            let Seek::OnFlash(id, address) = seek else {
                return self.state().hold(table, hash);
            };
            let Outcome::Read(read) = self.read_once(id, address, true).await else { continue };
            let mut state = self.state();
            if state.seek(table, hash) == seek {
                state.take_in(id, read, self.frames_max);
                return state.hold(table, hash);
            }
        }
    }

    /// Returns the leaf at `address`, for the keeper to write elsewhere.
    pub(super) async fn read_to_move(&self, id: LeafId, address: Address) -> Option<Read> {
        loop {
            match self.read_once(id, address, true).await {
                Outcome::Read(read) => return Some(read),
                _ if !self.state().is_at(id, address) => return None,
                _ => {}
            }
        }
    }

    /// Reads a leaf, unless another task reads it: then waits for that task.
    async fn read_once(&self, id: LeafId, address: Address, mends: bool) -> Outcome {
        if self.is_loading(id) {
            clock::park(Rank::Page, Stage::Index).await;
            return Outcome::Waited;
        }
        let rank = Held::new(Rank::Page);
        let mut read = self.read(id, address).await;
        if read.is_none() && mends {
            read = Some(self.made_anew(id).await);
        }
        drop(rank);
        let waiters = self.state().loading.remove(&id).expect("it was entered above");
        waiters.into_iter().for_each(clock::wake);
        read.map_or(Outcome::Damaged, Outcome::Read)
    }

    /// Registers the current task as the reader of a leaf, or if there is one, as a waiter. Returns
    /// whether it is a waiter.
    fn is_loading(&self, id: LeafId) -> bool {
        let mut state = self.state();
        if let Some(waiters) = state.loading.get_mut(&id) {
            waiters.push(clock::current());
            return true;
        }
        state.loading.insert(id, Vec::new());
        false
    }

    /// Returns the leaf at `address`, unless it is damaged.
    async fn read(&self, id: LeafId, address: Address) -> Option<Read> {
        self.state().counted.page_reads += 1;
        let tables = self.tables();
        let page = tables.read(address, Class::HostRead).await.ok()?;
        let leaf = Leaf::decode(id, page.bytes()?)?;
        Some(self.state().without_stale(leaf, tables.extent_of(address)))
    }

    /// Rebuilds a damaged leaf from the log's records for its range of hashes. No task changes the
    /// leaf during this: it is not in memory, and only the current task may load it.
    async fn made_anew(&self, id: LeafId) -> Read {
        let range = self.state().range_of(id.table, id.first);
        let Some((_, end)) = range else { return Read::of(Leaf::default()) };
        let hashes = first_of(id.first)..=first_of(end - 1) | !first_of(u64::MAX);
        let entries = self.tables().entries_of(id.table, hashes).await;
        let leaf = entries.into_iter().map(|(hash, address)| (kept(hash), address)).collect();
        Read { leaf, is_changed: true }
    }
}

/// Returns the first whole hash of those whose kept bits are `hash`.
const fn first_of(hash: u64) -> u64 {
    hash << (64 - HASH_BITS)
}

impl State {
    /// Removes entries of a leaf that was read from `extent`: those whose records are gone since
    /// the leaf's checkpoint. They have been subtracted from the counts.
    fn without_stale(&self, leaf: Leaf, extent: media::ExtentId) -> Read {
        let Some(old) = self.old.as_ref().filter(|old| old.extents.contains(&extent)) else {
            return Read::of(leaf);
        };
        let all = leaf.len();
        let leaf = leaf.retaining(|address| old.survivors.has(address));
        let is_changed = leaf.len() < all;
        Read { leaf, is_changed }
    }

    /// Keeps a leaf that a lookup has read, if there is room.
    fn offer(&mut self, id: LeafId, read: Read, frames_max: usize) {
        if !read.is_changed && self.try_make_room(frames_max) {
            self.bring_in(id, read.leaf, frames_max);
        }
    }

    /// Keeps a leaf that was read under a permit.
    fn take_in(&mut self, id: LeafId, read: Read, frames_max: usize) {
        self.bring_in(id, read.leaf, frames_max);
        if read.is_changed {
            self.frames.update(id, |frame| frame.dirty = true);
        }
    }

    /// Returns the entries from `from` on, from memory or from leaves that were read; otherwise the
    /// leaf that has to be read first. A leaf at an address never changes on flash, so one that was
    /// read stays valid while its address is current.
    fn gather(
        &self,
        table: TableId,
        from: u64,
        limit: usize,
        read: &BTreeMap<(LeafId, Address), Leaf>,
    ) -> Result<Vec<IndexEntry>, (LeafId, Address)> {
        let mut found = Vec::new();
        let Some(known) = self.tables.get(&table) else { return Ok(found) };
        let mut place = Some(known.directory.leaf_of(from));
        let mut last = None;
        while let Some(at) = place {
            let id = LeafId { table, first: at.first };
            let leaf = match (self.frames.peek(id), at.address) {
                (Some(frame), _) => Some(&frame.leaf),
                (None, None) => None,
                (None, Some(address)) => Some(read.get(&(id, address)).ok_or((id, address))?),
            };
            for entry in leaf.into_iter().flat_map(|leaf| leaf.from(from)) {
                let hash = entry.hash();
                // Keys of one hash, the start's too, come together.
                if found.len() >= limit && last.is_some_and(|last| last != hash && last > from) {
                    return Ok(found);
                }
                let kept = hash << (64 - HASH_BITS);
                found.push(IndexEntry { hash: kept, address: entry.address() });
                last = Some(hash);
            }
            place = known.directory.next(at.first);
        }
        Ok(found)
    }
}

//! The state of the index. Each function is one step: no task sees a half-done change.

use super::directory::Directory;
use super::frames::{FRAME_BYTES, Frame, Frames};
use super::leaf::{ENTRY_BYTES, HASH_BITS, HEAD_BYTES, Leaf, LeafId};
use crate::format::address::{Address, Candidates};
use crate::index::IndexCounts;
use crate::index::survivors::Survivors;
use crate::key_space::TableId;
use clock::TaskId;
use hashbrown::HashMap;
use media::ExtentId;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// One more than the last hash.
const HASH_END: u64 = 1 << HASH_BITS;

/// Frames that an entry's permit stands for: that of its leaf, and another if that is split.
const FRAMES_OF_ENTRY: usize = 2;

/// A table in the index.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) directory: Directory,
    pub(super) entries: u64,
}

/// The permits that were given, and those that tasks wait for.
#[derive(Debug, Default)]
struct Permits {
    /// Entries that permits are out for.
    admitted: usize,
    /// Tasks that wait, with their numbers of entries, in FIFO order.
    waiting: VecDeque<(TaskId, u32)>,
    /// The places that permits hold in memory, by the numbers noted in them.
    noted: HashMap<u64, (TableId, u64), foldhash::fast::FixedState>,
    /// The number of holders of each place.
    held: BTreeMap<(TableId, u64), u32>,
    next: u64,
}

/// The extents of a restored checkpoint's table pages, and which of the records that they name
/// still exist.
#[derive(Debug)]
pub(super) struct Old {
    pub(super) extents: BTreeSet<ExtentId>,
    pub(super) survivors: Arc<Survivors>,
}

/// The right to write leaves, which one task has at a time.
#[derive(Debug, Default)]
pub(super) struct Writer {
    pub(super) is_taken: bool,
    pub(super) waiting: VecDeque<TaskId>,
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct State {
    /// Entries of a leaf from which on it is split.
    pub(super) entries_max: usize,
    pub(super) tables: BTreeMap<TableId, Table>,
    pub(super) frames: Frames,
    permits: Permits,
    /// Leaves that a task reads, and the tasks that wait for each.
    pub(super) loading: BTreeMap<LeafId, Vec<TaskId>>,
    /// Current leaves in each extent of table pages.
    pub(super) leaves_in: BTreeMap<ExtentId, u32>,
    pub(super) old: Option<Old>,
    /// The keeper's task while it has nothing to do.
    pub(super) idle: Option<TaskId>,
    pub(super) writer: Writer,
    /// No permit is given, because a checkpoint is about to be taken. Its task may wait in
    /// `freezer` for the last permit to be returned.
    pub(super) is_frozen: bool,
    pub(super) freezer: Option<TaskId>,
    pub(super) snapshot: Option<crate::index::Saved>,
    /// The medium takes no more leaves: dirty leaves stay in memory, even beyond the budget.
    pub(super) has_failed: bool,
    pub(super) counted: IndexCounts,
}

/// The place of a hash's leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seek {
    /// There is none, or an empty one.
    Nothing,
    InMemory(LeafId),
    OnFlash(LeafId, Address),
}

impl State {
    pub(super) fn new(entries_max: usize) -> Self {
        Self { entries_max, ..Self::default() }
    }

    /// Returns the leaf of `hash`, and the first hash beyond its range.
    pub(super) fn range_of(&self, table: TableId, hash: u64) -> Option<(LeafId, u64)> {
        let directory = &self.tables.get(&table)?.directory;
        let first = directory.leaf_of(hash).first;
        let end = directory.next(hash).map_or(HASH_END, |next| next.first);
        Some((LeafId { table, first }, end))
    }

    #[inline]
    pub(super) fn seek(&mut self, table: TableId, hash: u64) -> Seek {
        let Some(known) = self.tables.get(&table) else { return Seek::Nothing };
        let place = known.directory.leaf_of(hash);
        let id = LeafId { table, first: place.first };
        if self.frames.get(id).is_some() {
            return Seek::InMemory(id);
        }
        place.address.map_or(Seek::Nothing, |address| Seek::OnFlash(id, address))
    }

    /// Counts a hit or a miss, unless the entry is loaded: then it was counted when it was.
    pub(super) fn count(&mut self, table: TableId, hash: u64, is_hit: bool) {
        if !self.is_loaded(table, hash) {
            self.counted.hits += u64::from(is_hit);
            self.counted.misses += u64::from(!is_hit);
        }
    }

    pub(super) fn candidates(&self, id: LeafId, hash: u64) -> Candidates {
        self.frames.peek(id).into_iter().flat_map(|frame| frame.leaf.of(hash)).collect()
    }

    /// Returns true when the entries of `hash` can be changed at once.
    #[inline]
    pub(super) fn is_loaded(&self, table: TableId, hash: u64) -> bool {
        self.permits.held.contains_key(&(table, hash))
    }

    /// Keeps the leaf of `hash` in memory, until the number that is returned is given back.
    pub(super) fn hold(&mut self, table: TableId, hash: u64) -> u64 {
        let number = self.permits.next;
        self.permits.next += 1;
        self.permits.noted.insert(number, (table, hash));
        *self.permits.held.entry((table, hash)).or_default() += 1;
        number
    }

    fn may_admit(&self, entries: u32, frames_max: usize) -> bool {
        let permits = self.permits.admitted + entries as usize;
        let fits = self.frames.needed() + FRAMES_OF_ENTRY * permits <= frames_max;
        !self.is_frozen && (fits || self.has_failed)
    }

    /// Gives a permit for `entries` if no task waits for one and there is room.
    pub(super) fn try_admit(&mut self, entries: u32, frames_max: usize) -> bool {
        let admits = self.permits.waiting.is_empty() && self.may_admit(entries, frames_max);
        self.permits.admitted += if admits { entries as usize } else { 0 };
        self.wake_keeper(frames_max);
        admits
    }

    /// Lets `task` wait for a permit.
    pub(super) fn queue(&mut self, task: TaskId, entries: u32, frames_max: usize) {
        self.permits.waiting.push_back((task, entries));
        self.wake_keeper(frames_max);
    }

    /// Gives permits to the waiting tasks, in order, while there is room.
    pub(super) fn grant(&mut self, frames_max: usize) {
        while let Some((task, entries)) = self.permits.waiting.front().copied() {
            if !self.may_admit(entries, frames_max) {
                break;
            }
            self.permits.waiting.pop_front();
            self.permits.admitted += entries as usize;
            clock::wake(task);
        }
        self.wake_keeper(frames_max);
    }

    pub(super) fn release(&mut self, entries: u32, noted: &[u64], frames_max: usize) {
        for number in noted {
            let place = self.permits.noted.remove(number).expect("a permit is given back once");
            let held = self.permits.held.get_mut(&place).expect("what was noted is held");
            *held -= 1;
            if *held == 0 {
                self.permits.held.remove(&place);
            }
        }
        self.permits.admitted -= entries as usize;
        if self.permits.admitted == 0
            && let Some(freezer) = self.freezer.take()
        {
            clock::wake(freezer);
        }
        self.grant(frames_max);
    }

    pub(super) const fn has_permits_out(&self) -> bool {
        self.permits.admitted > 0
    }

    /// Returns true when leaves should be written: more than half of the frames have content that
    /// is not on flash, or a task waits for a permit.
    pub(super) fn wants_writing(&self, frames_max: usize) -> bool {
        let many = 2 * self.frames.needed() > frames_max;
        self.frames.has_dirty() && (many || !self.permits.waiting.is_empty()) && !self.has_failed
    }

    fn wake_keeper(&mut self, frames_max: usize) {
        if self.idle.is_some() && self.wants_writing(frames_max) {
            let keeper = self.idle.take().expect("it is idle");
            clock::wake(keeper);
        }
    }

    /// Makes room for a frame that a permit was given for.
    fn make_room(&mut self, frames_max: usize) {
        let has_room = self.has_failed || self.try_make_room(frames_max);
        assert!(has_room, "a permit stands for the frames that it needs");
    }

    /// Makes room for a frame, if there is a leaf that can go for it.
    pub(super) fn try_make_room(&mut self, frames_max: usize) -> bool {
        let held = &self.permits.held;
        let is_held = |frame: &Frame| {
            let (table, first) = (frame.id.table, frame.id.first);
            held.range((table, first)..(table, frame.end)).next().is_some()
        };
        self.frames.len() < frames_max || self.frames.evict(is_held)
    }

    /// Brings a leaf that was read into memory; the caller has a permit for it.
    pub(super) fn bring_in(&mut self, id: LeafId, leaf: Leaf, frames_max: usize) {
        self.make_room(frames_max);
        let (_, end) = self.range_of(id.table, id.first).expect("the leaf is in its directory");
        self.frames.add(id, end, leaf);
    }

    pub(super) fn insert(&mut self, table: TableId, hash: u64, new: Address, frames_max: usize) {
        self.tables.entry(table).or_default().entries += 1;
        let id = match self.seek(table, hash) {
            Seek::InMemory(id) => id,
            Seek::OnFlash(..) => panic!("a leaf that a permit holds stays in memory"),
            Seek::Nothing => {
                let (id, _) = self.range_of(table, hash).expect("the table was made above");
                self.bring_in(id, Leaf::default(), frames_max);
                id
            }
        };
        let mut upper = None;
        let entries_max = self.entries_max;
        self.frames.update(id, |frame| {
            frame.leaf.insert(hash, new);
            frame.dirty = true;
            if frame.leaf.len() > entries_max {
                upper = frame
                    .leaf
                    .split()
                    .map(|(first, leaf)| (first, std::mem::replace(&mut frame.end, first), leaf));
            }
        });
        if let Some((first, end, leaf)) = upper {
            let known = self.tables.get_mut(&table).expect("the table was made above");
            known.directory.split(first);
            self.make_room(frames_max);
            self.frames.add(LeafId { table, first }, end, leaf);
            self.frames.update(LeafId { table, first }, |frame| frame.dirty = true);
        }
    }

    pub(super) fn replace(
        &mut self,
        table: TableId,
        hash: u64,
        old: Address,
        new: Address,
    ) -> bool {
        self.change(table, hash, |leaf| leaf.replace(hash, old, new))
    }

    pub(super) fn remove(&mut self, table: TableId, hash: u64, old: Address) -> bool {
        let removed = self.change(table, hash, |leaf| leaf.remove(hash, old));
        if removed {
            self.tables.get_mut(&table).expect("it has the leaf").entries -= 1;
        }
        removed
    }

    fn change(
        &mut self,
        table: TableId,
        hash: u64,
        change: impl FnOnce(&mut Leaf) -> bool,
    ) -> bool {
        let id = match self.seek(table, hash) {
            Seek::Nothing => return false,
            Seek::InMemory(id) => id,
            Seek::OnFlash(..) => panic!("a leaf that a permit holds stays in memory"),
        };
        let mut changed = false;
        self.frames.update(id, |frame| {
            changed = change(&mut frame.leaf);
            frame.dirty |= changed;
        });
        changed
    }

    /// Returns false when the leaf of `hash` has entries of that hash only, and no room for
    /// another.
    pub(super) fn has_room(&mut self, table: TableId, hash: u64) -> bool {
        let Seek::InMemory(id) = self.seek(table, hash) else { return true };
        let frame = self.frames.peek(id).expect("it is in memory");
        !self.has_failed && frame.leaf.of(hash).count() < self.entries_max
    }

    /// Points a leaf to `address`, or to no place on flash.
    pub(super) fn point(
        &mut self,
        id: LeafId,
        address: Option<Address>,
        extent_of: impl Fn(Address) -> ExtentId,
    ) {
        let Some(table) = self.tables.get_mut(&id.table) else { return };
        let old = table.directory.leaf_of(id.first).address;
        table.directory.point(id.first, address);
        if let Some(old) = old {
            self.leave(extent_of(old));
        }
        if let Some(new) = address {
            *self.leaves_in.entry(extent_of(new)).or_default() += 1;
        }
    }

    /// Counts one current leaf less in `extent`.
    fn leave(&mut self, extent: ExtentId) {
        let leaves = self.leaves_in.get_mut(&extent).expect("a leaf is counted in its extent");
        *leaves -= 1;
        if *leaves == 0 {
            self.leaves_in.remove(&extent);
            // The extent may be reset, and be filled with new leaves.
            if let Some(old) = &mut self.old {
                old.extents.remove(&extent);
            }
        }
    }

    pub(super) fn drop_table(&mut self, table: TableId, extent_of: impl Fn(Address) -> ExtentId) {
        let Some(known) = self.tables.remove(&table) else { return };
        for address in known.directory.iter().filter_map(|place| place.address) {
            self.leave(extent_of(address));
        }
        self.frames.drop_all(|id| id.table == table);
    }

    pub(super) fn entries(&self) -> u64 {
        self.tables.values().map(|table| table.entries).sum()
    }

    /// Returns the number of entries but those of the store itself.
    pub(super) fn keys(&self) -> u64 {
        let own = self.tables.get(&TableId::STORE).map_or(0, |table| table.entries);
        self.entries() - own
    }

    pub(super) fn dram_bytes(&self) -> u64 {
        let directories: u64 = self.tables.values().map(|table| table.directory.bytes()).sum();
        directories + self.frames.len() as u64 * FRAME_BYTES
    }

    /// Returns the number of leaves on flash.
    pub(super) fn leaves(&self) -> u64 {
        self.leaves_in.values().map(|leaves| u64::from(*leaves)).sum()
    }

    pub(super) fn counts(&self) -> IndexCounts {
        let table_bytes = self.leaves() * HEAD_BYTES as u64 + self.entries() * ENTRY_BYTES as u64;
        IndexCounts { dram_bytes: self.dram_bytes(), table_bytes, ..self.counted }
    }
}

//! The entries of a lane as they were when a checkpoint began.
//!
//! The lane lists its changes from that instant on until it is copied, and they are undone in the
//! copy. A table that is dropped in between stays too: the records of its key space say whether the
//! drop outlives a loss of power.
//!
//! The entries are copied range by range of their hashes, and change in between. With each range
//! the lane hands over the changes that it has listed since the one before. All changes since the
//! checkpoint began are known then, so each range is as it was, whenever it is copied. The lane's
//! lock is held for the copy of a range alone.

use crate::format::address::Address;
use crate::key_space::TableId;
use crate::lane::entries::{Change, Entries};
use std::collections::BTreeMap;

/// The changes of a lane since a checkpoint began.
#[derive(Default)]
pub(super) struct Undo {
    /// By entry: how many times more often it went than it came.
    entries: BTreeMap<(TableId, u32, Address), i32>,
}

/// Some entries of a table as they are now, in the order of their hashes.
pub(super) struct CopiedRange {
    table: TableId,
    from: u32,
    entries: Vec<(u32, Address)>,
    /// The first hash that may come after them; `None` at the end of the table.
    pub(super) next: Option<u32>,
    /// What has changed in the lane since the range before was copied.
    pub(super) changes: Vec<Change>,
}

impl Entries {
    /// Returns the tables that the checkpoint keeps, and maybe new ones, which are empty for it.
    pub(super) fn frozen_tables(&self) -> Vec<TableId> {
        self.tables.iter().chain(&self.dropped).map(|(id, _)| *id).collect()
    }

    /// Copies about `limit` entries of a table whose hashes are at least `from`, and hands over the
    /// changes that the lane has listed.
    pub(super) fn copy_range(&mut self, table: TableId, from: u32, limit: usize) -> CopiedRange {
        let mut known = self.tables.iter().chain(&self.dropped);
        let slots = known.find(|(known, _)| *known == table).map(|(_, table)| table.from(from));
        let mut entries: Vec<(u32, Address)> = Vec::with_capacity(limit);
        let mut next = None;
        for slot in slots.into_iter().flatten() {
            // Equal hashes are in one range.
            if entries.len() >= limit && entries.last().is_some_and(|last| last.0 != slot.hash) {
                next = Some(slot.hash);
                break;
            }
            entries.push((slot.hash, slot.address()));
        }
        let changes = self.undo.as_mut().map(std::mem::take).unwrap_or_default();
        CopiedRange { table, from, entries, next, changes }
    }

    /// Ends what the checkpoint began: from now on changes are not listed.
    pub(super) fn thaw(&mut self) {
        self.undo = None;
        self.dropped.clear();
    }
}

impl Undo {
    pub(super) fn add(&mut self, changes: &[Change]) {
        for Change { table, slot, is_new } in changes {
            let entry = (*table, slot.hash, slot.address());
            let times = self.entries.entry(entry).or_default();
            *times += if *is_new { -1 } else { 1 };
            if *times == 0 {
                self.entries.remove(&entry);
            }
        }
    }

    /// Returns a range of entries as they were when the checkpoint began. The changes of the lane
    /// up to its copy have been added.
    pub(super) fn undo(&self, copied: CopiedRange) -> Vec<(u32, Address)> {
        let CopiedRange { table, from, mut entries, next, .. } = copied;
        let changed = self.entries.range((table, from, Address::MIN)..);
        let changed = changed
            .take_while(|((of, hash, _), _)| *of == table && next.is_none_or(|next| *hash < next));
        let (mut came, mut went) = (Vec::new(), Vec::new());
        for ((_, hash, address), times) in changed {
            let list = if *times < 0 { &mut came } else { &mut went };
            list.push((*hash, *address));
        }
        if !came.is_empty() {
            entries.retain(|entry| came.binary_search(entry).is_err());
        }
        if !went.is_empty() {
            entries.append(&mut went);
            entries.sort_by_key(|entry| entry.0);
        }
        entries
    }
}

#[cfg(test)]
mod tests {
    use super::Undo;
    use crate::format::address::Address;
    use crate::hashed_key::HashedKey;
    use crate::index::Index;
    use crate::index::hash::{HashIndex, join};
    use crate::key_space::{KeySpaceId, TableId};
    use base::limits::LANES;
    use base::{Key, Rng};
    use std::collections::{BTreeMap, BTreeSet};
    use std::sync::Arc;

    type Model = BTreeMap<(TableId, Address), u64>;

    /// The entries of a lane at the freeze, by table, in the order in which they were copied.
    type Saved = BTreeMap<TableId, Vec<(u32, Address)>>;

    /// Copies a lane in ranges of a few entries, and calls `between` after each. The lane thaws.
    fn save(index: &HashIndex, lane: usize, mut between: impl FnMut()) -> Saved {
        let (mut saved, hash) = (Saved::new(), join((lane, 0)));
        let (tables, mut undo) =
            (index.lanes.lock(hash).of(hash).entries.frozen_tables(), Undo::default());
        for table in tables {
            let (run, mut next) = (saved.entry(table).or_default(), Some(0));
            while let Some(from) = next {
                let range = index.lanes.lock(hash).of(hash).entries.copy_range(table, from, 3);
                // The range is of the instant at which it was copied.
                between();
                next = range.next;
                undo.add(&range.changes);
                run.extend(undo.undo(range));
            }
            assert!(run.is_sorted_by_key(|entry| entry.0), "in the order of hashes");
        }
        index.lanes.lock(hash).of(hash).entries.thaw();
        saved
    }

    /// Changes a random key's entry in a random table. `next` is an address that is not in use.
    fn change(index: &HashIndex, entries: &mut Model, rng: &mut Rng, next: Address) {
        let generation = u32::try_from(rng.below(2)).unwrap();
        let table = TableId { space: KeySpaceId(1), generation };
        let known: Vec<_> = entries.iter().filter(|((id, _), _)| *id == table).collect();
        let picked = rng.below(known.len() as u64 + 1);
        let picked = known.get(usize::try_from(picked).unwrap());
        let picked = picked.map(|((_, address), number)| (*address, **number));
        let Some((address, number)) = picked.filter(|_| rng.below(3) > 0) else {
            let number = rng.below(1 << 40);
            let key = Key::new(&number.to_le_bytes()).unwrap();
            index.insert(index.lanes.lock(key.hash()).of(key.hash()), table, (&key).into(), next);
            entries.insert((table, next), number);
            return;
        };
        let key = Key::new(&number.to_le_bytes()).unwrap();
        entries.remove(&(table, address));
        let mut locked = index.lanes.lock(key.hash());
        let lane = locked.of(key.hash());
        if rng.below(2) == 0 {
            index.remove(lane, table, HashedKey::new(&key), address);
        } else {
            index.replace(lane, table, HashedKey::new(&key), address, next);
            entries.insert((table, next), number);
        }
    }

    fn none_is_dropped(index: &HashIndex) -> bool {
        let mut none_is = true;
        index.lanes.each(|lane| none_is &= lane.entries.dropped.is_empty());
        none_is
    }

    #[test]
    fn a_table_that_is_dropped_is_saved_as_it_was_at_the_freeze() {
        let (index, mut rng) = (HashIndex::new(&Arc::default()), Rng::new(1));
        let (mut entries, mut next) = (Model::new(), 0);
        let mut some_changes = |entries: &mut Model, count: u64| {
            for _ in 0..count {
                next += 1;
                change(&index, entries, &mut rng, Address::from_bits(next));
            }
        };
        some_changes(&mut entries, 400);
        let table = TableId { space: KeySpaceId(1), generation: 1 };
        index.lanes.lock_each().each(|lane| index.freeze_lane(lane));
        let expected: BTreeSet<_> = entries.keys().copied().collect();
        let mut found = BTreeSet::new();
        let mut ranges = 0;
        for lane in 0..LANES {
            // The table is dropped in the middle of a lane.
            let between = || {
                ranges += 1;
                if ranges == 40 {
                    some_changes(&mut entries, 50);
                    index.drop_table(table);
                }
            };
            for (table, run) in save(&index, lane, between) {
                found.extend(run.into_iter().map(|(_, address)| (table, address)));
            }
        }
        assert!(ranges > 80, "{ranges} ranges");
        assert_eq!(found, expected);
        assert!(none_is_dropped(&index), "none stays");
        entries.retain(|(id, _), _| *id != table);
        assert_eq!(index.entries(), entries.len() as u64);
        index.lanes.lock_each().each(|lane| index.freeze_lane(lane));
        index.drop_table(TableId { generation: 0, ..table });
        index.thaw();
        assert!(none_is_dropped(&index), "if it gives way");
        assert_eq!(index.entries(), 0);
    }

    #[test]
    fn what_is_saved_is_what_was_there_at_the_freeze() {
        for seed in 0..40 {
            let (index, mut rng) = (HashIndex::new(&Arc::default()), Rng::new(seed));
            let (mut entries, mut next) = (Model::new(), 0);
            let mut some_changes = |entries: &mut Model, rng: &mut Rng, count: u64| {
                for _ in 0..count {
                    next += 1;
                    change(&index, entries, rng, Address::from_bits(next));
                }
            };
            some_changes(&mut entries, &mut rng, 400);
            index.lanes.lock_each().each(|lane| index.freeze_lane(lane));
            let expected: BTreeSet<_> = entries.keys().copied().collect();
            let mut found = BTreeSet::new();
            for lane in 0..LANES {
                let between = || some_changes(&mut entries, &mut rng, 3);
                for (table, run) in save(&index, lane, between) {
                    found.extend(run.into_iter().map(|(_, address)| (table, address)));
                }
            }
            assert_eq!(found, expected, "seed {seed}");
        }
    }
}

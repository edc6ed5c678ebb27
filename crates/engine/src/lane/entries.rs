//! The entries of the `hash` index in a lane, 12 bytes each, in the order of their keys' hashes.
//!
//! A table is an array in which entries stand sorted by 32 bits of the hash, each at or after its
//! home place, which is proportional to the hash (linear probing that keeps order; Amble and Knuth,
//! 1974). So a lookup ends at the first greater hash, a scan is a walk, and growing needs no keys.
//! Removing shifts the rest of the run back; there are no tombstones.

use crate::format::address::{Address, Candidates};
use crate::hashed_key::hash_in_lane;
use crate::key_space::TableId;
use crate::lane::locations;
use smallvec::SmallVec;

/// The tables of all key spaces, for the hashes of a lane.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    pub(crate) tables: SmallVec<[(TableId, Table); 2]>,
    /// What changed since a checkpoint began, until it has this lane.
    pub(crate) undo: Option<Vec<Change>>,
    /// Tables that were dropped in that time, as they were at the drop.
    pub(crate) dropped: Vec<(TableId, Table)>,
}

/// An entry that came or went since a checkpoint began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    pub(crate) table: TableId,
    pub(crate) slot: Slot,
    pub(crate) is_new: bool,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Slot {
    /// The 32 bits of the hash below those that choose the lane.
    pub(crate) hash: u32,
    pub(crate) page: u32,
    pub(crate) unit: u16,
    pub(crate) used: bool,
}

impl Slot {
    pub(crate) fn new(hash: u32, address: Address) -> Self {
        let bits = address.to_bits();
        #[expect(clippy::cast_possible_truncation, reason = "the upper 32 and lower 16 of 48 bits")]
        let (page, unit) = ((bits >> 16) as u32, bits as u16);
        Self { hash, page, unit, used: true }
    }

    pub(crate) fn address(self) -> Address {
        Address::from_bits((u64::from(self.page) << 16) | u64::from(self.unit))
    }
}

#[derive(Debug)]
pub(crate) struct Table {
    /// `buckets` home places and some more, for what is shifted past the last.
    pub(crate) slots: Vec<Slot>,
    pub(crate) buckets: usize,
    pub(crate) len: usize,
}

impl Table {
    pub(crate) const BUCKETS_MIN: usize = 16;
    const TAIL: usize = 16;

    pub(crate) fn new(buckets: usize) -> Self {
        Self { slots: vec![Slot::default(); buckets + Self::TAIL], buckets, len: 0 }
    }

    #[inline]
    fn home(&self, hash: u32) -> usize {
        locations::home(hash, self.buckets)
    }

    /// The first slot at or after the home of `hash` that is free or holds no smaller hash.
    #[inline]
    pub(crate) fn find(&self, hash: u32) -> usize {
        let mut at = self.home(hash);
        while self.slots.get(at).is_some_and(|slot| slot.used && slot.hash < hash) {
            at += 1;
        }
        at
    }

    /// Returns the used slots whose hashes are at least `hash`, in their order.
    pub(crate) fn from(&self, hash: u32) -> impl Iterator<Item = &Slot> {
        let rest = self.slots.get(self.find(hash)..).unwrap_or_default();
        rest.iter().filter(|slot| slot.used)
    }

    /// The slots whose hash is `hash`, and the place of the first.
    #[inline]
    fn run(&self, hash: u32) -> (usize, impl Iterator<Item = &Slot>) {
        let start = self.find(hash);
        let rest = self.slots.get(start..).unwrap_or_default().iter();
        (start, rest.take_while(move |slot| slot.used && slot.hash == hash))
    }

    /// Returns the addresses of the entries with this hash.
    #[inline]
    pub(crate) fn lookup(&self, hash: u32) -> Candidates {
        let mut found = Candidates::new();
        self.run(hash).1.for_each(|slot| found.push(slot.address()));
        found
    }

    fn position(&self, hash: u32, address: Address) -> Option<usize> {
        let (start, mut run) = self.run(hash);
        Some(start + run.position(|slot| slot.address() == address)?)
    }

    fn insert(&mut self, slot: Slot) {
        // Seven eighths full: a lookup of a key that exists looks at five slots on average, which
        // are a line of the cache.
        if (self.len + 1) * 8 > self.buckets * 7 {
            self.grow();
        }
        let at = self.find(slot.hash);
        let gap = self.slots[at.min(self.slots.len())..].iter().position(|slot| !slot.used);
        let gap = match gap {
            Some(offset) => at + offset,
            None => self.lengthen(),
        };
        self.slots.copy_within(at..gap, at + 1);
        self.slots[at] = slot;
        self.len += 1;
    }

    fn remove_at(&mut self, at: usize) {
        let run = self.slots[at + 1..].iter().zip(at + 1..);
        let shifted =
            run.take_while(|(slot, place)| slot.used && self.home(slot.hash) < *place).count();
        self.slots.copy_within(at + 1..at + 1 + shifted, at);
        self.slots[at + shifted] = Slot::default();
        self.len -= 1;
    }

    /// Adds a slot behind the others, and returns its place.
    fn lengthen(&mut self) -> usize {
        self.slots.reserve_exact(Self::TAIL);
        self.slots.push(Slot::default());
        self.slots.len() - 1
    }

    /// Makes room for an eighth as many entries again, so that it is never less than seven ninths
    /// full.
    fn grow(&mut self) {
        let mut grown = Self::new(self.buckets + (self.buckets / 8).max(Self::BUCKETS_MIN));
        let used = self.slots.iter().filter(|slot| slot.used);
        used.fold(0, |next, slot| grown.append(*slot, next));
        *self = grown;
    }

    /// Adds the slot that follows all others, the last of which is before place `next`. Returns the
    /// place after it.
    pub(crate) fn append(&mut self, slot: Slot, next: usize) -> usize {
        let at = self.home(slot.hash).max(next);
        if at == self.slots.len() {
            self.lengthen();
        }
        self.slots[at] = slot;
        self.len += 1;
        at + 1
    }
}

impl Entries {
    #[inline]
    pub(crate) fn table(&self, id: TableId) -> Option<&Table> {
        self.tables.iter().find(|(known, _)| *known == id).map(|(_, table)| table)
    }

    #[inline]
    fn table_mut(&mut self, id: TableId) -> Option<&mut Table> {
        self.tables.iter_mut().find(|(known, _)| *known == id).map(|(_, table)| table)
    }

    fn table_or_new(&mut self, id: TableId) -> &mut Table {
        let known = self.tables.iter().position(|(known, _)| *known == id);
        let at = known.unwrap_or_else(|| {
            self.tables.push((id, Table::new(Table::BUCKETS_MIN)));
            self.tables.len() - 1
        });
        &mut self.tables[at].1
    }

    /// Notes a change for a checkpoint that does not have this lane yet.
    #[inline]
    fn note(&mut self, table: TableId, slot: Slot, is_new: bool) {
        if let Some(undo) = &mut self.undo {
            undo.push(Change { table, slot, is_new });
        }
    }

    pub(crate) fn insert(&mut self, table: TableId, hash: u64, new: Address) {
        let slot = Slot::new(hash_in_lane(hash), new);
        self.table_or_new(table).insert(slot);
        self.note(table, slot, true);
    }

    /// Points the entry at `old` to `new`. False when there is no such entry.
    pub(crate) fn replace(
        &mut self,
        table: TableId,
        hash: u64,
        old: Address,
        new: Address,
    ) -> bool {
        let hash = hash_in_lane(hash);
        let Some(slots) = self.table_mut(table) else { return false };
        let Some(at) = slots.position(hash, old) else { return false };
        let slot = Slot::new(hash, new);
        let before = std::mem::replace(&mut slots.slots[at], slot);
        self.note(table, before, false);
        self.note(table, slot, true);
        true
    }

    /// Removes the entry at `old`. False when there is none.
    pub(crate) fn remove(&mut self, table: TableId, hash: u64, old: Address) -> bool {
        let hash = hash_in_lane(hash);
        let Some(slots) = self.table_mut(table) else { return false };
        let Some(at) = slots.position(hash, old) else { return false };
        slots.remove_at(at);
        self.note(table, Slot::new(hash, old), false);
        true
    }

    /// Drops a table. A checkpoint that does not have this lane yet still needs it.
    pub(crate) fn drop_table(&mut self, table: TableId) {
        let Some(at) = self.tables.iter().position(|(known, _)| *known == table) else { return };
        let dropped = self.tables.remove(at);
        if self.undo.is_some() {
            self.dropped.push(dropped);
        }
    }

    /// Returns the number of entries in all tables.
    pub(crate) fn len(&self) -> u64 {
        self.tables.iter().map(|(_, table)| table.len as u64).sum()
    }

    /// Returns the memory that they take.
    pub(crate) fn memory_bytes(&self) -> usize {
        let of_table = |(_, table): &(TableId, Table)| table.slots.capacity() * size_of::<Slot>();
        let tables = self.tables.iter().chain(&self.dropped);
        size_of::<Self>() + tables.map(of_table).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;
    use std::collections::BTreeMap;

    fn entries(table: &Table) -> Vec<(u32, u64)> {
        let used = table.slots.iter().filter(|slot| slot.used);
        used.map(|slot| (slot.hash, slot.address().to_bits())).collect()
    }

    /// Random inserts and removals with few distinct hashes, so that runs are long and hashes
    /// equal.
    #[test]
    fn a_table_holds_what_a_sorted_map_holds() {
        for seed in 0..50 {
            let mut rng = Rng::new(seed);
            let mut table = Table::new(Table::BUCKETS_MIN);
            let mut model: BTreeMap<u64, u32> = BTreeMap::new();
            let spread = [1 << 24, 1 << 31, 3][usize::try_from(seed % 3).unwrap()];
            for address in 0..400 {
                #[expect(clippy::cast_possible_truncation, reason = "a hash of 32 bits")]
                let hash = (rng.below(60) * spread) as u32;
                if rng.below(3) > 0 {
                    table.insert(Slot::new(hash, Address::from_bits(address)));
                    model.insert(address, hash);
                } else if let Some((&victim, &hash)) = model.iter().next() {
                    let at = table.position(hash, Address::from_bits(victim)).unwrap();
                    table.remove_at(at);
                    model.remove(&victim);
                }
                let mut expected: Vec<_> = model.iter().map(|(a, h)| (*h, *a)).collect();
                let mut found = entries(&table);
                assert!(found.is_sorted_by_key(|entry| entry.0), "in the order of hashes");
                expected.sort_unstable();
                found.sort_unstable();
                assert_eq!(found, expected);
                for (hash, address) in expected {
                    assert!(table.position(hash, Address::from_bits(address)).is_some());
                }
            }
        }
    }
}

//! The `hash` index: all entries in memory, 12 bytes each, in the order of their keys' hashes.
//!
//! A lane's table is an array in which entries stand sorted by 32 bits of the hash, each at or
//! after its home place, which is proportional to the hash (linear probing that keeps order; Amble
//! and Knuth, 1974). So a lookup ends at the first greater hash, a scan is a walk, and growing
//! needs no keys. Removing shifts the rest of the run back; there are no tombstones.

mod run;
mod saving;
mod whole;

use crate::error::Error;
use crate::format::address::Address;
use crate::index::survivors::Survivors;
use crate::index::tables::Tables;
use crate::index::{Answer, Candidates, EntriesFrom, HashedKey, Index, Saved};
use crate::key_space::TableId;
use base::Key;
use base::limits::LANES;
use clock::LocalFuture;
use prefetch_index::prefetch_index;
use saving::Change;
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const LANE_BITS: u32 = LANES.trailing_zeros();

/// The index of the design, all in memory: 38 bits of each key's hash and an address, 12 bytes an
/// entry. Hosts list keys in the order of (hash, key).
#[derive(Debug)]
pub struct HashIndex {
    lanes: Vec<Mutex<Lane>>,
}

/// A shard of the index: the tables of all key spaces, for some of the hashes.
#[derive(Debug, Default)]
struct Lane {
    tables: SmallVec<[(TableId, Table); 2]>,
    /// What changed since a checkpoint began, until it has this lane.
    undo: Option<Vec<Change>>,
    /// Tables that were dropped meanwhile, as they were then.
    dropped: Vec<(TableId, Table)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// The 32 bits of the hash below those that choose the lane.
    hash: u32,
    page: u32,
    unit: u16,
    used: bool,
}

impl Slot {
    fn new(hash: u32, address: Address) -> Self {
        let bits = address.to_bits();
        #[expect(clippy::cast_possible_truncation, reason = "the upper 32 and lower 16 of 48 bits")]
        let (page, unit) = ((bits >> 16) as u32, bits as u16);
        Self { hash, page, unit, used: true }
    }

    fn address(self) -> Address {
        Address::from_bits((u64::from(self.page) << 16) | u64::from(self.unit))
    }
}

#[derive(Debug)]
struct Table {
    /// `buckets` home places and some more, for what is shifted past the last.
    slots: Vec<Slot>,
    buckets: usize,
    len: usize,
}

impl Table {
    const BUCKETS_MIN: usize = 16;
    const TAIL: usize = 16;

    fn new(buckets: usize) -> Self {
        Self { slots: vec![Slot::default(); buckets + Self::TAIL], buckets, len: 0 }
    }

    /// Monotonic in the hash, which keeps the order when the table grows.
    #[inline]
    fn home(&self, hash: u32) -> usize {
        ((u64::from(hash) * self.buckets as u64) >> 32) as usize
    }

    /// The first slot at or after the home of `hash` that is free or holds no smaller hash.
    #[inline]
    fn find(&self, hash: u32) -> usize {
        let mut at = self.home(hash);
        while self.slots.get(at).is_some_and(|slot| slot.used && slot.hash < hash) {
            at += 1;
        }
        at
    }

    /// The slots whose hash is `hash`, and the place of the first.
    #[inline]
    fn run(&self, hash: u32) -> (usize, impl Iterator<Item = &Slot>) {
        let start = self.find(hash);
        let rest = self.slots.get(start..).unwrap_or_default().iter();
        (start, rest.take_while(move |slot| slot.used && slot.hash == hash))
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
    fn append(&mut self, slot: Slot, next: usize) -> usize {
        let at = self.home(slot.hash).max(next);
        if at == self.slots.len() {
            self.lengthen();
        }
        self.slots[at] = slot;
        self.len += 1;
        at + 1
    }
}

impl Lane {
    #[inline]
    fn table(&mut self, id: TableId) -> Option<&mut Table> {
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
}

impl Default for HashIndex {
    fn default() -> Self {
        Self { lanes: (0..LANES).map(|_| Mutex::default()).collect() }
    }
}

#[inline]
const fn split(hash: u64) -> (usize, u32) {
    ((hash >> (64 - LANE_BITS)) as usize, (hash << LANE_BITS >> 32) as u32)
}

/// The least hash that [`split`] takes apart so.
const fn join((lane, hash): (usize, u32)) -> u64 {
    (lane as u64) << (64 - LANE_BITS) | (hash as u64) << (32 - LANE_BITS)
}

impl HashIndex {
    #[inline]
    fn lane(&self, lane: usize) -> MutexGuard<'_, Lane> {
        self.lanes[lane].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Entries from lane and hash `first` on: at least `limit`, of which one is after `passed`, or
    /// all that are left. With them the lane and hash of the next entry.
    fn entries_at(
        &self,
        table: TableId,
        first: (usize, u32),
        passed: Option<(usize, u32)>,
        limit: usize,
    ) -> (Vec<Address>, Option<(usize, u32)>) {
        let mut found = Vec::new();
        let mut last = None;
        for lane in first.0..LANES {
            let mut guard = self.lane(lane);
            let Some(table) = guard.table(table) else { continue };
            let at = if lane == first.0 { table.find(first.1) } else { 0 };
            let rest = &table.slots[at.min(table.slots.len())..];
            for slot in rest.iter().filter(|slot| slot.used) {
                let place = Some((lane, slot.hash));
                if last != place && last > passed && found.len() >= limit {
                    return (found, place);
                }
                found.push(slot.address());
                last = place;
            }
        }
        (found, None)
    }
}

impl Index for HashIndex {
    #[inline]
    fn lookup<'a>(&'a self, table: TableId, key: HashedKey<'a>) -> Answer<'a, Candidates> {
        let (lane, hash) = split(key.hash);
        let mut found = Candidates::new();
        if let Some(table) = self.lane(lane).table(table) {
            for slot in table.run(hash).1 {
                found.push(slot.address());
            }
        }
        Answer::now(found)
    }

    #[inline]
    fn prefetch(&self, table: TableId, key: HashedKey<'_>) {
        let (lane, hash) = split(key.hash);
        if let Some(table) = self.lane(lane).table(table) {
            prefetch_index(&table.slots, table.home(hash));
        }
    }

    fn insert<'a>(&'a self, table: TableId, key: HashedKey<'a>, new: Address) -> Answer<'a, ()> {
        let (lane, hash) = split(key.hash);
        let (mut lane, slot) = (self.lane(lane), Slot::new(hash, new));
        lane.table_or_new(table).insert(slot);
        lane.note(table, slot, true);
        Answer::now(())
    }

    fn replace<'a>(
        &'a self,
        table: TableId,
        key: HashedKey<'a>,
        old: Address,
        new: Address,
    ) -> Answer<'a, bool> {
        let (lane, hash) = split(key.hash);
        let mut lane = self.lane(lane);
        let Some(slots) = lane.table(table) else { return Answer::now(false) };
        let at = slots.position(hash, old);
        if let Some(at) = at {
            let slot = Slot::new(hash, new);
            let before = std::mem::replace(&mut slots.slots[at], slot);
            lane.note(table, before, false);
            lane.note(table, slot, true);
        }
        Answer::now(at.is_some())
    }

    fn remove<'a>(&'a self, table: TableId, key: HashedKey<'a>, old: Address) -> Answer<'a, bool> {
        let (lane, hash) = split(key.hash);
        let mut lane = self.lane(lane);
        let Some(slots) = lane.table(table) else { return Answer::now(false) };
        let at = slots.position(hash, old);
        if let Some(at) = at {
            slots.remove_at(at);
            lane.note(table, Slot::new(hash, old), false);
        }
        Answer::now(at.is_some())
    }

    fn scan<'a>(
        &'a self,
        table: TableId,
        from: Option<HashedKey<'a>>,
        limit: usize,
    ) -> Answer<'a, Vec<Address>> {
        let first = from.map_or((0, 0), |key| split(key.hash));
        Answer::now(self.entries_at(table, first, Some(first), limit).0)
    }

    fn entries_from(&self, table: TableId, from: u64, limit: usize) -> Option<EntriesFrom> {
        let (found, next) = self.entries_at(table, split(from), None, limit);
        Some((found, next.map(join)))
    }

    fn compare(&self, a: &Key, b: &Key) -> Ordering {
        a.hash().cmp(&b.hash()).then_with(|| a.cmp(b))
    }

    fn is_by_hash(&self) -> bool {
        true
    }

    fn drop_table(&self, table: TableId) {
        for lane in 0..LANES {
            let mut lane = self.lane(lane);
            let Some(at) = lane.tables.iter().position(|(known, _)| *known == table) else {
                continue;
            };
            let dropped = lane.tables.remove(at);
            if lane.undo.is_some() {
                lane.dropped.push(dropped);
            }
        }
    }

    fn entries(&self) -> u64 {
        let of_lane =
            |lane| self.lane(lane).tables.iter().map(|(_, table)| table.len as u64).sum::<u64>();
        (0..LANES).map(of_lane).sum()
    }

    fn memory_bytes(&self) -> u64 {
        let of_table = |(_, table): &(TableId, Table)| table.slots.capacity() * size_of::<Slot>();
        let of_lane = |lane| {
            let lane: MutexGuard<'_, Lane> = self.lane(lane);
            let tables = lane.tables.iter().chain(&lane.dropped);
            size_of::<Lane>() + tables.map(of_table).sum::<usize>()
        };
        (0..LANES).map(|lane| of_lane(lane) as u64).sum()
    }

    fn can_checkpoint(&self) -> bool {
        true
    }

    fn freeze(&self) -> Answer<'_, ()> {
        self.begin_saving();
        Answer::now(())
    }

    fn save<'a>(&'a self, tables: &'a Arc<Tables>) -> LocalFuture<'a, Result<Saved, Error>> {
        Box::pin(self.save_lanes(tables))
    }

    fn thaw(&self) {
        self.end_saving();
    }

    fn save_state(&self) -> Option<Vec<u8>> {
        self.save_whole()
    }

    fn restore_state(&self, saved: &[u8]) -> bool {
        self.restore_whole(saved).is_some()
    }

    fn restore<'a>(
        &'a self,
        tables: &'a Arc<Tables>,
        root: &'a [u8],
        survivors: &'a Arc<Survivors>,
    ) -> LocalFuture<'a, Result<(), Error>> {
        Box::pin(self.restore_lanes(tables, root, survivors))
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

    #[test]
    fn keys_are_in_the_order_of_their_hashes() {
        let index = HashIndex::default();
        let keys: Vec<Key> = (0..30u64).map(|n| Key::new(&n.to_le_bytes()).unwrap()).collect();
        for (a, b) in keys.iter().flat_map(|a| keys.iter().map(move |b| (a, b))) {
            assert_eq!(index.compare(a, b), (a.hash(), a).cmp(&(b.hash(), b)), "{a:?} and {b:?}");
        }
    }

    #[test]
    fn a_table_of_many_keys_takes_at_most_16_bytes_for_each() {
        let index = HashIndex::default();
        let table = TableId { space: crate::KeySpaceId(1), generation: 0 };
        for n in 0..200_000u64 {
            let key = Key::new(&n.to_le_bytes()).unwrap();
            drop(index.insert(table, HashedKey::new(&key), Address::from_bits(n)));
            if n >= 100_000 && n % 1_000 == 0 {
                assert!(index.memory_bytes() <= 16 * n, "{} for {n}", index.memory_bytes());
            }
        }
        assert_eq!(index.entries(), 200_000);
    }
}

//! The `hash` index: all entries in memory, in the lanes of their keys (see [`crate::lane`]).

mod frozen;
mod run;
mod saving;
mod whole;

use crate::error::Error;
use crate::format::address::{Address, Candidates};
use crate::hashed_key::{HashedKey, LANE_BITS, hash_in_lane, lane_of};
use crate::index::survivors::Survivors;
use crate::index::tables::Tables;
use crate::index::{Answer, EntriesFrom, Index, IndexEntry, Saved};
use crate::key_space::TableId;
use crate::lane::places::{self, Place};
use crate::lane::{Lane, Lanes, entries};
use crate::work_pool::WorkPool;
use base::Key;
use base::limits::LANES;
use clock::LocalFuture;
use std::cmp::Ordering;
use std::sync::Arc;

/// The index of the design, all in memory: 38 bits of each key's hash and an address, 12 bytes an
/// entry. Hosts list keys in the order of (hash, key).
#[derive(Debug)]
pub struct HashIndex {
    lanes: Arc<Lanes>,
    /// Where the tables are: for each lane those of some key spaces.
    places: Vec<[Place; PLACES]>,
}

/// Tables of a lane of which the place is known. Of several key spaces with one remainder it is
/// that of the last that was looked up.
const PLACES: usize = 16;

#[inline]
const fn split(hash: u64) -> (usize, u32) {
    (lane_of(hash), hash_in_lane(hash))
}

/// The least hash that [`split`] takes apart so.
const fn join((lane, hash): (usize, u32)) -> u64 {
    (lane as u64) << (64 - LANE_BITS) | (hash as u64) << (32 - LANE_BITS)
}

impl HashIndex {
    /// Makes an index whose entries lie in `lanes`, which hold none.
    pub fn new(lanes: &Arc<Lanes>) -> Self {
        let places = (0..LANES).map(|_| Default::default()).collect();
        Self { lanes: lanes.clone(), places }
    }

    #[inline]
    fn place(&self, table: TableId, hash: u64) -> &Place {
        &self.places[lane_of(hash)][usize::from(table.space.0) % PLACES]
    }

    /// Entries from lane and hash `first` on: at least `limit`, of which one is after `passed`, or
    /// all that are left. With them the lane and hash of the next entry.
    fn entries_at(
        &self,
        table: TableId,
        first: (usize, u32),
        passed: Option<(usize, u32)>,
        limit: usize,
    ) -> (Vec<IndexEntry>, Option<(usize, u32)>) {
        let mut found = Vec::new();
        let mut last = None;
        for lane in first.0..LANES {
            let hash = join((lane, 0));
            let mut locked = self.lanes.lock(hash);
            let Some(table) = locked.of(hash).entries.table(table) else { continue };
            let at = if lane == first.0 { table.find(first.1) } else { 0 };
            let rest = &table.slots[at.min(table.slots.len())..];
            for slot in rest.iter().filter(|slot| slot.used) {
                let place = Some((lane, slot.hash));
                if last != place && last > passed && found.len() >= limit {
                    return (found, place);
                }
                found.push(IndexEntry { hash: join((lane, slot.hash)), address: slot.address() });
                last = place;
            }
        }
        (found, None)
    }
}

impl Index for HashIndex {
    #[inline]
    fn lookup<'a>(
        &'a self,
        lane: &mut Lane,
        table: TableId,
        key: HashedKey<'a>,
    ) -> Answer<'a, Candidates> {
        let Some(found) = lane.entries.table(table) else { return Answer::now(Candidates::new()) };
        self.place(table, key.hash).note(&found.slots, found.buckets);
        Answer::now(found.lookup(hash_in_lane(key.hash)))
    }

    #[inline]
    fn prefetch(&self, table: TableId, key: HashedKey<'_>) {
        if let Some(slot) = self.place(table, key.hash).home::<entries::Slot>(key.hash) {
            places::prefetch(slot);
        }
    }

    fn insert(&self, lane: &mut Lane, table: TableId, key: HashedKey<'_>, new: Address) {
        lane.entries.insert(table, key.hash, new);
    }

    fn replace(
        &self,
        lane: &mut Lane,
        table: TableId,
        key: HashedKey<'_>,
        old: Address,
        new: Address,
    ) -> bool {
        lane.entries.replace(table, key.hash, old, new)
    }

    fn remove(&self, lane: &mut Lane, table: TableId, key: HashedKey<'_>, old: Address) -> bool {
        lane.entries.remove(table, key.hash, old)
    }

    fn scan<'a>(
        &'a self,
        table: TableId,
        from: Option<HashedKey<'a>>,
        limit: usize,
    ) -> Answer<'a, Vec<IndexEntry>> {
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
        self.lanes.each(|lane| lane.entries.drop_table(table));
    }

    fn entries(&self) -> u64 {
        let mut entries = 0;
        self.lanes.each(|lane| entries += lane.entries.len());
        entries
    }

    fn memory_bytes(&self) -> u64 {
        let mut bytes = 0;
        self.lanes.each(|lane| bytes += lane.entries.memory_bytes());
        bytes as u64
    }

    fn can_checkpoint(&self) -> bool {
        true
    }

    fn freeze_lane(&self, lane: &mut Lane) {
        lane.entries.undo = Some(Vec::new());
    }

    fn save<'a>(
        &'a self,
        tables: &'a Arc<Tables>,
        pool: &'a WorkPool,
    ) -> LocalFuture<'a, Result<Saved, Error>> {
        Box::pin(self.save_lanes(tables, pool))
    }

    fn thaw(&self) {
        self.lanes.each(|lane| lane.entries.thaw());
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
    use std::ptr;

    #[test]
    fn keys_are_in_the_order_of_their_hashes() {
        let index = HashIndex::new(&Arc::default());
        let keys: Vec<Key> = (0..30u64).map(|n| Key::new(&n.to_le_bytes()).unwrap()).collect();
        for (a, b) in keys.iter().flat_map(|a| keys.iter().map(move |b| (a, b))) {
            assert_eq!(index.compare(a, b), (a.hash(), a).cmp(&(b.hash(), b)), "{a:?} and {b:?}");
        }
    }

    #[test]
    fn a_table_of_many_keys_takes_at_most_16_bytes_for_each() {
        let index = HashIndex::new(&Arc::default());
        let table = TableId { space: crate::KeySpaceId(1), generation: 0 };
        for n in 0..200_000u64 {
            let key = Key::new(&n.to_le_bytes()).unwrap();
            let hashed = HashedKey::new(&key);
            index.insert(
                index.lanes.lock(hashed.hash).of(hashed.hash),
                table,
                hashed,
                Address::from_bits(n),
            );
            if n >= 100_000 && n % 1_000 == 0 {
                assert!(index.memory_bytes() <= 16 * n, "{} for {n}", index.memory_bytes());
            }
        }
        assert_eq!(index.entries(), 200_000);
    }

    /// Whatever the tables have grown to, and of each key space.
    #[test]
    fn what_is_prefetched_is_where_a_lookup_begins() {
        let index = HashIndex::new(&Arc::default());
        for n in 0..4_000_u64 {
            let key = Key::new(&n.to_le_bytes()).unwrap();
            let space = crate::KeySpaceId(u16::try_from(n % 5 + 1).unwrap());
            let (table, key) = (TableId { space, generation: 0 }, HashedKey::new(&key));
            let mut lanes = index.lanes.lock(key.hash);
            let lane = lanes.of(key.hash);
            index.insert(lane, table, key, Address::from_bits(n));
            assert!(index.lookup(lane, table, key).at_once().is_some());
            let slots = &lane.entries.table(table).unwrap().slots;
            let home = index.place(table, key.hash).home::<entries::Slot>(key.hash);
            let prefetched = slots.iter().position(|slot| Some(ptr::from_ref(slot).addr()) == home);
            let found = slots.iter().position(|slot| slot.hash == hash_in_lane(key.hash));
            assert!(prefetched.unwrap() <= found.unwrap() && found.unwrap() < slots.len());
            assert!(found.unwrap() - prefetched.unwrap() < 64, "a run is short");
        }
    }
}

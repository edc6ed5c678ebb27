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
use crate::key_space::{KeySpaceId, TableId};
use crate::lane::entries::Slot;
use crate::lane::locations::{self, Location};
use crate::lane::{Lane, Lanes};
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
    /// Where the tables are, by lane and [`location_of`] the key space.
    locations: Vec<[Location<Slot>; LOCATIONS]>,
}

/// Locations for each lane. Key spaces that share one take turns: it is that of the table in which
/// a key was last looked up.
const LOCATIONS: usize = 32;

/// Returns the number of a key space's location. The first key spaces of each half of the numbers
/// have different ones: RESP has strings in the lower half, and collections in the upper.
#[inline]
const fn location_of(space: KeySpaceId) -> usize {
    (space.0 ^ space.0 >> 11) as usize % LOCATIONS
}

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
        let locations = (0..LANES).map(|_| Default::default()).collect();
        Self { lanes: lanes.clone(), locations }
    }

    #[inline]
    fn location(&self, table: TableId, hash: u64) -> &Location<Slot> {
        &self.locations[lane_of(hash)][location_of(table.space)]
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
        if let Some(found) = lane.entries.table(table) {
            self.location(table, key.hash).note(&found.slots, found.buckets);
            Answer::now(found.lookup(hash_in_lane(key.hash)))
        } else {
            self.location(table, key.hash).note(&[], 0);
            Answer::now(Candidates::new())
        }
    }

    #[inline]
    fn prefetch(&self, table: TableId, key: HashedKey<'_>) {
        if let Some(slot) = self.location(table, key.hash).home(key.hash) {
            locations::prefetch(slot);
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

    /// Whatever the tables have grown to, of each key space, and after all of one were dropped.
    #[test]
    fn what_is_prefetched_is_where_a_lookup_begins() {
        let index = HashIndex::new(&Arc::default());
        for n in 0..4_000_u64 {
            let key = Key::new(&n.to_le_bytes()).unwrap();
            let space = KeySpaceId(u16::try_from(n % 5 + 1).unwrap());
            let (table, key) = (TableId { space, generation: 0 }, HashedKey::new(&key));
            if n % 1_000 == 999 {
                index.drop_table(table);
                let gone = index.lookup(index.lanes.lock(key.hash).of(key.hash), table, key);
                assert_eq!(gone.at_once(), Some(Candidates::new()));
                assert_eq!(index.location(table, key.hash).home(key.hash), None);
            }
            let mut lanes = index.lanes.lock(key.hash);
            let lane = lanes.of(key.hash);
            index.insert(lane, table, key, Address::from_bits(n));
            assert!(index.lookup(lane, table, key).at_once().is_some());
            let slots = &lane.entries.table(table).unwrap().slots;
            let home = index.location(table, key.hash).home(key.hash);
            let prefetched = slots.iter().position(|slot| Some(ptr::from_ref(slot).addr()) == home);
            let found = slots.iter().position(|slot| slot.hash == hash_in_lane(key.hash));
            let (prefetched, found) = (prefetched.unwrap(), found.unwrap());
            assert!(prefetched <= found && found - prefetched < 64, "a run is short");
        }
    }

    #[test]
    fn strings_and_collections_of_the_first_databases_have_locations_of_their_own() {
        // The numbers are those of `crates/resp/src/hidden.rs`.
        let spaces = (1..7).flat_map(|n| [n, 0x8000 + 2 * n, 0x8001 + 2 * n]).map(KeySpaceId);
        let locations: std::collections::BTreeSet<_> = spaces.map(location_of).collect();
        assert_eq!(locations.len(), 6 * 3);
    }
}

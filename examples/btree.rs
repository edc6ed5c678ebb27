//! An example index to copy and to change: whole keys in a sorted tree.
//!
//! # How it works
//! 1. Each table is a `BTreeSet` of keys with their addresses, in the order of the keys' bytes.
//! 2. The store queries ranges of it; a change by the store is one entry.
//! 3. One line in `crates/node/src/indexes.rs` registers the index for profiles, targets and the
//!    tests of every index. `docs/guide/index.md` walks through this file.
//!
//! # Guarantees
//! - Hosts list keys in the order of their bytes.
//! - A lookup names records of its own key only, so no read is wasted.
//!
//! # Trusts
//! The store: one task at a time changes the entry of a key.
//!
//! # Not here
//! Low memory: `hash` keeps 38 bits of a key instead of all of it. Its entries lie in the lanes of
//! the store, behind 64 locks; this index has one lock of its own.

use base::Key;
use engine::{Address, Answer, Candidates, HashedKey, Index, IndexEntry, Lane, TableId};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::{Mutex, MutexGuard, PoisonError};

type Entry = (Key, Address);

/// See the crate's documentation.
#[derive(Debug, Default)]
pub struct BTreeIndex(Mutex<BTreeMap<TableId, Table>>);

#[derive(Debug, Default)]
struct Table {
    entries: BTreeSet<Entry>,
    bytes: u64,
}

impl Table {
    fn insert(&mut self, key: &Key, new: Address) {
        if self.entries.insert((key.clone(), new)) {
            self.bytes += bytes(key);
        }
    }

    fn remove(&mut self, key: &Key, old: Address) -> bool {
        let removed = self.entries.remove(&(key.clone(), old));
        if removed {
            self.bytes -= bytes(key);
        }
        removed
    }
}

/// Estimates the bytes of an entry. The tree's nodes of 11 entries are 7 twelfths full when keys
/// arrive in order, so each entry takes twice its size; in random order a fifth less. A long key's
/// bytes and two counts are in a separate allocation.
fn bytes(key: &Key) -> u64 {
    let apart = if key.is_long() { 2 * size_of::<usize>() + key.as_bytes().len() } else { 0 };
    (2 * size_of::<Entry>() + apart) as u64
}

impl BTreeIndex {
    fn tables(&self) -> MutexGuard<'_, BTreeMap<TableId, Table>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Index for BTreeIndex {
    fn lookup<'a>(
        &'a self,
        _: &mut Lane,
        table: TableId,
        key: HashedKey<'a>,
    ) -> Answer<'a, Candidates> {
        let all = (key.key.clone(), Address::MIN)..=(key.key.clone(), Address::MAX);
        let tables = self.tables();
        let Some(table) = tables.get(&table) else { return Answer::now(Candidates::new()) };
        Answer::now(table.entries.range(all).map(|(_, address)| *address).collect())
    }

    /// Does nothing: the path through a tree is known only after walking it.
    fn prefetch(&self, _: TableId, _: HashedKey<'_>) {}

    fn insert(&self, _: &mut Lane, table: TableId, key: HashedKey<'_>, new: Address) {
        self.tables().entry(table).or_default().insert(key.key, new);
    }

    fn replace(
        &self,
        _: &mut Lane,
        table: TableId,
        key: HashedKey<'_>,
        old: Address,
        new: Address,
    ) -> bool {
        let mut tables = self.tables();
        let Some(table) = tables.get_mut(&table) else { return false };
        let found = table.remove(key.key, old);
        if found {
            table.insert(key.key, new);
        }
        found
    }

    fn remove(&self, _: &mut Lane, table: TableId, key: HashedKey<'_>, old: Address) -> bool {
        let mut tables = self.tables();
        tables.get_mut(&table).is_some_and(|table| table.remove(key.key, old))
    }

    fn scan<'a>(
        &'a self,
        table: TableId,
        from: Option<HashedKey<'a>>,
        limit: usize,
    ) -> Answer<'a, Vec<IndexEntry>> {
        let start = from.map_or(Unbounded, |from| Excluded((from.key.clone(), Address::MAX)));
        let tables = self.tables();
        let Some(table) = tables.get(&table) else { return Answer::now(Vec::new()) };
        let (mut found, mut last) = (Vec::new(), None);
        for (key, address) in table.entries.range((start, Unbounded)) {
            if found.len() >= limit && last != Some(key) {
                break;
            }
            found.push(IndexEntry { hash: key.hash(), address: *address });
            last = Some(key);
        }
        Answer::now(found)
    }

    fn compare(&self, a: &Key, b: &Key) -> Ordering {
        a.cmp(b)
    }

    fn drop_table(&self, table: TableId) {
        self.tables().remove(&table);
    }

    fn entries(&self) -> u64 {
        self.tables().values().map(|table| table.entries.len() as u64).sum()
    }

    fn memory_bytes(&self) -> u64 {
        self.tables().values().map(|table| table.bytes).sum()
    }

    fn save_state(&self) -> Option<Vec<u8>> {
        let tables = self.tables();
        let entries = tables.iter().map(|(table, of)| (*table, of.entries.iter().collect()));
        let entries: Vec<(TableId, Vec<&Entry>)> = entries.collect();
        postcard::to_stdvec(&entries).ok()
    }

    fn restore_state(&self, saved: &[u8]) -> bool {
        let saved: Result<Vec<(TableId, Vec<Entry>)>, _> = postcard::from_bytes(saved);
        let Ok(saved) = saved else { return false };
        let mut tables = self.tables();
        for (id, entries) in saved {
            let table = tables.entry(id).or_default();
            for (key, address) in entries {
                table.insert(&key, address);
            }
        }
        true
    }
}

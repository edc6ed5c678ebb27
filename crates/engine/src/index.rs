//! The interface of an index. `node` chooses the implementation.

pub(crate) mod cached_hash;
pub(crate) mod hash;
pub(crate) mod survivors;
pub(crate) mod tables;

use crate::error::Error;
use crate::format::address::{Address, Candidates};
use crate::hashed_key::HashedKey;
use crate::index::survivors::Survivors;
use crate::index::tables::Tables;
use crate::key_space::TableId;
use crate::lane::{Lane, Lanes};
use crate::work_pool::WorkPool;
use crate::write::permit::Permit;
use base::Key;
use clock::LocalFuture;
use media::{ExtentId, Shape};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// An index's answer: at once, or after work on the medium.
pub enum Answer<'a, T> {
    /// Known now; `None` after it was taken.
    Now(Option<T>),
    /// Known later.
    Later(LocalFuture<'a, T>),
}

impl<'a, T> Answer<'a, T> {
    /// Makes an answer that is known now.
    #[inline]
    pub const fn now(answer: T) -> Self {
        Self::Now(Some(answer))
    }

    /// Returns the answer if it is known now.
    #[inline]
    pub fn at_once(self) -> Option<T> {
        match self {
            Self::Now(answer) => answer,
            Self::Later(_) => None,
        }
    }

    /// Returns the answer if it is known now, or else its future.
    #[inline]
    pub(crate) fn or_later(self) -> Result<T, LocalFuture<'a, T>> {
        match self {
            Self::Now(answer) => Ok(answer.expect("an answer is taken once")),
            Self::Later(later) => Err(later),
        }
    }
}

impl<T: Unpin> Future for Answer<'_, T> {
    type Output = T;

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        match self.get_mut() {
            Self::Now(answer) => Poll::Ready(answer.take().expect("an answer is taken once")),
            Self::Later(future) => future.as_mut().poll(context),
        }
    }
}

impl<T> std::fmt::Debug for Answer<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if matches!(self, Self::Now(_)) { "Now" } else { "Later" })
    }
}

/// An entry of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexEntry {
    /// The bits of the key's hash that the index keeps, and zeros below them.
    pub hash: u64,
    /// The address of the key's record.
    pub address: Address,
}

/// The result of [`Index::entries_from`].
pub type EntriesFrom = (Vec<IndexEntry>, Option<u64>);

/// The parameters of an index. A parameter that an index does not need is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexConfig {
    /// Memory that it may take, in bytes.
    pub dram_bytes: u64,
    /// Keys that it has to hold.
    pub keys_max: u64,
}

/// Counters of an index since it was made, and its sizes in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexCounts {
    /// Table pages that were wanted and found in memory.
    pub hits: u64,
    /// Those that were not.
    pub misses: u64,
    /// Table pages read from the medium.
    pub page_reads: u64,
    /// Table pages written to it.
    pub page_writes: u64,
    /// Memory in bytes.
    pub dram_bytes: u64,
    /// Table pages on the medium that are current, in bytes.
    pub table_bytes: u64,
}

/// The part of a checkpoint that [`Index::save`] returns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Saved {
    /// The bytes by which [`Index::restore`] finds its table pages, of any length.
    pub root: Vec<u8>,
    /// The extents of all table pages that the root leads to, also of those written long before.
    pub extents: BTreeSet<ExtentId>,
    /// How many entries that holds.
    pub entries: u64,
}

/// Where the records of keys lie: entries, each a key and an address, in tables.
///
/// A device has one index. It begins empty, on every opening: the store restores it from a
/// checkpoint, or reads its log and inserts the live records.
///
/// # In memory or not
/// An index that holds every entry in memory needs none of the functions from [`Self::attach`] on:
/// their defaults say so, and the store asks for no permit. One that keeps table pages on the
/// medium ([`Self::table_extents`]) gets [`Tables`] to write and read them, and works like this:
/// - A task that is to change an entry takes a [`Permit`] before the key's latch, and loads the
///   entry's page under the latch. Until the permit drops, that page stays in memory.
/// - Its pages lie in extents of their own ([`media::Stream::Index`]), of which
///   [`Self::table_extents`] are kept for it alone: neither hosts nor the cleaner take them. A
///   store that another index filled may have fewer at first.
/// - An extent of table pages is reset by the store, after a checkpoint is complete, when neither
///   that checkpoint ([`Saved::extents`]) nor the index itself ([`Self::extents_in_use`]) names it.
///
/// # What the store sees to
/// - It checks keys in the records. So an index may keep less of a key than the whole, and name
///   records of other keys as candidates; each costs a read.
/// - A task that changes the entry of a key holds the key's latch. Lookups, scans and changes of
///   other keys may happen at any time.
/// - A key has one entry in a table. When a damaged medium was opened it may have another: a later
///   record beside one that cannot be read.
/// - A table is one life of a key space. It is not announced: it begins with its first entry, and
///   one that has none is empty. A table that was dropped does not come back.
///
/// # What an index sees to
/// - Tasks share it. What is known of a key and changes lies in the key's [`Lane`], which the
///   caller has locked; the rest is behind locks of its own, never held over an await.
/// - An answer is true at the instant at which it is given, also when it took time to find: the
///   store keeps the extents of these addresses from being reset from that instant on.
/// - [`Self::insert`], [`Self::replace`] and [`Self::remove`] take no time: the key is loaded. A
///   record and its entry are one step to everyone else; what is known of tombstones and of dropped
///   tables rests on that (`docs/decisions/0011-what-an-index-must-do.md`).
/// - [`Self::lookup`] and [`Self::scan`] may take time on the device's clock, but answer at once
///   for a key that is loaded. Otherwise the caller holds nothing, so they may wait for whatever
///   they need. [`Self::load`] is called under the key's latch: it waits for dies and channels
///   only.
/// - Equal calls give equal answers in every run: nothing depends on where memory lies, on a random
///   seed or on a wall clock.
pub trait Index: Send + Sync {
    /// Returns the addresses of `key`'s entries, and maybe of others, the likeliest first.
    fn lookup<'a>(
        &'a self,
        lane: &mut Lane,
        table: TableId,
        key: HashedKey<'a>,
    ) -> Answer<'a, Candidates>;

    /// Prefetches the memory that a lookup of `key` will touch. May do nothing.
    fn prefetch(&self, table: TableId, key: HashedKey<'_>);

    /// Adds an entry, beside any that the key has.
    fn insert(&self, lane: &mut Lane, table: TableId, key: HashedKey<'_>, new: Address);

    /// Points the key's entry at `old` to `new`. False, and no change, when there is no such entry:
    /// that is how the cleaner learns that a store was there before it.
    fn replace(
        &self,
        lane: &mut Lane,
        table: TableId,
        key: HashedKey<'_>,
        old: Address,
        new: Address,
    ) -> bool;

    /// Removes the key's entry at `old`. False, and no change, when there is no such entry.
    fn remove(&self, lane: &mut Lane, table: TableId, key: HashedKey<'_>, old: Address) -> bool;

    /// Returns the entries of the next keys after `from`, or of the first keys without it: at least
    /// `limit` entries, or all that are left. `from` need not have an entry.
    ///
    /// The result has no gaps: an entry after `from` that is not returned comes after all that are.
    /// So entries whose keys the index cannot tell apart come together. Among them may be some that
    /// are not after `from`; each costs a read and is passed over. There must then be one that is
    /// after it, if there is one at all. The store sorts what it is given.
    fn scan<'a>(
        &'a self,
        table: TableId,
        from: Option<HashedKey<'a>>,
        limit: usize,
    ) -> Answer<'a, Vec<IndexEntry>>;

    /// Returns the entries whose hashes are at least `from`, in the order of hashes: at least
    /// `limit` of them, or all that are left. With them the least hash that may come after them, or
    /// `None` at the end. Entries whose hashes the index cannot tell apart come together.
    ///
    /// An index that has another order, or reads the medium for its entries, returns `None`.
    fn entries_from(&self, _: TableId, _from: u64, _limit: usize) -> Option<EntriesFrom> {
        None
    }

    /// Returns the index's order of keys, in which hosts list them: total, and equal for equal keys
    /// only. A host may go on listing at a key after years, so it never changes.
    fn compare(&self, a: &Key, b: &Key) -> Ordering;

    /// Returns true when that order is the one of hashes, and a scan looks at no more of `from`
    /// than its hash.
    fn is_by_hash(&self) -> bool {
        false
    }

    /// Forgets all entries of `table`.
    fn drop_table(&self, table: TableId);

    /// Returns the number of entries in all tables.
    fn entries(&self) -> u64;

    /// Returns the bytes of memory that the index takes, at most or by a stated estimate. Reports
    /// divide it by pairs; it is asked for now and then, and not for each command.
    fn memory_bytes(&self) -> u64;

    /// Receives the place of its table pages. Called once, before any other function.
    fn attach(&self, _: &Arc<Tables>) {}

    /// Returns the number of extents that are kept for table pages on a medium of this shape, with
    /// all that is needed to clean them.
    fn table_extents(&self, _: &Shape) -> u32 {
        0
    }

    /// Returns the least memory in bytes that it works with, for the keys that it has to hold; 0
    /// when it takes what it needs, whatever [`IndexConfig::dram_bytes`] says.
    fn dram_bytes_min(&self) -> u64 {
        0
    }

    /// Returns false when there is no room for an entry of `key` beside those that there are. The
    /// key is loaded, has none, and is about to get one.
    fn has_room(&self, _: TableId, _: HashedKey<'_>) -> bool {
        true
    }

    /// Returns the right to load, and to change, the pages of `entries` entries. The caller holds
    /// nothing and waits for space already ([`clock::Rank::Credit`]).
    fn admit(&self, _entries: u32) -> Answer<'_, Permit<'_>> {
        Answer::now(Permit::none())
    }

    /// Returns the most entries of one permit: longer batches are refused.
    fn permit_max(&self) -> u32 {
        u32::MAX
    }

    /// Loads the entries of `key` into memory until `permit` drops. Until then lookups and changes
    /// of the key's entries answer at once. The caller holds the key's latch.
    fn load<'a>(&'a self, _: TableId, _: HashedKey<'a>, _permit: &'a Permit<'_>) -> Answer<'a, ()> {
        Answer::now(())
    }

    /// Takes back a permit with all that was [noted](Permit::note) in it.
    fn release(&self, _entries: u32, _noted: &[u64]) {}

    /// Returns its counters.
    fn counts(&self) -> IndexCounts {
        IndexCounts { dram_bytes: self.memory_bytes(), ..IndexCounts::default() }
    }

    /// Returns true when it can be saved and restored.
    fn can_checkpoint(&self) -> bool {
        false
    }

    /// Fixes what [`Self::save`] will save: the entries as they are at the instant of the answer,
    /// but those in lanes, which [`Self::freeze_lane`] fixes then.
    fn freeze(&self) -> Answer<'_, ()> {
        Answer::now(())
    }

    /// Fixes the entries of a lane for [`Self::save`]. Called for all lanes, which are locked
    /// together.
    fn freeze_lane(&self, _: &mut Lane) {}

    /// Writes the entries as they were at the freeze, by all reactors of `pool` if it can. Entries
    /// may change while it writes. An error when there is no room for it, or when `tables` says
    /// that it is to give way. Nothing of it is under way when it returns.
    fn save<'a>(
        &'a self,
        _tables: &'a Arc<Tables>,
        _pool: &'a WorkPool,
    ) -> LocalFuture<'a, Result<Saved, Error>> {
        Box::pin(ready(Ok(Saved::default())))
    }

    /// Ends what the freeze began, whether the checkpoint is complete or not.
    fn thaw(&self) {}

    /// Fills an empty index with what [`Self::save`] saved, without the entries of records that are
    /// gone since. An error when a table page is damaged: the store then makes another, by a scan.
    fn restore<'a>(
        &'a self,
        _tables: &'a Arc<Tables>,
        _root: &'a [u8],
        _survivors: &'a Arc<Survivors>,
    ) -> LocalFuture<'a, Result<(), Error>> {
        Box::pin(ready(Err(Error::Unrecovered)))
    }

    /// Returns the whole idle index, for the saved state of a device. `None` when it cannot be
    /// saved so; then the device cannot be saved either.
    fn save_state(&self) -> Option<Vec<u8>> {
        None
    }

    /// Fills an empty index with the bytes that [`Self::save_state`] returned. The result equals
    /// the saved index, also in the order of its candidates. False when the bytes are not those of
    /// such an index.
    fn restore_state(&self, _saved: &[u8]) -> bool {
        false
    }

    /// Returns the extents of all table pages that it needs while it runs, whatever the
    /// checkpoints.
    fn extents_in_use(&self) -> BTreeSet<ExtentId> {
        BTreeSet::new()
    }
}

/// Makes an empty index over empty lanes, which are its store's.
pub type MakeIndex = fn(&IndexConfig, &Arc<Lanes>) -> Box<dyn Index>;

//! What an index is. Which there are is for `node` to say.

use crate::address::Address;
use crate::key_space::TableId;
use base::Key;
use clock::LocalFuture;
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// An index's answer: at once, or after work on the medium.
pub enum Answer<'a, T> {
    /// Known now; `None` once it was taken.
    Now(Option<T>),
    /// Known later.
    Later(LocalFuture<'a, T>),
}

impl<T> Answer<'_, T> {
    /// An answer without delay.
    #[inline]
    pub const fn now(answer: T) -> Self {
        Self::Now(Some(answer))
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

/// A key with its hash, which is computed once for each command.
#[derive(Clone, Copy, Debug)]
pub struct HashedKey<'a> {
    /// XXH3 of the key.
    pub hash: u64,
    /// The key.
    pub key: &'a Key,
}

impl<'a> HashedKey<'a> {
    /// Hashes `key`.
    #[inline]
    pub fn new(key: &'a Key) -> Self {
        Self { hash: key.hash(), key }
    }
}

/// Addresses where a key's record may lie. The record itself tells: it holds the key.
pub type Candidates = SmallVec<[Address; 2]>;

/// Where the records of keys lie: entries, each a key and an address, in tables.
///
/// A device has one index. It begins empty, on every opening: the store reads its log and inserts
/// what lives.
///
/// # What the store sees to
/// - It checks keys in the records. So an index may keep less of a key than the whole, and name
///   records of other keys as candidates; each costs a read.
/// - Whoever changes the entry of a key holds the key's latch. Lookups, scans and changes of other
///   keys come at any time.
/// - A key has one entry in a table. While a damaged medium is opened it may have a second one: a
///   tombstone beside a record that cannot be read.
/// - A table is one life of a key space. It is not announced: it begins with its first entry, and
///   one that has none is empty. A table that was dropped does not come back.
///
/// # What an index sees to
/// - Tasks share it. What changes is behind locks of its own, never held over an await.
/// - An answer is true at the instant at which it is given, also when it took time to find: the
///   store keeps the extents of these addresses from being reset from that instant on.
/// - [`Self::insert`], [`Self::replace`] and [`Self::remove`] answer [`Answer::Now`]. A record and
///   its entry are one step to everyone else; what is known of tombstones and of dropped tables
///   rests on that (`docs/decisions/0011-what-an-index-must-do.md`).
/// - [`Self::lookup`] and [`Self::scan`] may take time on the device's clock. The key's latch may
///   be held meanwhile, so they may wait for dies and channels, but for no latch and no space. An
///   index is not given the medium, so there is nothing of its own that it could read there.
/// - Equal calls give equal answers in every run: nothing depends on where memory lies, on a random
///   seed or on a wall clock.
pub trait Index: Send + Sync {
    /// The addresses of `key`'s entries, and maybe of others, the likeliest first.
    fn lookup<'a>(&'a self, table: TableId, key: HashedKey<'a>) -> Answer<'a, Candidates>;

    /// Asks the processor for what a lookup of `key` will touch, ahead of it. May do nothing.
    fn prefetch(&self, table: TableId, key: HashedKey<'_>);

    /// Adds an entry, beside any that the key has.
    fn insert<'a>(&'a self, table: TableId, key: HashedKey<'a>, new: Address) -> Answer<'a, ()>;

    /// Points the key's entry at `old` to `new`. False, and no change, when there is no such entry:
    /// that is how the cleaner learns that a store was there before it.
    fn replace<'a>(
        &'a self,
        table: TableId,
        key: HashedKey<'a>,
        old: Address,
        new: Address,
    ) -> Answer<'a, bool>;

    /// Removes the key's entry at `old`. False, and no change, when there is no such entry.
    fn remove<'a>(&'a self, table: TableId, key: HashedKey<'a>, old: Address) -> Answer<'a, bool>;

    /// The entries of the next keys after `from`, or of the first keys without it: at least `limit`
    /// entries, or all that are left. `from` need not have an entry.
    ///
    /// Nothing may be missing in between: an entry after `from` that is not returned comes after
    /// all that are. So entries whose keys the index cannot tell apart come together. Among them
    /// may be some that are not after `from`; each costs a read and is passed over. There must then
    /// be one that is after it, if there is one at all. The store sorts what it is given.
    fn scan<'a>(
        &'a self,
        table: TableId,
        from: Option<HashedKey<'a>>,
        limit: usize,
    ) -> Answer<'a, Vec<Address>>;

    /// The index's order of keys, in which hosts list them: total, and equal for equal keys only. A
    /// host may go on listing at a key after years, so it never changes.
    fn compare(&self, a: &Key, b: &Key) -> Ordering;

    /// Forgets all entries of `table`.
    fn drop_table(&self, table: TableId);

    /// Entries in all tables.
    fn entries(&self) -> u64;

    /// Bytes of memory that the index takes, at most or by a stated estimate. Reports divide it by
    /// pairs; it is asked for now and then, and not for each command.
    fn memory_bytes(&self) -> u64;
}

/// Makes an empty index.
pub type MakeIndex = fn() -> Box<dyn Index>;

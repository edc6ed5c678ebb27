//! What an index is, and which there are.

use crate::address::Address;
use crate::hash::HashIndex;
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

/// Where the records of keys lie.
///
/// A key has at most one entry in a table. The store holds the key's latch whenever it changes the
/// key's entry, and checks keys in the records, so an index may keep fingerprints for keys.
///
/// An answer is true at the instant at which it is given, also when it took time to find.
pub trait Index: Send + Sync {
    /// The entries that may be `key`'s, the likeliest first.
    fn lookup<'a>(&'a self, table: TableId, key: HashedKey<'a>) -> Answer<'a, Candidates>;

    /// Asks the processor for what a lookup of `key` will touch, ahead of it.
    fn prefetch(&self, table: TableId, key: HashedKey<'_>);

    /// Adds an entry for a key that has none.
    fn insert<'a>(&'a self, table: TableId, key: HashedKey<'a>, new: Address) -> Answer<'a, ()>;

    /// Points the entry at `old` to `new`. False, and no change, when there is no such entry.
    fn replace<'a>(
        &'a self,
        table: TableId,
        key: HashedKey<'a>,
        old: Address,
        new: Address,
    ) -> Answer<'a, bool>;

    /// Removes the entry at `old`. False when there is no such entry.
    fn remove<'a>(&'a self, table: TableId, key: HashedKey<'a>, old: Address) -> Answer<'a, bool>;

    /// Entries in the index's order, from the place of `from` on (the first entry's without): at
    /// least `limit`, or all that are left. Entries of one place come together, and at least one
    /// place after that of `from` is among them if there is one.
    fn scan<'a>(
        &'a self,
        table: TableId,
        from: Option<HashedKey<'a>>,
        limit: usize,
    ) -> Answer<'a, Vec<Address>>;

    /// The index's order of keys. It never changes.
    fn compare(&self, a: &Key, b: &Key) -> Ordering;

    /// Forgets all entries of `table`.
    fn drop_table(&self, table: TableId);

    /// Entries in all tables.
    fn entries(&self) -> u64;

    /// Bytes of memory that the index takes.
    fn memory_bytes(&self) -> u64;
}

/// Makes an empty index.
pub type MakeIndex = fn() -> Box<dyn Index>;

/// Every index, by the name that profiles call it. A new one is one file and one line here.
pub const INDEXES: &[(&str, MakeIndex)] = &[("hash", || Box::new(HashIndex::default()))];

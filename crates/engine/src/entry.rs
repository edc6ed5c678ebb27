use crate::address::Address;
use crate::index::HashedKey;
use crate::key_space::TableId;
use crate::latch::Latch;
use crate::permit::Permit;
use crate::store::Store;

/// The right to change a key's index entry, which is in memory: until this drops, all that is asked
/// of the index about the key is answered at once.
#[must_use = "it ends when it drops"]
pub(crate) struct Entry<'a> {
    _latch: Latch<'a>,
    _permit: Permit<'a>,
}

impl<'a> Entry<'a> {
    /// Of a key that is loaded under that permit.
    pub(crate) const fn new(latch: Latch<'a>, permit: Permit<'a>) -> Self {
        Self { _latch: latch, _permit: permit }
    }
}

impl Store {
    /// Waits for the right to change the entry of `key`, in the order of ranks: the index's permit,
    /// the key's latch, the index's pages.
    #[inline]
    pub(crate) async fn enter(&self, table: TableId, key: HashedKey<'_>) -> Entry<'_> {
        let permit = self.index.admit(1).await;
        let latch = self.latches.latch(key.hash).await;
        self.index.load(table, key, &permit).await;
        Entry::new(latch, permit)
    }

    /// Takes a tombstone out of the index, whose key has been entered. False when it is gone.
    pub(crate) async fn remove_tombstone(
        &self,
        table: TableId,
        key: HashedKey<'_>,
        at: Address,
    ) -> bool {
        self.log.state().end_deleting(at);
        self.index.remove(table, key, at).await
    }
}

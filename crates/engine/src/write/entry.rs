use crate::address::Address;
use crate::index::HashedKey;
use crate::key_space::TableId;
use crate::store::Store;
use crate::write::latch::Latch;
use crate::write::permit::Permit;

/// The right to change the index entries of one or several keys, which are in memory: until this
/// drops, all that is asked of the index about these keys is answered at once.
#[must_use = "it ends when it drops"]
pub(crate) struct Entry<'a> {
    _latch: Latch<'a>,
    _permit: Permit<'a>,
}

impl Store {
    /// The right to change the entry of `key`.
    #[inline]
    pub(crate) async fn enter(&self, table: TableId, key: HashedKey<'_>) -> Entry<'_> {
        self.enter_keys([(table, key)].into_iter()).await
    }

    /// Waits for the right to change the entries of all `keys`, in the order of ranks: the index's
    /// permit, the keys' latches, the index's pages.
    pub(crate) async fn enter_keys<'k>(
        &self,
        keys: impl ExactSizeIterator<Item = (TableId, HashedKey<'k>)> + Clone,
    ) -> Entry<'_> {
        let permit = self.index.admit(count(&keys)).await;
        let latch = self.latches.latch(keys.clone().map(|(_, key)| key.hash)).await;
        for (table, key) in keys {
            self.index.load(table, key, &permit).await;
        }
        Entry { _latch: latch, _permit: permit }
    }

    /// The same right, if it is to be had without a wait.
    pub(crate) fn try_enter<'k>(
        &self,
        keys: impl ExactSizeIterator<Item = (TableId, HashedKey<'k>)> + Clone,
    ) -> Option<Entry<'_>> {
        let permit = self.index.admit(count(&keys)).at_once()?;
        let latch = self.latches.try_latch(keys.clone().map(|(_, key)| key.hash))?;
        for (table, key) in keys {
            self.index.load(table, key, &permit).at_once()?;
        }
        Some(Entry { _latch: latch, _permit: permit })
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

fn count(keys: &impl ExactSizeIterator) -> u32 {
    u32::try_from(keys.len()).expect("a batch is short")
}

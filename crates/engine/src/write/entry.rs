use crate::format::address::Address;
use crate::index::HashedKey;
use crate::key_space::TableId;
use crate::store::Store;
use crate::write::latch::{Latch, Latches};
use crate::write::permit::Permit;

/// The right to change the index entries of one or several keys, which are in memory: until this
/// drops, all that is asked of the index about these keys is answered at once.
#[must_use = "it ends when it drops"]
pub(crate) struct Entry<'a> {
    /// `None` if the latches were free: no other task runs before the next await.
    latch: Option<Latch<'a>>,
    _permit: Permit<'a>,
}

impl<'a> Entry<'a> {
    /// Keeps the right over an await, for keys of these hashes.
    pub(crate) fn hold(&mut self, latches: &'a Latches, hashes: impl Iterator<Item = u64>) {
        if self.latch.is_none() {
            self.latch = Some(latches.take_free(hashes));
        }
    }
}

impl Store {
    /// Returns the right to change the entry of `key`.
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
        Entry { latch: Some(latch), _permit: permit }
    }

    /// Returns the same right, if it needs no wait. It lasts until the next await, unless it is
    /// [held](Entry::hold).
    pub(crate) fn try_enter<'k>(
        &self,
        keys: impl ExactSizeIterator<Item = (TableId, HashedKey<'k>)> + Clone,
    ) -> Option<Entry<'_>> {
        let permit = self.index.admit(count(&keys)).at_once()?;
        if !self.latches.are_free(keys.clone().map(|(_, key)| key.hash)) {
            return None;
        }
        for (table, key) in keys {
            self.index.load(table, key, &permit).at_once()?;
        }
        Some(Entry { latch: None, _permit: permit })
    }

    /// Takes a tombstone out of the index, whose key has been entered. False when it is gone.
    pub(crate) async fn remove_tombstone(
        &self,
        table: TableId,
        key: HashedKey<'_>,
        at: Address,
    ) -> bool {
        self.log.state().copies.end_deleting(at);
        self.index.remove(table, key, at).await
    }
}

fn count(keys: &impl ExactSizeIterator) -> u32 {
    u32::try_from(keys.len()).expect("a batch is short")
}

use crate::format::address::Address;
use crate::hashed_key::HashedKey;
use crate::key_space::TableId;
use crate::lane::{Lanes, Locked};
use crate::store::Store;
use crate::write::latch::Latch;
use crate::write::permit::Permit;

/// What keeps the right to change the index entries of one or several keys, which are in memory:
/// until this drops, all that is asked of the index about these keys is answered at once.
#[must_use = "it ends when it drops"]
#[derive(Default)]
pub(crate) struct Entry<'a> {
    /// `None` if the latches were free: the right ends with the section of locks.
    latch: Option<Latch<'a>>,
    /// `None` if the index has all entries in memory.
    _permit: Option<Permit<'a>>,
}

/// Entries cannot be changed before a wait.
pub(crate) struct Busy;

impl<'a> Entry<'a> {
    /// Keeps the right beyond the section, for keys of these hashes.
    pub(crate) fn hold(
        &mut self,
        lanes: &'a Lanes,
        locked: &mut Locked<'_>,
        hashes: impl Iterator<Item = u64>,
    ) {
        if self.latch.is_none() {
            self.latch = Some(Latch::of_free(lanes, locked, hashes));
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
        let hashes = keys.clone().map(|(_, key)| key.hash);
        if !self.keeps_tables {
            return Entry { latch: Some(Latch::wait(&self.lanes, hashes).await), _permit: None };
        }
        let permit = self.index.admit(count(&keys)).await;
        let latch = Latch::wait(&self.lanes, hashes).await;
        for (table, key) in keys {
            self.index.load(table, key, &permit).await;
        }
        Entry { latch: Some(latch), _permit: Some(permit) }
    }

    /// Gives the same right, if it needs no wait, and returns what keeps it beside the locks of the
    /// keys' lanes: nothing, if the index has all entries in memory. It lasts as long as the lanes
    /// are locked, unless it is [held](Entry::hold).
    #[inline]
    pub(crate) fn try_enter<'k>(
        &self,
        locked: &mut Locked<'_>,
        keys: impl ExactSizeIterator<Item = (TableId, HashedKey<'k>)> + Clone,
    ) -> Result<Option<Entry<'_>>, Busy> {
        let mut hashes = keys.clone().map(|(_, key)| key.hash);
        if !hashes.all(|hash| locked.of(hash).latches.is_free(hash)) {
            return Err(Busy);
        }
        if !self.keeps_tables {
            return Ok(None);
        }
        let permit = self.index.admit(count(&keys)).at_once().ok_or(Busy)?;
        for (table, key) in keys {
            self.index.load(table, key, &permit).at_once().ok_or(Busy)?;
        }
        Ok(Some(Entry { latch: None, _permit: Some(permit) }))
    }

    /// Takes a tombstone out of the index, whose key has been entered. False when it is gone.
    pub(crate) fn remove_tombstone(&self, table: TableId, key: HashedKey<'_>, at: Address) -> bool {
        let mut lanes = self.lanes.lock(key.hash);
        self.log.writing().part().shared.get().copies.end_deleting(at);
        self.index.remove(lanes.of(key.hash), table, key, at)
    }
}

fn count(keys: &impl ExactSizeIterator) -> u32 {
    u32::try_from(keys.len()).expect("a batch is short")
}

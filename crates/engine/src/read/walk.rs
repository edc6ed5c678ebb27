use crate::error::Error;
use crate::extent::Live;
use crate::hashed_key::HashedKey;
use crate::key_space::{KeySpaceId, TableId};
use crate::store::Store;
use base::Key;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Some keys of a walk in the order of hashes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Walked {
    /// The keys: all of the hashes that were walked over.
    pub keys: Vec<Key>,
    /// The greatest of those hashes: the next call continues after it. `None` at the end of the
    /// walk.
    pub last: Option<u64>,
}

impl Store {
    /// Returns the keys of `space` whose hashes come after `after`, in the order of hashes: about
    /// `count`, for those of one hash come together. A walk needs only the last hash to continue,
    /// so the caller need not keep any other state. A key that exists throughout is met exactly
    /// once.
    ///
    /// An index that has another order is listed as a whole, each time.
    pub async fn walk(
        self: &Arc<Self>,
        space: KeySpaceId,
        after: Option<u64>,
        count: usize,
    ) -> Result<Walked, Error> {
        let table = self.table(space)?;
        if !self.index.is_by_hash() {
            return self.walk_all(space, after, count).await;
        }
        let mut walked = Walked { keys: Vec::new(), last: after };
        while walked.keys.len() < count {
            let (keys, last) = self.walk_on(table, walked.last, count).await?;
            walked.keys.extend(keys);
            walked.last = last;
            if last.is_none() {
                break;
            }
        }
        Ok(walked)
    }

    /// Returns the keys that exist among the next ones, and the greatest hash of all those; `None`
    /// when there are no more.
    async fn walk_on(
        self: &Arc<Self>,
        table: TableId,
        after: Option<u64>,
        count: usize,
    ) -> Result<(Vec<Key>, Option<u64>), Error> {
        let any = Key::new(&[0]).expect("one byte is a key");
        let from = after.map(|hash| HashedKey { hash, key: &any });
        let is_new = |key: &Key| after.is_none_or(|after| key.hash() > after);
        let mut keys = self.next_keys(table, from, count.clamp(2, 64), is_new).await?;
        keys.dedup_by(|a, b| {
            // A damaged medium may have two entries of a key.
            b.1 |= a.0 == b.0 && a.1;
            a.0 == b.0
        });
        let last = keys.last().map(|(last, _)| last.hash());
        let live = keys.into_iter().filter_map(|(key, exists)| exists.then_some(key));
        Ok((live.collect(), last))
    }

    async fn walk_all(
        self: &Arc<Self>,
        space: KeySpaceId,
        after: Option<u64>,
        count: usize,
    ) -> Result<Walked, Error> {
        let mut next = BTreeSet::new();
        let take = |key: &Key| {
            let hash = key.hash();
            if after.is_none_or(|after| hash > after) {
                next.insert((hash, key.clone()));
                drop_beyond(&mut next, count);
            }
            true
        };
        self.list(space, None, take).await?;
        let last = next.last().map(|(hash, _)| *hash);
        Ok(Walked { keys: next.into_iter().map(|(_, key)| key).collect(), last })
    }

    /// Returns the number of live values of a key space. Expired values are subtracted by ticks;
    /// see [`Self::expiring_in`].
    pub fn key_count(&self, space: KeySpaceId) -> Result<u64, Error> {
        let (live, expiring) = (self.live_in(space)?, self.expiring_in(space)?);
        Ok(live.records.saturating_sub(expiring.expired))
    }

    /// Returns the counts of a key space's live values: their number, their bytes, and how many
    /// have long keys. Expired values count until they are cleaned away.
    pub fn live_in(&self, space: KeySpaceId) -> Result<Live, Error> {
        let table = self.table(space)?;
        let state = self.log.whole();
        let tables = state.extents.iter().flat_map(|(_, extent)| extent.values());
        Ok(tables.filter(|(id, _)| *id == table).map(|(_, live)| *live).sum())
    }

    /// Returns the live values of all key spaces but the store's own, with their bytes. The store's
    /// own keep its key spaces; [`Usage::values`](crate::Usage::values) counts these too. Walks
    /// all extents.
    pub fn live_pairs(&self) -> Live {
        let state = self.log.whole();
        let tables = state.extents.iter().flat_map(|(_, extent)| extent.values());
        tables.filter(|(id, _)| *id != TableId::STORE).map(|(_, live)| *live).sum()
    }
}

/// Keeps the first `count` and all others of the last one's hash.
fn drop_beyond(next: &mut BTreeSet<(u64, Key)>, count: usize) {
    while next.len() > count.max(1) {
        let last = next.last().expect("it is not empty").0;
        let of_last = next.iter().rev().take_while(|(hash, _)| *hash == last).count();
        if next.len() - of_last < count.max(1) {
            return;
        }
        next.retain(|(hash, _)| *hash != last);
    }
}

use crate::error::Error;
use crate::hashed_key::HashedKey;
use crate::index::IndexEntry;
use crate::key_space::{KeySpaceId, TableId};
use crate::lane::Lane;
use crate::log::{Visit, Whole};
use crate::store::Store;
use base::Key;
use std::cmp::Ordering;
use std::sync::Arc;

/// Which keys an iteration is for: those whose first four bytes, the first most significant, agree
/// with `pattern` in the bits of `mask`. Shorter keys count as followed by zeroes (SNIA KV API 1.1,
/// 6.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyFilter {
    /// The bits that are compared.
    pub mask: u32,
    /// The values of those bits.
    pub pattern: u32,
}

impl KeyFilter {
    /// Returns true when the filter selects `key`.
    pub fn accepts(self, key: &Key) -> bool {
        let mut first = [0; 4];
        let bytes = &key.as_bytes()[..key.as_bytes().len().min(4)];
        first[..bytes.len()].copy_from_slice(bytes);
        u32::from_be_bytes(first) & self.mask == self.pattern & self.mask
    }
}

/// A walk over the keys of a key space. A key that exists throughout is met exactly once. A key
/// that is stored or deleted during the walk may be left out.
#[derive(Clone, Debug)]
pub struct Iteration {
    space: KeySpaceId,
    filter: KeyFilter,
    last: Option<Key>,
    ended: bool,
}

impl Iteration {
    /// Makes a walk that has met no key yet.
    pub const fn new(space: KeySpaceId, filter: KeyFilter) -> Self {
        Self { space, filter, last: None, ended: false }
    }

    /// Returns true when no key is left to meet.
    pub const fn is_ended(&self) -> bool {
        self.ended
    }
}

impl Store {
    /// Hands the keys of `space` from `start` on, itself included, to `take`, in the index's order,
    /// until there are no more or `take` says false. `start` need not exist.
    pub async fn list(
        self: &Arc<Self>,
        space: KeySpaceId,
        start: Option<&Key>,
        mut take: impl FnMut(&Key) -> bool,
    ) -> Result<(), Error> {
        let table = self.table(space)?;
        let mut last = None;
        if let Some(start) = start {
            match self.exist(space, start).await {
                Ok(true) if !take(start) => return Ok(()),
                Ok(true) => last = Some(start.clone()),
                // An unreadable key does not keep the others from being listed.
                Ok(false) | Err(Error::Unrecovered) => {}
                Err(error) => return Err(error),
            }
        }
        let mut after = last.or_else(|| start.cloned());
        loop {
            let keys = self.keys_after(table, after.as_ref(), self.keys_at_once()).await?;
            let Some(furthest) = keys.last().cloned() else { return Ok(()) };
            for key in &keys {
                if !take(key) {
                    return Ok(());
                }
            }
            after = Some(furthest);
        }
    }

    /// Returns the next keys of an iteration, at most `count`; fewer, or none, when it has ended.
    pub async fn iterate(
        self: &Arc<Self>,
        iteration: &mut Iteration,
        count: usize,
    ) -> Result<Vec<Key>, Error> {
        let table = self.table(iteration.space)?;
        let mut met = Vec::new();
        while met.len() < count && !iteration.ended {
            let last = iteration.last.as_ref();
            let keys = self.keys_after(table, last, self.keys_at_once()).await?;
            iteration.ended = keys.is_empty();
            for key in keys {
                if met.len() == count {
                    break;
                }
                if iteration.filter.accepts(&key) {
                    met.push(key.clone());
                }
                iteration.last = Some(key);
            }
        }
        Ok(met)
    }

    /// Returns the first key of `space` after `last` in the index's order, or the first of all.
    pub async fn key_after(
        self: &Arc<Self>,
        space: KeySpaceId,
        last: Option<&Key>,
    ) -> Result<Option<Key>, Error> {
        let keys = self.keys_after(self.table(space)?, last, 1).await?;
        Ok(keys.into_iter().next())
    }

    /// Returns the number of keys that are read side by side.
    fn keys_at_once(&self) -> usize {
        self.log.shape.parallelism.max(2) as usize
    }

    /// Returns some of the keys after `last`, in order, of about `limit` records; none only when
    /// there are none.
    async fn keys_after(
        self: &Arc<Self>,
        table: TableId,
        last: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<Key>, Error> {
        let mut last = last.cloned();
        loop {
            let is_new = |key: &Key| {
                last.as_ref().is_none_or(|last| self.index.compare(key, last) == Ordering::Greater)
            };
            let from = last.as_ref().map(HashedKey::new);
            let keys = self.next_keys(table, from, limit, is_new).await?;
            let Some((end, _)) = keys.last() else { return Ok(Vec::new()) };
            let end = end.clone();
            let live: Vec<Key> =
                keys.into_iter().filter_map(|(key, exists)| exists.then_some(key)).collect();
            if !live.is_empty() {
                return Ok(live);
            }
            last = Some(end);
        }
    }

    /// Returns the next keys of `table` from `from` on that are `new`, in the index's order, of
    /// about `limit` records, and whether each exists; none only when there are none.
    pub(crate) async fn next_keys(
        self: &Arc<Self>,
        table: TableId,
        from: Option<HashedKey<'_>>,
        mut limit: usize,
        is_new: impl Fn(&Key) -> bool,
    ) -> Result<Vec<(Key, bool)>, Error> {
        loop {
            if self.index.is_by_hash() {
                self.read_ahead(table, from.map(|key| key.hash)).await;
            }
            let found = self.index.scan(table, from, limit).await;
            let (count, may_be_more) = (found.len(), found.len() >= limit);
            let mut keys = self.live_keys(table, &found).await?;
            let some_are_lost = keys.len() < count;
            keys.retain(|(key, _)| is_new(key));
            keys.sort_unstable_by(|a, b| self.index.compare(&a.0, &b.0));
            if !keys.is_empty() || !some_are_lost || !may_be_more {
                return Ok(keys);
            }
            limit *= 2;
        }
    }

    /// Returns the keys of the records of some entries, and whether each exists. Keys that are not
    /// in memory are read side by side. A record that cannot be read is left out if its key is not
    /// known otherwise.
    pub(crate) async fn live_keys(
        self: &Arc<Self>,
        table: TableId,
        entries: &[IndexEntry],
    ) -> Result<Vec<(Key, bool)>, Error> {
        for entry in entries {
            self.lanes.prefetch_header(entry.hash);
        }
        let (mut keys, mut visits) = (Vec::new(), Vec::new());
        self.each_entry(table, entries, |lane, state, entry| {
            match self.key_in_memory(lane, state, table, entry) {
                Some(found) => keys.push(found),
                None => visits.push(self.log.visit(state, entry.address)),
            }
        });
        let are_read = visits.iter().filter(|visit| visit.on_its_way.record.is_none()).count();
        let read = self.visited_keys(table, visits).await?;
        let key_bytes = read.iter().map(|(key, _)| key.as_bytes().len() as u64).sum();
        let head_bytes = self.log.head_bytes();
        self.log.windows.note_read(table, are_read as u64, key_bytes, head_bytes);
        keys.extend(read);
        Ok(keys)
    }

    /// Calls `meet` with the entries of a scan, in a stretch each: with those of the same hashes as
    /// the index has them then, since writers and the cleaner may have moved some. Only an index in
    /// memory is used by several reactors.
    pub(crate) fn each_entry(
        &self,
        table: TableId,
        scanned: &[IndexEntry],
        mut meet: impl FnMut(&mut Lane, &mut Whole<'_>, IndexEntry),
    ) {
        let is_in_memory = self.index.is_by_hash() && !self.keeps_tables;
        let any = Key::new(&[0]).expect("one byte is a key");
        let mut last = None;
        for entry in scanned {
            let hash = entry.hash;
            if is_in_memory && last.replace(hash) == Some(hash) {
                continue;
            }
            let mut lanes = self.lanes.lock(hash);
            let lane = lanes.of(hash);
            let present = is_in_memory
                .then(|| self.index.lookup(lane, table, HashedKey { hash, key: &any }).at_once());
            let mut state = self.log.whole();
            match present.flatten() {
                None => meet(lane, &mut state, *entry),
                Some(present) => present.into_iter().for_each(|address| {
                    meet(lane, &mut state, IndexEntry { hash, address });
                }),
            }
        }
    }

    /// Does the same for visited records.
    pub(crate) async fn visited_keys(
        self: &Arc<Self>,
        table: TableId,
        mut visits: Vec<Visit<'_>>,
    ) -> Result<Vec<(Key, bool)>, Error> {
        let read = |visit: &mut Visit<'_>| {
            let (store, address) = (self.clone(), visit.address);
            let on_its_way = std::mem::take(&mut visit.on_its_way);
            async move {
                let (key, found) = store.header(address, on_its_way).await?;
                let exists = match found.settled(&store.log, store.config.ack).await {
                    // The key's earlier record is known after the failed write is undone.
                    Err(Error::Unrecovered) if store.undoes() => {
                        store.exist_in(table, &key).await?
                    }
                    Err(error) if error.is_of_writing() => store.exist_in(table, &key).await?,
                    settled => settled.map(|()| found.exists())?,
                };
                Ok((key, exists))
            }
        };
        let keys = clock::join_all(visits.iter_mut().map(read).collect()).await;
        let readable = keys.into_iter().filter(|found| *found != Err(Error::Unrecovered));
        readable.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_select_any_bits_of_the_first_four_bytes() {
        let key = |bytes: &[u8]| Key::new(bytes).unwrap();
        let filter = KeyFilter { mask: 0x7800_0000, pattern: 0x2800_0000 };
        assert!(filter.accepts(&key(&[0x2F, 9, 9, 9, 9])));
        assert!(filter.accepts(&key(&[0xAF])), "the highest bit does not count");
        assert!(!filter.accepts(&key(&[0x3F])));
        let middle = KeyFilter { mask: 0x00FF_0000, pattern: 0xFF41_FFFF };
        assert!(middle.accepts(&key(b"xAxx")));
        assert!(!middle.accepts(&key(b"x")), "a short key is followed by zeroes");
        assert!(KeyFilter::default().accepts(&key(b"anything")));
    }
}

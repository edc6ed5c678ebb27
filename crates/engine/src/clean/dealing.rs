//! Dealing the records of victims out to the reactors of the store's pool.
//!
//! Each reactor weighs the records of some pages and copies those that live, as each has time for
//! more pages. The values of a page are read together, so pages are dealt out, and not lanes: each
//! record is weighed under the lock of its lane, which is held for that alone.
//!
//! All copies go to the cleaner's stream, which the first writer has, under its lock. A stream of
//! each writer would need open extents and a reserve for each of them, which hosts could not use.

use crate::clean::copy::{Copied, Moved};
use crate::clean::found::{Found, take_chunk};
use crate::clean::turn::Turn;
use crate::error::Error;
use crate::log::{Log, NoRoom};
use crate::store::Store;
use crate::write::pending::durable;
use clock::{Lock, Order, Stage};
use std::collections::VecDeque;
use std::sync::Arc;

/// Where pages are frames: number of tasks that copy. A few of them keep a disk busy, and leave
/// some of its time to hosts.
const COPIERS: u32 = 4;

/// Tasks of each reactor that copy, if several reactors do: one reads while the other copies.
const COPIERS_OF_EACH: u32 = 2;

/// Lists of copies that each reactor gets in turn: the last ones end at about the same time.
const SHARES_OF_EACH: usize = 4;

/// The pages of some victims, of those that no task has taken.
type Pages = Arc<Lock<VecDeque<Found>>>;

/// What a reactor has copied: lists, as they were made, since one list of all would be long to
/// make.
type Copies = (Vec<Vec<Moved>>, Result<Copied, NoRoom>);

impl Store {
    /// Copies the live records that were found, several pages side by side, until there is no room.
    pub(super) async fn copy_live(self: &Arc<Self>, found: VecDeque<Found>) -> Copies {
        let pages = Arc::new(Lock::new(Order::Pool, found));
        let (reactors, copiers) = (self.pool.tasks(), self.log.copiers());
        if reactors == 1 {
            return self.clone().copy_pages(pages, copiers).await;
        }
        let copiers = copiers.min(COPIERS_OF_EACH);
        let pieces = (0..reactors).map(|_| {
            let (store, pages) = (self.clone(), pages.clone());
            move || store.copy_pages(pages, copiers)
        });
        let copies = self.pool.run_each(Stage::Gc, pieces.collect()).await;
        let of_ended = || (Vec::new(), Ok(Copied::Partly));
        merge(copies.into_iter().map(|copies| copies.unwrap_or_else(of_ended)))
    }

    /// Takes pages until none is left, and copies their live records: so many tasks of this reactor
    /// side by side.
    async fn copy_pages(self: Arc<Self>, pages: Pages, copiers: u32) -> Copies {
        let workers = (0..copiers).map(|_| {
            let (store, pages) = (self.clone(), pages.clone());
            async move {
                let (mut moved, mut of_all) = (Vec::new(), Copied::All);
                loop {
                    let Some(chunk) = take_chunk(&store.log, &mut pages.lock()) else {
                        return (moved, Ok(of_all));
                    };
                    match store.copy_chunk(chunk, &mut moved).await {
                        Ok(copied) => of_all = of_all.max(copied),
                        Err(NoRoom) => return (moved, Err(NoRoom)),
                    }
                }
            }
        });
        merge(clock::join_all(workers.collect()).await.into_iter())
    }

    /// Points the index entries of all copied records to the copies; false when some copies did not
    /// land. Where entries come from the medium many are moved side by side, in the order of
    /// hashes, so that those of a table page follow each other.
    ///
    /// [`Error::ReactorEnded`] when a reactor has ended within its share: then entries may still
    /// point to the originals.
    pub(super) async fn repoint_all(
        self: &Arc<Self>,
        mut moved: Vec<Vec<Moved>>,
    ) -> Result<bool, Error> {
        if self.keeps_tables {
            return Ok(self.repoint_by_hash(moved.into_iter().flatten().collect()).await);
        }
        let reactors = self.pool.tasks();
        if reactors == 1 {
            return Ok(self.clone().repoint_some(moved).await);
        }
        let share = moved.len().div_ceil(reactors * SHARES_OF_EACH).max(1);
        let mut pieces = Vec::new();
        while !moved.is_empty() {
            let (store, rest) = (self.clone(), moved.split_off(share.min(moved.len())));
            let moved = std::mem::replace(&mut moved, rest);
            pieces.push(move || store.repoint_some(moved));
        }
        let landed = self.pool.run(Stage::Gc, pieces).await?;
        Ok(landed.into_iter().all(|landed| landed))
    }

    async fn repoint_by_hash(self: &Arc<Self>, mut moved: Vec<Moved>) -> bool {
        moved.sort_by_cached_key(|moved| moved.record.header.key.hash());
        let share = moved.len().div_ceil(self.log.shape.parallelism as usize).max(1);
        let mut work = Vec::new();
        while !moved.is_empty() {
            let rest = moved.split_off(share.min(moved.len()));
            work.push(self.clone().repoint_some(vec![std::mem::replace(&mut moved, rest)]));
        }
        clock::join_all(work).await.into_iter().all(|landed| landed)
    }

    async fn repoint_some(self: Arc<Self>, moved: Vec<Vec<Moved>>) -> bool {
        let mut landed = true;
        let mut turn = Turn::default();
        for moved in moved.into_iter().flatten() {
            turn.took(1).await;
            if durable(&moved.copy.pages).await.is_ok() {
                self.repoint(moved).await;
            } else {
                landed = false;
            }
        }
        landed
    }
}

impl Log {
    /// Returns the number of tasks that copy a victim's live records.
    fn copiers(&self) -> u32 {
        match self.layout.frames {
            Some(_) => COPIERS.min(self.shape.parallelism),
            None => self.shape.parallelism,
        }
    }
}

/// Returns all copies of several tasks or reactors.
fn merge(copies: impl Iterator<Item = Copies>) -> Copies {
    let (moved, copied): (Vec<_>, Vec<_>) = copies.unzip();
    let copied: Result<Vec<Copied>, NoRoom> = copied.into_iter().collect();
    let of_all = copied.map(|of| of.into_iter().max().unwrap_or(Copied::All));
    (moved.into_iter().flatten().collect(), of_all)
}

#[cfg(test)]
mod tests {
    use crate::Write;
    use crate::error::Error;
    use crate::store::Store;
    use crate::test_store::{SPACE, config, key, shape, value};
    use crate::work_pool::WorkPool;
    use base::{Buf, Nanos, Rng};
    use clock::Stage;
    use media::Memory;
    use reactor::{PeerGroup, Places};
    use std::collections::BTreeMap;
    use std::sync::Arc;

    const KEYS: u64 = 100;

    /// Stores and deletes keys, and returns what they have then.
    async fn change_keys(store: &Arc<Store>, rng: &mut Rng) -> BTreeMap<u64, Option<Buf>> {
        let mut keys: BTreeMap<u64, Option<Buf>> = BTreeMap::new();
        for version in 0..3_000 {
            let number = rng.below(KEYS);
            let len = u32::try_from(1 + rng.below(900)).expect("it is small");
            let value = (rng.below(3) > 0).then(|| value(len, version));
            let (key, announced) = (key(number), store.announce());
            let changed = match &value {
                Some(value) => {
                    let put = store.put(SPACE, &key, value, Write::default(), announced);
                    put.await.map(drop)
                }
                None => store.delete(SPACE, &key, announced).await,
            };
            assert!(matches!(changed, Ok(()) | Err(Error::KeyNotFound)), "{changed:?}");
            keys.insert(number, value);
        }
        keys
    }

    async fn check_keys(store: &Arc<Store>, keys: &BTreeMap<u64, Option<Buf>>) {
        for (number, value) in keys {
            let found = match store.get(SPACE, &key(*number)).await {
                Err(Error::KeyNotFound) => None,
                found => Some(found.expect("it can be read")),
            };
            let content = |value: &Buf| (value.len(), value.checksum());
            assert_eq!(found.as_ref().map(content), value.as_ref().map(content), "key {number}");
        }
    }

    /// Changes keys of a store in memory, and opens it again. Four reactors of its pool end within
    /// pieces of cleaning, one after the other.
    async fn clean_while_reactors_end(places: Places, seed: u64) {
        let pool = Arc::new(WorkPool::default());
        let mut rng = Rng::new(seed);
        for place in 1..=4 {
            let after = usize::try_from(rng.below(40)).expect("it is small");
            let pool = pool.clone();
            places.spawn(place, async move { pool.join_and_end(after) });
        }
        clock::sleep(Nanos(1), Stage::Queue).await;
        assert_eq!(pool.tasks(), 5);
        let medium = Arc::new(Memory::new(shape()));
        let store = Store::format_among(pool.clone(), medium.clone(), config());
        store.create_key_space(SPACE).await.expect("there is room");
        let keys = change_keys(&store, &mut rng).await;
        clock::sleep(Nanos(1), Stage::Queue).await;
        assert_eq!(pool.tasks(), 1, "all have ended");
        check_keys(&store, &keys).await;
        let is_victim = |(id, _)| store.log.pins.is_victim(id);
        let has_victims = store.log.whole().extents.iter().any(is_victim);
        assert!(!has_victims, "each victim is reset or in use");
        let (opened, _) = Store::open(medium, config()).await.expect("it opens");
        check_keys(&opened, &keys).await;
    }

    #[test]
    fn stores_find_room_and_each_victim_is_in_use_again_when_reactors_end_within_cleaning() {
        for seed in 0..40 {
            let mut group = PeerGroup::new(5, seed, Some(seed));
            group.preempt_often(4, 8);
            let places = group.places();
            group.run(clean_while_reactors_end(places, seed));
        }
    }
}

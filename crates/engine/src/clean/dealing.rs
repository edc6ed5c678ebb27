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
        // Without what a reactor has copied that has ended, the victims are cleaned again.
        let copies = self.pool.run(Stage::Gc, pieces.collect()).await;
        copies.map_or_else(|_| (Vec::new(), Err(NoRoom)), merge)
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
                        Ok(Copied::All) => {}
                        Ok(Copied::Readable) => of_all = Copied::Readable,
                        Err(NoRoom) => return (moved, Err(NoRoom)),
                    }
                }
            }
        });
        merge(clock::join_all(workers.collect()).await)
    }

    /// Points the index entries of all copied records to the copies; false when some copies did not
    /// land. Where entries come from the medium many are moved side by side, in the order of
    /// hashes, so that those of a table page follow each other.
    pub(super) async fn repoint_all(self: &Arc<Self>, mut moved: Vec<Vec<Moved>>) -> bool {
        if self.keeps_tables {
            return self.repoint_by_hash(moved.into_iter().flatten().collect()).await;
        }
        let reactors = self.pool.tasks();
        if reactors == 1 {
            return self.clone().repoint_some(moved).await;
        }
        let share = moved.len().div_ceil(reactors * SHARES_OF_EACH).max(1);
        let mut pieces = Vec::new();
        while !moved.is_empty() {
            let (store, rest) = (self.clone(), moved.split_off(share.min(moved.len())));
            let moved = std::mem::replace(&mut moved, rest);
            pieces.push(move || store.repoint_some(moved));
        }
        let landed = self.pool.run(Stage::Gc, pieces).await;
        landed.is_ok_and(|landed| landed.into_iter().all(|landed| landed))
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
fn merge(copies: Vec<Copies>) -> Copies {
    let (moved, copied): (Vec<_>, Vec<_>) = copies.into_iter().unzip();
    let copied: Result<Vec<Copied>, NoRoom> = copied.into_iter().collect();
    let of_all = copied
        .map(|of| if of.contains(&Copied::Readable) { Copied::Readable } else { Copied::All });
    (moved.into_iter().flatten().collect(), of_all)
}

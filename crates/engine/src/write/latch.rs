//! Latches of keys: at most one task at a time changes what a key holds.

use base::limits::LANES;
use clock::{Held, Rank, Stage, TaskId};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// One latch for each key that is being changed. Keys of equal hash share one: their writers only
/// wait longer.
#[derive(Debug)]
pub(crate) struct Latches {
    lanes: Vec<Mutex<Vec<Latched>>>,
}

#[derive(Debug)]
struct Latched {
    hash: u64,
    waiters: VecDeque<TaskId>,
}

/// The latches of one or several keys, held until this drops.
#[derive(Debug)]
pub(crate) struct Latch<'a> {
    latches: &'a Latches,
    /// In rising order, each once.
    hashes: SmallVec<[u64; 1]>,
    _rank: Held,
}

impl Default for Latches {
    fn default() -> Self {
        Self { lanes: (0..LANES).map(|_| Mutex::default()).collect() }
    }
}

/// Returns the order in which latches are taken: rising, each once.
fn in_order(hashes: impl Iterator<Item = u64>) -> SmallVec<[u64; 1]> {
    let mut hashes: SmallVec<[u64; 1]> = hashes.collect();
    if hashes.len() > 1 {
        hashes.sort_unstable();
        hashes.dedup();
    }
    hashes
}

impl Latches {
    #[inline]
    fn lane(&self, hash: u64) -> MutexGuard<'_, Vec<Latched>> {
        let lane = usize::try_from(hash % LANES as u64).expect("there are few lanes");
        self.lanes[lane].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the latches of all keys of these hashes are free. A caller that changes the
    /// keys before it awaits anything need not take them.
    pub(crate) fn are_free(&self, mut hashes: impl Iterator<Item = u64>) -> bool {
        hashes.all(|hash| self.lane(hash).iter().all(|latched| latched.hash != hash))
    }

    /// Takes latches that are free.
    pub(crate) fn take_free(&self, hashes: impl Iterator<Item = u64>) -> Latch<'_> {
        let hashes = in_order(hashes);
        for hash in &hashes {
            let mut lane = self.lane(*hash);
            assert!(lane.iter().all(|latched| latched.hash != *hash), "the latch is free");
            lane.push(Latched { hash: *hash, waiters: VecDeque::new() });
        }
        Latch { latches: self, hashes, _rank: Held::new(Rank::Latch) }
    }

    /// Waits for the latches, for each in FIFO order. A task that holds one latch only waits for
    /// one of a greater hash, so no two tasks wait for each other. Therefore the latches count as
    /// held only when the task has all of them.
    pub(crate) async fn latch(&self, hashes: impl Iterator<Item = u64>) -> Latch<'_> {
        let hashes = in_order(hashes);
        for hash in &hashes {
            if !self.take(*hash) {
                clock::park(Rank::Latch, Stage::Latch).await;
            }
        }
        Latch { latches: self, hashes, _rank: Held::new(Rank::Latch) }
    }

    /// Takes the latch if it is free; else puts the current task into its queue.
    #[inline]
    fn take(&self, hash: u64) -> bool {
        let mut lane = self.lane(hash);
        if let Some(latched) = lane.iter_mut().find(|latched| latched.hash == hash) {
            latched.waiters.push_back(clock::current());
            return false;
        }
        lane.push(Latched { hash, waiters: VecDeque::new() });
        true
    }

    /// Hands the latch to the task that has waited for it longest.
    fn release(&self, hash: u64) {
        let mut lane = self.lane(hash);
        let at = lane.iter().position(|latched| latched.hash == hash);
        let at = at.expect("a latch is in its lane while it is held");
        match lane[at].waiters.pop_front() {
            Some(next) => clock::wake(next),
            None => drop(lane.swap_remove(at)),
        }
    }
}

impl Drop for Latch<'_> {
    fn drop(&mut self) {
        self.hashes.iter().for_each(|hash| self.latches.release(*hash));
    }
}

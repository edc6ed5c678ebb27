use base::limits::LANES;
use clock::{Held, Rank, Stage, TaskId};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// One latch for each key that is being changed. Keys of equal hash share one, which costs nothing
/// but time.
#[derive(Debug)]
pub(crate) struct Latches {
    lanes: Vec<Mutex<Vec<Latched>>>,
}

#[derive(Debug)]
struct Latched {
    hash: u64,
    waiters: VecDeque<TaskId>,
}

/// The latch of a key, held until this drops.
#[derive(Debug)]
pub(crate) struct Latch<'a> {
    latches: &'a Latches,
    hash: u64,
    _rank: Held,
}

/// The latches of several keys, held until this drops.
#[derive(Debug)]
pub(crate) struct LatchSet<'a> {
    latches: &'a Latches,
    /// In rising order, each once.
    hashes: Vec<u64>,
    _rank: Held,
}

impl Default for Latches {
    fn default() -> Self {
        Self { lanes: (0..LANES).map(|_| Mutex::default()).collect() }
    }
}

impl Latches {
    #[inline]
    fn lane(&self, hash: u64) -> MutexGuard<'_, Vec<Latched>> {
        let lane = usize::try_from(hash % LANES as u64).expect("there are few lanes");
        self.lanes[lane].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the latch of the keys whose hash is `hash`, first come first served.
    #[inline]
    pub(crate) async fn latch(&self, hash: u64) -> Latch<'_> {
        if !self.take(hash) {
            clock::park(Rank::Latch, Stage::Latch).await;
        }
        Latch { latches: self, hash, _rank: Held::new(Rank::Latch) }
    }

    /// The same latch, if it is free.
    pub(crate) fn try_latch(&self, hash: u64) -> Option<Latch<'_>> {
        let mut lane = self.lane(hash);
        if lane.iter().any(|latched| latched.hash == hash) {
            return None;
        }
        lane.push(Latched { hash, waiters: VecDeque::new() });
        drop(lane);
        Some(Latch { latches: self, hash, _rank: Held::new(Rank::Latch) })
    }

    /// Waits for the latches of all `hashes`, one of which may be that of several keys. Whoever
    /// holds one and waits for another waits for one of a greater hash, so no two wait for each
    /// other; that is why these count as held only when all of them are.
    pub(crate) async fn latch_all(&self, mut hashes: Vec<u64>) -> LatchSet<'_> {
        hashes.sort_unstable();
        hashes.dedup();
        for hash in &hashes {
            if !self.take(*hash) {
                clock::park(Rank::Latch, Stage::Latch).await;
            }
        }
        LatchSet { latches: self, hashes, _rank: Held::new(Rank::Latch) }
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

    /// Hands the latch to whoever waits for it longest.
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
        self.latches.release(self.hash);
    }
}

impl Drop for LatchSet<'_> {
    fn drop(&mut self) {
        self.hashes.iter().for_each(|hash| self.latches.release(*hash));
    }
}

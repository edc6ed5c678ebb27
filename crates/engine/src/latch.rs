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
}

impl Drop for Latch<'_> {
    fn drop(&mut self) {
        let mut lane = self.latches.lane(self.hash);
        let at = lane.iter().position(|latched| latched.hash == self.hash);
        let at = at.expect("a latch is in its lane while it is held");
        match lane[at].waiters.pop_front() {
            Some(next) => clock::wake(next),
            None => drop(lane.swap_remove(at)),
        }
    }
}

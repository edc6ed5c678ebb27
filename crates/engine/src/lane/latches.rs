//! Latches of the keys of a lane: at most one task at a time changes what a key holds.

use clock::TaskId;
use std::collections::VecDeque;

/// One latch for each key that is being changed. Keys of equal hash share one: their writers only
/// wait longer.
#[derive(Debug, Default)]
pub(crate) struct Latches(Vec<Latched>);

#[derive(Debug)]
struct Latched {
    hash: u64,
    waiters: VecDeque<TaskId>,
}

impl Latches {
    /// Returns whether the latch is free. A task that changes the key in the same section of locks
    /// need not take it.
    #[inline]
    pub(crate) fn is_free(&self, hash: u64) -> bool {
        self.0.iter().all(|latched| latched.hash != hash)
    }

    /// Takes the latch, which is free.
    pub(crate) fn take(&mut self, hash: u64) {
        assert!(self.is_free(hash), "a latch that is taken is free");
        self.0.push(Latched { hash, waiters: VecDeque::new() });
    }

    /// Takes the latch if it is free; else puts the current task into its queue.
    pub(crate) fn take_or_queue(&mut self, hash: u64) -> bool {
        match self.0.iter_mut().find(|latched| latched.hash == hash) {
            Some(latched) => latched.waiters.push_back(clock::current()),
            None => {
                self.take(hash);
                return true;
            }
        }
        false
    }

    /// Hands the latch to the task that has waited for it longest.
    pub(crate) fn release(&mut self, hash: u64) {
        let at = self.0.iter().position(|latched| latched.hash == hash);
        let at = at.expect("a latch is in its lane while it is held");
        match self.0[at].waiters.pop_front() {
            Some(next) => clock::wake(next),
            None => drop(self.0.swap_remove(at)),
        }
    }
}

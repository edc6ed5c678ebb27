use crate::park::{park, wake};
use crate::rank::Rank;
use crate::stage::Stage;
use crate::task::current;
use crate::task_state::TaskId;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Stops all tasks that come to it while it is closed.
#[derive(Debug, Default)]
pub struct Gate {
    /// The number of guards that keep it closed.
    closed: AtomicU32,
    stopped: Mutex<Vec<TaskId>>,
}

impl Gate {
    /// Returns an open gate.
    pub fn new() -> Self {
        Self::default()
    }

    /// Waits while the gate is closed. The time goes to [`Stage::Gc`]. The caller holds nothing.
    #[inline]
    pub async fn pass(&self) {
        while self.closed.load(Relaxed) > 0 {
            self.stopped().push(current());
            park(Rank::Gate, Stage::Gc).await;
        }
    }

    /// True while tasks pass without waiting.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.closed.load(Relaxed) == 0
    }

    /// Closes the gate until the guard drops. Tasks that have passed continue. Several may close it
    /// together; then the last opens it.
    pub fn close(&self) -> Closed<'_> {
        self.closed.fetch_add(1, Relaxed);
        Closed { gate: self }
    }

    fn stopped(&self) -> MutexGuard<'_, Vec<TaskId>> {
        self.stopped.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps a gate closed. The gate opens when its last guard drops.
#[must_use = "dropping it opens the gate"]
#[derive(Debug)]
pub struct Closed<'a> {
    gate: &'a Gate,
}

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        if self.gate.closed.fetch_sub(1, Relaxed) == 1 {
            let stopped = std::mem::take(&mut *self.gate.stopped());
            stopped.into_iter().for_each(wake);
        }
    }
}

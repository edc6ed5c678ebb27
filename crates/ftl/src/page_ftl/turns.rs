use clock::{Rank, Stage, TaskId};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A queue of units for a controller that cleans one block at a time.
#[derive(Debug, Default)]
pub(crate) struct Turns(Mutex<Queue>);

#[derive(Debug, Default)]
struct Queue {
    is_taken: bool,
    waiters: VecDeque<TaskId>,
}

impl Turns {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) async fn take(&self) {
        let waits = {
            let mut queue = self.queue();
            let waits = std::mem::replace(&mut queue.is_taken, true);
            if waits {
                queue.waiters.push_back(clock::current());
            }
            waits
        };
        if waits {
            // The task that had the turn hands it on.
            clock::park(Rank::Free, Stage::Gc).await;
        }
    }

    pub(crate) fn hand_on(&self) {
        let mut queue = self.queue();
        match queue.waiters.pop_front() {
            Some(next) => clock::wake(next),
            None => queue.is_taken = false,
        }
    }
}

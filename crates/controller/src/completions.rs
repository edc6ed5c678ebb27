use crate::completion::Completion;
use clock::{Rank, Stage, TaskId};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

/// The completion queue of a host, in the order of posting.
#[derive(Debug, Default)]
pub struct Completions {
    next_number: Cell<u64>,
    posted: RefCell<VecDeque<Completion>>,
    waiters: RefCell<VecDeque<TaskId>>,
}

impl Completions {
    /// Returns the number of the next submission: 0, 1, 2 and so on.
    pub fn number(&self) -> u64 {
        self.next_number.replace(self.next_number.get() + 1)
    }

    /// Queues `completion` and wakes the first waiting task.
    #[inline]
    pub fn post(&self, completion: Completion) {
        self.posted.borrow_mut().push_back(completion);
        if let Some(waiter) = self.waiters.borrow_mut().pop_front() {
            clock::wake(waiter);
        }
    }

    /// Returns the next completion, if one has been posted.
    #[inline]
    pub fn try_next(&self) -> Option<Completion> {
        self.posted.borrow_mut().pop_front()
    }

    /// Waits for the next completion, in the order of posting.
    pub async fn next(&self) -> Completion {
        loop {
            if let Some(completion) = self.try_next() {
                return completion;
            }
            self.waiters.borrow_mut().push_back(clock::current());
            clock::park(Rank::Free, Stage::Queue).await;
        }
    }
}

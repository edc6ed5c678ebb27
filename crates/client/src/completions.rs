use clock::{Rank, Stage, TaskId};
use controller::Completion;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

/// What has completed and was not taken yet, in the order of posting.
#[derive(Debug, Default)]
pub(crate) struct Completions {
    next_number: Cell<u64>,
    posted: RefCell<VecDeque<Completion>>,
    waiters: RefCell<VecDeque<TaskId>>,
}

impl Completions {
    /// The number of the next submission.
    pub(crate) fn number(&self) -> u64 {
        self.next_number.replace(self.next_number.get() + 1)
    }

    pub(crate) fn post(&self, completion: Completion) {
        self.posted.borrow_mut().push_back(completion);
        if let Some(waiter) = self.waiters.borrow_mut().pop_front() {
            clock::wake(waiter);
        }
    }

    pub(crate) async fn next(&self) -> Completion {
        loop {
            let next = self.posted.borrow_mut().pop_front();
            if let Some(completion) = next {
                return completion;
            }
            self.waiters.borrow_mut().push_back(clock::current());
            clock::park(Rank::Free, Stage::Queue).await;
        }
    }
}

use crate::completion::Completion;
use crate::controller::Controller;
use base::{Buf, Key};
use clock::{Rank, Stage, TaskId};
use spec::Command;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;

/// A command with the host memory that it names.
#[derive(Clone, Debug)]
pub struct Submission {
    /// The submission queue entry.
    pub command: Command,
    /// The key, where it has more than the 16 bytes that fit the command.
    pub long_key: Option<Key>,
    /// The value of a Store; empty otherwise.
    pub data: Buf,
}

impl Submission {
    /// A command whose key is `key` and which brings no data.
    pub fn new(command: Command, key: &Key) -> Self {
        Self::with_data(command, key, Buf::phantom(0, 0))
    }

    /// A command whose key is `key` and which brings `data`.
    pub fn with_data(command: Command, key: &Key, data: Buf) -> Self {
        Self { command, long_key: key.is_long().then(|| key.clone()), data }
    }
}

/// A submission queue and its completion queue, wherever the controller behind them is. Clones are
/// handles on the same pair.
pub trait Queue: Clone + 'static {
    /// Starts a command, and returns its number: 0, 1, 2 and so on.
    fn submit(&self, submission: Submission) -> u64;

    /// Waits for the next completion, in the order of posting.
    fn next(&self) -> impl Future<Output = Completion>;
}

/// A submission queue and its completion queue, for a host in the same process. Clones are handles
/// on the same pair.
#[derive(Clone, Debug)]
pub struct QueuePair(Rc<Shared>);

#[derive(Debug)]
struct Shared {
    controller: Arc<Controller>,
    state: RefCell<State>,
}

#[derive(Debug, Default)]
struct State {
    next_id: u64,
    outstanding: usize,
    completions: VecDeque<Completion>,
    waiters: VecDeque<TaskId>,
}

impl QueuePair {
    pub(crate) fn new(controller: Arc<Controller>) -> Self {
        Self(Rc::new(Shared { controller, state: RefCell::default() }))
    }

    /// Starts a command, and returns its number: 0, 1, 2 and so on.
    pub fn submit(&self, submission: Submission) -> u64 {
        let id = {
            let mut state = self.0.state.borrow_mut();
            state.next_id += 1;
            state.outstanding += 1;
            state.next_id - 1
        };
        let shared = self.0.clone();
        let namespace = shared.controller.namespace(submission.command.nsid());
        if let Some(namespace) = &namespace {
            namespace.expect(&submission.command);
        }
        clock::spawn_at(clock::host_now(), async move {
            clock::label(id);
            let submitted = clock::now();
            let opcode = submission.command.opcode();
            let controller = &shared.controller;
            let mut work = pin!(controller.execute(namespace, submission));
            let outcome = poll_fn(|context| controller.poll_inside(work.as_mut(), context)).await;
            let (completed, stages) = (clock::now(), clock::stages());
            assert_eq!(stages.total(), completed - submitted, "stages add up to the latency");
            shared.post(Completion {
                id,
                opcode,
                status: outcome.status,
                result: outcome.result,
                data: outcome.data,
                submitted,
                completed,
                stages,
            });
        });
        id
    }

    /// Waits for the next completion, in the order of posting.
    pub async fn next(&self) -> Completion {
        loop {
            if let Some(completion) = self.try_next() {
                return completion;
            }
            self.0.state.borrow_mut().waiters.push_back(clock::current());
            clock::park(Rank::Free, Stage::Queue).await;
        }
    }

    /// The next completion, if one has been posted.
    pub fn try_next(&self) -> Option<Completion> {
        self.0.state.borrow_mut().completions.pop_front()
    }

    /// Commands submitted and not yet posted.
    pub fn outstanding(&self) -> usize {
        self.0.state.borrow().outstanding
    }
}

impl Queue for QueuePair {
    fn submit(&self, submission: Submission) -> u64 {
        self.submit(submission)
    }

    async fn next(&self) -> Completion {
        self.next().await
    }
}

impl Shared {
    fn post(&self, completion: Completion) {
        let mut state = self.state.borrow_mut();
        state.outstanding -= 1;
        state.completions.push_back(completion);
        if let Some(waiter) = state.waiters.pop_front() {
            clock::wake(waiter);
        }
    }
}

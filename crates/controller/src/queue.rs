use crate::completion::{Completion, Outcome};
use crate::controller::Controller;
use crate::fused_order::{FusedOrder, Ordered};
use crate::submission::Submission;
use base::Nanos;
use clock::{Rank, Stage, TaskId};
use spec::Opcode;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;

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
    order: FusedOrder<(u64, Submission)>,
    completions: VecDeque<Completion>,
    waiters: VecDeque<TaskId>,
}

impl Controller {
    /// Creates a queue pair.
    pub fn queue_pair(self: &Arc<Self>) -> QueuePair {
        QueuePair::new(self.clone())
    }
}

impl QueuePair {
    fn new(controller: Arc<Controller>) -> Self {
        Self(Rc::new(Shared { controller, state: RefCell::default() }))
    }

    /// Starts a command, and returns its number: 0, 1, 2 and so on. The first command of a fused
    /// operation is held until the next submission.
    pub fn submit(&self, submission: Submission) -> u64 {
        let mut state = self.0.state.borrow_mut();
        let id = state.next_id;
        state.next_id += 1;
        state.outstanding += 1;
        if !submission.command.is_fused() && !state.order.is_waiting() {
            drop(state);
            self.start(id, submission);
            return id;
        }
        let command = submission.command;
        let (missed, ordered) = state.order.take(&command, (id, submission));
        drop(state);
        if let Some((id, first)) = missed {
            self.start(id, first);
        }
        match ordered {
            Ordered::Waits => {}
            Ordered::Alone((id, alone)) => self.start(id, alone),
            Ordered::Fused(first, second) => self.start_fused(first, second),
        }
        id
    }

    fn start(&self, id: u64, submission: Submission) {
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
            shared.post_outcome((id, opcode), submitted, outcome);
        });
    }

    fn start_fused(&self, (first_id, first): (u64, Submission), second: (u64, Submission)) {
        let shared = self.0.clone();
        let namespace = shared.controller.namespace(first.command.nsid());
        clock::spawn_at(clock::host_now(), async move {
            clock::label(first_id);
            let submitted = clock::now();
            let (second_id, second) = second;
            let asked = [(first_id, &first), (second_id, &second)];
            let asked = asked.map(|(id, submission)| (id, submission.command.opcode()));
            let work = shared.controller.execute_fused(namespace, [first, second]);
            let outcomes = shared.controller.inside(work).await;
            for (asked, outcome) in asked.into_iter().zip(outcomes) {
                shared.post_outcome(asked, submitted, outcome);
            }
        });
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
    /// Posts how a command of this number and opcode ended, in the task that executed it.
    fn post_outcome(&self, (id, opcode): (u64, Opcode), submitted: Nanos, outcome: Outcome) {
        let (completed, stages) = (clock::now(), clock::stages());
        assert_eq!(stages.total(), completed - submitted, "stages add up to the latency");
        let Outcome { status, result, data } = outcome;
        self.post(Completion { id, opcode, status, result, data, submitted, completed, stages });
    }

    fn post(&self, completion: Completion) {
        let mut state = self.state.borrow_mut();
        state.outstanding -= 1;
        state.completions.push_back(completion);
        if let Some(waiter) = state.waiters.pop_front() {
            clock::wake(waiter);
        }
    }
}

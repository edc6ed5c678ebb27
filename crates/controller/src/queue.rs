use crate::commit_queue::{Commit, CommitQueue, HasCommits, store_of};
use crate::completion::{Completion, Outcome};
use crate::completions::Completions;
use crate::controller::Controller;
use crate::fused_order::{FusedOrder, Ordered};
use crate::namespace::{Namespace, NamespaceInUse};
use crate::quick::{Quick, Tried};
use crate::submission::Submission;
use base::Nanos;
use clock::Stages;
use spec::Opcode;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

/// Held Stores that are executed before other tasks have their turn.
const STORES_A_TURN: usize = 16;

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

struct Shared {
    controller: Arc<Controller>,
    completions: Completions,
    outstanding: Cell<usize>,
    order: RefCell<FusedOrder<(u64, Submission)>>,
    /// Stores that may need no task of their own. One task executes all of them.
    held: RefCell<Vec<Held>>,
    commits: CommitQueue<(Asked, Nanos)>,
}

/// The number and the opcode of a command.
type Asked = (u64, Opcode);

/// A Store or Retrieve that has not begun.
struct Held {
    asked: Asked,
    /// When it was submitted.
    at: Nanos,
    namespace: Arc<NamespaceInUse>,
    quick: Quick,
}

impl Controller {
    /// Creates a queue pair.
    pub fn queue_pair(self: &Arc<Self>) -> QueuePair {
        QueuePair::new(self.clone())
    }
}

impl QueuePair {
    fn new(controller: Arc<Controller>) -> Self {
        Self(Rc::new(Shared {
            controller,
            completions: Completions::default(),
            outstanding: Cell::new(0),
            order: RefCell::default(),
            held: RefCell::default(),
            commits: CommitQueue::default(),
        }))
    }

    /// Starts a command, and returns its number: 0, 1, 2 and so on. The first command of a fused
    /// operation is held until the next submission.
    pub fn submit(&self, submission: Submission) -> u64 {
        let id = self.0.completions.number();
        self.0.outstanding.set(self.0.outstanding.get() + 1);
        let mut order = self.0.order.borrow_mut();
        if !submission.command.is_fused() && !order.is_waiting() {
            drop(order);
            self.0.start(id, submission);
            return id;
        }
        let command = submission.command;
        let (missed, ordered) = order.take(&command, (id, submission));
        drop(order);
        if let Some((id, first)) = missed {
            self.0.start(id, first);
        }
        match ordered {
            Ordered::Waits => {}
            Ordered::Alone((id, alone)) => self.0.start(id, alone),
            Ordered::Fused(first, second) => self.0.start_fused(first, second),
        }
        id
    }

    /// Waits for the next completion, in the order of posting.
    pub fn next(&self) -> impl Future<Output = Completion> {
        self.0.completions.next()
    }

    /// The next completion, if one has been posted.
    pub fn try_next(&self) -> Option<Completion> {
        self.0.completions.try_next()
    }

    /// Commands submitted and not yet posted.
    pub fn outstanding(&self) -> usize {
        self.0.outstanding.get()
    }
}

impl Queue for QueuePair {
    fn submit(&self, submission: Submission) -> u64 {
        self.submit(submission)
    }

    fn next(&self) -> impl Future<Output = Completion> {
        self.next()
    }
}

impl Shared {
    fn start(self: &Rc<Self>, id: u64, mut submission: Submission) {
        let mut namespace = self.controller.namespace(submission.command.nsid());
        if let Some(quick) = self.quick(namespace.as_deref(), &mut submission)
            && let Some(namespace) = namespace.take()
        {
            let asked = (id, submission.command.opcode());
            let held = Held { asked, at: clock::host_now(), namespace, quick };
            return if held.quick.is_store() { self.hold(held) } else { self.execute(held) };
        }
        if let Some(namespace) = &namespace {
            namespace.expect(&submission.command);
        }
        let shared = self.clone();
        clock::spawn_at(clock::host_now(), async move || {
            clock::name_task("command");
            clock::label(id);
            let submitted = clock::now();
            let opcode = submission.command.opcode();
            let outcome = shared.controller.execute(namespace, submission).await;
            shared.post_here((id, opcode), submitted, outcome);
        });
    }

    fn start_fused(
        self: &Rc<Self>,
        (first_id, first): (u64, Submission),
        second: (u64, Submission),
    ) {
        let shared = self.clone();
        let namespace = shared.controller.namespace(first.command.nsid());
        clock::spawn_at(clock::host_now(), async move || {
            clock::name_task("command");
            clock::label(first_id);
            let submitted = clock::now();
            let (second_id, second) = second;
            let asked = [(first_id, &first), (second_id, &second)];
            let asked = asked.map(|(id, submission)| (id, submission.command.opcode()));
            let outcomes = shared.controller.execute_fused(namespace, [first, second]).await;
            for (asked, outcome) in asked.into_iter().zip(outcomes) {
                shared.post_here(asked, submitted, outcome);
            }
        });
    }

    /// Decodes a Store or Retrieve of a drive without an emulation, and takes its data. Returns
    /// `None` and takes nothing if it is another command.
    fn quick(
        &self,
        namespace: Option<&NamespaceInUse>,
        submission: &mut Submission,
    ) -> Option<Quick> {
        match &**namespace? {
            Namespace::Kv(store) if self.controller.has_quick_commands() => {
                let quick = Quick::decode(store, &submission.command, &mut submission.data)?;
                quick.prefetch(store);
                Some(quick)
            }
            _ => None,
        }
    }

    /// Holds a Store until the task that executes all held ones.
    fn hold(self: &Rc<Self>, store: Held) {
        let mut held = self.held.borrow_mut();
        if held.is_empty() {
            let shared = self.clone();
            clock::spawn_at(clock::host_now(), async move || {
                clock::name_task("command");
                shared.execute_all_held().await;
            });
        }
        held.push(store);
    }

    /// Executes the held Stores until none is left, each once the clock has reached its submission.
    /// Other tasks have their turn in between.
    async fn execute_all_held(self: &Rc<Self>) {
        while !self.held.borrow().is_empty() {
            clock::give_way().await;
            self.execute_held();
        }
    }

    /// Executes held Stores that were submitted by now: those that must wait in tasks.
    fn execute_held(self: &Rc<Self>) {
        let began = clock::now();
        let held = &mut *self.held.borrow_mut();
        let count = held.partition_point(|held| held.at <= began).min(STORES_A_TURN);
        for Held { asked, at, namespace, mut quick } in held.drain(..count) {
            match quick.attempt(store_of(&namespace)) {
                Tried::Done(outcome) => self.post(asked, began, outcome, Stages::default()),
                Tried::Landing(landing) => {
                    let command = (asked, began);
                    let commit = Commit { namespace, landing, began, command };
                    self.commits.push(self, commit);
                }
                Tried::Waits => self.execute(Held { asked, at, namespace, quick }),
            }
        }
    }

    /// Executes a command in a task of its own.
    fn execute(self: &Rc<Self>, Held { asked, at, namespace, mut quick }: Held) {
        let shared = self.clone();
        clock::spawn_at(at, async move || {
            clock::name_task("command");
            clock::label(asked.0);
            let submitted = clock::now();
            let outcome = quick.execute(store_of(&namespace)).await;
            shared.post_here(asked, submitted, outcome);
        });
    }

    /// Posts how a command ended, in the task that executed it.
    fn post_here(&self, asked: Asked, submitted: Nanos, outcome: Outcome) {
        self.post(asked, submitted, outcome, clock::stages());
    }

    fn post(&self, (id, opcode): Asked, submitted: Nanos, outcome: Outcome, stages: Stages) {
        let completed = clock::now();
        assert_eq!(stages.total(), completed - submitted, "stages add up to the latency");
        let Outcome { status, result, data } = outcome;
        self.outstanding.set(self.outstanding.get() - 1);
        self.completions.post(Completion {
            id,
            opcode,
            status,
            result,
            data,
            submitted,
            completed,
            stages,
        });
    }
}

impl HasCommits for Shared {
    type Command = (Asked, Nanos);

    fn commit_queue(&self) -> &CommitQueue<Self::Command> {
        &self.commits
    }

    fn end(&self, (asked, began): Self::Command, outcome: Outcome, spent: &Stages) {
        self.post(asked, began, outcome, *spent);
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} outstanding commands", self.outstanding.get())
    }
}

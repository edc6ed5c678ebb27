//! Stores that are in the log and not durable: a queue keeps them in the order of the log, and one
//! task answers all that have landed.

use crate::completion::Outcome;
use crate::namespace::{Namespace, NamespaceInUse};
use crate::status::status_of;
use base::Nanos;
use clock::{BusyStage, Stage, Stages};
use engine::{Error, Landing, Store, Stored};
use media::ExtentId;
use spec::Status;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

/// A queue of commands that has a [`CommitQueue`].
pub(crate) trait HasCommits: 'static {
    /// What the queue knows of a command.
    type Command: Copy + 'static;

    fn commit_queue(&self) -> &CommitQueue<Self::Command>;

    /// Ends a command that has begun: counts and answers it. `spent` are the stages of the time
    /// since it began.
    fn end(&self, command: Self::Command, outcome: Outcome, spent: &Stages);
}

/// Stores that are answered before other tasks have a turn.
const ANSWERS_A_TURN: u32 = 64;

/// See the module's documentation.
pub(crate) struct CommitQueue<C>(RefCell<Vec<Rc<Commits<C>>>>);

/// The Stores whose records are in one extent. A task answers them.
struct Commits<C> {
    extent: Option<ExtentId>,
    /// One that has landed is answered before it is taken out.
    waiting: RefCell<VecDeque<Commit<C>>>,
}

/// A Store in the log.
pub(crate) struct Commit<C> {
    /// Its namespace, which has a store. It is kept until the answer.
    pub(crate) namespace: Arc<NamespaceInUse>,
    pub(crate) landing: Landing,
    /// When it began.
    pub(crate) began: Nanos,
    pub(crate) command: C,
}

impl<C> Default for CommitQueue<C> {
    fn default() -> Self {
        Self(RefCell::default())
    }
}

impl<C> CommitQueue<C> {
    /// Adds a Store to the commit queue of `queue`, which is this one.
    #[inline]
    pub(crate) fn push<Q: HasCommits<Command = C>>(&self, queue: &Rc<Q>, commit: Commit<C>) {
        let extent = commit.landing.extent();
        let mut all = self.0.borrow_mut();
        match all.iter().find(|commits| commits.extent == extent) {
            Some(commits) => commits.waiting.borrow_mut().push_back(commit),
            None => {
                let waiting = RefCell::new(VecDeque::from([commit]));
                let commits = Rc::new(Commits { extent, waiting });
                all.push(commits.clone());
                clock::spawn(answer_all(queue.clone(), commits));
            }
        }
    }
}

impl<C> Commit<C> {
    /// See [`Store::try_landed`].
    #[inline]
    fn landed(&self, spent: &mut Stages) -> Option<Stored> {
        store_of(&self.namespace).try_landed(&self.landing, self.began, spent)
    }
}

/// Answers the Stores of an extent, each after those before it, until none is left.
async fn answer_all<Q: HasCommits>(queue: Rc<Q>, commits: Rc<Commits<Q::Command>>) {
    clock::name_task("commit queue");
    clock::set_busy_stage(BusyStage::Complete);
    let (mut answered, mut spent) = (0_u32, Stages::default());
    loop {
        let next = commits.waiting.borrow().front().map(|it| (it.command, it.landed(&mut spent)));
        let Some((command, landed)) = next else { break };
        let first = || commits.waiting.borrow_mut().pop_front().expect("it is the next one");
        if let Some(stored) = landed {
            queue.end(command, done(Ok(stored)), &spent);
            drop(first());
        } else {
            let commit = first();
            commit.landing.is_over().await;
            match commit.landed(&mut spent) {
                Some(stored) => queue.end(command, done(Ok(stored)), &spent),
                // A Store behind it may be what its undo waits for.
                None => drop(clock::spawn(answer_failed(queue.clone(), commit))),
            }
        }
        answered += 1;
        if answered.is_multiple_of(ANSWERS_A_TURN) {
            clock::give_way().await;
        }
    }
    queue.commit_queue().0.borrow_mut().retain(|it| it.extent != commits.extent);
}

/// Answers a Store whose record did not land, after it is undone.
async fn answer_failed<Q: HasCommits>(queue: Rc<Q>, commit: Commit<Q::Command>) {
    let Commit { namespace, landing, began, command } = commit;
    let mut before = Stages::default();
    before.add(Stage::Batch, clock::now() - began);
    clock::account(&before);
    let stored = store_of(&namespace).landed(landing).await;
    queue.end(command, done(stored), &clock::stages());
}

/// Returns the store of a key-value namespace.
pub(crate) fn store_of(namespace: &Namespace) -> &Arc<Store> {
    match namespace {
        Namespace::Kv(store) => store,
        Namespace::Block(_) | Namespace::Zoned(_) => panic!("it is a key-value namespace"),
    }
}

/// Returns the outcome of a Store.
#[inline]
pub(crate) fn done(stored: Result<Stored, Error>) -> Outcome {
    Outcome::of(stored.map_or_else(status_of, |_| Status::SUCCESS))
}

//! Stores that are in the log and not durable: a queue keeps them in the order of the log, and one
//! task answers all that have landed.

use crate::completion::Outcome;
use crate::controller::Controller;
use crate::namespace::{Namespace, NamespaceInUse};
use crate::status::status_of;
use base::Nanos;
use clock::{Stage, Stages};
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
    type Command: 'static;

    fn commit_queue(&self) -> &CommitQueue<Self::Command>;

    fn device(&self) -> &Controller;

    /// Answers a Store that has landed, or was undone. `spent` are the stages of the time since it
    /// began.
    fn answer_store(&self, command: Self::Command, outcome: Outcome, spent: &Stages);
}

/// Stores that are answered before other tasks have a turn.
const ANSWERS_A_TURN: u32 = 64;

/// See the module's documentation.
pub(crate) struct CommitQueue<C>(RefCell<Vec<Commits<C>>>);

/// The Stores whose records are in one extent. A task answers them.
struct Commits<C> {
    extent: Option<ExtentId>,
    waiting: VecDeque<Commit<C>>,
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
        match all.iter_mut().find(|commits| commits.extent == extent) {
            Some(commits) => commits.waiting.push_back(commit),
            None => {
                all.push(Commits { extent, waiting: VecDeque::from([commit]) });
                clock::spawn(answer_all(queue.clone(), extent));
            }
        }
    }

    /// Takes the next Store of `extent`. Forgets the extent if there is none.
    #[inline]
    fn next(&self, extent: Option<ExtentId>) -> Option<Commit<C>> {
        let mut all = self.0.borrow_mut();
        let at = all.iter().position(|commits| commits.extent == extent);
        let at = at.expect("it is there until its task ends");
        let next = all[at].waiting.pop_front();
        if next.is_none() {
            all.swap_remove(at);
        }
        next
    }
}

/// Answers the Stores of an extent, each after those before it, until none is left.
async fn answer_all<Q: HasCommits>(queue: Rc<Q>, extent: Option<ExtentId>) {
    clock::name_task("commit queue");
    let mut answered = 0_u32;
    while let Some(mut commit) = answer_landed(&*queue, extent, &mut answered) {
        if answered.is_multiple_of(ANSWERS_A_TURN) {
            clock::give_way().await;
            match try_answer(&*queue, commit) {
                Ok(()) => continue,
                Err(waiting) => commit = waiting,
            }
        }
        queue.device().inside(commit.landing.is_over()).await;
        if let Err(failed) = try_answer(&*queue, commit) {
            // A Store behind it may be what its undo waits for.
            clock::spawn(answer_failed(queue.clone(), failed));
        }
    }
}

/// Answers Stores that have landed, until other tasks have their turn. Returns the next Store, if
/// there is one, and adds to `answered`.
fn answer_landed<Q: HasCommits>(
    queue: &Q,
    extent: Option<ExtentId>,
    answered: &mut u32,
) -> Option<Commit<Q::Command>> {
    while let Some(commit) = queue.commit_queue().next(extent) {
        *answered += 1;
        if answered.is_multiple_of(ANSWERS_A_TURN) {
            return Some(commit);
        }
        if let Err(waiting) = try_answer(queue, commit) {
            return Some(waiting);
        }
    }
    None
}

/// Answers a Store that has landed, or returns it.
#[inline]
#[expect(clippy::result_large_err, reason = "it is moved back to where it was")]
fn try_answer<Q: HasCommits>(
    queue: &Q,
    commit: Commit<Q::Command>,
) -> Result<(), Commit<Q::Command>> {
    let Commit { namespace, landing, began, command } = commit;
    let landed = {
        let _inside = queue.device().enter();
        store_of(&namespace).try_landed(landing, began)
    };
    match landed {
        Ok(durable) => {
            queue.answer_store(command, done(Ok(durable.stored)), &durable.spent);
            Ok(())
        }
        Err(landing) => Err(Commit { namespace, landing, began, command }),
    }
}

/// Answers a Store whose record did not land, after it is undone.
async fn answer_failed<Q: HasCommits>(queue: Rc<Q>, commit: Commit<Q::Command>) {
    let Commit { namespace, landing, began, command } = commit;
    let mut before = Stages::default();
    before.add(Stage::Batch, clock::now() - began);
    clock::account(&before);
    let stored = queue.device().inside(store_of(&namespace).landed(landing)).await;
    queue.answer_store(command, done(stored), &clock::stages());
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

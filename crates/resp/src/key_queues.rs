//! Queues of commands by the keys that they change.
//!
//! Commands that change one key at the same time would overtake each other: all would read it, one
//! would commit, and the others would read it again. A queue for each key lets them share a commit:
//!
//! 1. A command joins the queue of each of its keys. The command at the head of all of them begins
//!    a batch once the tasks that are ready have run, so that commands of the same poll join it.
//! 2. It executes on the transaction of the batch and passes it to the next command of the same
//!    keys, which sees what the earlier ones wrote. Each executes in its own task, so commands of
//!    other keys run between them.
//! 3. The command after which none is queued, or the batch is full, commits. All commands of the
//!    batch end when it is durable. Commands that arrive before that begin the next batch.
//! 4. If an NVMe host or an unqueued command changed a key, the batch executes again with half of
//!    its commands. A batch of several that the store refuses executes again one by one.
//!
//! The queues save work; atomicity rests on the versions that a transaction checks. Commands of all
//! reactors share them, so a batch moves from one reactor to another.

mod in_turn;
#[cfg(test)]
mod tests;

use crate::command::Command;
use crate::failure::Failure;
use crate::request::Request;
use crate::transaction::Transaction;
use base::Key;
use clock::{Rank, Stage, TaskId, current, park, wake};
use engine::{Error, KeySpaceId};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Commands of a batch at most: limits how long the first one waits for the others.
const BATCH_COMMANDS_MAX: usize = 256;

/// A key of a database.
pub(crate) type QueueKey = (KeySpaceId, Key);

/// The queues of all keys that commands are changing. A key without commands has none.
#[derive(Debug, Default)]
pub(crate) struct KeyQueues {
    queues: Mutex<Queues>,
    /// The number of queues: a copy for commands that look for one.
    count: AtomicUsize,
}

type Queues = BTreeMap<QueueKey, VecDeque<Arc<Ticket>>>;

/// The place of a command in the queues of its keys. It leaves them when its batch has ended.
#[derive(Debug)]
struct Ticket {
    /// In rising order, each once; at least one.
    keys: Vec<QueueKey>,
    /// The command commits alone.
    is_alone: AtomicBool,
    inbox: Mutex<Inbox>,
}

#[derive(Debug, Default)]
struct Inbox {
    signal: Option<Signal>,
    /// The command's task, while it waits for a signal.
    waiter: Option<TaskId>,
}

/// What a queued command waits for.
#[derive(Debug)]
enum Signal {
    /// Execute on this batch, which has the command as its last member.
    Execute(Box<Batch>),
    /// The batch is durable, or the store refused it for this reason.
    End(Result<(), Failure>),
}

/// Commands that share a commit: the first ones in the queues of their keys, which are the same.
#[derive(Debug)]
struct Batch {
    transaction: Transaction,
    members: Vec<Arc<Ticket>>,
    members_max: usize,
}

impl Ticket {
    fn send(&self, signal: Signal) {
        let waiter = {
            let mut inbox = lock(&self.inbox);
            let before = inbox.signal.replace(signal);
            assert!(before.is_none(), "a command takes a signal before the next one is sent");
            inbox.waiter.take()
        };
        waiter.into_iter().for_each(wake);
    }

    async fn receive(&self) -> Signal {
        loop {
            {
                let mut inbox = lock(&self.inbox);
                if let Some(signal) = inbox.signal.take() {
                    return signal;
                }
                inbox.waiter = Some(current());
            }
            park(Rank::Free, Stage::Queue).await;
        }
    }

    fn is_alone(&self) -> bool {
        self.is_alone.load(Ordering::Relaxed)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The keys of a command in the database of `space`. Arguments that cannot be keys are left out.
pub(crate) fn keys_of(
    space: KeySpaceId,
    command: &Command,
    request: Request<'_>,
) -> impl Iterator<Item = QueueKey> {
    let keys = command.key_places(request.len()).map(move |at| Key::new(request.arg(at)));
    keys.filter_map(move |key| Some((space, key.ok()?)))
}

/// Whether the store may take the other commands of a batch that it refuses for `error`.
pub(crate) fn is_of_one_command(error: Error) -> bool {
    matches!(
        error,
        Error::CapacityExceeded | Error::ValueTooLong { .. } | Error::BatchTooLong { .. }
    )
}

impl KeyQueues {
    /// Whether commands that change this key are waiting or executing.
    pub(crate) fn has(&self, space: KeySpaceId, key: &Key) -> bool {
        self.count.load(Ordering::Relaxed) > 0
            && lock(&self.queues).contains_key(&(space, key.clone()))
    }

    /// Appends a command to the queues of its keys. Returns whether it is at the head of all.
    fn push(&self, ticket: &Arc<Ticket>) -> bool {
        let (mut queues, mut is_first) = (lock(&self.queues), true);
        for key in &ticket.keys {
            let queue = queues.entry(key.clone()).or_default();
            is_first &= queue.is_empty();
            queue.push_back(ticket.clone());
        }
        self.count.store(queues.len(), Ordering::Relaxed);
        is_first
    }

    /// The command that joins `batch`, if the next one in all queues of its keys may.
    fn next(&self, batch: &Batch) -> Option<Arc<Ticket>> {
        let (first, at) = (&batch.members[0], batch.members.len());
        if at == batch.members_max || first.is_alone() {
            return None;
        }
        let queues = lock(&self.queues);
        let next = queues[&first.keys[0]].get(at)?;
        let is_next = |key: &QueueKey| queues[key].get(at).is_some_and(|at| Arc::ptr_eq(at, next));
        let joins = !next.is_alone() && next.keys == first.keys;
        (joins && first.keys.iter().all(is_next)).then(|| next.clone())
    }

    /// Removes the members of a batch. Returns the commands that are at the head of all their
    /// queues by that.
    fn pop(&self, members: &[Arc<Ticket>]) -> Vec<Arc<Ticket>> {
        let mut queues = lock(&self.queues);
        for key in &members[0].keys {
            let queue = queues.get_mut(key).expect("a key has a queue while commands change it");
            for (member, ended) in queue.drain(..members.len()).zip(members) {
                assert!(Arc::ptr_eq(&member, ended), "a batch is the head of its queues");
            }
            if queue.is_empty() {
                queues.remove(key);
            }
        }
        self.count.store(queues.len(), Ordering::Relaxed);
        let mut heads: Vec<Arc<Ticket>> = Vec::new();
        for head in members[0].keys.iter().filter_map(|key| queues.get(key)?.front()) {
            let is_first = |key: &QueueKey| Arc::ptr_eq(&queues[key][0], head);
            let is_new = heads.iter().all(|known| !Arc::ptr_eq(known, head));
            if is_new && head.keys.iter().all(is_first) {
                heads.push(head.clone());
            }
        }
        heads
    }
}

//! Commands that another reactor than that of their queue executes: the queue's reactor sends a
//! decoded command away, and responds when it has the outcome.
//!
//! Only a command that a queue may hold moves: see [`held`](crate::fabrics::held). Its whole
//! key-value stage moves, and with it the submission to the drive.

use crate::commit_queue::{Commit, CommitQueue, HasCommits, store_of};
use crate::completion::Outcome;
use crate::fabrics::io_context::IoContext;
use crate::fabrics::pair::Pair;
use crate::fabrics::placement::{DivertedCommand, DivertedOutcome, Placement};
use crate::fabrics::slots::CommandHead;
use crate::io_command::Begun;
use crate::namespace::NamespaceInUse;
use crate::quick::{Quick, Tried};
use clock::Stages;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

/// Executes the commands that other reactors have diverted to this one.
pub struct DivertedQueue {
    commits: CommitQueue<u64>,
    /// Takes the outcome of the command with a number.
    answer: Box<dyn Fn(u64, DivertedOutcome)>,
}

impl DivertedQueue {
    /// Creates a queue that gives each outcome to `answer`, with the number of its command.
    pub fn new(answer: impl Fn(u64, DivertedOutcome) + 'static) -> Rc<Self> {
        Rc::new(Self { commits: CommitQueue::default(), answer: Box::new(answer) })
    }

    /// Executes numbered commands, which it takes. Those that must wait continue in tasks.
    pub fn execute(self: &Rc<Self>, commands: &mut Vec<(u64, DivertedCommand)>) {
        // All are announced before the first is executed, so that they share a page.
        for (_, DivertedCommand { namespace, quick }) in &mut *commands {
            quick.prefetch(store_of(namespace));
            quick.announce(store_of(namespace));
        }
        for (number, DivertedCommand { namespace, mut quick }) in commands.drain(..) {
            match quick.attempt(store_of(&namespace)) {
                Tried::Done(outcome) => self.answer(number, outcome),
                Tried::Landing(landing) => {
                    let began = clock::now();
                    let commit = Commit { namespace, landing, began, command: number };
                    self.commits.push(self, commit);
                }
                Tried::Waits => {
                    let queue = self.clone();
                    clock::spawn(async move {
                        clock::name_task("diverted command");
                        let outcome = quick.execute(store_of(&namespace)).await;
                        queue.answer(number, outcome);
                    });
                }
            }
        }
    }

    fn answer(&self, number: u64, outcome: Outcome) {
        (self.answer)(number, DivertedOutcome(outcome));
    }
}

impl fmt::Debug for DivertedQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DivertedQueue")
    }
}

impl HasCommits for DivertedQueue {
    type Command = u64;

    fn commit_queue(&self) -> &CommitQueue<u64> {
        &self.commits
    }

    fn end(&self, number: u64, outcome: Outcome, _: &Stages) {
        self.answer(number, outcome);
    }
}

impl Pair {
    /// Sends a held command to reactor `to`, and responds to it when its outcome has come.
    pub(crate) fn divert(
        self: &Rc<Self>,
        io_context: &IoContext,
        (placement, to): (&dyn Placement, usize),
        namespace: &Arc<NamespaceInUse>,
        (head, begun, mut quick): (CommandHead, Begun, Quick),
    ) {
        quick.retract();
        io_context.tally.begin(clock::now());
        let ticket = self.take_slot(head).expect("the queue had room for the command");
        let (pair, command) =
            (self.clone(), DivertedCommand { namespace: namespace.clone(), quick });
        let answer = move |DivertedOutcome(outcome)| {
            pair.end((ticket, begun), outcome, &Stages::default());
        };
        placement.divert(to, command, Box::new(answer));
    }
}

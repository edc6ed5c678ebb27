//! Commands that another reactor than that of their queue executes: the queue's reactor sends a
//! decoded command away, and responds when it has the outcome.
//!
//! Only a command that a queue may hold moves: see [`held`](crate::fabrics::held). Its whole
//! key-value stage moves, and with it the submission to the drive.

use crate::commit_queue::{Commit, CommitQueue, HasCommits, store_of};
use crate::completion::Outcome;
use crate::fabrics::held::{HELD_MAX, Held, HeldCommand};
use crate::fabrics::io_context::IoContext;
use crate::fabrics::pair::Pair;
use crate::fabrics::placement::{Answer, DivertedCommand, DivertedOutcome, Placement};
use crate::namespace::NamespaceInUse;
use crate::quick::Tried;
use clock::Stages;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

/// Executes the commands that other reactors have diverted to this one.
pub struct DivertedQueue {
    commits: CommitQueue<usize>,
    /// Takes the outcome of the command with a number.
    answer: Box<dyn Fn(usize, DivertedOutcome)>,
}

impl DivertedQueue {
    /// Creates a queue that gives each outcome to `answer`, with the number of its command.
    pub fn new(answer: impl Fn(usize, DivertedOutcome) + 'static) -> Rc<Self> {
        Rc::new(Self { commits: CommitQueue::default(), answer: Box::new(answer) })
    }

    /// Executes numbered commands, which it takes. Those that must wait continue in tasks.
    pub fn execute(self: &Rc<Self>, commands: &mut Vec<(usize, DivertedCommand)>) {
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

    fn answer(&self, number: usize, outcome: Outcome) {
        (self.answer)(number, DivertedOutcome(outcome));
    }
}

impl fmt::Debug for DivertedQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DivertedQueue")
    }
}

impl HasCommits for DivertedQueue {
    type Command = usize;

    fn commit_queue(&self) -> &CommitQueue<usize> {
        &self.commits
    }

    fn end(&self, number: usize, outcome: Outcome, _: &Stages) {
        self.answer(number, outcome);
    }
}

impl Pair {
    /// Sends those of the held commands to other reactors that `placement` chooses, and keeps the
    /// rest.
    #[inline]
    pub(crate) fn divert_some(
        self: &Rc<Self>,
        io_context: &IoContext,
        placement: &dyn Placement,
        Held { namespace, commands, .. }: &mut Held,
    ) {
        let mut places = [None; HELD_MAX];
        if placement.place(&mut places[..commands.len()]) {
            let (_, namespace) = namespace.as_ref().expect("the held commands have a namespace");
            let mut places = places.into_iter();
            commands.retain_mut(|held| match places.next().flatten() {
                None => true,
                Some(to) => {
                    let (command, answer) = self.divert(io_context, namespace, held);
                    placement.divert(to, command, answer);
                    false
                }
            });
            placement.flush();
        }
    }

    /// Takes a held command out for another reactor. It is in flight until it is answered.
    fn divert(
        self: &Rc<Self>,
        io_context: &IoContext,
        namespace: &Arc<NamespaceInUse>,
        HeldCommand { head, room, quick }: &mut HeldCommand,
    ) -> (DivertedCommand, Answer) {
        quick.retract();
        io_context.tally.begin(clock::now());
        let ticket = self.take_slot(*head).expect("the queue had room for the command");
        let answer = Answer { queue: self.clone(), command: (ticket, quick.begun(*room)) };
        (DivertedCommand { namespace: namespace.clone(), quick: quick.take() }, answer)
    }
}

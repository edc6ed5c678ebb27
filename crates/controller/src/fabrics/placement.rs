//! Where the commands of a queue are executed, and what goes there and back.

use crate::commit_queue::HasCommits;
use crate::completion::Outcome;
use crate::fabrics::slots::Ticket;
use crate::io_command::Begun;
use crate::namespace::NamespaceInUse;
use crate::quick::Quick;
use base::Nanos;
use clock::Stages;
use spec::Status;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

/// Where the commands of a reactor's queues are executed.
pub trait Placement {
    /// Does what other reactors have asked for, before commands of a queue are executed: these have
    /// waited for longer. May answer diverted commands.
    fn prepare(&self);

    /// Writes into `places` the reactors for commands of a queue that have arrived together.
    /// `None`: this one, as all are before. Returns whether some go to others.
    fn place(&self, places: &mut [Option<usize>]) -> bool;

    /// Sends a command to reactor `to` with the next [`Self::flush`], and gives its outcome to
    /// `answer`, once and not before that.
    fn divert(&self, to: usize, command: DivertedCommand, answer: Answer);

    /// Sends what was diverted.
    fn flush(&self);

    /// Notes that this reactor took this time to execute `count` commands of its queues.
    fn executed(&self, time: Nanos, count: u64);
}

/// Takes the outcome of a diverted command, and responds to the command.
pub struct Answer {
    pub(crate) queue: Rc<dyn HasCommits<Command = (Ticket, Begun)>>,
    pub(crate) command: (Ticket, Begun),
}

impl Answer {
    /// Responds with this outcome.
    pub fn give(self, DivertedOutcome(outcome): DivertedOutcome) {
        self.queue.end(self.command, outcome, &Stages::default());
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Answer")
    }
}

/// A command on its way to the reactor that executes it. Its namespace stays in use.
pub struct DivertedCommand {
    pub(crate) namespace: Arc<NamespaceInUse>,
    pub(crate) quick: Quick,
}

/// An outcome on its way back.
#[derive(Debug)]
pub struct DivertedOutcome(pub(crate) Outcome);

impl DivertedOutcome {
    /// The outcome of a command whose reactor has ended: whether it was executed is unknown.
    pub fn lost() -> Self {
        Self(Outcome::of(Status::INTERNAL_ERROR))
    }
}

impl fmt::Debug for DivertedCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.quick.is_store() {
            "DivertedCommand(Store)"
        } else {
            "DivertedCommand(Retrieve)"
        })
    }
}

//! Where the commands of a queue are executed, and what goes there and back.

use crate::completion::Outcome;
use crate::namespace::NamespaceInUse;
use crate::quick::Quick;
use base::Nanos;
use spec::Status;
use std::fmt;
use std::sync::Arc;

/// Where the commands of a reactor's queues are executed.
pub trait Placement {
    /// Returns the reactor for the next command. `None`: this one.
    fn choose(&self) -> Option<usize>;

    /// Sends a command to reactor `to`, and gives its outcome to `answer`, once and not before this
    /// returns.
    fn divert(&self, to: usize, command: DivertedCommand, answer: Answer);

    /// Notes that this reactor took this time to execute commands of its queues, or to divert them.
    fn executed(&self, time: Nanos);
}

/// Takes the outcome of a diverted command.
pub type Answer = Box<dyn FnOnce(DivertedOutcome)>;

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

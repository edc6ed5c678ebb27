use crate::completion::Outcome;
use crate::fabrics::{Association, Queue, Ticket};
use spec::Command;
use std::rc::Rc;

/// Result of an Abort that aborted nothing.
const NOT_ABORTED: u64 = 1;

impl Outcome {
    /// Returns the result of an Abort: 0 if the command was outstanding, otherwise 1.
    pub(crate) fn of_abort(was_there: bool) -> Self {
        Self { result: if was_there { 0 } else { NOT_ABORTED }, ..Self::done() }
    }
}

/// Executes Abort (Base 2.1, Abort command). The aborted command completes at once with Command
/// Abort Requested; it still executes, and its result is dropped. Returns `None` if another reactor
/// has the command: the Abort completes when that reactor replies.
pub(super) fn abort(
    admin: &Rc<Queue>,
    association: &Association,
    ticket: Ticket,
    command: &Command,
) -> Option<Outcome> {
    let (queue_id, command_id) = (command.aborted_queue_id(), command.aborted_command_id());
    let Some(queue) = association.queue(queue_id) else { return Some(Outcome::of_abort(false)) };
    if association.events.abort(&queue, queue_id, command_id) {
        return Some(Outcome::of_abort(true));
    }
    queue.abort(command_id, admin, ticket).map(Outcome::of_abort)
}

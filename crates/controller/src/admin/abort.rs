use crate::completion::Outcome;
use crate::fabrics::{Association, Queue, Ticket};
use spec::Command;
use std::rc::Rc;

/// Set in the result of an Abort that aborted nothing.
const NOT_ABORTED: u64 = 1;

impl Outcome {
    /// Of an Abort, for whose command somebody waited, or nobody.
    pub(crate) fn of_abort(was_there: bool) -> Self {
        Self { result: if was_there { 0 } else { NOT_ABORTED }, ..Self::done() }
    }
}

/// Abort: whoever waits for the command is told Command Abort Requested at once, and the command
/// runs to its end for nobody (Base 2.1, Abort command). `None`: the reactor is asked that has the
/// command, and the answer comes then.
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

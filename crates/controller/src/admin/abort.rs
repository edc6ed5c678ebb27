use crate::completion::Outcome;
use crate::fabrics::{Abort, Association, Pair, Ticket};
use spec::{Command, Status};

/// Result of an Abort that aborted nothing.
const NOT_ABORTED: u64 = 1;

impl Outcome {
    /// Returns the result of an Abort: 0 if the command was outstanding, otherwise 1.
    pub(crate) fn of_abort(was_there: bool) -> Self {
        Self { result: if was_there { 0 } else { NOT_ABORTED }, ..Self::done() }
    }
}

/// Executes Abort (Base 2.1, Abort command). The aborted command completes at once with Command
/// Abort Requested; it still executes, and its result is dropped. Returns `None` for a command of
/// an I/O queue: the reactor of that queue completes the Abort.
pub(super) fn abort(
    admin: &Pair,
    association: &Association,
    ticket: Ticket,
    command: &Command,
) -> Option<Outcome> {
    let (queue_id, command_id) = (command.aborted_queue_id(), command.aborted_command_id());
    if queue_id == 0 {
        if let Some(request) = association.events.take_request(command_id) {
            admin.answer(request, Outcome::of(Status::ABORT_REQUESTED));
            return Some(Outcome::of_abort(true));
        }
        return Some(Outcome::of_abort(admin.abort(command_id)));
    }
    let Some(queue) = association.queue(queue_id) else { return Some(Outcome::of_abort(false)) };
    queue.abort(command_id, Abort { admin: admin.link.clone(), ticket });
    None
}

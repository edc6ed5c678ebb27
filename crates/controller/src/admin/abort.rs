use crate::completion::Outcome;
use crate::fabrics::Association;
use spec::Command;

/// Set in the result of an Abort that aborted nothing.
const NOT_ABORTED: u64 = 1;

/// Abort: whoever waits for the command is told Command Abort Requested at once, and the command
/// runs to its end for nobody (Base 2.1, Abort command).
pub(super) fn abort(association: &Association, command: &Command) -> Outcome {
    let aborted = association.queue(command.aborted_queue_id()).is_some_and(|queue| {
        association.events.abort(&queue, command.aborted_queue_id(), command.aborted_command_id())
            || queue.abort(command.aborted_command_id())
    });
    Outcome { result: if aborted { 0 } else { NOT_ABORTED }, ..Outcome::done() }
}

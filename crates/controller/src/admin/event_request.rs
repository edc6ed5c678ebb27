use crate::completion::Outcome;
use crate::fabrics::{Association, Pair, Ticket};
use spec::Status;

/// Executes an Asynchronous Event Request: completes it at once if an event is pending, otherwise
/// at the next event.
pub(super) fn request(association: &Association, queue: &Pair, ticket: Ticket) -> Option<Outcome> {
    if !association.events.add_request(ticket) {
        return Some(Outcome::of(Status::ASYNC_EVENT_LIMIT_EXCEEDED));
    }
    association.notice_health();
    queue.tell_events(&association.events);
    None
}

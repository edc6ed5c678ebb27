//! How a connection leaves its reactor, and continues in another one.

use super::admission::Need;
use super::connection::{Connection, Course};
use super::limits::LEAVE_MAX;
use crate::framing::Inbox;
use controller::{DetachedQueue, HostQueue};
use net::Stream;
use spec::Command;
use std::collections::VecDeque;
use std::rc::Rc;

impl<S: Stream> Connection<S> {
    /// Has later commands wait that need data of the host or budget, for [`LEAVE_MAX`] at most.
    /// Returns false if the connection stays: its queue does not move, or it has fused commands.
    pub(super) fn begin_to_leave(self: &Rc<Self>) -> bool {
        let queue = self.queue.borrow();
        let may_move = queue.as_ref().is_some_and(|queue| queue.may_move());
        let leaves = may_move && self.state.borrow().fused.is_empty();
        drop(queue);
        if !leaves {
            self.stay();
        } else if !self.moves.is_leaving() {
            self.moves.begin();
            self.limit_leave();
        }
        leaves
    }

    /// Has a connection that begins to leave stay if it has not left within [`LEAVE_MAX`].
    fn limit_leave(self: &Rc<Self>) {
        let number = self.leaves.get() + 1;
        self.leaves.set(number);
        let connection = Rc::downgrade(self);
        clock::spawn_at(clock::host_now() + LEAVE_MAX, async move || {
            let Some(connection) = connection.upgrade() else { return };
            if connection.leaves.get() == number && connection.moves.is_leaving() {
                connection.stay();
                connection.room.notify();
            }
        });
    }

    /// Drops a request to move, and starts the commands that wait because of it.
    pub(super) fn stay(&self) {
        let is_leaving = self.moves.is_leaving();
        self.moves.clear();
        if is_leaving && self.course() == Course::Open {
            self.start_admitted();
        }
    }

    /// Returns whether all responses are sent, but for those of commands that wait.
    pub(super) fn is_settled(&self) -> bool {
        let state = self.state.borrow();
        self.commands() == state.admission.waiting() && state.outbox.is_empty()
    }

    /// Detaches the queue. If it stays, so does the connection.
    pub(super) fn detach(&self) -> Option<DetachedQueue> {
        let detached = self.queue.borrow().as_ref().and_then(|queue| queue.detach());
        if detached.is_none() {
            self.stay();
        }
        detached
    }

    /// Ends the writer of a connection whose queue is detached. The stream stays open. Returns
    /// SQHD of the last response, and the commands that wait.
    pub(super) async fn part(self: &Rc<Self>) -> (u16, VecDeque<(Command, Need)>) {
        self.queue.take();
        self.moves.clear();
        self.set_course(Course::Over);
        self.set_deadline(None);
        if !self.writer_has_ended.get() {
            self.end.wait().await;
        }
        let mut state = self.state.borrow_mut();
        (state.queue_head, state.admission.take_waiting())
    }

    /// Continues with the queue and the state of a connection that has come from another reactor.
    pub(super) fn resume(
        &self,
        queue: Rc<dyn HostQueue>,
        inbox: &Inbox,
        queue_head: u16,
        waiting: VecDeque<(Command, Need)>,
    ) {
        *self.queue.borrow_mut() = Some(queue);
        self.set_resumed(waiting.len());
        let state = &mut *self.state.borrow_mut();
        state.outbox.agree(inbox.terms());
        if let Some(data_digest) = inbox.peer_digest() {
            state.outbox.set_data_digest(data_digest);
        }
        state.queue_head = queue_head;
        state.admission.set_waiting(waiting);
    }
}

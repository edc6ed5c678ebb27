use crate::controller::Controller;
use crate::fabrics::member::{Member, Rights};
use crate::fabrics::pair::{Binding, Gauge, Pair, Terms, is_fabrics};
use crate::host_queue::{Capsule, Response, Responses};
use std::cell::Cell;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

/// What a reactor has of another one's device to execute the I/O commands of a queue itself: it is
/// made when the queue's Connect has succeeded, and of use until the queue is closed or ended.
#[derive(Debug)]
pub struct Lease {
    pub(crate) terms: Terms,
    pub(crate) gauge: Arc<Gauge>,
    pub(crate) rights: Rights,
}

/// Whoever has the connection of a queue in another reactor, as the device's reactor sees it.
pub trait Tenant {
    /// Which of the reactors it is: work is counted by it.
    fn number(&self) -> u32;

    /// Has the connection's reactor execute the I/O commands of the queue, from the response to its
    /// Connect on, which follows. False where that cannot be: they come here then.
    fn lease(&self, device: &Arc<Controller>, lease: Lease) -> bool;

    /// Is to abort a command by [`LeasedQueue::abort`], and to hand what that says to
    /// [`crate::FabricQueue::aborted`], in order.
    fn abort(&self, command_id: u16);
}

/// A queue whose I/O commands are executed in the reactor of its connection.
pub struct LeasedQueue {
    pair: Rc<Pair>,
    /// Whether the connection is told nothing any more, not what is on its way either.
    has_ended: Cell<bool>,
}

impl LeasedQueue {
    /// By the terms of `lease`, on `device`, which is the device's controller in this reactor.
    pub fn new(lease: Lease, device: Arc<Controller>, responses: Rc<dyn Responses>) -> Self {
        let Lease { terms, gauge, rights } = lease;
        let pair = Pair::new(responses, gauge);
        let errors = rights.errors.clone();
        pair.bind(Binding { terms, errors, member: Some(Member { rights, device }) });
        Self { pair, has_ended: Cell::new(false) }
    }

    /// As [`crate::HostQueue::submit`]. Returns what is for the device's reactor.
    #[must_use]
    pub fn submit(&self, mut capsule: Capsule) -> Option<Capsule> {
        let pair = &self.pair;
        if pair.is_over() {
            return None;
        }
        if is_fabrics(&capsule) {
            pair.move_head();
            return Some(capsule);
        }
        if let Some(second) = capsule.second.take() {
            let capsules = [capsule, *second];
            match (pair.admit_both(&capsules), pair.member()) {
                (Some(tickets), Some(member)) => pair.start_fused(member, tickets, capsules),
                _ => self.overrun(),
            }
            return None;
        }
        match (pair.admit(&capsule.command), pair.member()) {
            (Some(ticket), Some(member)) => pair.start(member, ticket, capsule),
            _ => self.overrun(),
        }
        None
    }

    /// The host has sent more than the queue has entries. The door is told by a task, for it is in
    /// the middle of a [`Self::submit`], and then closes the queue.
    fn overrun(&self) {
        let pair = self.pair.clone();
        self.close();
        clock::spawn(async move { pair.responses.end() });
    }

    /// Hands on what the device's reactor responds.
    pub fn relay(&self, response: Response) {
        if !self.has_ended.get() {
            let entry = self.pair.with_head(response.entry);
            self.pair.responses.respond(Response { entry, ..response });
        }
    }

    /// Ends the wait for the command of this id, which runs to its end. True if there is one.
    pub fn abort(&self, command_id: u16) -> bool {
        !self.pair.is_over() && self.pair.abort(command_id)
    }

    /// The controller has done with the queue.
    pub fn end(&self) {
        if !self.has_ended.get() {
            self.close();
            self.pair.responses.end();
        }
    }

    /// The connection is gone. What was started runs to its end, and nothing is responded any more.
    pub fn close(&self) {
        self.has_ended.set(true);
        self.pair.finish();
    }
}

impl fmt::Debug for LeasedQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LeasedQueue with {} commands", self.pair.in_flight())
    }
}

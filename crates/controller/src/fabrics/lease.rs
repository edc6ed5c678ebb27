use crate::controller::Controller;
use crate::fabrics::io_context::{AssociationIo, IoContext};
use crate::fabrics::pair::{Binding, Pair, Terms, is_fabrics};
use crate::fabrics::slots::Gauge;
use crate::host_queue::{Capsule, Response, Responses};
use clock::User;
use std::cell::Cell;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

/// The right of a reactor to execute the I/O commands of a queue of another reactor's device. It is
/// created after the queue's Connect and valid until the queue is closed or ended.
#[derive(Debug)]
pub struct Lease {
    pub(crate) terms: Terms,
    pub(crate) gauge: Arc<Gauge>,
    pub(crate) rights: AssociationIo,
}

/// The reactor that has a queue's connection, as the device's reactor sees it.
pub trait Tenant {
    /// Returns the number of the reactor, by which work is counted.
    fn number(&self) -> u32;

    /// Lets the connection's reactor execute the I/O commands of the queue, starting after the
    /// response to its Connect. Returns false if it cannot: then the device's reactor executes
    /// them.
    fn lease(&self, device: &Arc<Controller>, lease: Lease) -> bool;

    /// Aborts a command by [`LeasedQueue::abort`] and passes its results in order to
    /// [`crate::FabricQueue::aborted`].
    fn abort(&self, command_id: u16);
}

/// A queue whose I/O commands are executed in the reactor of its connection.
pub struct LeasedQueue {
    pair: Rc<Pair>,
    /// Whether the queue has ended: responses, also those in flight, are dropped.
    has_ended: Cell<bool>,
}

impl LeasedQueue {
    /// Creates the queue of `lease`; `device` is the device's controller in this reactor. The queue
    /// holds `user` until its last command has ended.
    pub fn new(
        lease: Lease,
        device: Arc<Controller>,
        responses: Rc<dyn Responses>,
        user: User,
    ) -> Self {
        let Lease { terms, gauge, rights } = lease;
        let errors = rights.errors.clone();
        let io_context = Some(IoContext { rights, device, user: Some(user) });
        let pair = Pair::new(responses, gauge);
        pair.bind(Binding { terms, errors, io_context });
        Self { pair, has_ended: Cell::new(false) }
    }

    /// Submits a command as [`crate::HostQueue::submit`] does. Returns it if the device's reactor
    /// must execute it.
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
            match (pair.admit_both(&capsules), pair.io_context()) {
                (Some(tickets), Some(io_context)) => {
                    pair.start_fused(io_context, tickets, capsules);
                }
                _ => self.overrun(),
            }
            return None;
        }
        if !pair.io_context().is_some_and(|io_context| pair.start(io_context, capsule)) {
            self.overrun();
        }
        None
    }

    /// Executes held commands: see [`crate::HostQueue::execute_held`].
    pub fn execute_held(&self) {
        self.pair.execute_held();
    }

    /// Ends a queue whose host has sent more commands than entries. A task notifies the transport,
    /// which is inside [`Self::submit`] now, and which then closes the queue.
    fn overrun(&self) {
        let pair = self.pair.clone();
        self.close();
        clock::spawn(async move { pair.responses.end() });
    }

    /// Forwards a response of the device's reactor.
    pub fn relay(&self, response: Response) {
        if !self.has_ended.get() {
            let entry = self.pair.with_head(response.entry);
            self.pair.responses.respond(Response { entry, ..response });
        }
    }

    /// Aborts a command: it completes now and still runs to its end. Returns whether it was
    /// outstanding.
    pub fn abort(&self, command_id: u16) -> bool {
        !self.pair.is_over() && self.pair.abort(command_id)
    }

    /// Ends the queue on behalf of the controller.
    pub fn end(&self) {
        if !self.has_ended.get() {
            self.close();
            self.pair.responses.end();
        }
    }

    /// Closes the queue of a lost connection. Started commands run to their end without a response.
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

use crate::admin;
use crate::completion::Outcome;
use crate::fabrics::association::{Association, Service};
use crate::fabrics::connect::connect;
use crate::fabrics::io_context::IoContext;
use crate::fabrics::lease::{Lease, Tenant};
use crate::fabrics::lent::Lent;
use crate::fabrics::pair::{Binding, Gauge, Pair, Terms, is_fabrics};
use crate::fabrics::port::Entrance;
use crate::fabrics::property;
use crate::fabrics::slots::Ticket;
use crate::fabrics::subsystem::Subsystem;
use crate::host_queue::{Capsule, HostQueue, Responses};
use spec::{FabricsType, Status};
use std::cell::OnceCell;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

/// A queue pair of a host: unbound, an admin queue, or an I/O queue.
pub(crate) struct Queue {
    pair: Rc<Pair>,
    pub(crate) entrance: Entrance,
    /// The other reactor that has its connection, if any.
    tenant: Option<Rc<dyn Tenant>>,
    bound: OnceCell<Bound>,
}

/// The association and parameters of a bound queue.
pub(crate) struct Bound {
    pub(crate) association: Rc<Association>,
    pub(crate) terms: Terms,
    /// Set if another reactor executes its I/O commands.
    lent: Option<Lent>,
}

/// A transport's handle of a queue.
pub struct FabricQueue(Rc<Queue>);

impl FabricQueue {
    pub(crate) fn new(
        entrance: Entrance,
        responses: Rc<dyn Responses>,
        tenant: Option<Rc<dyn Tenant>>,
    ) -> Self {
        let pair = Pair::new(responses, Arc::default());
        Self(Rc::new(Queue { pair, entrance, tenant, bound: OnceCell::new() }))
    }

    /// Takes the result of the oldest [`Tenant::abort`]: whether the command was outstanding.
    pub fn aborted(&self, was_there: bool) {
        if let Some(lent) = self.0.lent() {
            lent.aborted(was_there);
        }
    }
}

impl fmt::Debug for FabricQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FabricQueue with {} commands", self.0.in_flight())
    }
}

impl HostQueue for FabricQueue {
    fn submit(&self, mut capsule: Capsule) {
        let (queue, pair) = (&self.0, &self.0.pair);
        if pair.is_over() {
            return;
        }
        if let Some(second) = capsule.second.take() {
            return queue.submit_fused([capsule, *second]);
        }
        match pair.io_context() {
            Some(io_context) if !is_fabrics(&capsule) => {
                if !pair.start(io_context, capsule) {
                    queue.overrun();
                }
            }
            _ => match pair.admit(&capsule.command) {
                Some(ticket) => queue.spawn(ticket, capsule),
                None => queue.overrun(),
            },
        }
    }

    fn execute_held(&self) {
        self.0.pair.execute_held();
    }

    fn close(&self) {
        if self.0.finish()
            && let Some(bound) = self.0.bound.get()
        {
            bound.association.queue_closed(bound.terms.id);
        }
    }
}

impl Queue {
    /// Ends a queue whose host has sent more commands than entries. A task notifies the transport,
    /// which is inside [`HostQueue::submit`] now.
    fn overrun(self: &Rc<Self>) {
        self.finish();
        let queue = self.clone();
        clock::spawn(async move {
            if let Some(bound) = queue.bound.get() {
                bound.association.queue_closed(bound.terms.id);
            }
            queue.pair.responses.end();
        });
    }

    /// Starts two adjacent commands: as one operation on an I/O queue, otherwise each alone.
    fn submit_fused(self: &Rc<Self>, capsules: [Capsule; 2]) {
        let Some(tickets) = self.pair.admit_both(&capsules) else { return self.overrun() };
        match self.pair.io_context() {
            Some(io_context) => self.pair.start_fused(io_context, tickets, capsules),
            None => {
                for (ticket, capsule) in tickets.into_iter().zip(capsules) {
                    self.spawn(ticket, capsule);
                }
            }
        }
    }

    fn spawn(self: &Rc<Self>, ticket: Ticket, capsule: Capsule) {
        let queue = self.clone();
        clock::spawn(async move { queue.run(ticket, &capsule) });
    }

    fn run(self: &Rc<Self>, ticket: Ticket, capsule: &Capsule) {
        if let Some(outcome) = self.control(self.bound.get(), ticket, capsule) {
            self.answer(ticket, outcome);
        }
    }

    /// Executes a command that does not go to the device. Returns `None` if the holder of `ticket`
    /// answers later.
    fn control(
        self: &Rc<Self>,
        bound: Option<&Bound>,
        ticket: Ticket,
        capsule: &Capsule,
    ) -> Option<Outcome> {
        let Some(bound) = bound else {
            let may_bind = ticket.head.is_connect && !self.pair.is_over();
            let early = Outcome::of(Status::COMMAND_SEQUENCE_ERROR);
            return Some(if may_bind { connect(self, capsule) } else { early });
        };
        bound.association.state.hear();
        if !is_fabrics(capsule) {
            // An I/O command arrives here only if it did not wait for the response to the Connect.
            let early = Outcome::of(Status::COMMAND_SEQUENCE_ERROR);
            return if bound.terms.id > 0 {
                Some(early)
            } else {
                admin::execute(self, bound, ticket, capsule)
            };
        }
        Some(match (capsule.command.fabrics_type(), bound.terms.id) {
            (FabricsType::CONNECT, _) => Outcome::of(Status::COMMAND_SEQUENCE_ERROR),
            (FabricsType::PROPERTY_GET, 0) => property::get(&bound.association, &capsule.command),
            (FabricsType::PROPERTY_SET, 0) => property::set(&bound.association, &capsule.command),
            (FabricsType::DISCONNECT, 0) => Outcome::of(Status::INVALID_QUEUE_TYPE),
            (FabricsType::DISCONNECT, _) => {
                // This response is the queue's last.
                if let Some(lent) = &bound.lent {
                    lent.end();
                }
                self.answer(ticket, Outcome::done());
                bound.association.queue_closed(bound.terms.id);
                self.end();
                return None;
            }
            _ => Outcome::of(Status::INVALID_OPCODE),
        })
    }

    /// Binds the queue to `association`.
    pub(crate) fn bind(&self, association: Rc<Association>, terms: Terms) {
        let errors = association.errors.clone();
        let (lent, io_context) = match &association.service {
            Service::Storage(subsystem) if terms.id > 0 => {
                let lent = self.lend(&association, subsystem, terms);
                let io_context = || IoContext {
                    rights: association.rights(subsystem, None),
                    device: subsystem.device.clone(),
                };
                let io_context = lent.is_none().then(io_context);
                (lent, io_context)
            }
            _ => (None, None),
        };
        self.pair.bind(Binding { terms, errors, io_context });
        let first = self.bound.set(Bound { association, terms, lent }).is_ok();
        assert!(first, "a queue that is bound takes no Connect");
    }

    /// Leases an I/O queue to the connection's reactor, if that can execute its commands.
    fn lend(&self, association: &Association, subsystem: &Subsystem, terms: Terms) -> Option<Lent> {
        let tenant = self.tenant.as_ref()?;
        let gauge = Arc::<Gauge>::default();
        let rights = association.rights(subsystem, Some(tenant.number()));
        let is_lent =
            tenant.lease(&subsystem.device, Lease { terms, gauge: gauge.clone(), rights });
        is_lent.then(|| Lent::new(tenant.clone(), gauge))
    }

    /// Returns the association and parameters, if the queue is bound.
    #[inline]
    pub(crate) fn bound(&self) -> Option<&Bound> {
        self.bound.get()
    }

    fn lent(&self) -> Option<&Lent> {
        self.bound.get()?.lent.as_ref()
    }

    /// Returns the number of commands in flight, aborted ones included.
    pub(crate) fn in_flight(&self) -> usize {
        self.pair.in_flight() + self.lent().map_or(0, Lent::in_flight)
    }

    /// Sends the response of a command unless the command was aborted.
    pub(crate) fn answer(&self, ticket: Ticket, outcome: Outcome) {
        self.pair.answer(ticket, outcome);
    }

    /// Aborts a command: it completes now and still runs to its end. Returns whether it was
    /// outstanding, or `None` if another reactor executes it: its reply completes the Abort, which
    /// has `ticket` on `admin`.
    pub(crate) fn abort(&self, command_id: u16, admin: &Rc<Self>, ticket: Ticket) -> Option<bool> {
        match self.lent() {
            Some(lent) if !self.pair.is_over() => {
                lent.abort(command_id, admin, ticket);
                None
            }
            _ => Some(self.pair.abort(command_id)),
        }
    }

    /// Drops a command that no task executes.
    pub(crate) fn forget(&self, ticket: Ticket) {
        self.pair.forget(ticket);
    }

    /// Ends the queue on behalf of the controller.
    pub(crate) fn end(&self) {
        if self.finish() {
            self.pair.responses.end();
        }
    }

    /// Ends the queue: later responses are dropped. Returns true for the first call.
    fn finish(&self) -> bool {
        let is_first = self.pair.finish();
        if let Some(lent) = self.lent() {
            lent.end();
        }
        is_first
    }
}

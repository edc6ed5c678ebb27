use crate::admin;
use crate::completion::Outcome;
use crate::fabrics::association::{Association, Service};
use crate::fabrics::connect::{connect, connected};
use crate::fabrics::io_context::IoContext;
use crate::fabrics::lease::{Lease, Tenant};
use crate::fabrics::lent::Lent;
use crate::fabrics::pair::{Binding, Terms, is_fabrics};
use crate::fabrics::port::Entrance;
use crate::fabrics::property;
use crate::fabrics::queue::Queue;
use crate::fabrics::slots::Gauge;
use crate::fabrics::slots::Ticket;
use crate::fabrics::subsystem::Subsystem;
use crate::host_queue::{Capsule, HostQueue, Port, Responses};
use spec::{FabricsType, Status};
use std::cell::OnceCell;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

/// A transport's handle of a queue.
pub struct FabricQueue(Rc<Dispatcher>);

/// Passes the commands of a queue to what executes them.
struct Dispatcher {
    queue: Rc<Queue>,
    entrance: Entrance,
    /// The other reactor that has its connection, if any.
    tenant: Option<Rc<dyn Tenant>>,
    bound: OnceCell<Bound>,
}

/// The association and parameters of a bound queue.
struct Bound {
    association: Rc<Association>,
    terms: Terms,
}

impl Entrance {
    /// Creates a queue whose connection is in another reactor, which may execute its I/O commands.
    pub fn queue_of(&self, tenant: Rc<dyn Tenant>, responses: Rc<dyn Responses>) -> FabricQueue {
        FabricQueue::new(self.clone(), responses, Some(tenant))
    }
}

impl Port for Entrance {
    fn queue(&self, responses: Rc<dyn Responses>) -> Rc<dyn HostQueue> {
        Rc::new(FabricQueue::new(self.clone(), responses, None))
    }
}

impl FabricQueue {
    fn new(
        entrance: Entrance,
        responses: Rc<dyn Responses>,
        tenant: Option<Rc<dyn Tenant>>,
    ) -> Self {
        let queue = Queue::new(responses, entrance.connection());
        Self(Rc::new(Dispatcher { queue, entrance, tenant, bound: OnceCell::new() }))
    }

    /// Takes the result of the oldest [`Tenant::abort`]: whether the command was outstanding.
    pub fn aborted(&self, was_there: bool) {
        if let Some(lent) = self.0.queue.lent() {
            lent.aborted(was_there);
        }
    }
}

impl fmt::Debug for FabricQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FabricQueue with {} commands", self.0.queue.in_flight())
    }
}

impl HostQueue for FabricQueue {
    fn submit(&self, mut capsule: Capsule) {
        let (dispatcher, pair) = (&self.0, &self.0.queue.pair);
        if pair.is_over() {
            return;
        }
        if let Some(second) = capsule.second.take() {
            return dispatcher.submit_fused([capsule, *second]);
        }
        match pair.io_context() {
            Some(io_context) if !is_fabrics(&capsule) => {
                if !pair.start(io_context, capsule) {
                    dispatcher.overrun();
                }
            }
            _ => match pair.admit(&capsule.command) {
                Some(ticket) => dispatcher.spawn(ticket, capsule),
                None => dispatcher.overrun(),
            },
        }
    }

    fn execute_held(&self) {
        self.0.queue.pair.execute_held();
    }

    fn close(&self) {
        if self.0.queue.finish()
            && let Some(bound) = self.0.bound.get()
        {
            bound.association.queue_closed(bound.terms.id);
        }
    }
}

impl Dispatcher {
    /// Ends a queue whose host has sent more commands than entries. A task notifies the transport,
    /// which is inside [`HostQueue::submit`] now.
    fn overrun(self: &Rc<Self>) {
        self.queue.finish();
        let dispatcher = self.clone();
        clock::spawn(async move {
            if let Some(bound) = dispatcher.bound.get() {
                bound.association.queue_closed(bound.terms.id);
            }
            dispatcher.queue.pair.responses.end();
        });
    }

    /// Starts two adjacent commands: as one operation on an I/O queue, otherwise each alone.
    fn submit_fused(self: &Rc<Self>, capsules: [Capsule; 2]) {
        let pair = &self.queue.pair;
        let Some(tickets) = pair.admit_both(&capsules) else { return self.overrun() };
        match pair.io_context() {
            Some(io_context) => pair.start_fused(io_context, tickets, capsules),
            None => {
                for (ticket, capsule) in tickets.into_iter().zip(capsules) {
                    self.spawn(ticket, capsule);
                }
            }
        }
    }

    fn spawn(self: &Rc<Self>, ticket: Ticket, capsule: Capsule) {
        let dispatcher = self.clone();
        clock::spawn(async move { dispatcher.run(ticket, &capsule) });
    }

    fn run(self: &Rc<Self>, ticket: Ticket, capsule: &Capsule) {
        if let Some(outcome) = self.control(self.bound.get(), ticket, capsule) {
            self.queue.answer(ticket, outcome);
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
            let may_bind = ticket.head.is_connect && !self.queue.pair.is_over();
            let early = Outcome::of(Status::COMMAND_SEQUENCE_ERROR);
            return Some(if may_bind { self.connect(capsule) } else { early });
        };
        bound.association.state.hear();
        if !is_fabrics(capsule) {
            // An I/O command arrives here only if it did not wait for the response to the Connect.
            let early = Outcome::of(Status::COMMAND_SEQUENCE_ERROR);
            return if bound.terms.id > 0 {
                Some(early)
            } else {
                let subsystems = self.entrance.subsystems();
                admin::execute(&self.queue, subsystems, &bound.association, ticket, capsule)
            };
        }
        Some(match (capsule.command.fabrics_type(), bound.terms.id) {
            (FabricsType::CONNECT, _) => Outcome::of(Status::COMMAND_SEQUENCE_ERROR),
            (FabricsType::PROPERTY_GET, 0) => property::get(&bound.association, &capsule.command),
            (FabricsType::PROPERTY_SET, 0) => property::set(&bound.association, &capsule.command),
            (FabricsType::DISCONNECT, 0) => Outcome::of(Status::INVALID_QUEUE_TYPE),
            (FabricsType::DISCONNECT, _) => {
                // This response is the queue's last.
                if let Some(lent) = self.queue.lent() {
                    lent.end();
                }
                self.queue.answer(ticket, Outcome::done());
                bound.association.queue_closed(bound.terms.id);
                self.queue.end();
                return None;
            }
            _ => Outcome::of(Status::INVALID_OPCODE),
        })
    }

    /// Executes a Connect, which binds the queue.
    fn connect(&self, capsule: &Capsule) -> Outcome {
        match connect(&self.entrance, &self.queue, capsule) {
            Ok((association, terms)) => {
                let outcome = connected(&association);
                self.bind(association, terms);
                outcome
            }
            Err(refused) => refused,
        }
    }

    /// Binds the queue to `association`.
    fn bind(&self, association: Rc<Association>, terms: Terms) {
        let errors = association.errors.clone();
        let io_context = match &association.service {
            Service::Storage(subsystem)
                if terms.id > 0 && !self.lend(&association, subsystem, terms) =>
            {
                let rights = association.rights(subsystem, None);
                Some(IoContext { rights, device: subsystem.device.clone(), user: None })
            }
            _ => None,
        };
        self.queue.pair.bind(Binding { terms, errors, io_context });
        let first = self.bound.set(Bound { association, terms }).is_ok();
        assert!(first, "a queue that is bound takes no Connect");
    }

    /// Leases an I/O queue to the connection's reactor. Returns false if that cannot execute its
    /// commands.
    fn lend(&self, association: &Association, subsystem: &Subsystem, terms: Terms) -> bool {
        let Some(tenant) = &self.tenant else { return false };
        let gauge = Arc::<Gauge>::default();
        let rights = association.rights(subsystem, Some(tenant.number()));
        let is_lent =
            tenant.lease(&subsystem.device, Lease { terms, gauge: gauge.clone(), rights });
        if is_lent {
            self.queue.lend(Lent::new(tenant.clone(), gauge));
        }
        is_lent
    }
}

use crate::admin;
use crate::completion::Outcome;
use crate::fabrics::association::{Association, Service};
use crate::fabrics::connect::connect;
use crate::fabrics::lease::{Lease, Tenant};
use crate::fabrics::lent::Lent;
use crate::fabrics::member::Member;
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

/// A queue pair of a host: nobody's, an admin queue, or an I/O queue.
pub(crate) struct Queue {
    pair: Rc<Pair>,
    pub(crate) entrance: Entrance,
    /// Who has its connection, if another reactor has.
    tenant: Option<Rc<dyn Tenant>>,
    bound: OnceCell<Bound>,
}

/// Whose a queue is.
pub(crate) struct Bound {
    pub(crate) association: Rc<Association>,
    pub(crate) terms: Terms,
    /// Where its I/O commands are executed elsewhere.
    lent: Option<Lent>,
}

/// A door's handle on a queue.
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

    /// What became of the first [`Tenant::abort`] of which this was not said: whether there was a
    /// command to abort.
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
        let Some(ticket) = pair.admit(&capsule.command) else { return queue.overrun() };
        match pair.member() {
            Some(member) if !is_fabrics(&capsule) => pair.start(member, ticket, capsule),
            _ => queue.spawn(ticket, capsule),
        }
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
    /// The host has sent more than the queue has entries. The door is told by a task, for it is in
    /// the middle of a [`HostQueue::submit`].
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
        match self.pair.member() {
            Some(member) => self.pair.start_fused(member, tickets, capsules),
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

    /// What does not go to the device. `None`: the answer comes later, from whoever has the ticket.
    fn control(
        self: &Rc<Self>,
        bound: Option<&Bound>,
        ticket: Ticket,
        capsule: &Capsule,
    ) -> Option<Outcome> {
        let Some(bound) = bound else {
            let is_connect = is_fabrics(capsule)
                && capsule.command.fabrics_type() == FabricsType::CONNECT
                && !self.pair.is_over();
            let early = Outcome::of(Status::COMMAND_SEQUENCE_ERROR);
            return Some(if is_connect { connect(self, capsule) } else { early });
        };
        bound.association.standing.hear();
        if !is_fabrics(capsule) {
            // An I/O command is only seen here if it did not wait for the answer to the Connect.
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
                // This answer is the queue's last.
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

    /// Makes this a queue of `association`.
    pub(crate) fn bind(&self, association: Rc<Association>, terms: Terms) {
        let errors = association.errors.clone();
        let (lent, member) = match &association.service {
            Service::Storage(subsystem) if terms.id > 0 => {
                let lent = self.lend(&association, subsystem, terms);
                let member = || Member {
                    rights: association.rights(subsystem, None),
                    device: subsystem.device.clone(),
                };
                let member = lent.is_none().then(member);
                (lent, member)
            }
            _ => (None, None),
        };
        self.pair.bind(Binding { terms, errors, member });
        let first = self.bound.set(Bound { association, terms, lent }).is_ok();
        assert!(first, "a queue that is bound takes no Connect");
    }

    /// Has the reactor of the connection execute the commands of an I/O queue, if it can.
    fn lend(&self, association: &Association, subsystem: &Subsystem, terms: Terms) -> Option<Lent> {
        let tenant = self.tenant.as_ref()?;
        let gauge = Arc::<Gauge>::default();
        let rights = association.rights(subsystem, Some(tenant.number()));
        let is_lent =
            tenant.lease(&subsystem.device, Lease { terms, gauge: gauge.clone(), rights });
        is_lent.then(|| Lent::new(tenant.clone(), gauge))
    }

    /// What a Connect has made of it, if one has.
    #[inline]
    pub(crate) fn bound(&self) -> Option<&Bound> {
        self.bound.get()
    }

    fn lent(&self) -> Option<&Lent> {
        self.bound.get()?.lent.as_ref()
    }

    /// Commands that are under way, those that nobody awaits any more included.
    pub(crate) fn in_flight(&self) -> usize {
        self.pair.in_flight() + self.lent().map_or(0, Lent::in_flight)
    }

    /// Answers a command, if somebody still awaits that.
    pub(crate) fn answer(&self, ticket: Ticket, outcome: Outcome) {
        self.pair.answer(ticket, outcome);
    }

    /// Ends the wait for the command of this id, which runs to its end. Whether there is one; where
    /// another reactor knows that, `None`: the Abort, which is that of `ticket` on `admin`, is
    /// answered when that has said so.
    pub(crate) fn abort(&self, command_id: u16, admin: &Rc<Self>, ticket: Ticket) -> Option<bool> {
        match self.lent() {
            Some(lent) if !self.pair.is_over() => {
                lent.abort(command_id, admin, ticket);
                None
            }
            _ => Some(self.pair.abort(command_id)),
        }
    }

    /// Gives up a command that no task works on.
    pub(crate) fn forget(&self, ticket: Ticket) {
        self.pair.forget(ticket);
    }

    /// The controller has done with the queue.
    pub(crate) fn end(&self) {
        if self.finish() {
            self.pair.responses.end();
        }
    }

    /// From here on nothing is answered. True for who says so first.
    fn finish(&self) -> bool {
        let is_first = self.pair.finish();
        if let Some(lent) = self.lent() {
            lent.end();
        }
        is_first
    }
}

use crate::admin;
use crate::completion::Outcome;
use crate::fabrics::association::Association;
use crate::fabrics::connect::{connect, connected};
use crate::fabrics::detached_queue::{DetachedQueue, Parts};
use crate::fabrics::pair::{Binding, Pair, is_fabrics};
use crate::fabrics::port::Entrance;
use crate::fabrics::property;
use crate::fabrics::slots::Ticket;
use crate::fabrics::terms::Terms;
use crate::host_queue::{Capsule, HostQueue, Port, Responses};
use spec::{FabricsType, Status};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

/// A transport's handle of a queue.
pub struct FabricQueue(Rc<Dispatcher>);

/// Passes the commands of a queue to what executes them.
struct Dispatcher {
    pair: Rc<Pair>,
    entrance: Entrance,
}

impl Port for Entrance {
    fn queue(&self, responses: Rc<dyn Responses>) -> Rc<dyn HostQueue> {
        let dispatcher = Dispatcher { pair: self.pair(responses), entrance: self.clone() };
        Rc::new(FabricQueue(Rc::new(dispatcher)))
    }

    fn adopt(&self, queue: DetachedQueue, responses: Rc<dyn Responses>) -> Rc<dyn HostQueue> {
        let Parts { link, association, terms, head } = queue.into_parts();
        let pair = self.pair_of(link, responses);
        pair.continue_at(head, Binding::new(association, terms, self.reactor()));
        Rc::new(FabricQueue(Rc::new(Dispatcher { pair, entrance: self.clone() })))
    }
}

impl Entrance {
    /// Creates a queue of `association` without a Connect.
    pub(crate) fn bound_queue(
        &self,
        association: &Arc<Association>,
        id: u16,
        entries: u16,
        responses: Rc<dyn Responses>,
    ) -> (Rc<Pair>, Rc<dyn HostQueue>) {
        let dispatcher = Dispatcher { pair: self.pair(responses), entrance: self.clone() };
        let pair = dispatcher.pair.clone();
        pair.link.set_entries(entries);
        dispatcher.bind(association.clone(), Terms { id, entries, has_flow_control: true });
        (pair, Rc::new(FabricQueue(Rc::new(dispatcher))))
    }
}

impl fmt::Debug for FabricQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FabricQueue with {} commands", self.0.pair.in_flight())
    }
}

impl HostQueue for FabricQueue {
    fn submit(&self, mut capsule: Capsule) {
        let pair = &self.0.pair;
        if pair.is_over() {
            return;
        }
        if capsule.second.is_some() || !pair.hold(&capsule.command, &mut capsule.data) {
            self.0.start(capsule);
        }
    }

    fn execute_held(&self) {
        self.0.pair.execute_held();
    }

    fn close(&self) {
        if self.0.pair.finish() {
            self.0.leave_association();
        }
    }

    fn may_move(&self) -> bool {
        self.0.pair.may_move()
    }

    fn detach(&self) -> Option<DetachedQueue> {
        self.0.pair.detach()
    }
}

impl Dispatcher {
    /// Starts a command that the queue does not hold.
    #[inline(never)]
    fn start(self: &Rc<Self>, mut capsule: Capsule) {
        if let Some(second) = capsule.second.take() {
            return self.submit_fused([capsule, *second]);
        }
        let Some(ticket) = self.pair.admit(&capsule.command) else { return self.overrun() };
        match self.pair.io_context() {
            Some(io_context) if !is_fabrics(&capsule) => {
                self.pair.start(io_context, ticket, capsule);
            }
            _ => self.spawn(ticket, capsule),
        }
    }

    /// Ends a queue whose host has sent more commands than entries. A task notifies the transport,
    /// which is inside [`HostQueue::submit`] now.
    fn overrun(self: &Rc<Self>) {
        self.pair.finish();
        let dispatcher = self.clone();
        clock::spawn(async move {
            dispatcher.leave_association();
            dispatcher.pair.responses.end();
        });
    }

    /// Removes the closed queue from its association.
    fn leave_association(&self) {
        if let Some(Binding { association, terms, .. }) = self.pair.binding() {
            association.queue_closed(terms.id, &self.pair.link);
        }
    }

    /// Starts two adjacent commands: as one operation on an I/O queue, otherwise each alone.
    fn submit_fused(self: &Rc<Self>, capsules: [Capsule; 2]) {
        let pair = &self.pair;
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
        clock::spawn(async move {
            if let Some(outcome) = dispatcher.control(ticket, &capsule) {
                dispatcher.pair.answer(ticket, outcome);
            }
        });
    }

    /// Executes a command that does not go to the device. Returns `None` if the holder of `ticket`
    /// answers later.
    fn control(&self, ticket: Ticket, capsule: &Capsule) -> Option<Outcome> {
        let Some(Binding { association, terms, .. }) = self.pair.binding() else {
            let may_bind = ticket.head.is_connect && !self.pair.is_over();
            let early = Outcome::of(Status::COMMAND_SEQUENCE_ERROR);
            return Some(if may_bind { self.connect(capsule) } else { early });
        };
        association.keep_alive.hear();
        if !is_fabrics(capsule) {
            // An I/O command arrives here only if it did not wait for the response to the Connect.
            let early = Outcome::of(Status::COMMAND_SEQUENCE_ERROR);
            return if terms.id > 0 {
                Some(early)
            } else {
                let subsystems = self.entrance.subsystems();
                admin::execute(&self.pair, subsystems, association, ticket, capsule)
            };
        }
        Some(match (capsule.command.fabrics_type(), terms.id) {
            (FabricsType::CONNECT, _) => Outcome::of(Status::COMMAND_SEQUENCE_ERROR),
            (FabricsType::PROPERTY_GET, 0) => property::get(association, &capsule.command),
            (FabricsType::PROPERTY_SET, 0) => property::set(association, &capsule.command),
            (FabricsType::DISCONNECT, 0) => Outcome::of(Status::INVALID_QUEUE_TYPE),
            (FabricsType::DISCONNECT, _) => {
                // This response is the queue's last.
                self.pair.answer(ticket, Outcome::done());
                self.leave_association();
                self.pair.link.end();
                return None;
            }
            _ => Outcome::of(Status::INVALID_OPCODE),
        })
    }

    /// Executes a Connect, which binds the queue.
    fn connect(&self, capsule: &Capsule) -> Outcome {
        match connect(&self.entrance, &self.pair.link, capsule) {
            Ok((association, terms)) => {
                let outcome = connected(&association);
                self.bind(association, terms);
                outcome
            }
            Err(refused) => refused,
        }
    }

    fn bind(&self, association: Arc<Association>, terms: Terms) {
        self.pair.bind(Binding::new(association, terms, self.entrance.reactor()));
    }
}

use crate::completion::Outcome;
use crate::fabrics::lease::Tenant;
use crate::fabrics::queue::Queue;
use crate::fabrics::slots::Gauge;
use crate::fabrics::slots::Ticket;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

/// The part in this reactor of a queue whose I/O commands its connection's reactor executes.
pub(crate) struct Lent {
    tenant: Rc<dyn Tenant>,
    gauge: Arc<Gauge>,
    /// The Aborts that the tenant has not answered, with their admin queues, in order.
    aborts: RefCell<VecDeque<(Rc<Queue>, Ticket)>>,
}

impl Lent {
    pub(crate) fn new(tenant: Rc<dyn Tenant>, gauge: Arc<Gauge>) -> Self {
        Self { tenant, gauge, aborts: RefCell::default() }
    }

    /// Returns the number of commands in flight in the other reactor.
    pub(crate) fn in_flight(&self) -> usize {
        self.gauge.in_flight()
    }

    /// Requests to abort a command. The result completes the Abort on `admin`.
    pub(crate) fn abort(&self, command_id: u16, admin: &Rc<Queue>, ticket: Ticket) {
        self.aborts.borrow_mut().push_back((admin.clone(), ticket));
        self.tenant.abort(command_id);
    }

    /// Takes the tenant's result of the oldest Abort and completes it.
    pub(crate) fn aborted(&self, was_there: bool) {
        // None if the queue has ended, which completes all Aborts.
        let first = self.aborts.borrow_mut().pop_front();
        if let Some((admin, ticket)) = first {
            admin.answer(ticket, Outcome::of_abort(was_there));
        }
    }

    /// Ends the queue. Pending Aborts complete as "not aborted".
    pub(crate) fn end(&self) {
        self.gauge.end();
        for (admin, ticket) in self.aborts.take() {
            admin.answer(ticket, Outcome::of_abort(false));
        }
    }
}

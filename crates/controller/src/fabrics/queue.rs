use crate::completion::Outcome;
use crate::fabrics::lent::Lent;
use crate::fabrics::pair::{Pair, Terms};
use crate::fabrics::slots::Ticket;
use crate::host_queue::Responses;
use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::Arc;

/// A queue pair of a host as its association sees it: unbound, an admin queue, or an I/O queue.
pub(crate) struct Queue {
    pub(crate) pair: Rc<Pair>,
    /// The number of its connection: see [`crate::Entrance::of_connection`].
    pub(crate) connection: Option<u64>,
    /// Set if another reactor executes its I/O commands.
    lent: OnceCell<Lent>,
}

impl Queue {
    /// Creates an unbound queue.
    pub(crate) fn new(responses: Rc<dyn Responses>, connection: Option<u64>) -> Rc<Self> {
        let pair = Pair::new(responses, Arc::default());
        Rc::new(Self { pair, connection, lent: OnceCell::new() })
    }

    /// Notes that another reactor executes its I/O commands.
    pub(crate) fn lend(&self, lent: Lent) {
        let first = self.lent.set(lent).is_ok();
        assert!(first, "a queue is leased once, by its Connect");
    }

    /// Returns the part of a leased queue that stays in this reactor.
    pub(crate) fn lent(&self) -> Option<&Lent> {
        self.lent.get()
    }

    /// Returns the parameters of its Connect, if the queue is bound.
    pub(crate) fn terms(&self) -> Option<Terms> {
        self.pair.terms()
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
    pub(crate) fn finish(&self) -> bool {
        let is_first = self.pair.finish();
        if let Some(lent) = self.lent() {
            lent.end();
        }
        is_first
    }
}

//! How an I/O queue leaves its reactor.

use crate::fabrics::detached_queue::{DetachedQueue, Parts};
use crate::fabrics::pair::{Binding, Pair};

impl Pair {
    /// Returns whether the queue can move to another reactor while no command is in flight.
    pub(crate) fn may_move(&self) -> bool {
        self.io_context().is_some()
    }

    /// Detaches an I/O queue from this reactor, which must not use it again. Returns `None` if a
    /// command is in flight, aborted ones included, or if the queue is over.
    pub(crate) fn detach(&self) -> Option<DetachedQueue> {
        let Binding { terms, association, io_context } = self.binding()?;
        let is_idle = self.in_flight() == 0 && self.held.borrow().is_empty();
        if io_context.is_none() || !is_idle || !self.link.leave() {
            return None;
        }
        self.has_left.set(true);
        self.workers.dismiss();
        Some(DetachedQueue::new(Parts {
            link: self.link.clone(),
            association: association.clone(),
            terms: *terms,
            head: self.head(),
        }))
    }
}

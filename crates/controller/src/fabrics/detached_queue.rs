//! An I/O queue that moves from one reactor to another.

use crate::fabrics::association::{Association, Service};
use crate::fabrics::queue_link::QueueLink;
use crate::fabrics::terms::Terms;
use spec::QualifiedName;
use std::fmt;
use std::sync::Arc;

/// An I/O queue on its way between two reactors. No command is in flight on it. Requests of its
/// association wait until the other reactor adopts it: see [`Port::adopt`](crate::Port::adopt).
/// Dropping it closes the queue.
pub struct DetachedQueue(Option<Parts>);

/// What the next reactor needs to continue the queue.
pub(crate) struct Parts {
    pub(crate) link: Arc<QueueLink>,
    pub(crate) association: Arc<Association>,
    pub(crate) terms: Terms,
    /// The submission queue head after the last command.
    pub(crate) head: u16,
}

impl DetachedQueue {
    pub(crate) fn new(parts: Parts) -> Self {
        Self(Some(parts))
    }

    /// Returns the name of the subsystem that the host has connected to.
    pub fn subsystem(&self) -> &str {
        match self.0.as_ref().map(|parts| &parts.association.service) {
            Some(Service::Storage(subsystem)) => subsystem.nqn(),
            Some(Service::Discovery(_)) | None => QualifiedName::DISCOVERY,
        }
    }

    /// Returns the parts. The caller continues the queue.
    pub(crate) fn into_parts(mut self) -> Parts {
        self.0.take().expect("a detached queue has its parts until it is dropped")
    }
}

impl Drop for DetachedQueue {
    fn drop(&mut self) {
        if let Some(Parts { link, association, terms, .. }) = self.0.take() {
            link.abandon();
            association.queue_closed(terms.id, &link);
        }
    }
}

impl fmt::Debug for DetachedQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DetachedQueue")
    }
}

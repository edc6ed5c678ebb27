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
///
/// The commands of a [forwarded](Self::forwarded) queue are always executed in the same reactor.
/// Only what forwards them moves. Dropping such a queue closes nothing.
pub struct DetachedQueue(Option<Kind>);

enum Kind {
    Own(Parts),
    /// The name of its subsystem.
    Forwarded(String),
}

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
        Self(Some(Kind::Own(parts)))
    }

    /// Creates a forwarded queue, whose host has connected to the subsystem with this name.
    pub fn forwarded(subsystem: String) -> Self {
        Self(Some(Kind::Forwarded(subsystem)))
    }

    /// Returns the name of the subsystem that the host has connected to.
    pub fn subsystem(&self) -> &str {
        match &self.0 {
            Some(Kind::Own(Parts { association, .. })) => match &association.service {
                Service::Storage(subsystem) => subsystem.nqn(),
                Service::Discovery(_) => QualifiedName::DISCOVERY,
            },
            Some(Kind::Forwarded(subsystem)) => subsystem,
            None => QualifiedName::DISCOVERY,
        }
    }

    /// Returns the name of the subsystem of a forwarded queue. The caller continues the queue.
    ///
    /// # Panics
    /// If it is not forwarded.
    pub fn into_forwarded(mut self) -> String {
        let Some(Kind::Forwarded(subsystem)) = self.0.take() else {
            panic!("{self:?} is not forwarded")
        };
        subsystem
    }

    /// Returns the parts. The caller continues the queue.
    ///
    /// # Panics
    /// If the queue is forwarded.
    pub(crate) fn into_parts(mut self) -> Parts {
        let Some(Kind::Own(parts)) = self.0.take() else { panic!("{self:?} is forwarded") };
        parts
    }
}

impl Drop for DetachedQueue {
    fn drop(&mut self) {
        if let Some(Kind::Own(Parts { link, association, terms, .. })) = self.0.take() {
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

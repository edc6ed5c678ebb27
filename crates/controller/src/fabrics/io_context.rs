use crate::controller::Controller;
use crate::fabrics::association::{Association, Service};
use crate::fabrics::tally::Tally;
use crate::fabrics::work::{Work, WorkCount};
use std::sync::Arc;

/// The parts needed to execute the commands of an I/O queue.
pub(crate) struct IoContext {
    pub(crate) association: Arc<Association>,
    pub(crate) device: Arc<Controller>,
    /// Maximum bytes of a value that the host may store.
    pub(crate) value_bytes: u32,
    /// The subsystem's counters in this reactor.
    pub(crate) tally: Arc<Tally>,
    /// The association's counters in this reactor.
    pub(crate) work: Arc<WorkCount>,
}

impl IoContext {
    /// Returns the context of the I/O queues of `association` in the reactor with this number.
    pub(crate) fn new(association: &Arc<Association>, reactor: u32) -> Option<Self> {
        let Service::Storage(subsystem) = &association.service else { return None };
        Some(Self {
            association: association.clone(),
            device: subsystem.device.clone(),
            value_bytes: association.limits.value_bytes,
            tally: subsystem.tally.of(reactor),
            work: association.work.of(reactor),
        })
    }

    /// Adds executed commands to the counters of the subsystem and of the association.
    pub(crate) fn count(&self, work: &Work) {
        self.tally.work.add(work);
        self.work.add(work);
    }
}

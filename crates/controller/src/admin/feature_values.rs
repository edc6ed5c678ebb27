use super::warnings::WARNING_TEMPERATURE;
use crate::shared::Shared;
use std::collections::BTreeMap;

/// Default thresholds of the composite temperature in kelvins: over, under.
pub(super) const TEMPERATURES: (u16, u16) = (WARNING_TEMPERATURE, 0);

/// The features of an association that have no other place.
#[derive(Debug)]
pub(crate) struct Features {
    pub(super) arbitration: Shared<u32>,
    pub(super) temperatures: Shared<(u16, u16)>,
    pub(super) io_queues: Shared<u16>,
    pub(super) io_queues_max: u16,
    /// Error Recovery by namespace: its id, and how many namespaces had that id before. Damaged
    /// data is not read again, so every time limit is met.
    pub(super) recovery: Shared<BTreeMap<(u32, u32), u32>>,
    pub(super) atomicity: Shared<u32>,
    pub(super) coalescing: Shared<u32>,
    /// Whether coalescing is disabled, by interrupt vector, where the host has set it.
    pub(super) vectors: Shared<BTreeMap<u32, u32>>,
}

impl Features {
    /// Creates the features of a host with at most `io_queues_max` I/O queues.
    pub(crate) fn new(io_queues_max: u16) -> Self {
        Self {
            arbitration: Shared::new(0),
            temperatures: Shared::new(TEMPERATURES),
            io_queues: Shared::new(io_queues_max),
            io_queues_max,
            recovery: Shared::default(),
            atomicity: Shared::new(0),
            coalescing: Shared::new(0),
            vectors: Shared::default(),
        }
    }

    /// Returns the maximum number of I/O queues of the host.
    pub(crate) fn io_queues(&self) -> u16 {
        self.io_queues.get()
    }

    /// Returns the thresholds of the composite temperature in kelvins: over, under.
    pub(crate) fn temperatures(&self) -> (u16, u16) {
        self.temperatures.get()
    }

    /// Restores the defaults.
    pub(crate) fn reset(&self) {
        self.arbitration.set(0);
        self.temperatures.set(TEMPERATURES);
        self.io_queues.set(self.io_queues_max);
        self.recovery.take();
        self.atomicity.set(0);
        self.coalescing.set(0);
        self.vectors.take();
    }
}

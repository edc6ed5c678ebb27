use super::warnings::WARNING_TEMPERATURE;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

/// Default thresholds of the composite temperature in kelvins: over, under.
pub(super) const TEMPERATURES: (u16, u16) = (WARNING_TEMPERATURE, 0);

/// The features of an association that have no other place.
#[derive(Debug)]
pub(crate) struct Features {
    pub(super) arbitration: Cell<u32>,
    pub(super) temperatures: Cell<(u16, u16)>,
    pub(super) io_queues: Cell<u16>,
    pub(super) io_queues_max: u16,
    /// Error Recovery by namespace: its id, and how many namespaces had that id before. Damaged
    /// data is not read again, so every time limit is met.
    pub(super) recovery: RefCell<BTreeMap<(u32, u32), u32>>,
    pub(super) atomicity: Cell<u32>,
}

impl Features {
    /// Creates the features of a host with at most `io_queues_max` I/O queues.
    pub(crate) fn new(io_queues_max: u16) -> Self {
        Self {
            arbitration: Cell::new(0),
            temperatures: Cell::new(TEMPERATURES),
            io_queues: Cell::new(io_queues_max),
            io_queues_max,
            recovery: RefCell::default(),
            atomicity: Cell::new(0),
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
    }
}

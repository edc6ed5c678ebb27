use crate::bar0::Doorbell;
use crate::bus::{HostMemory, OutsideMemory};
use crate::segments::PAGE;
use spec::Status;
use std::rc::Rc;

/// Doorbells of I/O queues in host memory (Base 2.1, Doorbell Buffer Config command). The host
/// writes each value there, and the real doorbell only if the value passes an event index.
pub(crate) struct ShadowDoorbells {
    memory: Rc<dyn HostMemory>,
    values: u64,
    event_indexes: u64,
}

impl ShadowDoorbells {
    pub(crate) fn new(
        memory: Rc<dyn HostMemory>,
        [values, event_indexes]: [u64; 2],
    ) -> Result<Self, Status> {
        let is_page = |address: &u64| address.is_multiple_of(PAGE);
        if ![values, event_indexes].iter().all(is_page) {
            return Err(Status::PRP_OFFSET_INVALID);
        }
        Ok(Self { memory, values, event_indexes })
    }

    /// Returns the value of a doorbell.
    #[inline]
    pub(crate) fn value(&self, doorbell: Doorbell) -> Result<u32, OutsideMemory> {
        self.memory.load(self.values + doorbell.offset())
    }

    /// Asks the host to write the real doorbell when the value moves on from `value`.
    pub(crate) fn set_event_index(&self, doorbell: Doorbell, value: u16) {
        // If its memory has gone, the host finds no index there either.
        let _ = self.memory.store(self.event_indexes + doorbell.offset(), value.into());
    }
}

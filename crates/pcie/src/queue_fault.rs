use crate::bus::OutsideMemory;

/// The host broke a rule of queues: a doorbell has a value that it cannot have, or the memory of a
/// queue is gone. The controller fails (CSTS.CFS).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueFault;

impl From<OutsideMemory> for QueueFault {
    fn from(_: OutsideMemory) -> Self {
        Self
    }
}

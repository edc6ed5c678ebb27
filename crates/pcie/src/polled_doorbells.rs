use crate::bar0::{DOORBELLS, Doorbell};
use crate::bus::{DoorbellPage, HostMemory, OutsideMemory};
use crate::segments::PAGE;
use spec::Status;
use std::rc::Rc;

const _: () = assert!(DOORBELLS.end - DOORBELLS.start == PAGE, "a page has all doorbells");

/// Doorbells that the function reads instead of being told of each write.
pub(crate) enum PolledDoorbells {
    /// Those of I/O queues in host memory (Base 2.1, Doorbell Buffer Config command). The host
    /// writes each value there, and the real doorbell only if the value passes an event index.
    Shadow { memory: Rc<dyn HostMemory>, values: u64, event_indexes: u64 },
    /// Those of all queues in a page of BAR 0 that the host has mapped.
    Mapped(Rc<dyn DoorbellPage>),
}

impl PolledDoorbells {
    /// Returns those of a Doorbell Buffer Config command.
    pub(crate) fn shadow(
        memory: Rc<dyn HostMemory>,
        [values, event_indexes]: [u64; 2],
    ) -> Result<Self, Status> {
        let is_page = |address: &u64| address.is_multiple_of(PAGE);
        if ![values, event_indexes].iter().all(is_page) {
            return Err(Status::PRP_OFFSET_INVALID);
        }
        Ok(Self::Shadow { memory, values, event_indexes })
    }

    /// Returns whether the doorbells of a queue are here. Hosts write shadows of those of I/O
    /// queues only.
    pub(crate) fn has_those_of(&self, queue: u16) -> bool {
        queue > 0 || matches!(self, Self::Mapped(_))
    }

    /// Returns the value of a doorbell.
    #[inline]
    pub(crate) fn value(&self, doorbell: Doorbell) -> Result<u32, OutsideMemory> {
        match self {
            Self::Shadow { memory, values, .. } => memory.load(values + doorbell.offset()),
            Self::Mapped(page) => Ok(page.load(doorbell.offset())),
        }
    }

    /// Copies all doorbells from the first on. Each is one of a moment of its own: what is done
    /// about one begins with [`Self::value`].
    #[inline]
    pub(crate) fn read(&self, into: &mut [u8]) -> Result<(), OutsideMemory> {
        match self {
            Self::Shadow { memory, values, .. } => memory.read(*values, into),
            Self::Mapped(page) => {
                page.read(into);
                Ok(())
            }
        }
    }

    /// Asks the host to write the real doorbell when the value moves on from `value`. It cannot be
    /// asked for mapped ones.
    pub(crate) fn set_event_index(
        &self,
        doorbell: Doorbell,
        value: u16,
    ) -> Result<(), OutsideMemory> {
        match self {
            Self::Shadow { memory, event_indexes, .. } => {
                memory.store(event_indexes + doorbell.offset(), value.into())
            }
            Self::Mapped(_) => Ok(()),
        }
    }

    /// Takes what the host has written to BAR 0 itself. The value of a shadow is in its memory:
    /// hosts mix both, and then the write says only that there is news.
    pub(crate) fn ring(&self, doorbell: Doorbell, value: u32) {
        if let Self::Mapped(page) = self {
            page.store(doorbell.offset(), value);
        }
    }

    /// Sets the doorbell of a new queue to 0: an earlier queue may have left another value. Drivers
    /// clear shadows themselves, and may have written the first value already.
    pub(crate) fn clear(&self, doorbell: Doorbell) {
        self.ring(doorbell, 0);
    }
}

use super::attached::Wire;
use guest::{Doorbells, GuestMemory};
use pcie::DoorbellPage;
use std::rc::Rc;
use std::sync::Arc;
use vfio_user::MappedDoorbells;

/// Where a guest writes doorbells.
#[derive(Clone)]
pub(crate) enum Page {
    /// To BAR 0, by a message each.
    Messages(Wire),
    /// To the page of BAR 0 that it has mapped.
    Mapped(Rc<MappedDoorbells>),
    /// To shadow doorbells, and by a message if an event index asks for it.
    Shadow { memory: Arc<GuestMemory>, values: usize, event_indexes: usize, wire: Wire },
}

/// The doorbells of a queue.
pub(crate) struct PolledDoorbells {
    pub(crate) page: Page,
    pub(crate) queue: u16,
}

impl PolledDoorbells {
    fn ring(&self, place: u16, value: u16) {
        match &self.page {
            Page::Messages(wire) => wire.ring(place, value),
            Page::Mapped(page) => page.store(place.into(), value.into()),
            Page::Shadow { memory, values, event_indexes, wire } => {
                let [value_at, index_at] =
                    [values, event_indexes].map(|page| page + usize::from(place));
                let word = |at| u16::try_from(memory.load(at)).expect("it is a place in the queue");
                let old = word(value_at);
                memory.store(value_at, value.into());
                let event = word(index_at);
                if value.wrapping_sub(event).wrapping_sub(1) < value.wrapping_sub(old) {
                    wire.ring(place, value);
                }
            }
        }
    }
}

impl Doorbells for PolledDoorbells {
    fn ring_tail(&mut self, tail: u16) {
        self.ring(self.queue * 8, tail);
    }

    fn ring_head(&mut self, head: u16) {
        self.ring(self.queue * 8 + 4, head);
    }
}

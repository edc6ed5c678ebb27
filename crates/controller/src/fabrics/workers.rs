use crate::fabrics::job::{Job, Todo};
use crate::fabrics::slots::Ticket;
use clock::Notify;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Maximum idle tasks. Further tasks end with their commands, so that a queue frees memory after a
/// peak.
const KEPT: usize = 128;

/// The tasks that execute the commands of an I/O queue. Tasks are reused, because each new one is a
/// large allocation and move.
#[derive(Default)]
pub(crate) struct Workers {
    idle: RefCell<Vec<Rc<WorkSlot>>>,
}

/// The slot from which a task takes its next command.
pub(crate) struct WorkSlot {
    pub(crate) job: Cell<Option<(Ticket, Job<Todo>)>>,
    pub(crate) notify: Notify,
}

impl Workers {
    /// Passes a job to an idle task. If there is none, returns the slot of a new task, which the
    /// caller starts.
    #[inline]
    pub(crate) fn give(&self, ticket: Ticket, job: Job<Todo>) -> Option<Rc<WorkSlot>> {
        match self.idle.borrow_mut().pop() {
            Some(slot) => {
                slot.job.set(Some((ticket, job)));
                slot.notify.notify();
                None
            }
            None => {
                let job = Cell::new(Some((ticket, job)));
                Some(Rc::new(WorkSlot { job, notify: Notify::new() }))
            }
        }
    }

    /// Ends the idle tasks when the queue ends.
    pub(crate) fn dismiss(&self) {
        self.idle.take().iter().for_each(|slot| slot.notify.notify());
    }

    /// Adds `slot` to the idle ones. Returns false if there are enough.
    pub(crate) fn keep(&self, slot: &Rc<WorkSlot>) -> bool {
        let mut idle = self.idle.borrow_mut();
        let stays = idle.len() < KEPT;
        if stays {
            idle.push(slot.clone());
        }
        stays
    }
}

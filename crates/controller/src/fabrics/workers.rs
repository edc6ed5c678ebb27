use crate::fabrics::io::{Job, Todo};
use crate::fabrics::pair::Pair;
use crate::fabrics::slots::Ticket;
use clock::Notify;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::pin;
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
struct WorkSlot {
    job: Cell<Option<(Ticket, Job<Todo>)>>,
    notify: Notify,
}

impl Workers {
    /// Passes `job` of `pair` to an idle or a new task.
    #[inline]
    pub(crate) fn give(&self, pair: &Rc<Pair>, ticket: Ticket, job: Job<Todo>) {
        match self.idle.borrow_mut().pop() {
            Some(slot) => {
                slot.job.set(Some((ticket, job)));
                slot.notify.notify();
            }
            None => {
                let job = Cell::new(Some((ticket, job)));
                let slot = Rc::new(WorkSlot { job, notify: Notify::new() });
                clock::spawn(work(pair.clone(), slot));
            }
        }
    }

    /// Ends the idle tasks when the queue ends.
    pub(crate) fn dismiss(&self) {
        self.idle.take().iter().for_each(|slot| slot.notify.notify());
    }

    /// Adds `slot` to the idle ones. Returns false if there are enough.
    fn keep(&self, slot: &Rc<WorkSlot>) -> bool {
        let mut idle = self.idle.borrow_mut();
        let stays = idle.len() < KEPT;
        if stays {
            idle.push(slot.clone());
        }
        stays
    }
}

async fn work(pair: Rc<Pair>, slot: Rc<WorkSlot>) {
    let io_context = pair.io_context().expect("a pair that is given jobs executes them");
    while let Some((ticket, job)) = slot.job.take() {
        let (namespace, todo, begun) = job.begin(io_context, ticket);
        let device = &io_context.device;
        let outcome = {
            let mut work = pin!(device.carry_out(namespace, todo));
            poll_fn(|context| device.poll_inside(work.as_mut(), context)).await
        };
        pair.done(io_context, ticket, begun, outcome);
        if pair.is_over() || !pair.workers.keep(&slot) {
            return;
        }
        slot.notify.wait().await;
    }
}

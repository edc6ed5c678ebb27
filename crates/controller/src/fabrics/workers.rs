use crate::fabrics::io::Job;
use crate::fabrics::pair::Pair;
use crate::fabrics::slots::Ticket;
use clock::Bell;
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
    idle: RefCell<Vec<Rc<Desk>>>,
}

/// The slot from which a task takes its next command.
struct Desk {
    job: Cell<Option<(Ticket, Job)>>,
    bell: Bell,
}

impl Workers {
    /// Passes `job` of `pair` to an idle or a new task.
    #[inline]
    pub(crate) fn give(&self, pair: &Rc<Pair>, ticket: Ticket, job: Job) {
        match self.idle.borrow_mut().pop() {
            Some(desk) => {
                desk.job.set(Some((ticket, job)));
                desk.bell.ring();
            }
            None => {
                let job = Cell::new(Some((ticket, job)));
                let desk = Rc::new(Desk { job, bell: Bell::new() });
                clock::spawn(work(pair.clone(), desk));
            }
        }
    }

    /// Ends the idle tasks when the queue ends.
    pub(crate) fn dismiss(&self) {
        self.idle.take().iter().for_each(|desk| desk.bell.ring());
    }

    /// Adds `desk` to the idle ones. Returns false if there are enough.
    fn keep(&self, desk: &Rc<Desk>) -> bool {
        let mut idle = self.idle.borrow_mut();
        let stays = idle.len() < KEPT;
        if stays {
            idle.push(desk.clone());
        }
        stays
    }
}

async fn work(pair: Rc<Pair>, desk: Rc<Desk>) {
    let member = pair.member().expect("a pair that is given jobs executes them");
    while let Some((ticket, job)) = desk.job.take() {
        let (namespace, submission, begun) = job.begin(member, ticket);
        let device = &member.device;
        let outcome = {
            let mut work = pin!(device.execute(Some(namespace), submission));
            poll_fn(|context| device.poll_inside(work.as_mut(), context)).await
        };
        pair.done(member, ticket, begun, outcome);
        if pair.is_over() || !pair.workers.keep(&desk) {
            return;
        }
        desk.bell.wait().await;
    }
}

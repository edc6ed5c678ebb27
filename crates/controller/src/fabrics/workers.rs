use crate::fabrics::io::Job;
use crate::fabrics::pair::Pair;
use crate::fabrics::slots::Ticket;
use clock::Bell;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;

/// Tasks that wait for the next command at most. Those of more commands at a time end with them, so
/// that a queue does not keep for ever what it once needed.
const KEPT: usize = 128;

/// The tasks that execute the commands of an I/O queue. They are kept for the next, for what a task
/// holds is large: each new one is allocated, and moved to where tasks are.
#[derive(Default)]
pub(crate) struct Workers {
    idle: RefCell<Vec<Rc<Desk>>>,
}

/// Where a task finds its next command.
struct Desk {
    job: Cell<Option<(Ticket, Job)>>,
    bell: Bell,
}

impl Workers {
    /// Has a task execute `job`, which is of `pair`.
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

    /// Lets the tasks end that have nothing to do: the queue is over.
    pub(crate) fn dismiss(&self) {
        self.idle.take().iter().for_each(|desk| desk.bell.ring());
    }

    /// Makes `desk` one of those that wait, unless there are enough.
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

//! Checks by loom: each request to a queue of another reactor is executed or refused once, in all
//! orders that the threads and their memory can have. `docs/internals/testing.md` has the command.

use super::queue_link::{Abort, QueueLink, Request};
use super::slots::{CommandHead, Slots, Ticket};
use crate::completion::Outcome;
use base::Nanos;
use clock::Stage;
use loom::thread::{self, JoinHandle};
use reactor::{LoomPeers, check_by_loom};
use spec::Command;
use std::cell::Cell;
use std::ops::Add;
use std::rc::Rc;
use std::sync::Arc;

/// Requests that a queue's reactor has executed.
#[derive(Debug, Default, PartialEq, Eq)]
struct Executed {
    aborts: u32,
    events: u32,
    ends: u32,
}

/// Executes the requests to a queue until it is over, as `Pair::serve_requests` does.
async fn serve(queue: &QueueLink) -> Executed {
    serve_until(queue, &Cell::new(false)).await
}

/// As [`serve`], or until the queue has left the reactor.
async fn serve_until(queue: &QueueLink, has_left: &Cell<bool>) -> Executed {
    let mut executed = Executed::default();
    while let Some(request) = queue.next(has_left).await {
        match request {
            Request::Abort(_, abort) => {
                executed.aborts += 1;
                abort.answer(!queue.is_over());
            }
            Request::Answer(..) => panic!("no command of this queue aborts one"),
            Request::TellEvents => executed.events += 1,
            Request::End => executed.ends += 1,
        }
    }
    executed
}

fn ticket() -> Ticket {
    Slots::default().take(CommandHead::of(&Command::exist(3, b"key")), 1).unwrap()
}

/// Aborts a command of `queue` from another reactor. Returns whether it was outstanding, which the
/// admin queue of that reactor is told once.
async fn abort(queue: &QueueLink) -> bool {
    let admin = QueueLink::new(None);
    queue.abort(7, Abort { admin: admin.clone(), ticket: ticket() });
    let stays = Cell::new(false);
    let Some(Request::Answer(_, outcome)) = admin.next(&stays).await else { panic!("no answer") };
    admin.close();
    assert!(admin.next(&stays).await.is_none(), "one answer");
    outcome.result == Outcome::of_abort(true).result
}

/// A queue, and the reactors that share it. The first is its own.
struct Scene {
    queue: Arc<QueueLink>,
    peers: LoomPeers,
}

impl Scene {
    fn new(reactors: u32) -> Self {
        Self { queue: QueueLink::new(None), peers: LoomPeers::new(reactors) }
    }

    /// Runs another reactor on a thread of its own.
    fn spawn<T: 'static>(
        &self,
        number: u32,
        run: impl AsyncFnOnce(&QueueLink) -> T + 'static,
    ) -> JoinHandle<T> {
        let (queue, peers) = (self.queue.clone(), self.peers.clone());
        thread::spawn(move || peers.run(number, run(&queue)))
    }

    /// Runs the queue's reactor until the queue is over.
    fn serve(&self) -> Executed {
        self.peers.run(0, serve(&self.queue))
    }

    /// As [`Self::serve`], while a second task closes the queue, as its transport does. Returns
    /// too whether that came before the end by another reactor.
    fn serve_and_close(&self) -> (Executed, bool) {
        let (queue, is_first) = (self.queue.clone(), Rc::new(Cell::new(false)));
        let closed_first = is_first.clone();
        let executed = self.peers.run(0, async move {
            let serving = queue.clone();
            clock::spawn(async move {
                clock::sleep(Nanos(1), Stage::Queue).await;
                closed_first.set(queue.close());
            });
            serve(&serving).await
        });
        (executed, is_first.get())
    }
}

impl Scene {
    /// Serves the queue until a second task detaches it, unless it is over by then. Returns whether
    /// it has left.
    fn serve_and_leave(&self) -> (Executed, bool) {
        let has_left = Rc::new(Cell::new(false));
        let (leaving, left) = (self.queue.clone(), has_left.clone());
        let executed = self.peers.run(0, async {
            clock::spawn(async move {
                clock::sleep(Nanos(1), Stage::Queue).await;
                left.set(leaving.leave());
            });
            serve_until(&self.queue, &has_left).await
        });
        (executed, has_left.get())
    }
}

impl Add for Executed {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            aborts: self.aborts + other.aborts,
            events: self.events + other.events,
            ends: self.ends + other.ends,
        }
    }
}

#[test]
fn loom_requests_to_a_moving_queue_are_executed_once() {
    check_by_loom(Some(3), || {
        let scene = Scene::new(3);
        let other = scene.spawn(2, async |queue| {
            queue.tell_events();
            queue.end();
        });
        let (mut executed, has_left) = scene.serve_and_leave();
        if has_left {
            executed = executed + scene.peers.run(1, serve(&scene.queue));
        }
        assert_eq!(executed, Executed { events: 1, ends: 1, aborts: 0 });
        other.join().unwrap();
    });
}

/// Another reactor aborts a command of a queue that moves.
fn abort_while_moving(arrive: impl AsyncFnOnce(&QueueLink, u32)) {
    let scene = Scene::new(3);
    let aborting = scene.spawn(2, abort);
    let (Executed { aborts, .. }, has_left) = scene.serve_and_leave();
    assert!(has_left, "nothing has ended the queue");
    scene.peers.run(1, arrive(&scene.queue, aborts));
    aborting.join().unwrap();
}

#[test]
fn loom_abort_is_answered_once_while_its_queue_moves() {
    check_by_loom(Some(3), || {
        abort_while_moving(async |queue, aborts| {
            if aborts == 0 {
                let request = queue.next(&Cell::new(false)).await;
                let Some(Request::Abort(_, abort)) = request else { panic!("it waits") };
                abort.answer(true);
            }
        });
    });
}

#[test]
fn loom_abort_is_answered_once_while_a_moving_queue_is_dropped() {
    check_by_loom(Some(3), || abort_while_moving(async |queue, _| queue.abandon()));
}

#[test]
fn loom_requests_before_the_end_are_executed_once() {
    check_by_loom(None, || {
        let scene = Scene::new(2);
        let other = scene.spawn(1, async |queue| {
            queue.tell_events();
            queue.tell_events();
            queue.end();
        });
        assert_eq!(scene.serve(), Executed { events: 2, ends: 1, aborts: 0 });
        other.join().unwrap();
    });
}

#[test]
fn loom_abort_is_answered_while_another_reactor_ends_the_queue() {
    check_by_loom(Some(3), || {
        let scene = Scene::new(3);
        let aborting = scene.spawn(1, abort);
        let ending = scene.spawn(2, async |queue| queue.end());
        let Executed { aborts, ends, .. } = scene.serve();
        let was_there = aborting.join().unwrap();
        assert_eq!(ends, 1);
        assert!(aborts == 1 || !was_there, "an Abort that was refused has aborted nothing");
        ending.join().unwrap();
    });
}

#[test]
fn loom_abort_is_answered_while_the_queue_is_closed() {
    check_by_loom(None, || {
        let scene = Scene::new(2);
        let aborting = scene.spawn(1, abort);
        let (Executed { aborts, ends, .. }, is_first) = scene.serve_and_close();
        let was_there = aborting.join().unwrap();
        assert_eq!((ends, is_first), (0, true));
        assert!(aborts == 1 || !was_there, "an Abort that was refused has aborted nothing");
    });
}

#[test]
fn loom_two_reactors_end_a_queue_once() {
    check_by_loom(Some(3), || {
        let scene = Scene::new(3);
        let ending = [1, 2].map(|number| scene.spawn(number, async |queue| queue.end()));
        assert_eq!(scene.serve(), Executed { ends: 1, events: 0, aborts: 0 });
        for reactor in ending {
            reactor.join().unwrap();
        }
    });
}

#[test]
fn loom_queue_is_either_closed_or_ended() {
    check_by_loom(None, || {
        let scene = Scene::new(2);
        let ending = scene.spawn(1, async |queue| queue.end());
        let (Executed { ends, .. }, is_first) = scene.serve_and_close();
        assert_eq!(ends, u32::from(!is_first));
        ending.join().unwrap();
    });
}

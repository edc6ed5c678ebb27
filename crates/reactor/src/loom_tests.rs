//! Checks by loom: no wake-up is lost between reactors that fall asleep and threads that have
//! something for them, in all orders that the threads and their memory can have.
//! `docs/internals/testing.md` has the command.

use crate::driver::{PolledInbox, look_at};
use crate::loom_peers::check_by_loom;
use crate::mailbox::{Inbox, Outbox, mailbox};
use crate::notice::notices;
use crate::peers::{Peer, peers};
use crate::remote::Remote;
use clock::{LocalFuture, Rank, Schedule, Stage, TaskId};
use loom::thread;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// A reactor that serves: as `Reactor::serve` and its driver, it polls all tasks, then looks at
/// what others have for it, and sleeps if there is nothing.
struct Served<'a> {
    remote: &'a Remote,
    inboxes: Vec<Rc<dyn PolledInbox>>,
    stopped: Vec<TaskId>,
    tasks: Vec<(TaskId, LocalFuture<'static, ()>)>,
}

impl<'a> Served<'a> {
    /// Installs the clock of this thread.
    fn new(remote: &'a Remote, inboxes: Vec<Rc<dyn PolledInbox>>) -> Self {
        clock::install(Box::new(Schedule::new(None)));
        Self { remote, inboxes, stopped: Vec::new(), tasks: Vec::new() }
    }

    /// Runs `root` and all other tasks to their ends.
    fn run(mut self, root: impl Future<Output = ()> + 'static) {
        clock::spawn(root);
        let (mut context, mut finished) = (Context::from_waker(Waker::noop()), None);
        loop {
            let Some(next) = clock::turn(finished.take(), &mut self.tasks) else {
                if self.tasks.is_empty() {
                    break;
                }
                self.wait();
                continue;
            };
            let at = self.tasks.iter().position(|(task, _)| *task == next).unwrap();
            if let Poll::Ready(()) = pin!(&mut self.tasks[at].1).poll(&mut context) {
                drop(self.tasks.swap_remove(at));
                finished = Some(next);
            }
        }
        drop(clock::uninstall());
    }

    fn wait(&mut self) {
        let Self { remote, inboxes, stopped, .. } = self;
        let is_news = look_at(inboxes, stopped, remote);
        remote.clear_event();
        if !is_news {
            remote.sleep_unless(|| look_at(inboxes, stopped, remote), || remote.wait_for_event());
        }
    }
}

async fn park() {
    clock::park(Rank::Free, Stage::Queue).await;
}

#[test]
fn loom_tasks_that_other_reactors_wake_go_on() {
    check_by_loom(Some(3), || {
        let remote = Remote::new().unwrap();
        let peer = peers(std::slice::from_ref(&remote)).remove(0);
        let served = Served::new(&remote, vec![Rc::new(peer.clone())]);
        let tasks = [clock::spawn(park()), clock::spawn(park())];
        let wakers = tasks.map(|task| {
            let peer: Peer = peer.clone();
            thread::spawn(move || peer.remote_waker()(task))
        });
        served.run(async {});
        for waker in wakers {
            waker.join().unwrap();
        }
    });
}

#[test]
fn loom_reactor_that_is_stopped_wakes() {
    check_by_loom(None, || {
        let remote = Remote::new().unwrap();
        let mut served = Served::new(&remote, Vec::new());
        served.stopped.push(clock::spawn(park()));
        let other = remote.clone();
        let stopping = thread::spawn(move || other.stop());
        served.run(async {});
        stopping.join().unwrap();
    });
}

#[test]
fn loom_reader_gets_the_last_notice() {
    check_by_loom(Some(3), || {
        let remote = Remote::new().unwrap();
        let (writer, end) = notices(&remote);
        let (reader, polled) = end.attached();
        let writing = thread::spawn(move || [1, 2].map(|notice| writer.put_up(notice)));
        Served::new(&remote, vec![polled]).run(async move {
            let mut read = 0;
            while read < 2 {
                let notice = reader.read().await;
                assert!(notice > read, "a notice is read once, and none before it");
                read = notice;
            }
        });
        writing.join().unwrap();
    });
}

/// Runs `send` and `receive` in reactors of their own, with a mailbox for one message between them.
/// Each drops its end as its reactor ends.
fn between<S, R>(send: fn(Outbox<u32>) -> S, receive: fn(Inbox<u32>) -> R)
where
    S: Future<Output = ()> + 'static,
    R: Future<Output = ()> + 'static,
{
    let [from, to] = [(), ()].map(|()| Remote::new().unwrap());
    let (sending, receiving) = mailbox(1, &from, &to);
    let sender = thread::spawn(move || {
        let (outbox, polled) = sending.attached();
        Served::new(&from, vec![polled]).run(send(outbox));
    });
    let (inbox, polled) = receiving.attached();
    Served::new(&to, vec![polled]).run(receive(inbox));
    sender.join().unwrap();
}

#[test]
fn loom_messages_arrive_in_order_and_then_the_end() {
    check_by_loom(Some(2), || {
        let send = |outbox: Outbox<u32>| async move {
            outbox.send(1);
            // Finds no room unless the first was received.
            outbox.send(2);
            outbox.room().await;
        };
        let receive = |inbox: Inbox<u32>| async move {
            for message in [Some(1), Some(2), None] {
                assert_eq!(inbox.receive().await, message);
            }
        };
        between(send, receive);
    });
}

#[test]
fn loom_messages_sent_together_arrive_in_order() {
    check_by_loom(Some(2), || {
        let send = |outbox: Outbox<u32>| async move {
            // The second finds no room unless the first was received.
            outbox.send_all([1, 2].into_iter());
            outbox.room().await;
        };
        let receive = |inbox: Inbox<u32>| async move {
            let mut received = Vec::new();
            while let Some(message) = inbox.receive().await {
                received.push(message);
                inbox.receive_some(2, |message| received.push(message));
            }
            assert_eq!(received, [1, 2]);
        };
        between(send, receive);
    });
}

#[test]
fn loom_message_arrives_though_its_sender_is_gone() {
    check_by_loom(Some(2), || {
        let send = |outbox: Outbox<u32>| async move { outbox.send(1) };
        let receive = |inbox: Inbox<u32>| async move {
            for message in [Some(1), None] {
                assert_eq!(inbox.receive().await, message);
            }
        };
        between(send, receive);
    });
}

#[test]
fn loom_message_that_found_no_room_is_sent_when_there_is() {
    check_by_loom(Some(1), || {
        let remotes = [(), ()].map(|()| Remote::new().unwrap());
        let [from, to] = &remotes;
        let (sending, receiving) = mailbox(1, from, to);
        let (sending_answer, receiving_answer) = mailbox(1, to, from);
        let from = from.clone();
        let sender = thread::spawn(move || {
            let (outbox, polled) = sending.attached();
            let (inbox, answers) = receiving_answer.attached();
            Served::new(&from, vec![polled, answers]).run(async move {
                [1, 2].into_iter().for_each(|message| outbox.send(message));
                assert_eq!(inbox.receive().await, Some(3));
            });
        });
        let (inbox, polled) = receiving.attached();
        let (outbox, answers) = sending_answer.attached();
        Served::new(to, vec![polled, answers]).run(async move {
            assert_eq!([inbox.receive().await, inbox.receive().await], [Some(1), Some(2)]);
            outbox.send(3);
        });
        sender.join().unwrap();
    });
}

#[test]
fn loom_sender_that_waits_for_room_learns_that_the_receiver_is_gone() {
    check_by_loom(None, || {
        let send = |outbox: Outbox<u32>| async move {
            outbox.send(1);
            outbox.room().await;
        };
        between(send, |inbox: Inbox<u32>| async move { drop(inbox) });
    });
}

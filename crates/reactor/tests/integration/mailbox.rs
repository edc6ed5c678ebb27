//! Messages between reactors, each on a thread of its own.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use base::{Nanos, Rng};
use clock::Stage;
use net::Stream;
use reactor::{
    Inbox, Outbox, Reactor, ReceiveEnd, Remote, SendEnd, TcpListener, TcpStream, mailbox, stopped,
};
use std::cell::Cell;
use std::io::{IoSlice, Read};
use std::rc::Rc;
use std::thread::{JoinHandle, spawn};

/// Serves what `root` makes on a thread of its own.
fn on_a_thread<T, F>(remote: &Remote, root: impl FnOnce() -> F + Send + 'static) -> JoinHandle<T>
where
    T: Send + 'static,
    F: Future<Output = T>,
{
    let remote = remote.clone();
    spawn(move || Reactor::new(None).serve(&remote, root()).unwrap().0)
}

fn remotes() -> (Remote, Remote) {
    (Remote::new().unwrap(), Remote::new().unwrap())
}

/// Both halves of a conversation.
type Ends = (SendEnd<u64>, ReceiveEnd<u64>);

fn both_ways(capacity: usize, a: &Remote, b: &Remote) -> (Ends, Ends) {
    let (to_b, from_a) = mailbox(capacity, a, b);
    let (to_a, from_b) = mailbox(capacity, b, a);
    ((to_b, from_b), (to_a, from_a))
}

/// Answers each request with its number plus one, until there are none.
async fn answer(requests: Inbox<u64>, answers: Outbox<u64>) {
    while let Some(request) = requests.receive().await {
        answers.send(request + 1);
    }
}

#[test]
fn messages_come_in_order_and_end_with_their_sender() {
    let (a, b) = remotes();
    let (send, receive) = mailbox(7, &a, &b);
    let sender = on_a_thread(&a, move || async move {
        let outbox = send.open();
        for number in 0..20_000u64 {
            outbox.room().await;
            outbox.send(number);
        }
        outbox.room().await;
    });
    let receiver = on_a_thread(&b, move || async move {
        let inbox = receive.open();
        let mut expected = 0;
        while let Some(number) = inbox.receive().await {
            assert_eq!(number, expected);
            expected += 1;
        }
        expected
    });
    sender.join().unwrap();
    assert_eq!(receiver.join().unwrap(), 20_000);
}

/// One at a time, so that both sides sleep and are woken again and again: some rounds within the
/// time that a reactor spins, some at its end, some long after it.
#[test]
fn a_sleeping_reactor_is_woken_by_a_message() {
    let (a, b) = remotes();
    let (near, far) = both_ways(1, &a, &b);
    let answering =
        on_a_thread(&b, move || async move { answer(far.1.open(), far.0.open()).await });
    let asking = on_a_thread(&a, move || async move {
        let (requests, answers) = (near.0.open(), near.1.open());
        let mut rng = Rng::new(5);
        for number in 0..1_000 {
            requests.send(number);
            assert_eq!(answers.receive().await, Some(number + 1));
            let longest = [5_000, 60_000, 70_000, 2_000_000][usize::try_from(number % 4).unwrap()];
            clock::sleep(Nanos(rng.below(longest)), Stage::Queue).await;
        }
    });
    asking.join().unwrap();
    answering.join().unwrap();
    assert!(b.load().sleeps > 200, "{:?}", b.load());
}

/// Mailboxes of one message, hundreds of requests under way in both directions.
#[test]
fn two_reactors_that_ask_each_other_do_not_stop_each_other() {
    const TASKS: u64 = 50;
    const ROUNDS: u64 = 100;
    let (a, b) = remotes();
    let (asks_b, answers_a) = both_ways(1, &a, &b);
    let (asks_a, answers_b) = both_ways(1, &b, &a);
    let (done, all_done) = std::sync::mpsc::channel();
    let side = |ask: Ends, serve: Ends| {
        let done = done.clone();
        move || async move {
            clock::spawn(async move { answer(serve.1.open(), serve.0.open()).await });
            let (requests, answers) = (ask.0.open(), ask.1.open());
            for task in 0..TASKS {
                let requests = requests.clone();
                clock::spawn(async move {
                    for round in 0..ROUNDS {
                        requests.room().await;
                        requests.send(task * ROUNDS + round);
                    }
                });
            }
            let mut sum = 0;
            for _ in 0..TASKS * ROUNDS {
                sum += answers.receive().await.unwrap();
            }
            done.send(sum).unwrap();
            // The other side may still ask.
            stopped().await;
        }
    };
    let first = on_a_thread(&a, side(asks_b, answers_b));
    let second = on_a_thread(&b, side(asks_a, answers_a));
    let count = TASKS * ROUNDS;
    for _ in 0..2 {
        assert_eq!(all_done.recv().unwrap(), count * (count - 1) / 2 + count);
    }
    a.stop();
    b.stop();
    first.join().unwrap();
    second.join().unwrap();
}

/// Bursts that overflow, seeded pauses on both sides: nothing is lost, doubled or out of order.
#[test]
fn a_storm_of_messages_arrives_whole() {
    for seed in 0..8 {
        let (a, b) = remotes();
        let capacity = usize::try_from(1 + seed * 3).unwrap();
        let (send, receive) = mailbox(capacity, &a, &b);
        let sender = on_a_thread(&a, move || async move {
            let mut rng = Rng::new(seed);
            let outbox = send.open();
            let mut number = 0u64;
            while number < 5_000 {
                for _ in 0..=rng.below(100) {
                    outbox.send(number);
                    number += 1;
                }
                outbox.room().await;
                if rng.below(10) == 0 {
                    clock::sleep(Nanos(rng.below(200_000)), Stage::Queue).await;
                }
            }
            number
        });
        let receiver = on_a_thread(&b, move || async move {
            let mut rng = Rng::new(!seed);
            let inbox = receive.open();
            let mut count = 0;
            while let Some(number) = inbox.receive().await {
                assert_eq!(number, count);
                count += 1;
                if rng.below(200) == 0 {
                    clock::sleep(Nanos(rng.below(200_000)), Stage::Queue).await;
                }
            }
            count
        });
        assert_eq!(sender.join().unwrap(), receiver.join().unwrap(), "seed {seed}");
    }
}

#[test]
fn a_sender_learns_that_its_receiver_is_gone() {
    let (a, b) = remotes();
    let (send, receive) = mailbox(1, &a, &b);
    let payload = std::sync::Arc::new(());
    let held = payload.clone();
    let sender = on_a_thread(&a, move || async move {
        let outbox = send.open();
        for _ in 0..5 {
            outbox.send(held.clone());
        }
        // Only the end of the receiver wakes this: it receives nothing.
        outbox.room().await;
        assert!(outbox.is_closed());
        outbox.send(held);
    });
    let receiver = on_a_thread(&b, move || async move {
        clock::sleep(Nanos::from_millis(3), Stage::Queue).await;
        drop(receive.open());
    });
    receiver.join().unwrap();
    sender.join().unwrap();
    assert_eq!(std::sync::Arc::strong_count(&payload), 1);
}

#[test]
fn a_connection_can_be_handed_to_another_reactor() {
    let (a, b) = remotes();
    let (send, receive) = mailbox::<TcpStream>(4, &a, &b);
    let (to_test, address) = std::sync::mpsc::channel();
    let accepting = on_a_thread(&a, move || async move {
        let listener = TcpListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        to_test.send(listener.local_address().unwrap()).unwrap();
        let outbox = send.open();
        for _ in 0..10 {
            outbox.room().await;
            outbox.send(listener.accept().await.unwrap().0);
        }
        outbox.room().await;
    });
    let serving = on_a_thread(&b, move || async move {
        let inbox = receive.open();
        let done = Rc::new(Cell::new(0));
        while let Some(stream) = inbox.receive().await {
            let done = done.clone();
            clock::spawn(async move {
                stream.writable().await;
                assert_eq!(stream.try_write(&[IoSlice::new(b"hello")]), Ok(Some(5)));
                done.set(done.get() + 1);
            });
        }
        while done.get() < 10 {
            clock::sleep(Nanos::from_micros(100), Stage::Queue).await;
        }
    });
    let address = address.recv().unwrap();
    for _ in 0..10 {
        let mut got = String::new();
        std::net::TcpStream::connect(address).unwrap().read_to_string(&mut got).unwrap();
        assert_eq!(got, "hello");
    }
    accepting.join().unwrap();
    serving.join().unwrap();
}

//! Reactors on cores in virtual time: messages arrive late, polls take time, and cores stall.

use base::Nanos;
use clock::{Notify, Stage};
use reactor::{CoreTimes, Inbox, Load, PeerGroup, Remote, mailbox};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

const TIMES: CoreTimes = CoreTimes {
    poll: Nanos(500),
    read: Nanos(50),
    message: Nanos::from_micros(5),
    stall: Nanos::from_micros(50),
    stall_one_in: 20,
};

const MESSAGES: u64 = 50;

/// More than fit into a mailbox.
const TOGETHER: u64 = 5;

/// What a receiver noted: the sender of each message, its number, and how long it took.
type Notes = Rc<RefCell<Vec<(usize, u64, Nanos)>>>;

/// Has reactors 1 and 2 send to reactor 0 through mailboxes with room for three messages. Returns
/// what was received, and how long each reactor was busy.
fn received(seed: u64, times: CoreTimes) -> (Vec<(usize, u64, Nanos)>, Vec<Load>) {
    let mut group = PeerGroup::on_cores(3, seed, Some(seed), times);
    let (remotes, clock) = (group.remotes(), group.clock());
    let mut inboxes = Vec::new();
    for sender in [1, 2] {
        let (send, receive) = mailbox(3, &remotes[sender], &remotes[0]);
        inboxes.push((sender, receive));
        let clock = clock.clone();
        group.places().spawn(sender, async move {
            let outbox = send.open();
            for first in (0..MESSAGES).step_by(5) {
                outbox.send_all((first..first + TOGETHER).map(|number| (number, clock.now())));
                outbox.room().await;
                clock::sleep(Nanos::from_micros(3), Stage::Queue).await;
            }
            outbox.room().await;
        });
    }
    let (notes, ended) = (Notes::default(), Rc::new((Cell::new(0), Notify::new())));
    group.run(async {
        for (sender, receive) in inboxes {
            let inbox: Inbox<(u64, Nanos)> = receive.open();
            let (notes, ended, clock) = (notes.clone(), ended.clone(), clock.clone());
            clock::spawn(async move {
                while let Some((number, sent)) = inbox.receive().await {
                    notes.borrow_mut().push((sender, number, clock.now() - sent));
                }
                ended.0.set(ended.0.get() + 1);
                ended.1.notify();
            });
        }
        while ended.0.get() < 2 {
            ended.1.wait().await;
        }
    });
    (notes.take(), remotes.iter().map(Remote::load).collect())
}

#[test]
fn messages_arrive_late_and_all_of_them_in_order() {
    let mut slowest = Nanos::ZERO;
    for seed in 0..50 {
        let (notes, _) = received(seed, TIMES);
        for sender in [1, 2] {
            let own = notes.iter().filter(|(from, ..)| *from == sender);
            let numbers: Vec<u64> = own.map(|(_, number, _)| *number).collect();
            assert_eq!(numbers, (0..MESSAGES).collect::<Vec<_>>(), "seed {seed}");
        }
        slowest = slowest.max(notes.iter().map(|note| note.2).max().expect("some arrive"));
    }
    assert!(slowest > TIMES.stall, "{slowest}: a stall delays what was sent before");
}

#[test]
fn the_seed_chooses_the_schedule() {
    let schedules: Vec<_> = (0..8).map(|seed| received(seed, TIMES)).collect();
    for (seed, schedule) in (0..).zip(&schedules) {
        assert_eq!(received(seed, TIMES), *schedule);
    }
    assert!(schedules.iter().any(|other| other.0 != schedules[0].0), "seeds make a difference");
}

/// A message takes at most the time that was asked for, after that of one that it waits for.
#[test]
fn ways_of_messages_are_bounded() {
    let times = CoreTimes { poll: Nanos(1), read: Nanos(1), stall: Nanos(1), ..TIMES };
    let (notes, _) = received(1, times);
    let most = Nanos(2 * TIMES.message.0) + Nanos::from_micros(1);
    assert!(notes.iter().all(|note| note.2 < most), "{notes:?}");
    assert!(notes.iter().any(|note| note.2 > Nanos::from_micros(2)));
    assert!(notes.iter().any(|note| note.2 < Nanos::from_micros(1)));
}

#[test]
fn loads_are_what_polls_take() {
    let (notes, loads) = received(1, TIMES);
    assert_eq!(notes.len() as u64, 2 * MESSAGES);
    for load in loads {
        assert_eq!(load.busy_times.total(), load.busy);
        let most = Nanos(4 * MESSAGES * (TIMES.poll.0 + 10 * TIMES.read.0));
        assert!(load.busy > Nanos::ZERO && load.busy < most, "{load:?}");
        assert!(load.idle > TIMES.stall, "{load:?}");
    }
}

/// A task is woken for a message that comes while its core stalls, and for one that comes after.
#[test]
fn no_request_waits_for_ever() {
    for seed in 0..50 {
        let times = CoreTimes { stall_one_in: 2, ..TIMES };
        let mut group = PeerGroup::on_cores(2, seed, None, times);
        let remotes = group.remotes();
        let (send, requests) = mailbox(1, &remotes[0], &remotes[1]);
        let (answer, answers) = mailbox(1, &remotes[1], &remotes[0]);
        group.places().spawn(1, async move {
            let (inbox, outbox) = (requests.open(), answer.open());
            while let Some(request) = inbox.receive().await {
                outbox.send(request);
            }
        });
        group.run(async {
            let (outbox, inbox) = (send.open(), answers.open());
            for request in 0..20 {
                outbox.send(request);
                assert_eq!(inbox.receive().await, Some(request));
            }
        });
    }
}

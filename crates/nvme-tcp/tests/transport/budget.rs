use crate::host::{Came, Host, QUICK, exist, run, store, value};
use base::limits::VALUE_BYTES_MAX;
use base::{Buf, Nanos};
use clock::Stage;
use net::Stream;
use nvme_tcp::pdu::{CapsuleCmd, Digests};
use nvme_tcp::target::{Budget, COMMANDS_MAX, Ended, UNANSWERED_MAX};
use std::collections::BTreeMap;
use std::rc::Rc;

const LEN: u32 = 128 << 10;
/// Commands of that length that may be in flight.
const FEW: usize = 128;
const _: () = assert!(FEW as u64 * LEN as u64 == Budget::BYTES, "they fill the budget");

async fn settle() {
    clock::sleep(Nanos::from_millis(100), Stage::Queue).await;
}

#[test]
fn data_is_asked_for_within_the_budget_and_in_order() {
    run(async {
        let mut host = Host::open(1, QUICK, Digests::NONE, 4).await;
        let count = 3 * FEW;
        for id in 0..count {
            host.outbox.push(&CapsuleCmd::new(store(u16::try_from(id).unwrap(), LEN)));
        }
        host.flush().await;
        settle().await;
        let data = value(LEN, 1);
        let mut asked = Vec::new();
        let mut tags = BTreeMap::new();
        for _ in 0..FEW {
            let Came::Ready { id, tag, .. } = host.next().await else { panic!("no R2T") };
            asked.push(usize::from(id));
            tags.insert(id, tag);
        }
        assert!(asked.iter().copied().eq(0..FEW));
        settle().await;
        assert_eq!(host.counters.pdus_sent(), 1 + FEW as u64, "no more is asked for");
        // A small command does not wait behind those.
        host.outbox.push(&CapsuleCmd::new(exist(9_999)));
        host.flush().await;
        assert!(matches!(host.next().await, Came::Response(entry) if entry.command_id() == 9_999));
        // Each that ends lets the next one go.
        for done in 0..count {
            let id = u16::try_from(done).unwrap();
            let tag = tags[&id];
            host.give(id, tag, &data, 1 << 18);
            host.flush().await;
            let mut is_answered = false;
            let mut has_next = done + FEW >= count;
            while !(is_answered && has_next) {
                match host.next().await {
                    Came::Response(entry) => is_answered = entry.command_id() == id,
                    Came::Ready { id, tag, .. } => {
                        assert_eq!(usize::from(id), done + FEW);
                        tags.insert(id, tag);
                        has_next = true;
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
        assert_eq!(host.shelf.moved.get(), count as u64 * u64::from(LEN));
    });
}

#[test]
fn a_host_that_does_not_read_has_no_more_than_its_budget_returned() {
    run(async {
        let mut host = Host::open(1, QUICK, Digests::NONE, 4).await;
        let count = u16::try_from(4 * FEW).unwrap();
        let data = value(LEN, 1);
        host.shelf.values.borrow_mut().extend((0..count).map(|_| data.clone()));
        for id in 0..count {
            host.retrieve(id, LEN);
        }
        host.flush().await;
        settle().await;
        let came = host.shelf.came.borrow().len();
        assert!((FEW..=FEW + 2).contains(&came), "{came} started");
        assert!(host.shelf.moved.get() <= Budget::BYTES + 2 * u64::from(LEN));
        let results = host.collect(usize::from(count), &BTreeMap::new()).await;
        assert!(results.data.values().all(|got| got.len() == LEN as usize));
        assert!(host.shelf.came.borrow().iter().copied().eq(0..count), "in order");
    });
}

#[test]
fn room_for_more_than_any_value_counts_as_the_longest() {
    run(async {
        let mut host = Host::open(1, QUICK, Digests::NONE, 4).await;
        for id in 0..100 {
            host.retrieve(id, VALUE_BYTES_MAX + 1);
        }
        host.shelf.values.borrow_mut().extend((0..100).map(|_| value(VALUE_BYTES_MAX, 1)));
        host.flush().await;
        settle().await;
        let came = host.shelf.came.borrow().len();
        assert!(came <= 9, "{came} started, 8 of which fill the budget");
        assert_eq!(host.collect(100, &BTreeMap::new()).await.done.len(), 100);
    });
}

#[test]
fn a_host_that_sends_more_than_a_queue_holds_is_not_read() {
    run(async {
        let mut host = Host::connected(QUICK).await;
        host.shelf.delay.set(Nanos::from_secs(100));
        let count = u16::try_from(COMMANDS_MAX + 500).unwrap();
        for id in 0..count {
            host.outbox.push(&CapsuleCmd::new(exist(id)));
        }
        host.flush().await;
        // It is not the host that is waited for, though a PDU of it is not read.
        clock::sleep(Nanos::from_secs(99), Stage::Queue).await;
        assert_eq!(host.shelf.came.borrow().len(), UNANSWERED_MAX);
        assert_eq!(
            host.collect(usize::from(count), &BTreeMap::new()).await.done.len(),
            count.into()
        );
        assert!(host.ended.get().is_none());
    });
}

#[test]
fn a_host_that_sends_more_than_a_queue_holds_and_no_data_is_left() {
    for is_connected in [false, true] {
        run(async move {
            let mut host = if is_connected {
                Host::connected(QUICK).await
            } else {
                Host::open(1, QUICK, Digests::NONE, 4).await
            };
            for id in 0..=u16::try_from(COMMANDS_MAX).unwrap() {
                host.outbox.push(&CapsuleCmd::new(store(id, 100)));
            }
            host.flush().await;
            settle().await;
            let (reason, _) = host.ended.get().expect("the connection has ended");
            assert_eq!(reason, Ended::Flooded);
            assert_eq!((host.shelf.came.borrow().len(), host.shelf.closed.get()), (0, 1));
        });
    }
}

/// It has sent no data of one command, so the target may not pause: it would never read them.
#[test]
fn a_host_that_keeps_its_queue_full_and_reads_slowly_stays() {
    run(async {
        let mut host = Host::open(1, QUICK, Digests::NONE, 4).await;
        let (full, count) = (1_023, 4_000);
        host.outbox.push(&CapsuleCmd::new(store(u16::MAX, 100)));
        host.shelf.values.borrow_mut().extend((0..count).map(|_| value(16_000, 1)));
        (1..full).for_each(|id| host.retrieve(id, 16_000));
        let mut sent = full - 1;
        for _ in 0..count {
            let _ = host.outbox.write(&*host.stream);
            let mut is_answered = false;
            while !is_answered {
                // Time for the target to take the last command, or to end the connection.
                clock::sleep(Nanos::from_millis(1), Stage::Queue).await;
                assert_eq!(host.ended.get(), None, "the connection stays");
                is_answered = matches!(host.next().await, Came::Response(_));
            }
            if sent < count {
                sent += 1;
                host.retrieve(sent, 16_000);
            }
        }
    });
}

#[test]
fn small_responses_that_are_not_read_are_bounded_too() {
    run(async {
        let mut host = Host::open(1, QUICK, Digests::NONE, 4).await;
        let count = 3 * u16::try_from(COMMANDS_MAX).unwrap();
        host.shelf.values.borrow_mut().extend((0..count).map(|_| value(16_000, 1)));
        for id in 0..count {
            host.retrieve(id, 16_000);
        }
        // Not all of it is taken: the target stops reading.
        let mut stuck = 0;
        while !host.outbox.is_empty() && stuck < 10 {
            let before = host.outbox.sent_to();
            let _ = host.outbox.write(&*host.stream);
            clock::sleep(Nanos::from_millis(1), Stage::Queue).await;
            stuck = if host.outbox.sent_to() == before { stuck + 1 } else { 0 };
        }
        let came = host.shelf.came.borrow().len();
        assert!(came <= COMMANDS_MAX + 5, "{came} started");
        assert!(!host.outbox.is_empty());
        let mut done = 0;
        while done < usize::from(count) {
            let _ = host.outbox.write(&*host.stream);
            if let Came::Response(_) = host.next().await {
                done += 1;
            }
        }
    });
}

#[test]
fn one_command_is_always_admitted() {
    run(async {
        let mut host = Host::open(1, QUICK, Digests::NONE, 4).await;
        let values: BTreeMap<u16, Buf> = (0..10).map(|id| (id, value(2 << 20, 1))).collect();
        for (id, value) in &values {
            host.store(*id, value);
        }
        host.flush().await;
        assert_eq!(host.collect(10, &values).await.done.len(), 10);
    });
}

/// A host of a small budget is asked for no more than that, and for the rest as answers leave; what
/// is in flight is told at any time.
#[test]
fn a_budget_is_kept_and_told_whatever_it_is() {
    run(async {
        let budget = Rc::new(Budget::new(Budget::BYTES_MIN));
        let host = Host::connect_with(budget.clone(), 1, QUICK);
        let mut host = host.opened(Digests::NONE, 4).await;
        // 32 x 128 KiB are announced, and 16 fit 2 MiB.
        for id in 0..32 {
            host.outbox.push(&CapsuleCmd::new(store(id, LEN)));
        }
        host.flush().await;
        settle().await;
        assert_eq!(host.counters.pdus_sent(), 1 + 16, "the ICResp, and so many R2Ts");
        assert_eq!(budget.in_flight(), 2 << 20);
        let Came::Ready { id, tag, .. } = host.next().await else { panic!("no R2T") };
        host.give(id, tag, &value(LEN, 1), 1 << 18);
        host.flush().await;
        settle().await;
        assert_eq!(host.counters.pdus_sent(), 1 + 16 + 2, "an answer, and one R2T more");
        assert_eq!(budget.in_flight(), 2 << 20);
        host.stream.shut_down();
        settle().await;
        assert_eq!(budget.in_flight(), 0, "a closed connection has no bytes in flight");
    });
}

use crate::host::{Came, Host, QUICK, exist, raw, rough, run, store, value};
use base::Nanos;
use clock::Stage;
use net::Stream;
use nvme_tcp::pdu::{CapsuleCmd, Digests, IcReq};
use nvme_tcp::target::{Ended, TIMEOUT};
use spec::{DataPointer, Status};
use std::collections::BTreeMap;

async fn expect_silence(mut host: Host, since: Nanos) {
    assert!(matches!(host.next().await, Came::End));
    clock::sleep(Nanos(1), Stage::Queue).await;
    let (reason, at) = host.ended.get().expect("the connection is over");
    assert_eq!(reason, Ended::Silent);
    assert_eq!(at - since, TIMEOUT);
}

#[test]
fn a_host_without_an_icreq_times_out() {
    run(async {
        let host = Host::connect(1, QUICK);
        expect_silence(host, clock::now()).await;
    });
    run(async {
        let mut host = Host::connect(1, QUICK);
        let start = clock::now();
        for byte in raw(&IcReq::new(4, Digests::NONE, 1)).iter().take(25) {
            host.say(&[*byte]).await;
            clock::sleep(Nanos::from_secs(1), Stage::Queue).await;
        }
        expect_silence(host, start).await;
    });
}

#[test]
fn an_early_disconnect_leaves_no_task() {
    let mut reactor = reactor::Reactor::new(None);
    reactor.run(async {
        for seed in 0..50 {
            // It disconnects while its connect timeout runs.
            let host = Host::connect(seed, QUICK);
            clock::sleep(Nanos(1), Stage::Queue).await;
            host.stream.shut_down();
        }
        clock::sleep(Nanos::from_secs(1), Stage::Queue).await;
    });
    // Tasks that sleep for up to a second end together with the run.
    reactor.run(async { clock::sleep(Nanos(1), Stage::Queue).await });
    assert_eq!(reactor.tasks(), 0, "closed connections have no tasks");
}

#[test]
fn a_host_without_a_connect_times_out() {
    run(async {
        let mut host = Host::open(1, QUICK, Digests::NONE, 4).await;
        assert!(matches!(host.next().await, Came::End));
        clock::sleep(Nanos(1), Stage::Queue).await;
        assert_eq!(host.ended.get(), Some((Ended::Silent, TIMEOUT)));
    });
    // Other commands do not extend the timeout: without a Connect none succeeds.
    run(async {
        let mut host = Host::open(1, QUICK, Digests::NONE, 4).await;
        for id in 0..29 {
            let unknown = store(id, 5).with_data_pointer(DataPointer::Other(0));
            host.outbox.push(&CapsuleCmd::new(unknown));
            host.flush().await;
            let results = host.collect(1, &BTreeMap::new()).await;
            assert_eq!(results.done[&id].unwrap().status(), Status::SGL_TYPE_INVALID);
            host.say(&raw(&CapsuleCmd::new(unknown))[..9]).await;
            clock::sleep(Nanos::from_secs(1), Stage::Queue).await;
            host.say(&raw(&CapsuleCmd::new(unknown))[9..]).await;
            host.collect(1, &BTreeMap::new()).await;
        }
        clock::sleep(Nanos::from_secs(1), Stage::Queue).await;
        assert_eq!(host.ended.get(), Some((Ended::Silent, TIMEOUT)));
    });
}

#[test]
fn a_host_that_stops_in_a_pdu_times_out() {
    let capsule = raw(&CapsuleCmd::new(exist(1)));
    for cut in [1, 7, 8, 71] {
        let part = capsule[..cut].to_vec();
        run(async move {
            let mut host = Host::connected(QUICK).await;
            clock::sleep(Nanos::from_secs(3_600), Stage::Queue).await;
            let start = clock::now();
            host.say(&part).await;
            expect_silence(host, start).await;
        });
    }
    run(async {
        let mut host = Host::connected(QUICK).await;
        host.outbox.push(&CapsuleCmd::new(store(1, 50_000)));
        host.flush().await;
        let Came::Ready { tag, .. } = host.next().await else { panic!("no R2T") };
        clock::sleep(Nanos::from_secs(3_600), Stage::Queue).await;
        host.give(1, tag, &value(50_000, 1), 50_000);
        let start = clock::now();
        let tape = crate::tape::Tape::new(1, usize::MAX);
        while host.outbox.write(&tape) != Ok(nvme_tcp::framing::Written::All) {}
        host.say(&tape.written()[..30_000]).await;
        expect_silence(host, start).await;
    });
}

#[test]
fn a_slow_or_idle_host_does_not_time_out_between_pdus() {
    run(async {
        let mut host = Host::connected(QUICK).await;
        for id in 0..20 {
            clock::sleep(Nanos::from_secs(1_000), Stage::Queue).await;
            let capsule = raw(&CapsuleCmd::new(exist(id)));
            for part in capsule.chunks(3) {
                host.say(part).await;
                clock::sleep(Nanos::from_secs(1), Stage::Queue).await;
            }
            host.collect(1, &BTreeMap::new()).await;
        }
        assert!(host.ended.get().is_none());
    });
}

#[test]
fn a_queue_that_ends_has_its_responses_sent() {
    run(async {
        let mut host = Host::open(1, rough(100), Digests::NONE, 4).await;
        // More than the stream holds.
        host.shelf.values.borrow_mut().extend((0..50).map(|at| value(10_000, at)));
        for id in 0..50 {
            host.retrieve(id, 10_000);
        }
        host.flush().await;
        while host.shelf.came.borrow().len() < 50 || host.shelf.under_way.get() > 0 {
            clock::sleep(Nanos(100), Stage::Queue).await;
        }
        assert!(host.counters.bytes_written() < 250_000, "most of it waits");
        let responses = host.shelf.responses.borrow_mut().take().unwrap();
        responses.end();
        let results = host.collect(50, &BTreeMap::new()).await;
        assert!(results.data.values().all(|data| data.len() == 10_000));
        assert!(matches!(host.next().await, Came::End));
        clock::sleep(Nanos::from_millis(1), Stage::Queue).await;
        assert_eq!(host.ended.get().unwrap().0, Ended::ByController);
        assert_eq!(host.shelf.closed.get(), 1);
    });
}

#[test]
fn an_ending_connection_does_not_wait_for_a_host_that_does_not_read() {
    run(async {
        let mut host = Host::open(1, QUICK, Digests::NONE, 4).await;
        host.shelf.values.borrow_mut().push_back(value(1 << 20, 1));
        host.retrieve(1, 1 << 20);
        host.flush().await;
        clock::sleep(Nanos::from_secs(1), Stage::Queue).await;
        let start = clock::now();
        let responses = host.shelf.responses.borrow_mut().take().unwrap();
        responses.end();
        clock::sleep(TIMEOUT + Nanos(1), Stage::Queue).await;
        let (reason, at) = host.ended.get().expect("it is over");
        assert_eq!((reason, at - start), (Ended::ByController, TIMEOUT));
    });
}

#[test]
fn a_disconnect_ends_the_connection_but_no_started_command() {
    for seed in 0..20 {
        run(async move {
            let mut host = Host::open(seed, rough(3_000), Digests::NONE, 4).await;
            host.shelf.delay.set(Nanos::from_micros(50));
            for id in 0..30 {
                host.store(id, &value(if id % 3 == 0 { 40_000 } else { 3_000 }, 1));
            }
            host.flush().await;
            clock::sleep(Nanos::from_micros(10 * seed), Stage::Queue).await;
            host.stream.shut_down();
            clock::sleep(Nanos::from_millis(10), Stage::Queue).await;
            assert_eq!(host.ended.get().unwrap().0, Ended::ByHost);
            assert_eq!(host.shelf.closed.get(), 1);
            assert_eq!(host.shelf.under_way.get(), 0, "started commands have run to their end");
        });
    }
}

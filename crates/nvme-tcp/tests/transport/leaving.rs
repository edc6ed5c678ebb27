//! Connections that are asked to move, and cannot.

use crate::host::{Came, Host, QUICK, exist, run, store, value};
use base::Nanos;
use clock::Stage;
use nvme_tcp::pdu::CapsuleCmd;
use nvme_tcp::target::LEAVE_MAX;

const LEN: u32 = 20_000;

/// A time in which the target does all that it can do.
const SHORT: Nanos = Nanos::from_millis(10);

async fn wait(time: Nanos) {
    clock::sleep(time, Stage::Queue).await;
}

/// Connects a host whose queue says that it can move.
async fn connected() -> Host {
    let host = Host::connected(QUICK).await;
    host.shelf.may_move.set(true);
    host
}

async fn send(host: &mut Host, command: spec::Command) {
    host.outbox.push(&CapsuleCmd::new(command));
    host.flush().await;
}

/// Waits for the request of the data of a command, and returns its tag.
async fn asked(host: &mut Host, expected: u16) -> u16 {
    match host.next().await {
        Came::Ready { id, tag, .. } if id == expected => tag,
        other => panic!("{other:?}"),
    }
}

async fn answered(host: &mut Host, expected: u16) {
    match host.next().await {
        Came::Response(entry) if entry.command_id() == expected => {}
        other => panic!("{other:?}"),
    }
}

/// The host waits for the response to its second Store before it sends the data of the first one.
#[test]
fn connection_whose_host_withholds_data_stays() {
    run(async {
        let (mut host, data) = (connected().await, value(LEN, 1));
        // The time of a request that has ended does not bound the next one.
        for (round, is_asked_again) in [(0, false), (10, true), (20, false)] {
            let [first, second, third, fourth] = [1, 2, 3, 4].map(|id| round + id);
            send(&mut host, store(first, LEN)).await;
            let first_tag = asked(&mut host, first).await;
            host.moves.ask();
            let mut begin = clock::now();
            send(&mut host, store(second, LEN)).await;
            send(&mut host, exist(third)).await;
            answered(&mut host, third).await;
            assert!(host.moves.is_leaving());
            if is_asked_again {
                wait(Nanos(LEAVE_MAX.0 / 2)).await;
                host.moves.clear();
                host.moves.ask();
                begin = clock::now();
                send(&mut host, exist(fourth)).await;
                answered(&mut host, fourth).await;
            }
            let tag = asked(&mut host, second).await;
            assert!(!host.moves.is_made(), "it stays");
            let took = clock::now() - begin;
            assert!((LEAVE_MAX..LEAVE_MAX + SHORT).contains(&took), "{took}");
            for (id, tag) in [(second, tag), (first, first_tag)] {
                host.give(id, tag, &data, LEN);
                host.flush().await;
                answered(&mut host, id).await;
            }
            wait(SHORT).await;
        }
        assert_eq!(host.ended.get(), None);
    });
}

/// The connection does not read while it waits for the commands in flight.
#[test]
fn connection_whose_commands_take_long_stays() {
    run(async {
        let mut host = connected().await;
        let long = Nanos::from_secs(1);
        host.shelf.delay.set(long);
        let begin = clock::now();
        send(&mut host, exist(1)).await;
        wait(SHORT).await;
        host.moves.ask();
        send(&mut host, exist(2)).await;
        wait(SHORT).await;
        host.shelf.delay.set(Nanos::ZERO);
        send(&mut host, exist(3)).await;
        wait(SHORT).await;
        assert!(host.moves.is_leaving());
        assert_eq!(*host.shelf.came.borrow(), [1, 2], "the third is not read");
        answered(&mut host, 3).await;
        let took = clock::now() - begin;
        assert!((LEAVE_MAX..LEAVE_MAX + Nanos::from_millis(30)).contains(&took), "{took}");
        assert!(!host.moves.is_made(), "it stays");
        answered(&mut host, 1).await;
        answered(&mut host, 2).await;
        assert!(clock::now() - begin >= long);
    });
}

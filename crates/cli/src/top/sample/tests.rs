use super::*;
use node::server::{NamespaceStatus, QueueStatus, ServerStatus, SubsystemStatus};

const PAIRS: &str = "nqn.2026-11.com.example:pairs";

fn work(reads: u64, writes: u64, others: u64) -> WorkStatus {
    WorkStatus {
        commands: reads + writes + others,
        reads,
        writes,
        bytes_read: reads * 4_096,
        bytes_written: writes * 100,
    }
}

fn association(host: &str, controller: u16, seconds: u64, work: WorkStatus) -> AssociationStatus {
    let queue = |id, in_flight| QueueStatus { id, depth: 128, in_flight };
    AssociationStatus {
        subsystem: PAIRS.to_owned(),
        controller,
        host: host.to_owned(),
        address: Some("192.0.2.7:50000".to_owned()),
        connected_ns: seconds * 1_000_000_000,
        work,
        memory_bytes: 0,
        queues: vec![queue(0, 4), queue(1, 3), queue(2, 9)],
    }
}

/// A server that has been up for so long, with a device that did `work`.
fn status(uptime_ms: u64, work: WorkStatus, associations: Vec<AssociationStatus>) -> Status {
    Status {
        server: ServerStatus {
            version: "1.2.3".to_owned(),
            uptime_ns: uptime_ms * 1_000_000,
            connections: 6,
            connections_refused: 0,
        },
        subsystems: vec![SubsystemStatus { nqn: PAIRS.to_owned(), device: "fast".to_owned() }],
        devices: vec![DeviceStatus {
            name: "fast".to_owned(),
            namespaces: vec![NamespaceStatus { nsid: 1, kind: "kv".to_owned(), bytes: 1 << 30 }],
            work,
            flash_bytes_programmed: None,
            write_amplification: Some(1.25),
            flash_bytes_read: None,
            read_amplification: Some(1.5),
            space_amplification: None,
            scrub: None,
            cache: None,
            redis: None,
        }],
        associations,
        reactors: vec![ReactorStatus {
            busy_ns: uptime_ms * 250_000,
            idle_ns: uptime_ms * 750_000,
            connections: 6,
            bytes_received: 0,
            bytes_sent: 0,
            commands: 0,
        }],
    }
}

fn sample(before: &Status, after: &Status) -> Sample {
    Sample::of(([192, 0, 2, 1], 8_420).into(), before, after)
}

/// Of the first host, in a second.
fn reads(before: &Status, after: &Status) -> u64 {
    crate::number::to_u64(sample(before, after).hosts[0].rates.reads)
}

/// What [`super::super::view`] is shown by: an interval of half a second.
pub(in super::super) fn busy() -> Sample {
    let host = "nqn.2014-08.org.nvmexpress:uuid:8d1b2c3e-0000-4000-8000-000000000001";
    let before = vec![association("nqn.quiet", 1, 9, work(5, 5, 5))];
    let mut busy = association(host, 2, 0, work(1_000, 500, 50));
    busy.memory_bytes = 3 << 20;
    let after = vec![association("nqn.quiet", 1, 9, work(5, 5, 5)), busy];
    let before = status(90_000_000, work(5, 5, 5), before);
    let after = status(90_000_500, work(1_005, 505, 55), after);
    sample(&before, &after)
}

#[test]
fn rates_are_differences_over_the_servers_own_time() {
    let busy = busy();
    assert_eq!((busy.uptime_seconds, busy.interval_seconds), (90_000.5, 0.5));
    let rates = Rates {
        operations: 3_100.0,
        reads: 2_000.0,
        writes: 1_000.0,
        bytes_read: 2_000.0 * 4_096.0,
        bytes_written: 100_000.0,
    };
    assert_eq!((busy.rates, busy.devices[0].rates), (rates, rates));
    // It came in this interval, and is the busiest.
    assert_eq!((busy.hosts[0].controller, busy.hosts[0].rates), (2, rates));
    assert_eq!((&busy.hosts[1].host[..], busy.hosts[1].rates), ("nqn.quiet", Rates::default()));
    // Requests for events do not count.
    assert_eq!((busy.hosts[0].queues, busy.hosts[0].in_flight), (3, 12));
    assert!((busy.reactors[0].busy_percent - 25.0).abs() < 1e-9);
}

#[test]
fn who_comes_again_by_the_id_of_another_begins_with_nothing() {
    let before = status(1_000, work(0, 0, 0), vec![association("nqn.a", 1, 100, work(90, 0, 0))]);
    for (host, seconds) in [("nqn.a", 1), ("nqn.b", 200)] {
        let again = association(host, 1, seconds, work(100, 0, 0));
        let after = status(2_000, work(0, 0, 0), vec![again]);
        assert_eq!(reads(&before, &after), 100, "{host}");
    }
    let same = association("nqn.a", 1, 101, work(100, 0, 0));
    let after = status(2_000, work(0, 0, 0), vec![same]);
    assert_eq!(reads(&before, &after), 10);
}

#[test]
fn a_server_that_was_started_anew_is_counted_from_its_start() {
    let before = status(60_000, work(900, 0, 0), Vec::new());
    let after = status(2_000, work(10, 0, 0), Vec::new());
    let sample = sample(&before, &after);
    assert_eq!((sample.interval_seconds, sample.rates.reads), (2.0, 5.0));
    assert!((sample.reactors[0].busy_percent - 25.0).abs() < 1e-9);
}

#[test]
fn in_no_time_nothing_is_done() {
    let same = status(60_000, work(900, 0, 0), Vec::new());
    assert_eq!(sample(&same, &same).rates, Rates::default());
}

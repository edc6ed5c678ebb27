use super::*;
use node::server::{
    CacheStatus, ClientStatus, LongPollStatus, NamespaceStatus, QueueStatus, RedisStatus,
    ServerStatus, StagesStatus, SubsystemStatus, TenantStatus,
};

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

/// A client that connected this many seconds ago.
pub(in super::super) fn client(id: u64, name: &str, seconds: u64, commands: u64) -> ClientStatus {
    ClientStatus {
        id,
        address: format!("192.0.2.8:{}", 40_000 + id),
        name: name.to_owned(),
        user: "default".to_owned(),
        database: 3,
        connected_ns: seconds * 1_000_000_000,
        commands,
        buffered_bytes: id * 1_024,
    }
}

fn redis(commands: u64, busiest: Vec<ClientStatus>) -> RedisStatus {
    RedisStatus {
        clients: 1_234,
        connections: 5_000,
        commands,
        bytes_received: commands * 1_000,
        bytes_sent: commands * 10_000,
        refused: 0,
        query_overruns: 0,
        output_overruns: 0,
        busiest,
    }
}

/// Two answers, half a second apart, of a server with a Redis listener.
fn with_clients(before: Vec<ClientStatus>, after: Vec<ClientStatus>) -> Sample {
    let mut then = status(60_000, work(5, 5, 5), Vec::new());
    let mut now = status(60_500, work(5, 5, 5), Vec::new());
    then.devices[0].redis = Some(redis(100, before));
    then.devices[0].cache = Some(CacheStatus { hits: 50, misses: 50, bytes: 1 });
    now.devices[0].redis = Some(redis(1_100, after));
    now.devices[0].cache = Some(CacheStatus { hits: 650, misses: 250, bytes: 1 });
    sample(&then, &now)
}

/// The sample that [`super::super::view`] shows for Redis clients.
pub(in super::super) fn with_redis() -> Sample {
    let before = vec![client(1, "quiet", 9, 7), client(2, "app", 9, 100)];
    let after = vec![
        client(1, "quiet", 9, 7),
        client(2, "app", 9, 1_050),
        client(3, "\u{1b}[2Jx\ny", 0, 50),
        client(4, "", 90, 1_000_000),
    ];
    with_clients(before, after)
}

/// A server with this uptime, and a device that did `work`.
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
            stages: StagesStatus {
                receive_ns: uptime_ms * 100_000,
                kv_ns: uptime_ms * 80_000,
                submit_ns: uptime_ms * 40_000,
                complete_ns: uptime_ms * 20_000,
                background_ns: uptime_ms * 10_000,
            },
            idle_ns: uptime_ms * 750_000,
            connections: 6,
            in_flight: 12,
            bytes_received: 0,
            bytes_sent: 0,
            commands: uptime_ms * 6,
            redis_commands: uptime_ms * 4,
            bytes_stored: uptime_ms * 2_500,
            extents_cleaned: uptime_ms / 5,
            records_moved: uptime_ms / 2,
            records_entered: 0,
            table_pages_written: 0,
            bytes_scrubbed: 0,
            commands_diverted: uptime_ms * 3,
            connections_moved: uptime_ms / 100,
            lock_waits: uptime_ms * 3,
            lock_wait_ns: uptime_ms * 12_000,
            redis_clients: 0,
            long_polls: vec![long_polls("cleaner", uptime_ms), long_polls("scrub", uptime_ms / 2)],
        }],
        tenants: Vec::new(),
        fairness: None,
    }
}

fn long_polls(name: &str, count: u64) -> LongPollStatus {
    let (longest_ns, total_ns) = (200_000, count * 150_000);
    LongPollStatus { name: name.to_owned(), count, longest_ns, total_ns }
}

fn sample(before: &Status, after: &Status) -> Sample {
    Sample::of(([192, 0, 2, 1], 8_420).into(), before, after)
}

/// Reads of the first host per second.
fn reads(before: &Status, after: &Status) -> u64 {
    crate::number::to_u64(sample(before, after).hosts[0].rates.reads)
}

/// The sample that [`super::super::view`] shows: an interval of half a second.
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
    // It connected in this interval, and is the busiest.
    assert_eq!((busy.hosts[0].controller, busy.hosts[0].rates), (2, rates));
    assert_eq!((&busy.hosts[1].host[..], busy.hosts[1].rates), ("nqn.quiet", Rates::default()));
    // Event requests (AER) do not count.
    assert_eq!((busy.hosts[0].queues, busy.hosts[0].in_flight), (3, 12));
    let reactor = busy.reactors[0];
    assert!((reactor.busy_percent - 25.0).abs() < 1e-9);
    let StagesSample { receive, kv, submit, complete, background } = reactor.stage_percent;
    let stages = [receive, kv, submit, complete, background];
    let expected = [10.0, 8.0, 4.0, 2.0, 1.0];
    assert!(stages.iter().zip(expected).all(|(it, other)| (it - other).abs() < 1e-9), "{stages:?}");
    assert_eq!(reactor.in_flight, 12);
    // Of all names: 500 and 250 in this interval of 500 ms.
    assert_eq!(reactor.long_polls, 750);
    // Six I/O commands and four Redis commands each millisecond.
    assert_eq!(reactor.commands_per_second.to_bits(), 10_000.0_f64.to_bits());
    assert_eq!(reactor.commands_diverted_per_second.to_bits(), 3_000.0_f64.to_bits());
    assert_eq!(reactor.bytes_stored_per_second.to_bits(), 2.5e6_f64.to_bits());
    assert_eq!((reactor.extents_cleaned, reactor.records_moved), (100, 250));
    assert_eq!(reactor.connections_moved, 5);
    assert_eq!(reactor.lock_waits, 1_500);
    assert!((reactor.lock_wait_percent - 1.2).abs() < 1e-9);
}

#[test]
fn an_association_that_reuses_an_id_starts_at_zero() {
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

#[test]
fn clients_of_redis_are_counted_by_device_and_each_the_busiest_first() {
    let sample = with_redis();
    let redis = sample.devices[0].redis.as_ref().expect("it has a door");
    assert_eq!((&redis.device[..], redis.clients), ("fast", 1_234));
    assert_eq!(redis.commands_per_second.to_bits(), 2_000.0_f64.to_bits());
    assert_eq!(redis.bytes_received_per_second.to_bits(), 2e6_f64.to_bits());
    assert_eq!(redis.bytes_sent_per_second.to_bits(), 2e7_f64.to_bits());
    // No host did anything: the rates are those of the clients.
    let rates =
        Rates { operations: 2_000.0, bytes_read: 2e7, bytes_written: 2e6, ..Rates::default() };
    assert_eq!((sample.rates, sample.devices[0].rates), (rates, rates));
    // 600 of 800 values requested in the interval.
    assert_eq!(redis.cache_hit_percent, Some(75.0));
    let rates = sample.redis_clients.iter();
    let rates: Vec<_> = rates.map(|it| (&it.address[..], it.commands_per_second)).collect();
    // The third connected in this interval; the earlier counters of the fourth are unknown.
    let expected = [
        ("192.0.2.8:40002", Some(1_900.0)),
        ("192.0.2.8:40003", Some(100.0)),
        ("192.0.2.8:40001", Some(0.0)),
        ("192.0.2.8:40004", None),
    ];
    assert_eq!(rates, expected);
}

#[test]
fn a_device_without_a_door_has_no_figures_of_redis() {
    let sample = busy();
    assert_eq!((&sample.devices[0].redis, sample.redis_clients.len()), (&None, 0));
}

#[test]
fn a_server_that_was_started_anew_has_other_clients() {
    let mut before = status(60_000, work(0, 0, 0), Vec::new());
    let mut after = status(500, work(0, 0, 0), Vec::new());
    before.devices[0].redis = Some(redis(9_000, vec![client(1, "", 9, 5_000)]));
    after.devices[0].redis = Some(redis(10, vec![client(1, "", 0, 10)]));
    let sample = sample(&before, &after);
    assert_eq!(sample.redis_clients[0].commands_per_second, Some(20.0));
    let redis = sample.devices[0].redis.as_ref().expect("it has a door");
    assert_eq!(redis.commands_per_second.to_bits(), 20.0_f64.to_bits());
}

/// A tenant of this weight that was busy for so many milliseconds, with a request in each.
fn tenant(name: &str, weight: u32, busy_ms: u64) -> TenantStatus {
    TenantStatus {
        name: name.to_owned(),
        weight,
        requests_per_second: Some(5_000),
        bytes_per_second: None,
        requests: busy_ms,
        bytes: busy_ms * 1_000,
        busy_ns: busy_ms * 1_000_000,
        waited_share_ns: busy_ms * 2_000_000,
        waited_limit_ns: busy_ms * 500_000,
    }
}

/// The sample of two tenants: an interval of half a second.
pub(in super::super) fn with_tenants() -> Sample {
    let mut before = status(90_000_000, work(5, 5, 5), Vec::new());
    let mut after = status(90_000_500, work(5, 5, 5), Vec::new());
    before.tenants = vec![tenant("team", 3, 100), tenant("default", 1, 50)];
    after.tenants = vec![tenant("team", 3, 400), tenant("default", 1, 150)];
    sample(&before, &after)
}

#[test]
fn tenants_have_rates_and_a_fairness() {
    let sample = with_tenants();
    let expected = TenantSample {
        name: "team".to_owned(),
        weight: 3,
        requests_per_second: 600.0,
        bytes_per_second: 600_000.0,
        busy_percent: 60.0,
        waiting_for_share: 1.2,
        waiting_for_limit: 0.3,
        limit_requests_per_second: Some(5_000),
        limit_bytes_per_second: None,
    };
    assert_eq!(sample.tenants[0], expected);
    // 300 ms by 3, and 100 ms by 1.
    assert_eq!(sample.fairness, Some(1.0));
}

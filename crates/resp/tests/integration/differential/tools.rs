//! INFO and COMMAND LIST: figures of keys, and what tools read.

use crate::differential::answer::Answer;
use crate::differential::ours::{self, door, pass};
use crate::differential::redis::Redis;
use crate::differential::seen::{figures, line, members, sorted};
use reactor::Reactor;

/// After each of these as many keys were found, and missed, as by Redis.
const LOOKUPS: &str = "
get a
get nosuch
get h
mget a nosuch b
exists a a nosuch
touch a nosuch
strlen a
strlen nosuch
getrange a 0 1
type a
type h
type nosuch
ttl a
pexpiretime nosuch
hget h f
hget h nosuch
hget nosuch f
hget a f
hlen h
hgetall nosuch
hrandfield h 2
hscan h 0
zscore z m
zscore nosuch m
zrange z 0 -1
zcard a
zcount nosuch 0 1
set a 2
set a 3 get
set c 3 get
set d 1 nx
getset a 4
getdel c
getdel c
getex a
getex c
incr a
append a x
hset h f 2
hdel h nosuch
zadd z 2 m
expire a 100
expire nosuch 100
persist a
rename b bb
copy bb b
copy nosuch b
object encoding b
object encoding nosuch
del a nosuch
";

/// Lines of INFO that exporters and tools with windows read.
const READ_BY_EXPORTERS: [&str; 31] = [
    "role",
    "connected_clients",
    "blocked_clients",
    "cluster_connections",
    "maxclients",
    "used_memory",
    "used_memory_human",
    "maxmemory",
    "maxmemory_policy",
    "evicted_keys",
    "expired_keys",
    "keyspace_hits",
    "keyspace_misses",
    "total_net_input_bytes",
    "total_net_output_bytes",
    "instantaneous_ops_per_sec",
    "instantaneous_input_kbps",
    "instantaneous_output_kbps",
    "total_connections_received",
    "total_commands_processed",
    "rejected_connections",
    "connected_slaves",
    "master_repl_offset",
    "rdb_last_save_time",
    "rdb_last_bgsave_status",
    "aof_last_write_status",
    "uptime_in_seconds",
    "cluster_enabled",
    "pubsub_channels",
    "pubsub_patterns",
    "latest_fork_usec",
];

/// The number of a line of INFO.
fn figure(info: &Answer, name: &str) -> Option<u64> {
    let lines = figures(info, &format!("{name}:"));
    lines.first()?.trim_start_matches(name).trim_start_matches(':').trim().parse().ok()
}

#[test]
fn keys_that_are_found_and_missed_are_counted_as_by_redis() {
    let Some(server) = Redis::start("keyspace") else { return };
    Reactor::new(None).run(async {
        let door = door(1).await;
        let (mut theirs, mut ours) = (server.connect(), ours::Client::connect(&door, 1));
        for fill in ["flushall", "mset a 1 b 2", "hset h f 1 g 2", "zadd z 1 m", "config resetstat"]
        {
            theirs.ask(&line(fill), 1);
            ours.ask(&line(fill), 1).await;
        }
        let mut counted = [(0, 0), (0, 0)];
        for asked in LOOKUPS.lines().filter(|line| !line.is_empty()) {
            let answers = [theirs.ask(&line(asked), 1), ours.ask(&line(asked), 1).await];
            assert_eq!(sorted(&answers[0][0]), sorted(&answers[1][0]), "{asked}");
            let infos =
                [theirs.ask(&line("info stats"), 1), ours.ask(&line("info stats"), 1).await];
            let now = infos.map(|info| {
                let of = |name| figure(&info[0], name).expect(name);
                (of("keyspace_hits"), of("keyspace_misses"))
            });
            assert_eq!(now[0], now[1], "hits and misses after {asked}, {counted:?} before");
            counted = now;
        }
        // Those that come together too.
        let together = [line("get bb").repeat(20), line("get nosuch").repeat(5)].concat();
        theirs.ask(&together, 25);
        ours.ask(&together, 25).await;
        let redis = theirs.ask(&line("info stats"), 1);
        let kvasir = ours.ask(&line("info stats"), 1).await;
        for name in ["keyspace_hits", "keyspace_misses", "evicted_keys", "expired_keys"] {
            let (theirs, ours) = (figure(&redis[0], name), figure(&kvasir[0], name));
            assert!(ours.is_some() && theirs == ours, "{name}: {theirs:?} {ours:?}");
        }
    });
}

/// What exporters look for.
#[test]
fn info_has_the_lines_that_exporters_read() {
    let Some(server) = Redis::start("exporters") else { return };
    Reactor::new(None).run(async {
        let door = door(1).await;
        let (mut theirs, mut ours) = (server.connect(), ours::Client::connect(&door, 1));
        for fill in ["flushall", "set a 1", "set b 1 ex 100", "hset h f 1", "pexpire h 90000"] {
            theirs.ask(&line(fill), 1);
            ours.ask(&line(fill), 1).await;
        }
        let redis = theirs.ask(&line("info all"), 1);
        let kvasir = ours.ask(&line("info all"), 1).await;
        for name in READ_BY_EXPORTERS {
            let prefix = format!("{name}:");
            let lines = [&redis[0], &kvasir[0]].map(|info| figures(info, &prefix).len());
            assert_eq!(lines, [1, 1], "{name}");
        }
        let keys = |info: &Answer| {
            let lines = figures(info, "db0:");
            lines[0].split(",avg_ttl").next().map(str::to_owned)
        };
        assert_eq!(keys(&redis[0]), Some("db0:keys=3,expires=2".to_owned()));
        assert_eq!(keys(&redis[0]), keys(&kvasir[0]));
    });
}

#[test]
fn names_of_commands_are_among_those_of_redis() {
    let Some(server) = Redis::start("names") else { return };
    Reactor::new(None).run(async {
        let door = door(1).await;
        let (mut theirs, mut ours) = (server.connect(), ours::Client::connect(&door, 1));
        for asked in [
            "command list",
            "command list filterby aclcat hash",
            "command list filterby aclcat sortedset",
            "command list filterby pattern *|l*",
        ] {
            let (redis, kvasir) = (theirs.ask(&line(asked), 1), ours.ask(&line(asked), 1).await);
            let theirs: Vec<String> = members(&redis[0]).iter().map(Answer::to_string).collect();
            let names = members(&kvasir[0]).iter().map(Answer::to_string);
            // These two came with Redis 7.2.
            let names = names.filter(|name| {
                !name.contains("client|setinfo") && !name.contains("client|no-touch")
            });
            let unknown: Vec<String> = names.filter(|name| !theirs.contains(name)).collect();
            assert!(!members(&kvasir[0]).is_empty());
            assert_eq!(unknown, Vec::<String>::new(), "{asked}");
        }
    });
}

#[test]
fn keys_that_have_expired_do_not_count() {
    Reactor::new(None).run(async {
        let door = door(1).await;
        let mut ours = ours::Client::connect(&door, 1);
        for asked in ["set a 1 px 50", "set b 1", "hset h f 1", "pexpire h 50", "set c 1 px 900"] {
            ours.ask(&line(asked), 1).await;
        }
        assert_eq!(ours.ask(&line("dbsize"), 1).await, [Answer::Integer(4)]);
        pass(150).await;
        assert_eq!(ours.ask(&line("dbsize"), 1).await, [Answer::Integer(2)]);
        let info = ours.ask(&line("info all"), 1).await;
        assert_eq!(figure(&info[0], "expired_keys"), Some(2));
        assert_eq!(figures(&info[0], "db0:"), ["db0:keys=2,expires=1,avg_ttl=0"]);
    });
}

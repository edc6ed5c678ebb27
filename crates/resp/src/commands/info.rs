use super::connection::REDIS_VERSION;
use super::server::{expires_of, keys_of};
use crate::call::{Call, Functions};
use crate::door::Door;
use crate::failure::{Failure, Outcome};
use crate::numbering::CommandNumber;
use crate::reply::Reply;
use crate::tally::Told;
use base::Nanos;
use std::fmt::Write;
use std::future::ready;
use std::sync::atomic::Ordering::Relaxed;

pub(crate) const FUNCTIONS: Functions = &[("info", |mut call| Box::pin(ready(info(&mut call))))];

/// A section: its name, whether it is told to who does not ask for it, and its lines.
type Section = (&'static str, bool, fn(&Door) -> Result<String, Failure>);

const SECTIONS: [Section; 13] = [
    ("Server", true, |door| Ok(server(door))),
    ("Clients", true, |door| Ok(clients(door))),
    ("Memory", true, |door| Ok(memory(door))),
    ("Persistence", true, |door| Ok(persistence(door))),
    ("Stats", true, |door| Ok(stats(door))),
    ("Replication", true, |_| Ok(REPLICATION.to_owned())),
    ("CPU", true, |door| Ok(cpu(door))),
    ("Modules", true, |_| Ok(String::new())),
    ("Commandstats", false, |door| Ok(commands(door))),
    ("Errorstats", true, |door| Ok(errors(door))),
    ("Latencystats", false, |door| Ok(latencies(door))),
    ("Cluster", true, |_| Ok("cluster_enabled:0\r\n".to_owned())),
    ("Keyspace", true, keyspace),
];

/// There are no replicas.
const REPLICATION: &str = "role:master\r\nconnected_slaves:0\r\nmaster_repl_offset:0\r\n";

fn info(call: &mut Call<'_>) -> Outcome {
    let is_asked = |name: &str| {
        let mut asked = call.request.rest(1);
        asked.any(|one| one.eq_ignore_ascii_case(name.as_bytes()))
    };
    let all = is_asked("all") || is_asked("everything");
    let default = call.request.len() == 1 || is_asked("default");
    let mut texts = Vec::new();
    for (name, is_default, lines) in SECTIONS {
        if all || default && is_default || is_asked(name) {
            texts.push(format!("# {name}\r\n{}", lines(call.door)?));
        }
    }
    Ok(Reply::Verbatim(texts.join("\r\n")))
}

fn server(door: &Door) -> String {
    let up = clock::now().0.saturating_sub(door.started().0) / 1_000_000_000;
    let version = env!("CARGO_PKG_VERSION");
    let micros = clock::host_unix_now().0 * 1_000;
    let process = door.process().map(|process| format!("process_id:{}\r\n", process.id));
    let process = process.unwrap_or_default();
    format!(
        "redis_version:{REDIS_VERSION}\r\nredis_mode:standalone\r\nkvasir_version:{version}\r\n\
         arch_bits:64\r\n{process}server_time_usec:{micros}\r\nuptime_in_seconds:{up}\r\n\
         uptime_in_days:{}\r\n",
        up / 86_400
    )
}

fn clients(door: &Door) -> String {
    let clients = door.clients();
    let most = |of: fn(&crate::wire::Wire) -> usize| {
        clients.values().map(|client| of(&client.wire)).max().unwrap_or(0)
    };
    let (input, output) = (
        most(|wire| wire.query_memory.load(Relaxed)),
        most(|wire| wire.output_bytes.load(Relaxed)),
    );
    format!(
        "connected_clients:{}\r\nmaxclients:{}\r\nclient_recent_max_input_buffer:{input}\r\n\
         client_recent_max_output_buffer:{output}\r\nblocked_clients:0\r\ntracking_clients:0\r\n\
         cluster_connections:0\r\n",
        clients.len(),
        door.parameters().clients_max(),
    )
}

fn memory(door: &Door) -> String {
    let (usage, cache) = (door.store().usage(), door.store().cache_counts());
    let (live, capacity) = (door.store().live_pairs().bytes, door.store().capacity_bytes());
    let of_clients: usize = door.clients().values().map(crate::door::Client::held_bytes).sum();
    let used = usage.index_bytes + cache.bytes + of_clients as u64;
    let resident = door.process().map(|process| process.resident_bytes).map(|bytes| {
        let (whole, rest) = hundredths(bytes, used);
        format!(
            "used_memory_rss:{bytes}\r\nused_memory_rss_human:{}\r\n\
             mem_fragmentation_ratio:{whole}.{rest:02}\r\n",
            human(bytes)
        )
    });
    format!(
        "used_memory:{used}\r\nused_memory_human:{}\r\n{}\
         mem_clients_normal:{of_clients}\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n\
         index_bytes:{}\r\nindex_entries:{}\r\n\
         value_bytes:{live}\r\ncapacity_bytes:{capacity}\r\ncache_bytes:{}\r\n",
        human(used),
        resident.unwrap_or_default(),
        usage.index_bytes,
        usage.index_entries,
        cache.bytes
    )
}

/// A quotient in whole numbers and hundredths.
fn hundredths(dividend: u64, divisor: u64) -> (u64, u64) {
    let hundredths = dividend.saturating_mul(100) / divisor.max(1);
    (hundredths / 100, hundredths % 100)
}

/// A number of bytes for people, as Redis writes it: 1.50K.
fn human(bytes: u64) -> String {
    let units = [("T", 1 << 40), ("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)];
    let unit = units.into_iter().find(|(_, unit)| bytes >= *unit);
    unit.map_or_else(
        || format!("{bytes}B"),
        |(name, unit)| {
            let (whole, rest) = hundredths(bytes, unit);
            format!("{whole}.{rest:02}{name}")
        },
    )
}

/// There is a log, but none that is another copy: the drive itself.
fn persistence(door: &Door) -> String {
    let durability = door.settings().durability;
    format!(
        "loading:0\r\nrdb_bgsave_in_progress:0\r\naof_enabled:0\r\naof_rewrite_in_progress:0\r\n\
         rdb_last_save_time:{}\r\nrdb_last_bgsave_status:ok\r\naof_last_write_status:ok\r\n\
         durability:{durability}\r\n",
        clock::host_unix_now().0 / 1_000
    )
}

/// Of the children of Redis there are none here.
fn cpu(door: &Door) -> String {
    let Some(process) = door.process() else { return String::new() };
    let mut lines = String::new();
    for (name, time) in [
        ("sys", process.system),
        ("user", process.user),
        ("sys_children", Nanos(0)),
        ("user_children", Nanos(0)),
    ] {
        let (seconds, micros) = (time.0 / 1_000_000_000, time.0 / 1_000 % 1_000_000);
        line(&mut lines, format_args!("used_cpu_{name}:{seconds}.{micros:06}"));
    }
    lines
}

fn stats(door: &Door) -> String {
    let (counters, cache) = (door.counters(), door.store().cache_counts());
    let [commands, read, written] = door.rates().per_second();
    let errors: u64 = door.watcher().errors().values().sum();
    let mut lines = String::new();
    let figures = [
        ("total_connections_received", counters.connections()),
        ("total_commands_processed", counters.commands()),
        ("instantaneous_ops_per_sec", commands),
        ("total_net_input_bytes", counters.read_bytes()),
        ("total_net_output_bytes", counters.written_bytes()),
        ("rejected_connections", counters.refused()),
        ("client_query_buffer_limit_disconnections", counters.query_overruns()),
        ("client_output_buffer_limit_disconnections", counters.output_overruns()),
        ("expired_keys", door.store().expired_since_opening()),
        ("evicted_keys", 0),
        ("keyspace_hits", counters.keyspace_hits()),
        ("keyspace_misses", counters.keyspace_misses()),
        ("pubsub_channels", 0),
        ("pubsub_patterns", 0),
        ("latest_fork_usec", 0),
        ("total_error_replies", errors),
        ("copied_value_bytes", counters.copied_bytes()),
        ("write_executions", counters.executions()),
        ("write_batches", counters.batches()),
        ("cache_hits", cache.hits),
        ("cache_misses", cache.misses),
    ];
    for (name, figure) in figures {
        line(&mut lines, format_args!("{name}:{figure}"));
    }
    for (name, rate) in [("input", read), ("output", written)] {
        let (whole, rest) = hundredths(rate, 1_024);
        line(&mut lines, format_args!("instantaneous_{name}_kbps:{whole}.{rest:02}"));
    }
    lines
}

fn line(lines: &mut String, line: std::fmt::Arguments<'_>) {
    write!(lines, "{line}\r\n").expect("a text takes all");
}

/// All commands that were asked for.
fn told(door: &Door) -> impl Iterator<Item = (&'static str, Told)> {
    let all = CommandNumber::all();
    let all = all.map(|number| (number.name(), door.watcher().tallies.get(number)));
    all.filter(|(_, told)| told.calls + told.rejected > 0)
}

fn commands(door: &Door) -> String {
    let mut lines = String::new();
    for (name, Told { calls, micros, failed, rejected, .. }) in told(door) {
        let (whole, rest) = hundredths(micros, calls);
        line(
            &mut lines,
            format_args!(
                "cmdstat_{name}:calls={calls},usec={micros},usec_per_call={whole}.{rest:02},\
                 rejected_calls={rejected},failed_calls={failed}"
            ),
        );
    }
    lines
}

fn errors(door: &Door) -> String {
    let mut lines = String::new();
    for (word, count) in door.watcher().errors() {
        line(&mut lines, format_args!("errorstat_{word}:count={count}"));
    }
    lines
}

/// Times are told apart by powers of two: these are the ends of the spans that they are in.
fn latencies(door: &Door) -> String {
    let mut lines = String::new();
    for (name, told) in told(door).filter(|(_, told)| told.calls > 0) {
        let [half, most, nearly_all] = [500, 990, 999].map(|per_mille| told.within(per_mille));
        let text = format_args!("p50={half}.000,p99={most}.000,p99.9={nearly_all}.000");
        line(&mut lines, format_args!("latency_percentiles_usec_{name}:{text}"));
    }
    lines
}

fn keyspace(door: &Door) -> Result<String, Failure> {
    let mut lines = String::new();
    for database in 0..door.settings().databases {
        let keys = keys_of(door, Door::space(database))?;
        if keys > 0 {
            let expires = expires_of(door, Door::space(database))?;
            let text = format_args!("db{database}:keys={keys},expires={expires},avg_ttl=0");
            line(&mut lines, text);
        }
    }
    Ok(lines)
}

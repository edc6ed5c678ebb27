//! The status of a server in the text format of Prometheus, version 0.0.4.

use super::status::{DeviceStatus, LongPollStatus, ReactorStatus, ServerStatus, Status};
use super::tenant_status::TenantStatus;
use std::fmt::Write;

/// Content type of `/metrics`.
pub(super) const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

#[derive(Clone, Copy)]
enum Kind {
    /// It only grows.
    Counter,
    Gauge,
}

/// A metric of each element of a list: its name, kind, help text and accessor. The accessor returns
/// `None` if an element has no value.
type Figure<T> = (&'static str, Kind, &'static str, fn(&T) -> Option<f64>);

const OF_SERVER: &[Figure<ServerStatus>] = &[
    ("uptime_seconds", Kind::Gauge, "Time since the start", |it| Some(seconds(it.uptime_ns))),
    ("connections", Kind::Gauge, "Connections of NVMe hosts", |it| number(it.connections)),
    ("connections_refused_total", Kind::Counter, "Connections refused by the limit", |it| {
        number(it.connections_refused)
    }),
];

const OF_DEVICE: &[Figure<DeviceStatus>] = &[
    ("device_commands_total", Kind::Counter, "I/O commands of NVMe hosts", |it| {
        number(it.work.commands)
    }),
    ("device_reads_total", Kind::Counter, "I/O commands that read", |it| number(it.work.reads)),
    ("device_writes_total", Kind::Counter, "I/O commands that wrote", |it| number(it.work.writes)),
    ("device_read_bytes_total", Kind::Counter, "Bytes that NVMe hosts read", |it| {
        number(it.work.bytes_read)
    }),
    ("device_written_bytes_total", Kind::Counter, "Bytes that NVMe hosts wrote", |it| {
        number(it.work.bytes_written)
    }),
    ("flash_programmed_bytes_total", Kind::Counter, "Bytes written to the flash or disk", |it| {
        it.flash_bytes_programmed.and_then(number)
    }),
    ("flash_read_bytes_total", Kind::Counter, "Bytes read from the flash or disk", |it| {
        it.flash_bytes_read.and_then(number)
    }),
    ("space_amplification", Kind::Gauge, "Bytes in use for each byte of live pairs", |it| {
        it.space_amplification
    }),
    ("scrub_read_bytes_total", Kind::Counter, "Bytes read by the scrubber", |it| {
        number(it.scrub?.bytes)
    }),
    ("scrub_damaged_pages_total", Kind::Counter, "Damaged pages found by the scrubber", |it| {
        number(it.scrub?.damaged)
    }),
    ("cache_hits_total", Kind::Counter, "Values returned from memory", |it| number(it.cache?.hits)),
    ("cache_misses_total", Kind::Counter, "Values that were not in memory", |it| {
        number(it.cache?.misses)
    }),
    ("cache_bytes", Kind::Gauge, "Memory of cached values", |it| number(it.cache?.bytes)),
    ("redis_clients", Kind::Gauge, "Clients of the Redis protocol", |it| {
        number(it.redis.as_ref()?.clients)
    }),
    ("redis_connections_total", Kind::Counter, "Redis clients since the start", |it| {
        number(it.redis.as_ref()?.connections)
    }),
    ("redis_commands_total", Kind::Counter, "Commands of these clients", |it| {
        number(it.redis.as_ref()?.commands)
    }),
    ("redis_received_bytes_total", Kind::Counter, "Bytes that these clients sent", |it| {
        number(it.redis.as_ref()?.bytes_received)
    }),
    ("redis_sent_bytes_total", Kind::Counter, "Bytes that were sent to these clients", |it| {
        number(it.redis.as_ref()?.bytes_sent)
    }),
    ("redis_refused_total", Kind::Counter, "Redis clients refused by the limit", |it| {
        number(it.redis.as_ref()?.refused)
    }),
    (
        "redis_query_overruns_total",
        Kind::Counter,
        "Redis clients closed by the request limit",
        |it| number(it.redis.as_ref()?.query_overruns),
    ),
    (
        "redis_output_overruns_total",
        Kind::Counter,
        "Redis clients closed for unread replies",
        |it| number(it.redis.as_ref()?.output_overruns),
    ),
];

const OF_REACTOR: &[Figure<ReactorStatus>] = &[
    ("reactor_busy_seconds_total", Kind::Counter, "Time spent working", |it| {
        Some(seconds(it.busy_ns))
    }),
    ("reactor_in_flight_commands", Kind::Gauge, "I/O commands in flight", |it| {
        number(it.in_flight)
    }),
    ("reactor_idle_seconds_total", Kind::Counter, "Time spent waiting", |it| {
        Some(seconds(it.idle_ns))
    }),
    ("reactor_redis_clients", Kind::Gauge, "Open connections of Redis clients", |it| {
        number(it.redis_clients)
    }),
    ("reactor_commands_total", Kind::Counter, "I/O commands that were executed", |it| {
        number(it.commands)
    }),
    ("reactor_redis_commands_total", Kind::Counter, "Redis commands that were executed", |it| {
        number(it.redis_commands)
    }),
    ("reactor_stored_bytes_total", Kind::Counter, "Bytes of stored keys and values", |it| {
        number(it.bytes_stored)
    }),
    ("reactor_cleaned_extents_total", Kind::Counter, "Extents that were cleaned", |it| {
        number(it.extents_cleaned)
    }),
    ("reactor_moved_records_total", Kind::Counter, "Records moved to clean extents", |it| {
        number(it.records_moved)
    }),
    ("reactor_entered_records_total", Kind::Counter, "Records entered at openings", |it| {
        number(it.records_entered)
    }),
    (
        "reactor_written_table_pages_total",
        Kind::Counter,
        "Pages of indexes and checkpoints",
        |it| number(it.table_pages_written),
    ),
    ("reactor_scrubbed_bytes_total", Kind::Counter, "Bytes read to scrub drives", |it| {
        number(it.bytes_scrubbed)
    }),
    (
        "reactor_diverted_commands_total",
        Kind::Counter,
        "Commands that the balancer had other cores execute",
        |it| number(it.commands_diverted),
    ),
    (
        "reactor_moved_connections_total",
        Kind::Counter,
        "Open connections given to other cores",
        |it| number(it.connections_moved),
    ),
    ("reactor_lock_waits_total", Kind::Counter, "Locks that another reactor held", |it| {
        number(it.lock_waits)
    }),
    ("reactor_lock_wait_seconds_total", Kind::Counter, "Time of waits for these locks", |it| {
        Some(seconds(it.lock_wait_ns))
    }),
];

/// Of the time of a stage, in nanoseconds.
const OF_STAGE: &[Figure<u64>] =
    &[("reactor_stage_seconds_total", Kind::Counter, "Time spent working, by stage", |it| {
        Some(seconds(*it))
    })];

const OF_LONG_POLLS: &[Figure<LongPollStatus>] = &[
    ("long_polls_total", Kind::Counter, "Polls of tasks above 100 us of CPU time", |it| {
        number(it.count)
    }),
    ("long_poll_seconds_total", Kind::Counter, "CPU time of these polls", |it| {
        Some(seconds(it.total_ns))
    }),
    ("longest_poll_seconds", Kind::Gauge, "CPU time of the longest of them", |it| {
        Some(seconds(it.longest_ns))
    }),
];

const OF_TENANT: &[Figure<TenantStatus>] = &[
    ("tenant_weight", Kind::Gauge, "Weight of the tenant", |it| Some(it.weight.into())),
    ("tenant_limit_requests_per_second", Kind::Gauge, "Limit of the tenant's requests", |it| {
        it.requests_per_second.and_then(number)
    }),
    ("tenant_limit_bytes_per_second", Kind::Gauge, "Limit of the tenant's bytes", |it| {
        it.bytes_per_second.and_then(number)
    }),
    ("tenant_requests_total", Kind::Counter, "Commands of the tenant's connections", |it| {
        number(it.requests)
    }),
    ("tenant_bytes_total", Kind::Counter, "Bytes received from and sent to the tenant", |it| {
        number(it.bytes)
    }),
    ("tenant_busy_seconds_total", Kind::Counter, "Time spent working for the tenant", |it| {
        Some(seconds(it.busy_ns))
    }),
    ("tenant_share_wait_seconds_total", Kind::Counter, "Waits for other connections", |it| {
        Some(seconds(it.waited_share_ns))
    }),
    ("tenant_limit_wait_seconds_total", Kind::Counter, "Waits for the tenant's limits", |it| {
        Some(seconds(it.waited_limit_ns))
    }),
];

const OF_TENANTS: &[Figure<Status>] =
    &[("tenant_fairness", Kind::Gauge, "Jain's index of the tenants' busy time by weight", |it| {
        it.fairness
    })];

#[expect(clippy::cast_precision_loss, reason = "the format has no other numbers")]
#[expect(clippy::unnecessary_wraps, reason = "as the figures that may be missing")]
fn number(number: u64) -> Option<f64> {
    Some(number as f64)
}

#[expect(clippy::cast_precision_loss, reason = "the format has no other numbers")]
fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

/// Returns the text for `status`.
pub(super) fn text(status: &Status) -> String {
    let mut text = String::new();
    let version = escaped(&status.server.version);
    text += "# HELP kvasir_info The program\n# TYPE kvasir_info gauge\n";
    writeln!(text, "kvasir_info{{version=\"{version}\"}} 1").expect("a text takes all");
    write_all(&mut text, OF_SERVER, &[(String::new(), &status.server)]);
    let devices = status.devices.iter();
    let label = |device: &DeviceStatus| format!("{{device=\"{}\"}}", escaped(&device.name));
    let devices: Vec<_> = devices.map(|device| (label(device), device)).collect();
    write_all(&mut text, OF_DEVICE, &devices);
    let reactors = status.reactors.iter().enumerate();
    let reactors: Vec<_> =
        reactors.map(|(at, reactor)| (format!("{{reactor=\"{at}\"}}"), reactor)).collect();
    write_all(&mut text, OF_REACTOR, &reactors);
    let times: Vec<_> = status.reactors.iter().map(|it| it.stages.named()).collect();
    let stages = times.iter().enumerate().flat_map(|(at, times)| {
        let label = move |name| format!("{{reactor=\"{at}\",stage=\"{name}\"}}");
        times.iter().map(move |(name, time)| (label(*name), time))
    });
    write_all(&mut text, OF_STAGE, &stages.collect::<Vec<_>>());
    let long_polls = status.reactors.iter().enumerate().flat_map(|(at, reactor)| {
        let label = move |name| format!("{{reactor=\"{at}\",task=\"{}\"}}", escaped(name));
        reactor.long_polls.iter().map(move |it| (label(&it.name), it))
    });
    write_all(&mut text, OF_LONG_POLLS, &long_polls.collect::<Vec<_>>());
    let label = |tenant: &TenantStatus| format!("{{tenant=\"{}\"}}", escaped(&tenant.name));
    let tenants: Vec<_> = status.tenants.iter().map(|it| (label(it), it)).collect();
    write_all(&mut text, OF_TENANT, &tenants);
    write_all(&mut text, OF_TENANTS, &[(String::new(), status)]);
    text
}

/// Writes each metric with the labels of all elements that have it.
fn write_all<T>(text: &mut String, figures: &[Figure<T>], all: &[(String, &T)]) {
    for (name, kind, help, value) in figures {
        let mut known = all.iter().filter_map(|(labels, it)| Some((labels, value(it)?))).peekable();
        if known.peek().is_none() {
            continue;
        }
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
        };
        writeln!(text, "# HELP kvasir_{name} {help}\n# TYPE kvasir_{name} {kind}")
            .expect("a text takes all");
        for (labels, it) in known {
            writeln!(text, "kvasir_{name}{labels} {it}").expect("a text takes all");
        }
    }
}

/// Escapes a label's value.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

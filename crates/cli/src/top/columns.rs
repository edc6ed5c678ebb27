//! Columns of the tables of hosts, clients, tenants, devices and reactors.

use super::redis::{ClientSample, RedisSample};
use super::sample::{DeviceSample, HostSample, Rates, ReactorSample, Sample};
use super::tenants::TenantSample;
use crate::number::{grouped, ratio, rounded};
use crate::output::in_one_line;
use base::human_bytes;

/// A column: its name, its width in terminal columns, its rank, and the function that formats its
/// cell.
pub(super) struct Column<T> {
    pub(super) name: &'static str,
    pub(super) width: u16,
    rank: u8,
    pub(super) text: fn(&T) -> String,
}

const fn column<T>(name: &'static str, width: u16, rank: u8, text: fn(&T) -> String) -> Column<T> {
    Column { name, width, rank, text }
}

/// The rank of a table's first column, which is always shown.
const NAME: u8 = u8::MAX;

/// Names are cut at the front: their ends differ.
const HOST_WIDTH: u16 = 21;
const SUBSYSTEM_WIDTH: u16 = 18;

/// Drops the lowest-ranked of `columns`, until all fit `width` with a blank between two.
fn fitting<T>(mut columns: Vec<Column<T>>, width: u16) -> Vec<Column<T>> {
    let needs = |columns: &[Column<T>]| -> u16 {
        columns.iter().map(|column| column.width + 1).sum::<u16>() - 1
    };
    while columns.len() > 1 && needs(&columns) > width {
        let least = columns.iter().enumerate().min_by_key(|(_, column)| column.rank);
        let (place, _) = least.expect("a table has columns");
        columns.remove(place);
    }
    columns
}

/// Returns the columns of hosts in a table of this width.
pub(super) fn of_hosts(width: u16) -> Vec<Column<HostSample>> {
    let columns = vec![
        column("host", HOST_WIDTH, NAME, |it: &HostSample| end(host(it), HOST_WIDTH)),
        column("address", 21, 1, |it| end(it.address.as_deref().unwrap_or_default(), 21)),
        column("subsystem", SUBSYSTEM_WIDTH, 2, |it| end(&it.subsystem, SUBSYSTEM_WIDTH)),
        column("queues", 6, 4, |it| grouped(it.queues)),
        column("in flight", 9, 5, |it| grouped(it.in_flight)),
        column("reads/s", 9, 8, |it| rounded(it.rates.reads)),
        column("writes/s", 9, 7, |it| rounded(it.rates.writes)),
        column("MB/s", 9, 6, |it| megabytes(it.rates)),
        column("memory", 10, 3, |it| human_bytes(it.memory_bytes)),
    ];
    fitting(columns, width)
}

/// Returns the name of a host, or its address if it has none, as a virtual machine.
fn host(sample: &HostSample) -> &str {
    if sample.host.is_empty() {
        sample.address.as_deref().unwrap_or_default()
    } else {
        &sample.host
    }
}

/// Returns the columns of Redis clients in a table of this width.
pub(super) fn of_clients(width: u16) -> Vec<Column<ClientSample>> {
    let columns = vec![
        column("Redis client", HOST_WIDTH, NAME, |it: &ClientSample| end(&it.address, HOST_WIDTH)),
        column("device", SUBSYSTEM_WIDTH, 1, |it| end(&it.device, SUBSYSTEM_WIDTH)),
        column("name", 15, 4, |it| end(&it.name, 15)),
        column("user", 12, 2, |it| end(&it.user, 12)),
        column("db", 5, 5, |it| it.database.to_string()),
        column("commands/s", 10, 6, |it| {
            it.commands_per_second.map_or_else(|| "-".to_owned(), rounded)
        }),
        column("buffered", 10, 3, |it| human_bytes(it.buffered_bytes)),
    ];
    fitting(columns, width)
}

/// The combined work of each device's Redis clients.
pub(super) fn of_redis(width: u16) -> Vec<Column<RedisSample>> {
    let columns = vec![
        column("Redis, by device", HOST_WIDTH, NAME, |it: &RedisSample| {
            end(&it.device, HOST_WIDTH)
        }),
        column("clients", 8, 4, |it| grouped(it.clients)),
        column("commands/s", 12, 5, |it| rounded(it.commands_per_second)),
        column("MB/s in", 10, 3, |it| tenths(it.bytes_received_per_second / 1e6)),
        column("MB/s out", 10, 2, |it| tenths(it.bytes_sent_per_second / 1e6)),
        column("cache hits", 10, 1, |it| {
            it.cache_hit_percent.map_or_else(|| "-".to_owned(), percent)
        }),
    ];
    fitting(columns, width)
}

/// Returns the columns of devices with a listener for Redis clients.
pub(super) fn redis_of(sample: &Sample) -> Vec<RedisSample> {
    sample.devices.iter().filter_map(|device| device.redis.clone()).collect()
}

/// With the factors of write, read and space amplification.
pub(super) fn of_devices(width: u16) -> Vec<Column<DeviceSample>> {
    let columns = vec![
        column("device", HOST_WIDTH, NAME, |it: &DeviceSample| end(&it.name, HOST_WIDTH)),
        column("operations/s", 12, 6, |it| rounded(it.rates.operations)),
        column("MB/s read", 10, 5, |it| tenths(it.rates.bytes_read / 1e6)),
        column("MB/s written", 12, 4, |it| tenths(it.rates.bytes_written / 1e6)),
        column("WAF", 6, 3, |it| ratio(it.write_amplification)),
        column("RAF", 6, 2, |it| ratio(it.read_amplification)),
        column("SAF", 6, 1, |it| ratio(it.space_amplification)),
    ];
    fitting(columns, width)
}

/// Returns the columns of reactors, each with its number. In a terminal of 80 columns the stages,
/// commands in flight, long polls and diverted commands are dropped.
pub(super) fn of_reactors(width: u16) -> Vec<Column<(usize, ReactorSample)>> {
    let columns = vec![
        column("reactor", 7, NAME, |(place, _): &(usize, ReactorSample)| place.to_string()),
        column("busy", 7, 15, |(_, it)| percent(it.busy_percent)),
        column("receive", 7, 3, |(_, it)| percent(it.stage_percent.receive)),
        column("kv", 7, 4, |(_, it)| percent(it.stage_percent.kv)),
        column("submit", 7, 1, |(_, it)| percent(it.stage_percent.submit)),
        column("complete", 8, 2, |(_, it)| percent(it.stage_percent.complete)),
        column("background", 10, 0, |(_, it)| percent(it.stage_percent.background)),
        column("locks", 7, 12, |(_, it)| percent(it.lock_wait_percent)),
        column("NVMe", 6, 10, |(_, it)| grouped(it.connections)),
        column("in flight", 9, 6, |(_, it)| grouped(it.in_flight)),
        column("Redis", 6, 9, |(_, it)| grouped(it.redis_clients)),
        column("commands/s", 10, 14, |(_, it)| rounded(it.commands_per_second)),
        column("MB/s stored", 11, 13, |(_, it)| tenths(it.bytes_stored_per_second / 1e6)),
        column("cleaned", 7, 11, |(_, it)| grouped(it.extents_cleaned)),
        column("long polls", 10, 7, |(_, it)| grouped(it.long_polls)),
        column("diverted/s", 10, 5, |(_, it)| rounded(it.commands_diverted_per_second)),
        column("moved", 5, 8, |(_, it)| grouped(it.connections_moved)),
    ];
    fitting(columns, width)
}

/// Returns the columns of tenants in a table of this width.
pub(super) fn of_tenants(width: u16) -> Vec<Column<TenantSample>> {
    let columns = vec![
        column("tenant", HOST_WIDTH, NAME, |it: &TenantSample| end(&it.name, HOST_WIDTH)),
        column("weight", 6, 6, |it| grouped(it.weight.into())),
        column("requests/s", 10, 8, |it| rounded(it.requests_per_second)),
        column("MB/s", 9, 5, |it| tenths(it.bytes_per_second / 1e6)),
        column("busy", 8, 7, |it| percent(it.busy_percent)),
        column("waiting", 8, 4, |it| tenths(it.waiting_for_share)),
        column("limited", 8, 3, |it| tenths(it.waiting_for_limit)),
        column("requests/s max", 14, 2, |it| limit(it.limit_requests_per_second)),
        column("bytes/s max", 15, 1, |it| limit(it.limit_bytes_per_second)),
    ];
    fitting(columns, width)
}

fn limit(limit: Option<u64>) -> String {
    limit.map_or_else(|| "-".to_owned(), grouped)
}

/// Returns one line on the server, and one on its total work.
pub(super) fn head(sample: &Sample) -> [String; 2] {
    let Sample { server, version, connections, rates, .. } = sample;
    let refused = match sample.connections_refused {
        0 => String::new(),
        refused => format!(", {} refused", grouped(refused)),
    };
    let fairness = sample.fairness.map(|index| format!(", fairness {index:.2}"));
    let damaged = match sample.damaged_pages {
        0 => String::new(),
        damaged => format!(", {} damaged pages", grouped(damaged)),
    };
    [
        format!(
            "kvasir {} at {server}, up {}{damaged}",
            in_one_line(version),
            uptime(sample.uptime_seconds)
        ),
        format!(
            "{} operations/s, {} MB/s read, {} MB/s written, {} connections{refused}{}",
            rounded(rates.operations),
            tenths(rates.bytes_read / 1e6),
            tenths(rates.bytes_written / 1e6),
            grouped(*connections),
            fairness.unwrap_or_default(),
        ),
    ]
}

fn megabytes(rates: Rates) -> String {
    tenths((rates.bytes_read + rates.bytes_written) / 1e6)
}

fn percent(value: f64) -> String {
    format!("{} %", tenths(value))
}

fn tenths(value: f64) -> String {
    format!("{value:.1}")
}

/// Returns the last `width` columns of `name`, with a mark if it was cut. A host chooses its name
/// freely, so characters that move the terminal's cursor are removed.
fn end(name: &str, width: u16) -> String {
    let name = in_one_line(name);
    let (count, width) = (name.chars().count(), usize::from(width));
    if count <= width {
        return name;
    }
    ["..", &name.chars().skip(count - width + 2).collect::<String>()].concat()
}

/// Formats days, hours, minutes and seconds.
fn uptime(seconds: f64) -> String {
    let seconds = crate::number::to_u64(seconds.floor());
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    let clock = format!("{:02}:{:02}:{:02}", hours % 24, minutes % 60, seconds % 60);
    if days > 0 { format!("{} d {clock}", grouped(days)) } else { clock }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_is_its_end() {
        assert_eq!(end("nqn.2026-11.com.example:host", 9), "..le:host");
        assert_eq!((end("host", 4), end("host", 5)), ("host".to_owned(), "host".to_owned()));
    }

    #[test]
    fn host_without_a_name_is_its_address() {
        let cells = |name: &str| {
            let sample = HostSample {
                host: name.to_owned(),
                address: Some("/run/kvasir/vm1.sock".to_owned()),
                subsystem: String::new(),
                controller: 1,
                connected_seconds: 1.0,
                queues: 3,
                in_flight: 0,
                rates: Rates::default(),
                memory_bytes: 0,
            };
            of_hosts(120)[..2].iter().map(|it| (it.text)(&sample)).collect::<Vec<_>>()
        };
        assert_eq!(cells("nqn.x:host"), ["nqn.x:host", "/run/kvasir/vm1.sock"]);
        assert_eq!(cells(""), ["/run/kvasir/vm1.sock", "/run/kvasir/vm1.sock"]);
    }

    #[test]
    fn names_of_hosts_move_no_cursor() {
        assert_eq!(end("nqn.x:\u{1b}[2J\nrow", 40), "nqn.x:\\u{1b}[2J\\nrow");
        assert_eq!(end("nqn.x:\u{1b}[2J\nrow", 9), "..2J\\nrow");
    }

    #[test]
    fn uptime_is_a_clock_and_days() {
        assert_eq!(uptime(59.99), "00:00:59");
        assert_eq!(uptime(3.0 * 86_400.0 + 3_723.0), "3 d 01:02:03");
    }

    #[test]
    fn columns_are_dropped_by_rank_until_a_table_fits() {
        let names = |width| -> Vec<_> { of_hosts(width).iter().map(|it| it.name).collect() };
        let all = ["host", "address", "subsystem", "queues", "in flight", "reads/s", "writes/s"];
        assert_eq!(names(120), [&all[..], &["MB/s", "memory"]].concat());
        let without = |gone: &[&str]| -> Vec<_> {
            names(120).into_iter().filter(|name| !gone.contains(name)).collect()
        };
        assert_eq!(names(119), without(&["address"]));
        assert_eq!(names(80), without(&["address", "subsystem"]));
        assert_eq!(names(60), ["host", "reads/s", "writes/s", "MB/s"]);
        assert_eq!((names(40), names(1)), (vec!["host", "reads/s"], vec!["host"]));
    }

    #[test]
    fn a_wide_terminal_has_the_stages_of_each_reactor() {
        let names = |width| -> Vec<_> { of_reactors(width).iter().map(|it| it.name).collect() };
        let stages = ["busy", "receive", "kv", "submit", "complete", "background", "locks"];
        assert_eq!(names(150)[1..8], stages);
        // Each of these is the narrowest terminal for a column more.
        let added = |width| -> Vec<_> {
            names(width).into_iter().filter(|name| !names(width - 1).contains(name)).collect()
        };
        let widths = [85, 95, 106, 114, 122, 131, 139, 150].map(added).concat();
        let order =
            ["long polls", "in flight", "diverted/s", "kv", "receive", "complete", "submit"];
        assert_eq!(widths, [&order[..], &["background"]].concat());
        let at_80 = ["reactor", "busy", "locks", "NVMe", "Redis", "commands/s", "MB/s stored"];
        assert_eq!(names(80), [&at_80[..], &["cleaned", "moved"]].concat());
    }
}

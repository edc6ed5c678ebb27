//! What tables of hosts, clients, devices and reactors have in their columns.

use super::redis::{ClientSample, RedisSample};
use super::sample::{DeviceSample, HostSample, Rates, ReactorSample, Sample};
use crate::number::{grouped, ratio, rounded};
use crate::output::in_one_line;
use base::human_bytes;

/// A column: its name, the columns of a terminal that it takes, and what it has of a row.
pub(super) struct Column<T> {
    pub(super) name: &'static str,
    pub(super) width: u16,
    pub(super) text: fn(&T) -> String,
}

const fn column<T>(name: &'static str, width: u16, text: fn(&T) -> String) -> Column<T> {
    Column { name, width, text }
}

/// Of names the end is shown, where they differ.
const HOST_WIDTH: u16 = 21;
const SUBSYSTEM_WIDTH: u16 = 18;

/// Columns of a terminal from which there is room for subsystems, and for addresses too.
const WITH_SUBSYSTEM: u16 = 99;
const WITH_ADDRESS: u16 = 121;

/// Those of hosts in a table of this width.
pub(super) fn of_hosts(width: u16) -> Vec<Column<HostSample>> {
    let mut columns = vec![column("host", HOST_WIDTH, |it: &HostSample| end(&it.host, HOST_WIDTH))];
    if width >= WITH_ADDRESS {
        columns.push(column("address", 21, |it| {
            in_one_line(it.address.as_deref().unwrap_or_default())
        }));
    }
    if width >= WITH_SUBSYSTEM {
        columns
            .push(column("subsystem", SUBSYSTEM_WIDTH, |it| end(&it.subsystem, SUBSYSTEM_WIDTH)));
    }
    columns.push(column("queues", 6, |it| grouped(it.queues)));
    columns.push(column("in flight", 9, |it| grouped(it.in_flight)));
    columns.push(column("reads/s", 9, |it| rounded(it.rates.reads)));
    columns.push(column("writes/s", 9, |it| rounded(it.rates.writes)));
    columns.push(column("MB/s", 9, |it| megabytes(it.rates)));
    columns.push(column("memory", 10, |it| human_bytes(it.memory_bytes)));
    columns
}

/// Those of clients of the Redis protocol in a table of this width.
pub(super) fn of_clients(width: u16) -> Vec<Column<ClientSample>> {
    let mut columns =
        vec![column("Redis client", HOST_WIDTH, |it: &ClientSample| end(&it.address, HOST_WIDTH))];
    if width >= WITH_SUBSYSTEM {
        columns.push(column("device", SUBSYSTEM_WIDTH, |it| end(&it.device, SUBSYSTEM_WIDTH)));
    }
    columns.push(column("name", 15, |it| end(&it.name, 15)));
    columns.push(column("user", 12, |it| end(&it.user, 12)));
    columns.push(column("db", 5, |it| it.database.to_string()));
    columns.push(column("commands/s", 10, |it| {
        it.commands_per_second.map_or_else(|| "-".to_owned(), rounded)
    }));
    columns.push(column("buffered", 10, |it| human_bytes(it.buffered_bytes)));
    columns
}

/// What each device's clients of the Redis protocol do together.
pub(super) fn of_redis() -> Vec<Column<RedisSample>> {
    vec![
        column("Redis, by device", HOST_WIDTH, |it: &RedisSample| end(&it.device, HOST_WIDTH)),
        column("clients", 8, |it| grouped(it.clients)),
        column("commands/s", 12, |it| rounded(it.commands_per_second)),
        column("MB/s in", 10, |it| tenths(it.bytes_received_per_second / 1e6)),
        column("MB/s out", 10, |it| tenths(it.bytes_sent_per_second / 1e6)),
        column("cache hits", 10, |it| {
            it.cache_hit_percent.map_or_else(|| "-".to_owned(), |it| format!("{} %", tenths(it)))
        }),
    ]
}

/// Those of devices that have a door for such clients.
pub(super) fn redis_of(sample: &Sample) -> Vec<RedisSample> {
    sample.devices.iter().filter_map(|device| device.redis.clone()).collect()
}

/// With the factors of write, read and space amplification.
pub(super) fn of_devices() -> Vec<Column<DeviceSample>> {
    vec![
        column("device", HOST_WIDTH, |it: &DeviceSample| end(&it.name, HOST_WIDTH)),
        column("operations/s", 12, |it| rounded(it.rates.operations)),
        column("MB/s read", 10, |it| tenths(it.rates.bytes_read / 1e6)),
        column("MB/s written", 12, |it| tenths(it.rates.bytes_written / 1e6)),
        column("WAF", 6, |it| ratio(it.write_amplification)),
        column("RAF", 6, |it| ratio(it.read_amplification)),
        column("SAF", 6, |it| ratio(it.space_amplification)),
    ]
}

/// With the place of each.
pub(super) fn of_reactors() -> Vec<Column<(usize, ReactorSample)>> {
    vec![
        column("reactor", HOST_WIDTH, |(place, _): &(usize, _)| place.to_string()),
        column("busy", 12, |(_, it)| format!("{} %", tenths(it.busy_percent))),
        column("connections", 11, |(_, it)| grouped(it.connections)),
    ]
}

/// The server in a line, and all that it does in another.
pub(super) fn head(sample: &Sample) -> [String; 2] {
    let Sample { server, version, connections, rates, .. } = sample;
    let refused = match sample.connections_refused {
        0 => String::new(),
        refused => format!(", {} refused", grouped(refused)),
    };
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
            "{} operations/s, {} MB/s read, {} MB/s written, {} connections{refused}",
            rounded(rates.operations),
            tenths(rates.bytes_read / 1e6),
            tenths(rates.bytes_written / 1e6),
            grouped(*connections),
        ),
    ]
}

fn megabytes(rates: Rates) -> String {
    tenths((rates.bytes_read + rates.bytes_written) / 1e6)
}

fn tenths(value: f64) -> String {
    format!("{value:.1}")
}

/// The last `width` columns of `name`, which says so if that is not all. A host gives itself a name
/// of any characters, and is not to move the cursor of whoever looks.
fn end(name: &str, width: u16) -> String {
    let name = in_one_line(name);
    let (count, width) = (name.chars().count(), usize::from(width));
    if count <= width {
        return name;
    }
    ["..", &name.chars().skip(count - width + 2).collect::<String>()].concat()
}

/// Days, hours, minutes and seconds.
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
    fn what_others_say_of_themselves_moves_no_cursor() {
        assert_eq!(end("nqn.x:\u{1b}[2J\nrow", 40), "nqn.x:\\u{1b}[2J\\nrow");
        assert_eq!(end("nqn.x:\u{1b}[2J\nrow", 9), "..2J\\nrow");
    }

    #[test]
    fn uptime_is_a_clock_and_days() {
        assert_eq!(uptime(59.99), "00:00:59");
        assert_eq!(uptime(3.0 * 86_400.0 + 3_723.0), "3 d 01:02:03");
    }

    #[test]
    fn every_table_fits_its_terminal() {
        // With a blank between two.
        let total = |widths: Vec<u16>| widths.iter().map(|width| width + 1).sum::<u16>() - 1;
        for width in [80, WITH_SUBSYSTEM, WITH_ADDRESS] {
            let columns = of_hosts(width);
            assert!(total(columns.iter().map(|it| it.width).collect()) <= width, "{width}");
        }
        for width in [80, WITH_SUBSYSTEM] {
            let columns = of_clients(width);
            assert!(total(columns.iter().map(|it| it.width).collect()) <= width, "{width}");
        }
        assert!(total(of_redis().iter().map(|it| it.width).collect()) <= 80);
        assert!(total(of_devices().iter().map(|it| it.width).collect()) <= 80);
        assert!(total(of_reactors().iter().map(|it| it.width).collect()) <= 80);
    }
}

use super::rate::{per_second, seconds};
use super::redis::{ClientSample, RedisSample};
use super::stages::StagesSample;
use super::tenants::TenantSample;
use node::server::{AssociationStatus, DeviceStatus, ReactorStatus, Status, WorkStatus, fairness};
use serde::Serialize;
use std::net::SocketAddr;

/// A server's work between two of its answers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Sample {
    /// Address of the server.
    pub(super) server: String,
    pub(super) version: String,
    pub(super) uptime_seconds: f64,
    /// Time between the answers, by the server's clock.
    pub(super) interval_seconds: f64,
    pub(super) connections: u64,
    pub(super) connections_refused: u64,
    /// Damaged pages that the scrubber has found since the server started.
    pub(super) damaged_pages: u64,
    /// Total of all devices, NVMe hosts and Redis clients included.
    #[serde(flatten)]
    pub(super) rates: Rates,
    /// The busiest first.
    pub(super) hosts: Vec<HostSample>,
    pub(super) devices: Vec<DeviceSample>,
    /// Some Redis clients, the busiest first.
    pub(super) redis_clients: Vec<ClientSample>,
    pub(super) reactors: Vec<ReactorSample>,
    /// None of a server without tenants.
    pub(super) tenants: Vec<TenantSample>,
    /// Jain's index of the tenants' busy time by weight. None if no tenant had requests.
    pub(super) fairness: Option<f64>,
}

/// Commands and their bytes per second. Of a host: NVMe I/O commands. Of a device: also the
/// commands of Redis clients, with the bytes of replies as read and of requests as written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Rates {
    #[serde(rename = "operations_per_second")]
    pub(super) operations: f64,
    #[serde(rename = "reads_per_second")]
    pub(super) reads: f64,
    #[serde(rename = "writes_per_second")]
    pub(super) writes: f64,
    #[serde(rename = "bytes_read_per_second")]
    pub(super) bytes_read: f64,
    #[serde(rename = "bytes_written_per_second")]
    pub(super) bytes_written: f64,
}

/// A host that is connected to a subsystem.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct HostSample {
    pub(super) host: String,
    pub(super) address: Option<String>,
    pub(super) subsystem: String,
    pub(super) controller: u16,
    pub(super) connected_seconds: f64,
    pub(super) queues: u64,
    pub(super) in_flight: u64,
    #[serde(flatten)]
    pub(super) rates: Rates,
    pub(super) memory_bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct DeviceSample {
    pub(super) name: String,
    #[serde(flatten)]
    pub(super) rates: Rates,
    pub(super) write_amplification: Option<f64>,
    pub(super) read_amplification: Option<f64>,
    pub(super) space_amplification: Option<f64>,
    /// None without a listener for Redis clients.
    pub(super) redis: Option<RedisSample>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct ReactorSample {
    /// Busy share of the interval.
    pub(super) busy_percent: f64,
    /// The same by stage.
    pub(super) stage_percent: StagesSample,
    pub(super) connections: u64,
    /// I/O commands in flight on these connections at the end of the interval.
    pub(super) in_flight: u64,
    /// Connections of Redis clients.
    pub(super) redis_clients: u64,
    /// I/O commands of NVMe hosts and commands of Redis clients that it executed.
    pub(super) commands_per_second: f64,
    /// Commands of its connections that the balancer had other reactors execute.
    pub(super) commands_diverted_per_second: f64,
    /// Open connections that it gave to other reactors in the interval.
    pub(super) connections_moved: u64,
    /// Keys and values.
    pub(super) bytes_stored_per_second: f64,
    /// Extents that it cleaned in the interval.
    pub(super) extents_cleaned: u64,
    /// Records that it moved for that.
    pub(super) records_moved: u64,
    /// Locks of the interval that another reactor held.
    pub(super) lock_waits: u64,
    /// Share of the interval in which it waited for these locks.
    pub(super) lock_wait_percent: f64,
    /// Polls of the interval that took more than 100 us of CPU time.
    pub(super) long_polls: u64,
}

impl Sample {
    /// Computes the sample of the server at `address`. Counters that are new, or whose server was
    /// restarted, started at zero.
    pub(super) fn of(address: SocketAddr, before: &Status, after: &Status) -> Self {
        let is_same = before.server.uptime_ns <= after.server.uptime_ns;
        let before = is_same.then_some(before);
        let began = before.map_or(0, |before| before.server.uptime_ns);
        let interval = seconds(after.server.uptime_ns - began);
        let devices = after.devices.iter().map(|device| (known(before, device), device));
        let clients = devices
            .clone()
            .flat_map(|(before, after)| ClientSample::all_of(before, after, interval));
        let mut redis_clients: Vec<_> = clients.collect();
        let rate = |client: &ClientSample| client.commands_per_second.unwrap_or_default();
        redis_clients.sort_by(|a, b| rate(b).total_cmp(&rate(a)));
        let devices = devices.map(|(before, after)| DeviceSample::of(before, after, interval));
        let devices: Vec<_> = devices.collect();
        let hosts = after.associations.iter().map(|host| {
            let mut known = before.into_iter().flat_map(|before| &before.associations);
            HostSample::of(known.find(|it| is_one(it, host)), host, interval)
        });
        let mut hosts: Vec<_> = hosts.collect();
        // Idle hosts stay in the order of their connection.
        hosts.sort_by(|a, b| b.rates.operations.total_cmp(&a.rates.operations));
        let reactors = after.reactors.iter().enumerate().map(|(place, reactor)| {
            let before = before.and_then(|before| before.reactors.get(place));
            ReactorSample::of(before, reactor, interval)
        });
        Self {
            server: address.to_string(),
            version: after.server.version.clone(),
            uptime_seconds: seconds(after.server.uptime_ns),
            interval_seconds: interval,
            connections: after.server.connections,
            connections_refused: after.server.connections_refused,
            damaged_pages: after
                .devices
                .iter()
                .filter_map(|it| it.scrub)
                .map(|it| it.damaged)
                .sum(),
            rates: devices.iter().fold(Rates::default(), |sum, device| sum.and(device.rates)),
            hosts,
            devices,
            redis_clients,
            reactors: reactors.collect(),
            tenants: TenantSample::all_of(before, after, interval),
            fairness: fairness(before.map_or(&[], |it| &it.tenants), &after.tenants),
        }
    }
}

/// Returns the same device in the earlier answer.
fn known<'a>(before: Option<&'a Status>, device: &DeviceStatus) -> Option<&'a DeviceStatus> {
    before?.devices.iter().find(|it| it.name == device.name)
}

/// True if both are the same association.
fn is_one(before: &AssociationStatus, after: &AssociationStatus) -> bool {
    let name = |it: &AssociationStatus| (it.controller, it.subsystem.clone(), it.host.clone());
    name(before) == name(after) && before.connected_ns <= after.connected_ns
}

impl Rates {
    fn of(before: Option<WorkStatus>, after: WorkStatus, interval: f64) -> Self {
        let before = before.unwrap_or_default();
        let rate = |before: u64, after: u64| per_second(after.saturating_sub(before), interval);
        Self {
            operations: rate(before.commands, after.commands),
            reads: rate(before.reads, after.reads),
            writes: rate(before.writes, after.writes),
            bytes_read: rate(before.bytes_read, after.bytes_read),
            bytes_written: rate(before.bytes_written, after.bytes_written),
        }
    }

    fn and_redis(self, redis: Option<&RedisSample>) -> Self {
        let Some(redis) = redis else { return self };
        Self {
            operations: self.operations + redis.commands_per_second,
            bytes_read: self.bytes_read + redis.bytes_sent_per_second,
            bytes_written: self.bytes_written + redis.bytes_received_per_second,
            ..self
        }
    }

    fn and(self, other: Self) -> Self {
        Self {
            operations: self.operations + other.operations,
            reads: self.reads + other.reads,
            writes: self.writes + other.writes,
            bytes_read: self.bytes_read + other.bytes_read,
            bytes_written: self.bytes_written + other.bytes_written,
        }
    }
}

impl HostSample {
    fn of(before: Option<&AssociationStatus>, after: &AssociationStatus, interval: f64) -> Self {
        Self {
            host: after.host.clone(),
            address: after.address.clone(),
            subsystem: after.subsystem.clone(),
            controller: after.controller,
            connected_seconds: seconds(after.connected_ns),
            queues: after.queues.len() as u64,
            // Event requests (AER) wait on the admin queue until an event happens.
            in_flight: after.queues.iter().filter(|it| it.id > 0).map(|it| it.in_flight).sum(),
            rates: Rates::of(before.map(|it| it.work), after.work, interval),
            memory_bytes: after.memory_bytes,
        }
    }
}

impl DeviceSample {
    fn of(before: Option<&DeviceStatus>, after: &DeviceStatus, interval: f64) -> Self {
        let redis = RedisSample::of(before, after, interval);
        let by_hosts = Rates::of(before.map(|it| it.work), after.work, interval);
        Self {
            name: after.name.clone(),
            rates: by_hosts.and_redis(redis.as_ref()),
            write_amplification: after.write_amplification,
            read_amplification: after.read_amplification,
            space_amplification: after.space_amplification,
            redis,
        }
    }
}

impl ReactorSample {
    fn of(before: Option<&ReactorStatus>, after: &ReactorStatus, interval: f64) -> Self {
        let growth = |counter: fn(&ReactorStatus) -> u64| {
            counter(after).saturating_sub(before.map_or(0, counter))
        };
        let busy = growth(|it| it.busy_ns);
        let all = busy + growth(|it| it.idle_ns);
        let percent = |time| crate::number::quotient(time, all).unwrap_or_default() * 100.0;
        let commands = growth(|it| it.commands + it.redis_commands);
        Self {
            busy_percent: percent(busy),
            stage_percent: StagesSample::of(
                before.map(|it| it.stages).unwrap_or_default(),
                after.stages,
                percent,
            ),
            connections: after.connections,
            in_flight: after.in_flight,
            redis_clients: after.redis_clients,
            commands_per_second: per_second(commands, interval),
            commands_diverted_per_second: per_second(growth(|it| it.commands_diverted), interval),
            connections_moved: growth(|it| it.connections_moved),
            bytes_stored_per_second: per_second(growth(|it| it.bytes_stored), interval),
            extents_cleaned: growth(|it| it.extents_cleaned),
            records_moved: growth(|it| it.records_moved),
            lock_waits: growth(|it| it.lock_waits),
            lock_wait_percent: percent(growth(|it| it.lock_wait_ns)),
            long_polls: growth(|it| it.long_polls.iter().map(|it| it.count).sum()),
        }
    }
}

#[cfg(test)]
pub(super) mod tests;

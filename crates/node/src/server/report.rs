use super::error::ServerError;
use base::Nanos;
use nvme_tcp::framing::Counters;
use reactor::{Lateness, Load};
use resp::Totals;

/// The report of a server from its start to its stop.
#[derive(Debug)]
pub struct ServerReport {
    /// Each reactor, those of devices first.
    pub reactors: Vec<ReactorReport>,
    /// Connections closed at once because no slot was free.
    pub refused: u64,
    /// Why a device could not be closed or saved at the stop, if one could not.
    pub failure: Option<ServerError>,
}

/// The report of a reactor.
#[derive(Debug)]
pub struct ReactorReport {
    /// Lateness of its devices' events; `None` without an emulated device.
    pub lateness: Option<Lateness>,
    /// Its busy and idle time.
    pub load: Load,
    /// Number of connections that it served.
    pub connections: u64,
    /// Bytes of those connections.
    pub moved: Moved,
    /// Tasks that ran when the server was stopped: those of the listeners, of the devices and of
    /// the open connections.
    pub tasks: usize,
    /// Work of the Redis clients of its devices; `None` without a Redis service.
    pub redis: Option<RedisReport>,
    /// Why one of its devices could not be closed or saved at the stop, if one could not.
    pub(super) failure: Option<ServerError>,
}

/// Bytes that connections moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Received bytes.
    pub received: u64,
    /// Sent bytes.
    pub sent: u64,
    /// Data bytes copied in user space.
    pub copied: u64,
}

impl Moved {
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            received: self.received + other.received,
            sent: self.sent + other.sent,
            copied: self.copied + other.copied,
        }
    }

    pub(super) fn of(counters: &Counters) -> Self {
        Self {
            received: counters.bytes_read(),
            sent: counters.bytes_written(),
            copied: counters.copied(),
        }
    }
}

/// Work of Redis clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RedisReport {
    /// Number of connections.
    pub connections: u64,
    /// Executed commands.
    pub commands: u64,
    /// Received bytes.
    pub bytes_received: u64,
    /// Sent bytes.
    pub bytes_sent: u64,
}

impl RedisReport {
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            connections: self.connections + other.connections,
            commands: self.commands + other.commands,
            bytes_received: self.bytes_received + other.bytes_received,
            bytes_sent: self.bytes_sent + other.bytes_sent,
        }
    }
}

impl From<Totals> for RedisReport {
    fn from(totals: Totals) -> Self {
        Self {
            connections: totals.connections,
            commands: totals.commands,
            bytes_received: totals.read_bytes,
            bytes_sent: totals.written_bytes,
        }
    }
}

impl ServerReport {
    /// Returns the number of connections of all reactors.
    pub fn connections(&self) -> u64 {
        self.reactors.iter().map(|reactor| reactor.connections).sum()
    }

    /// Returns the bytes received and sent by all reactors.
    pub fn bytes(&self) -> (u64, u64) {
        let moved = self.reactors.iter().map(|reactor| reactor.moved);
        moved.fold((0, 0), |(came, went), moved| (came + moved.received, went + moved.sent))
    }

    /// Returns the work of all Redis clients; `None` without a Redis service.
    pub fn redis(&self) -> Option<RedisReport> {
        let each = self.reactors.iter().filter_map(|reactor| reactor.redis);
        each.reduce(RedisReport::and)
    }

    /// Returns how many timed events of emulated devices were late by [`reactor::LATE`] or more,
    /// and the maximum lateness. `None` without an emulated device: disks and memory emulate no
    /// latency.
    pub fn late_events(&self) -> Option<(u64, Nanos)> {
        let each = self.reactors.iter().filter_map(|reactor| reactor.lateness.as_ref());
        let each = each.map(|lateness| (lateness.late_events(), lateness.max()));
        each.reduce(|(count, max), (more, late)| (count + more, max.max(late)))
    }
}

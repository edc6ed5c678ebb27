use base::Nanos;
use nvme_tcp::framing::Counters;
use reactor::{Lateness, Load};
use resp::Totals;

/// How a server was, from its start to its end.
#[derive(Debug)]
pub struct ServerReport {
    /// Each reactor, those of devices first.
    pub reactors: Vec<ReactorReport>,
    /// Connections that were closed at once because there were as many as may be.
    pub refused: u64,
}

/// What a reactor of a server did.
#[derive(Debug)]
pub struct ReactorReport {
    /// How late the events of its devices were; none without an emulated device.
    pub lateness: Option<Lateness>,
    /// How it spent its time.
    pub load: Load,
    /// Connections that it served.
    pub connections: u64,
    /// What they moved.
    pub moved: Moved,
    /// Tasks that had not ended when it was stopped: those that serve whoever comes, and those of
    /// the device and of the connections that there were.
    pub tasks: usize,
    /// What clients of the Redis protocol had its devices do; none where they have no door.
    pub redis: Option<RedisReport>,
}

/// Bytes that connections moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// That came.
    pub received: u64,
    /// That went.
    pub sent: u64,
    /// Of data that were copied on their way, beside the kernel's copies.
    pub copied: u64,
}

impl Moved {
    pub(super) fn of(counters: &Counters) -> Self {
        Self {
            received: counters.bytes_read(),
            sent: counters.bytes_written(),
            copied: counters.copied(),
        }
    }
}

/// What clients of the Redis protocol did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RedisReport {
    /// Connections that were served.
    pub connections: u64,
    /// Commands that were executed.
    pub commands: u64,
    /// Bytes that came.
    pub bytes_received: u64,
    /// Bytes that went.
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
    /// Connections in all.
    pub fn connections(&self) -> u64 {
        self.reactors.iter().map(|reactor| reactor.connections).sum()
    }

    /// Bytes that came and went in all.
    pub fn bytes(&self) -> (u64, u64) {
        let moved = self.reactors.iter().map(|reactor| reactor.moved);
        moved.fold((0, 0), |(came, went), moved| (came + moved.received, went + moved.sent))
    }

    /// What clients of the Redis protocol did in all; none where they had no door.
    pub fn redis(&self) -> Option<RedisReport> {
        let each = self.reactors.iter().filter_map(|reactor| reactor.redis);
        each.reduce(RedisReport::and)
    }

    /// Of all events of emulated devices that had a time to keep, how many were late by
    /// [`reactor::LATE`] or more, and how late the latest was. None without such a device: a disk
    /// and memory have no latencies to keep.
    pub fn late_events(&self) -> Option<(u64, Nanos)> {
        let each = self.reactors.iter().filter_map(|reactor| reactor.lateness.as_ref());
        let each = each.map(|lateness| (lateness.late_events(), lateness.max()));
        each.reduce(|(count, max), (more, late)| (count + more, max.max(late)))
    }
}

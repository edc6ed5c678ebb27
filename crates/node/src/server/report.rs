use base::Nanos;
use nvme_tcp::framing::Counters;
use reactor::{Lateness, Load};

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
    /// How late the device's events were.
    pub lateness: Lateness,
    /// How it spent its time.
    pub load: Load,
    /// Connections that it served.
    pub connections: u64,
    /// What they moved.
    pub moved: Moved,
    /// Tasks that had not ended when it was stopped: those that serve whoever comes, and those of
    /// the device and of the connections that there were.
    pub tasks: usize,
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

    /// Of all events of the device that had a time to keep, how many were late by
    /// [`reactor::LATE`] or more, and how late the latest was.
    pub fn late_events(&self) -> (u64, Nanos) {
        let of = |reactor: &ReactorReport| (reactor.lateness.late_events(), reactor.lateness.max());
        let all = self.reactors.iter().map(of);
        all.fold((0, Nanos::ZERO), |(count, max), (more, late)| (count + more, max.max(late)))
    }
}

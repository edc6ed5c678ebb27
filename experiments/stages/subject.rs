//! The three servers that are measured in turn.

use crate::disk_bytes::DiskBytes;
use crate::operation::Operation;
use experiments::loopback::echo;
use experiments::loopback::exchange::{Exchange, Kind};
use experiments::loopback::load::{Grants, KEYS, Load};
use experiments::loopback::target::Target;
use std::net::TcpStream;
use std::time::Duration;

/// How long each measurement lasts, about.
const WINDOW: Duration = Duration::from_millis(400);

/// CPU time of an echo's stages, in nanoseconds a request.
#[derive(Clone, Copy)]
pub(crate) struct EchoCost {
    pub(crate) receive: f64,
    pub(crate) reply: f64,
}

/// What a target takes for a request.
#[derive(Clone, Copy)]
pub(crate) struct TargetCost {
    /// CPU time in nanoseconds, without that of looking for something to do.
    pub(crate) cpu: f64,
    /// CPU time in nanoseconds, with that.
    pub(crate) with_idle: f64,
    /// The share of the time in which the reactor had something to do.
    pub(crate) busy_share: f64,
    /// How long another program had the core, as a share of the time in which the reactor had it.
    pub(crate) disturbed_share: f64,
    /// Bytes of the disk, read and written.
    pub(crate) disk_bytes: f64,
}

/// Measures an echo that serves for this measurement only: it spins.
pub(crate) fn measure_echo(operation: &Operation) -> EchoCost {
    let exchange = operation.exchange;
    let (address, server, times) = echo::start_measured(exchange.value_bytes);
    let stream = TcpStream::connect(address).expect("the echo listens");
    let mut load = Load::new(stream, Grants::None, exchange.value_bytes);
    load.run_for(exchange, WINDOW / 4);
    let (receive, reply) = (times.receive(), times.reply());
    let count = load.run_for(exchange, WINDOW);
    let cost = EchoCost {
        receive: each((times.receive() - receive).0, count),
        reply: each((times.reply() - reply).0, count),
    };
    drop(load);
    server.join().expect("the echo ends with its client");
    cost
}

/// A target with its client. It sleeps while others are measured.
pub(crate) struct Subject {
    target: Target,
    load: Load,
    /// Keeps the controller alive.
    admin: TcpStream,
}

impl Subject {
    /// Connects to `target` and stores all keys.
    pub(crate) fn new(target: Target, operation: &Operation) -> Self {
        let exchange = operation.exchange;
        let connected = target.connect();
        let grants = Grants::Awaited { data_max: connected.data_max };
        let mut load = Load::new(connected.io, grants, exchange.value_bytes);
        let keys = usize::try_from(KEYS).expect("a few thousand");
        load.run(Exchange { kind: Kind::Store, ..exchange }, keys);
        Self { target, load, admin: connected.admin }
    }

    pub(crate) fn measure(&mut self, operation: &Operation) -> TargetCost {
        self.load.run_for(operation.exchange, WINDOW / 4);
        let (before, disk_before) = (self.target.work(), DiskBytes::now());
        let count = self.load.run_for(operation.exchange, WINDOW);
        let (after, disk) = (self.target.work(), DiskBytes::now());
        let cpu = after.cpu_since(&before);
        let disk_bytes = (disk.read - disk_before.read) + (disk.written - disk_before.written);
        TargetCost {
            cpu: each(cpu.busy.0, count),
            with_idle: each(cpu.all.0, count),
            busy_share: after.busy_share_since(&before),
            disturbed_share: after.disturbed_share_since(&before),
            disk_bytes: each(disk_bytes, count),
        }
    }

    pub(crate) fn stop(self) {
        drop(self.load);
        drop(self.admin);
        self.target.stop();
    }
}

#[expect(clippy::cast_precision_loss, reason = "for a report")]
fn each(sum: u64, count: usize) -> f64 {
    sum as f64 / count as f64
}

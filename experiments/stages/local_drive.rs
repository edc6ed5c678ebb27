//! Drives without sockets: a load and its drive have one reactor.

use crate::file_drive::FileDrive;
use crate::operation::Operation;
use base::Nanos;
use controller::Controller;
use experiments::loopback::core;
use experiments::loopback::load::KEYS;
use experiments::loopback::reactor_thread::ReactorThread;
use experiments::loopback::work::Work;
use node::{Device, MemoryDrive, MemoryKind};
use reactor::{Reactor, Remote};
use std::sync::Arc;
use std::thread;
use workload::{Distribution, Load, Payload, Plan, Space, Until, ValueSizes};

/// How long each measurement lasts.
const WINDOW: Nanos = Nanos::from_millis(400);

/// As large as `mem:` over TCP.
const MEMORY_BYTES: u64 = 1 << 30;

/// CPU time of an operation and of the load for it, in nanoseconds.
struct Cost {
    /// Without that of looking for something to do.
    busy: f64,
    /// With that.
    all: f64,
}

/// Measures a drive in memory. Returns the CPU time of an operation and its load in nanoseconds.
/// Such a drive never waits, so its reactor does not look for something else to do.
pub(crate) fn measure_memory(operation: &Operation) -> f64 {
    measure(async |remote| {
        let drive = MemoryDrive::format(MemoryKind::Kv, MEMORY_BYTES, 1, 1).await;
        cost(drive.expect("it has some extents").controller(), operation, remote).await
    })
    .all
}

/// As [`measure_memory`], of a drive on a file.
pub(crate) fn measure_file(drive: &FileDrive, operation: &Operation) -> f64 {
    measure(async |remote| {
        let drive = drive.open().await;
        let cost = cost(drive.controller(), operation, remote).await;
        drive.close().await.expect("the disk takes a checkpoint");
        cost
    })
    .busy
}

/// Runs `act` in a reactor on the server's core.
fn measure(act: impl AsyncFnOnce(&Remote) -> Cost + Send) -> Cost {
    let run = || {
        core::pin(core::SERVER);
        let remote = Remote::new().expect("a file descriptor is free");
        let (cost, _) = Reactor::new(None).serve(&remote, act(&remote)).expect("there is io_uring");
        cost
    };
    thread::scope(|scope| scope.spawn(run).join().expect("it does not panic"))
}

#[expect(clippy::cast_precision_loss, reason = "for a report")]
async fn cost(controller: &Arc<Controller>, operation: &Operation, remote: &Remote) -> Cost {
    let (queue, plan) = (controller.queue_pair(), plan(operation));
    workload::fill(&queue, &plan, |_, _| {}).await.expect("the keys fit");
    let thread = ReactorThread::current();
    let before = Work::new(remote.load(), &thread);
    let outcome = workload::run(&queue, &plan, |_, _| {}).await;
    let after = Work::new(remote.load(), &thread);
    assert_eq!(outcome.errors(), 0, "every operation succeeds");
    let (cpu, count) = (after.cpu_since(&before), outcome.operations() as f64);
    Cost { busy: cpu.busy.0 as f64 / count, all: cpu.all.0 as f64 / count }
}

fn plan(operation: &Operation) -> Plan {
    let exchange = operation.exchange;
    Plan {
        operation: if exchange.kind.brings_data() {
            workload::Operation::Mixed { read_percent: 0 }
        } else {
            workload::Operation::Retrieve
        },
        until: Until::Time(WINDOW),
        load: Load::QueueDepth(u32::try_from(exchange.depth).expect("a few")),
        nsid: Device::NAMESPACE,
        space: Space::Pairs,
        key_bytes: 16,
        values: ValueSizes::Fixed(u32::try_from(exchange.value_bytes).expect("some KiB")),
        keys: KEYS,
        is_filled: true,
        seed: 1,
        distribution: Distribution::Uniform,
        payload: Payload::Full,
    }
}

//! What a target with connections on which nothing happens takes of a core.

use experiments::loopback::exchange::Kind;
use experiments::loopback::target::{Kept, Target};
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

const CONNECTIONS: usize = 100;

const WINDOW: Duration = Duration::from_secs(3);

pub(crate) fn report() {
    let target = Target::start(Kept::InMemory, Kind::Retrieve);
    // Two sockets each.
    let connected: Vec<_> = (0..CONNECTIONS / 2).map(|_| target.connect()).collect();
    let before = processor_seconds();
    std::thread::sleep(WINDOW);
    let busy = (processor_seconds() - before) / WINDOW.as_secs_f64();
    println!("idle with {CONNECTIONS} connections: {:.2} % of a core; bar 1 %", busy * 100.0);
    drop(connected);
    target.stop();
}

/// Returns the processor time of this process: while the client sleeps, that is the target's.
#[expect(clippy::cast_precision_loss, reason = "for a report")]
fn processor_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

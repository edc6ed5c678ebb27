//! Which core each side has: the target has one for itself.

use rustix::thread::{CpuSet, sched_setaffinity};

/// The core of the client.
pub const CLIENT: usize = 0;

/// The core of the target and of the echo.
pub const SERVER: usize = 1;

/// Pins this thread, and those that it starts, to one core.
pub fn pin(core: usize) {
    let mut cores = CpuSet::new();
    cores.set(core);
    sched_setaffinity(None, &cores).expect("the machine has two cores");
}

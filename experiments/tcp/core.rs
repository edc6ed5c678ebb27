//! Which core each side has: the target has one for itself.

use rustix::thread::{CpuSet, sched_setaffinity};

/// The client's.
pub(crate) const CLIENT: usize = 0;

/// The target's, and the echo's.
pub(crate) const SERVER: usize = 1;

/// Keeps this thread, and those that it starts, on one core.
pub(crate) fn pin(core: usize) {
    let mut cores = CpuSet::new();
    cores.set(core);
    sched_setaffinity(None, &cores).expect("the machine has two cores");
}

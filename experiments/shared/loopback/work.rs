//! The CPU time of a reactor, without that of looking for something to do.

use crate::loopback::reactor_thread::{ReactorThread, Schedule};
use base::Nanos;
use reactor::Load;

/// A reading of what a reactor has done so far.
#[derive(Clone, Copy)]
pub struct Work {
    load: Load,
    schedule: Schedule,
}

/// CPU time of a reactor.
#[derive(Clone, Copy, Debug)]
pub struct Cpu {
    /// While it had something to do.
    pub busy: Nanos,
    /// With the time in which it looked for something to do.
    pub all: Nanos,
}

impl Work {
    /// Combines what the reactor has counted with what the kernel has counted of its thread.
    pub fn new(load: Load, thread: &ReactorThread) -> Self {
        Self { load, schedule: thread.schedule() }
    }

    /// Returns the CPU time since `before`.
    ///
    /// The reactor counts its busy time by the wall clock, and the kernel counts how long the
    /// thread waited for a core that another thread had: that is taken off the busy time by its
    /// share. Threads of the kernel that work for the reactor's ring are always busy.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "seconds, in nanoseconds"
    )]
    pub fn cpu_since(&self, before: &Self) -> Cpu {
        let busy = self.load.busy - before.load.busy;
        let ran = self.schedule.ran - before.schedule.ran;
        let waited = self.schedule.waited - before.schedule.waited;
        let helped = Nanos(self.schedule.helped.0.saturating_sub(before.schedule.helped.0));
        let share = ran.0 as f64 / (ran + waited).0 as f64;
        // The kernel updates what it counts at a tick.
        let busy = Nanos((busy.0 as f64 * share) as u64).min(ran);
        Cpu { busy: busy + helped, all: ran + helped }
    }

    /// Returns for how long another thread had the core since `before`, as a share of the time in
    /// which this one had it. Threads that work for its ring are not counted.
    #[expect(clippy::cast_precision_loss, reason = "for a report")]
    pub fn disturbed_share_since(&self, before: &Self) -> f64 {
        let ran = self.schedule.ran - before.schedule.ran;
        let waited = self.schedule.waited - before.schedule.waited;
        let helped = self.schedule.helped.0.saturating_sub(before.schedule.helped.0);
        waited.0.saturating_sub(helped) as f64 / ran.0 as f64
    }

    /// Returns the share of the time since `before` in which the reactor had something to do.
    #[expect(clippy::cast_precision_loss, reason = "for a report")]
    pub fn busy_share_since(&self, before: &Self) -> f64 {
        let busy = self.load.busy - before.load.busy;
        busy.0 as f64 / (busy + self.load.idle - before.load.idle).0 as f64
    }
}

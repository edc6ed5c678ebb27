use base::Nanos;
use std::ops::{Add, Sub};

/// What a core did in a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// The time for which the core executed stages, also for other cores.
    pub busy: Nanos,
    /// The time that the movable stages took, on any core, of the requests that this core received.
    pub movable: Nanos,
    /// The time for which this core executed movable stages, of any core's requests.
    pub executed: Nanos,
    /// The requests with movable stages that this core received.
    pub commands: u64,
    /// Those of them that other cores executed.
    pub diverted: u64,
    /// Requests of other cores that this one executed.
    pub taken: u64,
    /// The sum, over the requests that this core received, of the requests that it then knew and
    /// had not answered, each with itself.
    pub depths: u64,
}

impl Load {
    /// Returns the share of a window for which the core was busy, at most 1: a reactor may count
    /// the end of the window before.
    pub(crate) fn utilisation(self, window: Nanos) -> f64 {
        share(self.busy, window).min(1.0)
    }
}

impl Sub for Load {
    type Output = Self;

    /// Returns what was added to what a core had done `before`.
    fn sub(self, before: Self) -> Self {
        Self {
            busy: self.busy - before.busy,
            movable: self.movable - before.movable,
            executed: self.executed - before.executed,
            commands: self.commands - before.commands,
            diverted: self.diverted - before.diverted,
            taken: self.taken - before.taken,
            depths: self.depths - before.depths,
        }
    }
}

impl Add for Load {
    type Output = Self;

    fn add(self, more: Self) -> Self {
        Self {
            busy: self.busy + more.busy,
            movable: self.movable + more.movable,
            executed: self.executed + more.executed,
            commands: self.commands + more.commands,
            diverted: self.diverted + more.diverted,
            taken: self.taken + more.taken,
            depths: self.depths + more.depths,
        }
    }
}

/// Returns `part` as a share of `window`.
#[expect(clippy::cast_precision_loss, reason = "windows are far below 2^52 ns, 52 days")]
pub(crate) fn share(part: Nanos, window: Nanos) -> f64 {
    part.0 as f64 / window.0 as f64
}

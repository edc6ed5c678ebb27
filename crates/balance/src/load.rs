use base::Nanos;

/// What a core did in a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// The time for which the core executed stages, also for other cores.
    pub busy: Nanos,
    /// The time that the movable stages took, on any core, of the requests that this core received.
    pub movable: Nanos,
}

impl Load {
    /// Returns the share of a window for which the core was busy, at most 1: a reactor may count
    /// the end of the window before.
    pub(crate) fn utilisation(self, window: Nanos) -> f64 {
        share(self.busy, window).min(1.0)
    }
}

/// Returns `part` as a share of `window`.
#[expect(clippy::cast_precision_loss, reason = "windows are far below 2^52 ns, 52 days")]
pub(crate) fn share(part: Nanos, window: Nanos) -> f64 {
    part.0 as f64 / window.0 as f64
}

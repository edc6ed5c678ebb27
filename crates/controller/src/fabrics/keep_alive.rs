use crate::fabrics::association_state::AssociationState;
use base::Nanos;
use std::cell::Cell;
use std::sync::Arc;

/// The granularity of Keep Alive timeouts in units of 100 ms (KAS).
pub(crate) const GRANULARITY: u16 = 10;

/// Interval at which Keep Alive timers are checked.
pub(crate) const TICK: Nanos = Nanos::from_millis(GRANULARITY as u64 * 100);

/// Default timeout of a discovery controller's host: 2 minutes (Base 2.1, Discovery Controller
/// activity timeout).
pub(crate) const DISCOVERY_MS: u32 = 120_000;

/// A Keep Alive timer, which any command restarts (Base 2.1, Traffic Based Keep Alive).
///
/// It counts ticks instead of clock time. So a suspended machine does not let it expire, and a
/// command does not read the clock.
#[derive(Debug)]
pub(crate) struct KeepAlive {
    state: Arc<AssociationState>,
    timeout_ms: Cell<u32>,
    silent_ticks: Cell<u32>,
}

impl KeepAlive {
    /// Creates the timer of a host; `state` records its commands.
    pub(crate) fn new(state: Arc<AssociationState>) -> Self {
        Self { state, timeout_ms: Cell::new(0), silent_ticks: Cell::new(0) }
    }

    /// Returns the timeout in milliseconds; 0 if disabled.
    pub(crate) fn timeout_ms(&self) -> u32 {
        self.timeout_ms.get()
    }

    pub(crate) fn set_timeout_ms(&self, timeout_ms: u32) {
        self.timeout_ms.set(timeout_ms);
        self.state.hear();
    }

    /// Counts a tick. Returns whether the timer has expired: between the timeout and a tick later.
    pub(crate) fn expires(&self) -> bool {
        if self.state.take_heard() {
            self.silent_ticks.set(0);
            return false;
        }
        self.silent_ticks.set(self.silent_ticks.get().saturating_add(1));
        let timeout = Nanos::from_millis(self.timeout_ms.get().into());
        timeout > Nanos::ZERO && Nanos(TICK.0 * u64::from(self.silent_ticks.get())) >= timeout
    }
}

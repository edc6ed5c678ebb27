use crate::fabrics::standing::Standing;
use base::Nanos;
use std::cell::Cell;
use std::sync::Arc;

/// The granularity of keep alive times in units of 100 ms: what Identify says as KAS.
pub(crate) const GRANULARITY: u16 = 10;

/// How often it is looked whether hosts have been heard.
pub(crate) const TICK: Nanos = Nanos::from_millis(GRANULARITY as u64 * 100);

/// How long a host of a discovery controller may be silent that names no time of its own: 2
/// minutes (Base 2.1, Discovery Controller activity timeout).
pub(crate) const DISCOVERY_MS: u32 = 120_000;

/// Whether a host is still there: any command of it says so (Base 2.1, Traffic Based Keep Alive).
///
/// Silence is counted in ticks and not by the clock. So a machine that stood still has not been
/// silent, and a command costs no look at the time.
#[derive(Debug)]
pub(crate) struct KeepAlive {
    standing: Arc<Standing>,
    timeout_ms: Cell<u32>,
    silent_ticks: Cell<u32>,
}

impl KeepAlive {
    /// That of a host that `standing` knows to have been heard.
    pub(crate) fn new(standing: Arc<Standing>) -> Self {
        Self { standing, timeout_ms: Cell::new(0), silent_ticks: Cell::new(0) }
    }

    /// How long the host may be silent in milliseconds; 0 is for ever.
    pub(crate) fn timeout_ms(&self) -> u32 {
        self.timeout_ms.get()
    }

    pub(crate) fn set_timeout_ms(&self, timeout_ms: u32) {
        self.timeout_ms.set(timeout_ms);
        self.standing.hear();
    }

    /// Counts a tick, and says whether the host was silent for too long: between its time and a
    /// tick more.
    pub(crate) fn expires(&self) -> bool {
        if self.standing.take_heard() {
            self.silent_ticks.set(0);
            return false;
        }
        self.silent_ticks.set(self.silent_ticks.get().saturating_add(1));
        let timeout = Nanos::from_millis(self.timeout_ms.get().into());
        timeout > Nanos::ZERO && Nanos(TICK.0 * u64::from(self.silent_ticks.get())) >= timeout
    }
}

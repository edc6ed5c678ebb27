use crate::shared::Shared;
use base::Nanos;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

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
#[derive(Debug, Default)]
pub(crate) struct KeepAlive {
    heard: AtomicBool,
    timeout_ms: Shared<u32>,
    silent_ticks: Shared<u32>,
}

impl KeepAlive {
    /// Records that the host has sent a command. Only the first of several reactors writes.
    #[inline]
    pub(crate) fn hear(&self) {
        if !self.heard.load(Relaxed) {
            self.heard.store(true, Relaxed);
        }
    }

    /// Returns the timeout in milliseconds; 0 if disabled.
    pub(crate) fn timeout_ms(&self) -> u32 {
        self.timeout_ms.get()
    }

    pub(crate) fn set_timeout_ms(&self, timeout_ms: u32) {
        self.timeout_ms.set(timeout_ms);
        self.hear();
    }

    /// Counts a tick. Returns whether the timer has expired: between the timeout and a tick later.
    pub(crate) fn expires(&self) -> bool {
        if self.heard.swap(false, Relaxed) {
            self.silent_ticks.set(0);
            return false;
        }
        self.silent_ticks.set(self.silent_ticks.get().saturating_add(1));
        let timeout = Nanos::from_millis(self.timeout_ms.get().into());
        timeout > Nanos::ZERO && Nanos(TICK.0 * u64::from(self.silent_ticks.get())) >= timeout
    }
}

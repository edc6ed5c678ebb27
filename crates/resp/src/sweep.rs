//! What is looked after now and then: clients that do nothing, or do not take their answers, and
//! how fast commands come.

use crate::door::{Client, Door};
use std::sync::atomic::Ordering::Relaxed;

impl Door {
    /// Ends connections that are past their limits. To be called several times in a second.
    pub(crate) fn sweep(&self) {
        let now = clock::now();
        if !self.rates().is_due(now) {
            return;
        }
        let counters = self.counters();
        let counted = [counters.commands(), counters.read_bytes(), counters.written_bytes()];
        self.rates().sample(now, counted);
        // Once more after the last limit is gone, so that no client stays past it. Without limits,
        // idle clients take no time.
        let is_limited = self.parameters().has_limits_in_time();
        if !self.was_limited.swap(is_limited, Relaxed) && !is_limited {
            return;
        }
        for client in self.clients().values() {
            if self.is_idle(client) {
                client.wire.end();
            } else if self.is_overfull(client) {
                self.counters().count_output_overrun();
                client.wire.end();
            }
        }
    }

    /// Whether it has asked for nothing, or taken nothing of its answers, for too long.
    fn is_idle(&self, client: &Client) -> bool {
        let wire = &client.wire;
        let waits = wire.is_waiting.load(Relaxed) || wire.output_bytes.load(Relaxed) > 0;
        let timeout = self.parameters().timeout();
        waits && timeout.is_some_and(|timeout| wire.idle() > timeout)
    }

    /// Whether too many bytes wait for it for too long.
    fn is_overfull(&self, client: &Client) -> bool {
        let (max, time) = self.parameters().output_bytes_for_long();
        client.wire.overfull(max).is_some_and(|since| since > time)
    }
}

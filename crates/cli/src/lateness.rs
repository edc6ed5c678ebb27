use crate::number::grouped;
use base::Nanos;
use reactor::{LATE, Lateness};
use serde::Serialize;

/// How late the events of a device in real time were.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct LatenessReport {
    /// Events with a due time.
    events: u64,
    /// Of these, events that were at least 20 us late.
    late_events: u64,
    p50: u64,
    p99: u64,
    p999: u64,
    max: u64,
}

impl LatenessReport {
    pub(crate) fn new(lateness: &Lateness) -> Self {
        Self {
            events: lateness.events(),
            late_events: lateness.late_events(),
            p50: lateness.quantile(0.5).0,
            p99: lateness.quantile(0.99).0,
            p999: lateness.quantile(0.999).0,
            max: lateness.max().0,
        }
    }

    /// Returns the lines of a table.
    pub(crate) fn facts(&self) -> [(&'static str, String); 2] {
        let Self { events, late_events, p50, p999, .. } = *self;
        let (late, all) = (grouped(late_events), grouped(events));
        [
            ("late", format!("p50 {}, p99.9 {}", Nanos(p50), Nanos(p999))),
            ("late events", format!("{late} of {all}, by {LATE} or more")),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table;

    #[test]
    fn a_device_that_is_always_late_fits_a_terminal() {
        let lateness = LatenessReport {
            events: 9_876_543_210,
            late_events: 9_876_543_210,
            p50: 123_456_789,
            p99: 123_456_789,
            p999: 123_456_789,
            max: 123_456_789,
        };
        let table = table::facts(&lateness.facts());
        assert!(table.lines().all(|line| line.len() <= 80), "{table}");
    }
}

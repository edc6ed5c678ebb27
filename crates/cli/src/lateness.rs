use crate::number::grouped;
use base::Nanos;
use reactor::{LATE, Lateness};
use serde::Serialize;

/// How far behind the wall the events of a device in real time were.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct LatenessReport {
    /// Events that had a time to keep.
    events: u64,
    /// Of these, those that were 20 us late or more.
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

    /// In one line of a table.
    pub(crate) fn sentence(&self) -> String {
        let Self { events, late_events, p50, p999, .. } = *self;
        format!(
            "p50 {}, p99.9 {}; {} of {} events {LATE} or more",
            Nanos(p50),
            Nanos(p999),
            grouped(late_events),
            grouped(events),
        )
    }
}

use base::Nanos;
use hdrhistogram::Histogram;

/// How far behind the wall the events of a run in real time were.
#[derive(Debug)]
pub struct Lateness {
    histogram: Histogram<u64>,
    late_events: u64,
    max: Nanos,
}

/// An event this late, or later, is one that a user of the device could notice: the bound of FEMU.
pub const LATE: Nanos = Nanos::from_micros(20);

impl Lateness {
    pub(crate) fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, Nanos::from_secs(3_600).0, 2)
            .expect("1 ns to an hour with 2 digits is a range that histograms have");
        Self { histogram, late_events: 0, max: Nanos::ZERO }
    }

    #[inline]
    pub(crate) fn record(&mut self, late: Nanos) {
        self.histogram.saturating_record(late.0);
        self.late_events += u64::from(late >= LATE);
        self.max = self.max.max(late);
    }

    /// Events that had a time to keep.
    pub fn events(&self) -> u64 {
        self.histogram.len()
    }

    /// Of these, how many were [`LATE`].
    pub fn late_events(&self) -> u64 {
        self.late_events
    }

    /// What the share `quantile` of the events did not exceed, to 2 digits.
    pub fn quantile(&self, quantile: f64) -> Nanos {
        Nanos(self.histogram.value_at_quantile(quantile)).min(self.max)
    }

    /// The latest.
    pub fn max(&self) -> Nanos {
        self.max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_late_from_20_us_on() {
        let mut lateness = Lateness::new();
        for nanos in [500, 5_000_001, 15_000, 20_000, 0] {
            lateness.record(Nanos(nanos));
        }
        assert_eq!((lateness.events(), lateness.late_events()), (5, 2));
        assert_eq!((lateness.max(), lateness.quantile(1.0)), (Nanos(5_000_001), Nanos(5_000_001)));
        let median = lateness.quantile(0.5).0;
        assert!((15_000..15_200).contains(&median), "{median}");
    }
}

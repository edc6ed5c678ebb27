use base::Nanos;
use clock::{Stage, Stages};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// The latencies of the successful operations of one kind.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(from = "Saved", into = "Saved")]
pub struct Tally {
    latency: Histogram<u64>,
    /// Present after the first late operation, so never in virtual time.
    lateness: Option<Histogram<u64>>,
    sum: u128,
    max: Nanos,
    stages: Stages,
}

/// Quantiles count latencies above it as this much: a year, more than 2^32 operations, which no run
/// has, of several milliseconds each take one after the other.
const LATENCY_MAX: Nanos = Nanos::from_secs(365 * 24 * 3_600);

/// Points of a curve from one quantile to that with half as many operations above it.
const POINTS_PER_HALVING: u32 = 20;

/// The saved state of a tally: the values of each histogram, and their counts.
#[derive(Serialize, Deserialize)]
struct Saved {
    latency: Vec<(u64, u64)>,
    lateness: Option<Vec<(u64, u64)>>,
    sum: u128,
    max: Nanos,
    stages: Stages,
}

impl From<Tally> for Saved {
    fn from(tally: Tally) -> Self {
        let counts = |histogram: &Histogram<u64>| {
            let points = histogram.iter_recorded();
            points.map(|point| (point.value_iterated_to(), point.count_at_value())).collect()
        };
        Self {
            latency: counts(&tally.latency),
            lateness: tally.lateness.as_ref().map(counts),
            sum: tally.sum,
            max: tally.max,
            stages: tally.stages,
        }
    }
}

impl From<Saved> for Tally {
    fn from(saved: Saved) -> Self {
        let filled = |counts: Vec<(u64, u64)>| {
            let mut histogram = histogram();
            for (value, count) in counts {
                histogram.saturating_record_n(value, count);
            }
            histogram
        };
        Self {
            latency: filled(saved.latency),
            lateness: saved.lateness.map(filled),
            sum: saved.sum,
            max: saved.max,
            stages: saved.stages,
        }
    }
}

impl Tally {
    /// Returns a tally without operations.
    pub fn new() -> Self {
        Self {
            latency: histogram(),
            lateness: None,
            sum: 0,
            max: Nanos::ZERO,
            stages: Stages::default(),
        }
    }

    /// Adds an operation that took `latency`, spent in `stages`.
    #[inline]
    pub fn record(&mut self, latency: Nanos, stages: &Stages) {
        let late = stages[Stage::Late];
        if late > Nanos::ZERO || self.lateness.is_some() {
            self.record_lateness(late);
        }
        self.latency.saturating_record(latency.0);
        self.sum += u128::from(latency.0);
        self.max = self.max.max(latency);
        self.stages += stages;
    }

    #[cold]
    fn record_lateness(&mut self, late: Nanos) {
        let lateness = self.lateness.get_or_insert_with(|| {
            let mut lateness = histogram();
            // All earlier operations were on time.
            lateness.saturating_record_n(0, self.latency.len());
            lateness
        });
        lateness.saturating_record(late.0);
    }

    /// Returns the number of operations.
    pub fn count(&self) -> u64 {
        self.latency.len()
    }

    /// Returns the mean latency in nanoseconds, from the exact sum.
    pub fn mean_ns(&self) -> f64 {
        self.share(self.sum)
    }

    /// Returns the mean time in `stage` in nanoseconds, from the exact sum.
    pub fn stage_mean_ns(&self, stage: Stage) -> f64 {
        self.share(self.stages[stage].0.into())
    }

    /// Returns the latency that the share `quantile` of the operations did not exceed, to 3 digits.
    pub fn latency(&self, quantile: f64) -> Nanos {
        Nanos(self.latency.value_at_quantile(quantile)).min(self.max)
    }

    /// Returns the longest latency.
    pub fn max(&self) -> Nanos {
        self.max
    }

    /// The distribution of latencies as points (quantile, latency), rising in both up to quantile 1
    /// and [`Self::max`]: 20 for each halving of the operations above, so that a tail on a
    /// logarithmic scale is as fine as the rest.
    pub fn quantiles(&self) -> impl Iterator<Item = (f64, Nanos)> {
        self.latency.iter_quantiles(POINTS_PER_HALVING).map(|point| {
            (point.quantile_iterated_to(), Nanos(point.value_iterated_to()).min(self.max))
        })
    }

    /// Returns the lateness that the share `quantile` of the operations did not exceed, to 3
    /// digits: see [`Stage::Late`]. `None` when none was late.
    pub fn lateness(&self, quantile: f64) -> Option<Nanos> {
        self.lateness.as_ref().map(|lateness| Nanos(lateness.value_at_quantile(quantile)))
    }

    #[expect(clippy::cast_precision_loss, reason = "for reports, where 53 bits are plenty")]
    fn share(&self, sum: u128) -> f64 {
        sum as f64 / self.count() as f64
    }
}

impl Default for Tally {
    fn default() -> Self {
        Self::new()
    }
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_MAX.0, 3)
        .expect("1 ns to a year with 3 digits is a range that histograms have")
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;

    fn record(tally: &mut Tally, latency: u64, late: u64) {
        let mut stages = Stages::default();
        stages.add(Stage::Late, Nanos(late));
        stages.add(Stage::Array, Nanos(latency - late));
        tally.record(Nanos(latency), &stages);
    }

    /// Latencies over many orders of magnitude.
    fn latencies() -> Vec<u64> {
        let mut rng = Rng::new(3);
        (0..10_000).map(|_| rng.next_u64() >> (24 + rng.below(40))).collect()
    }

    fn tally_of(latencies: &[u64]) -> Tally {
        let mut tally = Tally::new();
        for &latency in latencies {
            record(&mut tally, latency, 0);
        }
        tally
    }

    #[test]
    fn means_are_exact_and_quantiles_right_to_three_digits() {
        let mut latencies = latencies();
        let tally = tally_of(&latencies);
        latencies.sort_unstable();
        let sum: u64 = latencies.iter().sum();
        #[expect(clippy::cast_precision_loss, reason = "sums here are below 2^53")]
        let mean = sum as f64 / 10_000.0;
        assert!((tally.mean_ns() - mean).abs() < mean * 1e-12);
        assert_eq!((tally.count(), tally.max().0), (10_000, latencies[9_999]));
        for (quantile, rank) in [(0.5, 5_000), (0.99, 9_900), (0.999, 9_990), (1.0, 10_000)] {
            let (found, exact) = (tally.latency(quantile).0, latencies[rank - 1]);
            assert!(found.abs_diff(exact) <= exact / 1_000, "{quantile}: {found}, {exact}");
        }
    }

    #[test]
    fn the_points_of_a_curve_rise_to_the_maximum_and_have_their_ranks() {
        let mut latencies = latencies();
        let tally = tally_of(&latencies);
        latencies.sort_unstable();
        let points: Vec<(f64, Nanos)> = tally.quantiles().collect();
        assert!(points.windows(2).all(|pair| pair[0].0 <= pair[1].0 && pair[0].1 <= pair[1].1));
        assert_eq!(points.last(), Some(&(1.0, tally.max())));
        for &(quantile, latency) in &points {
            let within = latencies.partition_point(|&exact| exact <= latency.0);
            let share = f64::from(u32::try_from(within).unwrap()) / 1e4;
            assert!(share >= quantile - 1e-9, "{share} of {quantile} are within {latency}");
            let below = latency.0.saturating_sub(latency.0 / 1_000 + 1);
            let under = latencies.partition_point(|&exact| exact < below);
            assert!(f64::from(u32::try_from(under).unwrap()) / 1e4 <= quantile, "{quantile}");
        }
        // In each halving above the median there are points enough for a smooth curve.
        for halving in 1..12 {
            let (from, to) = (1.0 - 0.5_f64.powi(halving), 1.0 - 0.5_f64.powi(halving + 1));
            let within = points.iter().filter(|point| (from..to).contains(&point.0)).count();
            assert!(within >= 10, "{within} points from {from} to {to}");
        }
    }

    #[test]
    fn latencies_of_hours_are_still_told_apart() {
        let twenty_hours = 72_000_000_000_000;
        let tally = tally_of(&[twenty_hours, twenty_hours, 2 * twenty_hours]);
        let found = tally.latency(0.5).0;
        assert!(found.abs_diff(twenty_hours) <= twenty_hours / 1_000, "{found}");
    }

    #[test]
    fn lateness_is_of_all_operations_as_soon_as_one_was_late() {
        let mut tally = Tally::new();
        (0..90).for_each(|_| record(&mut tally, 1_000, 0));
        assert_eq!(tally.lateness(1.0), None);
        (0..9).for_each(|_| record(&mut tally, 1_000, 500));
        record(&mut tally, 1_000, 0);
        assert_eq!(tally.lateness(0.91), Some(Nanos(0)));
        assert_eq!(tally.lateness(0.92), Some(Nanos(500)));
        assert!((tally.stage_mean_ns(Stage::Late) - 45.0).abs() < 1e-9);
    }
}

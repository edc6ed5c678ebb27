use base::Nanos;
use serde::{Deserialize, Serialize};

/// The number of completions over time, in bins of equal width from the start of a run.
///
/// Bins start narrow and double their width whenever more than [`Timeline::BINS_MAX`] are needed,
/// so that a run of any length has about a thousand of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline {
    width: Nanos,
    counts: Vec<u64>,
    /// The bin of the last completion; the next completion mostly has the same.
    last: usize,
    /// Where that bin starts.
    last_start: Nanos,
}

impl Timeline {
    /// The most bins.
    pub const BINS_MAX: usize = 2_048;

    /// Returns a timeline without completions.
    pub(crate) fn new() -> Self {
        let width = Nanos::from_micros(1);
        Self { width, counts: vec![0], last: 0, last_start: Nanos::ZERO }
    }

    /// Counts a completion `at` after the start of the run.
    #[inline]
    pub(crate) fn add(&mut self, at: Nanos) {
        if at < self.last_start || at >= self.last_start + self.width {
            self.seek(at);
        }
        self.counts[self.last] += 1;
    }

    #[cold]
    fn seek(&mut self, at: Nanos) {
        let bins = Self::BINS_MAX as u64;
        while at.0 / self.width.0 >= bins {
            self.counts = self.counts.chunks(2).map(|pair| pair.iter().sum()).collect();
            self.width = self.width + self.width;
        }
        self.last = usize::try_from(at.0 / self.width.0).expect("below the number of bins");
        self.last_start = Nanos(self.last as u64 * self.width.0);
        if self.counts.len() <= self.last {
            self.counts.resize(self.last + 1, 0);
        }
    }

    /// Returns the width of each bin: 1 us, 2 us, 4 us and so on.
    pub fn width(&self) -> Nanos {
        self.width
    }

    /// Returns the completions in each bin, from the start of the run to the last one.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;

    fn timeline(times: &[u64]) -> Timeline {
        let mut timeline = Timeline::new();
        for &at in times {
            timeline.add(Nanos(at));
        }
        timeline
    }

    #[test]
    fn a_bin_counts_what_completed_within_it() {
        let mut rng = Rng::new(1);
        for span in [900, 5_000, 2_047_999, 2_048_000, 3_000_000, 1 << 40, u64::MAX >> 1] {
            let times: Vec<u64> = (0..5_000).map(|_| rng.below(span)).chain([span - 1]).collect();
            let found = timeline(&times);
            let width = found.width().0;
            let mut counts = vec![0; found.counts().len()];
            for at in times {
                counts[usize::try_from(at / width).unwrap()] += 1;
            }
            assert_eq!(found.counts(), counts, "up to {span}");
        }
    }

    #[test]
    fn bins_are_as_narrow_as_their_number_allows() {
        for (end, width, bins) in [
            (0, 1_000, 1),
            (999, 1_000, 1),
            (2_047_999, 1_000, 2_048),
            (2_048_000, 2_000, 1_025),
            (4_096_000, 4_000, 1_025),
            (1_000_000_000, 512_000, 1_954),
        ] {
            let timeline = timeline(&[0, end]);
            assert_eq!((timeline.width().0, timeline.counts().len()), (width, bins), "to {end}");
        }
    }

    #[test]
    fn the_order_of_completions_does_not_matter() {
        let mut rng = Rng::new(2);
        let mut times: Vec<u64> = (0..2_000).map(|_| rng.below(10_000_000)).collect();
        let found = timeline(&times);
        times.sort_unstable();
        let sorted = timeline(&times);
        assert_eq!((found.width(), found.counts()), (sorted.width(), sorted.counts()));
    }
}

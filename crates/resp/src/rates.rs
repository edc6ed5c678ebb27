use base::Nanos;
use std::collections::VecDeque;

/// Of so many samples the average is told, as Redis has it.
const SAMPLES: usize = 16;
/// From one to the next.
const PERIOD: Nanos = Nanos::from_millis(100);

/// What was counted until an instant: commands, bytes that came, and bytes that went.
pub(crate) type Counted = [u64; 3];

/// How fast counters have grown lately.
#[derive(Debug, Default)]
pub(crate) struct Rates(VecDeque<(Nanos, Counted)>);

impl Rates {
    /// Whether it is time for a sample.
    pub(crate) fn is_due(&self, now: Nanos) -> bool {
        self.0.back().is_none_or(|(last, _)| now.0 - last.0 >= PERIOD.0)
    }

    pub(crate) fn sample(&mut self, now: Nanos, counted: Counted) {
        // A CONFIG RESETSTAT came between.
        let is_less = |(_, last): &(Nanos, Counted)| last.iter().zip(counted).any(|(a, b)| *a > b);
        if self.0.back().is_some_and(is_less) {
            self.0.clear();
        }
        self.0.push_back((now, counted));
        if self.0.len() > SAMPLES + 1 {
            self.0.pop_front();
        }
    }

    /// By how much each grows in a second.
    pub(crate) fn per_second(&self) -> Counted {
        let (Some((since, before)), Some((now, after))) = (self.0.front(), self.0.back()) else {
            return [0; 3];
        };
        let nanos = u128::from(now.0 - since.0).max(1);
        let rate = |at: usize| u128::from(after[at] - before[at]) * 1_000_000_000 / nanos;
        [0, 1, 2].map(|at| u64::try_from(rate(at)).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_that_of_the_last_samples() {
        let mut rates = Rates::default();
        assert_eq!(rates.per_second(), [0; 3]);
        for at in 0..100 {
            let now = Nanos::from_millis(100 * at);
            assert!(rates.is_due(now) && (at == 0 || !rates.is_due(Nanos(now.0 - 1))));
            let fast = at.saturating_sub(50);
            rates.sample(now, [at + 9 * fast, 0, 1_000 * at]);
        }
        assert_eq!(rates.per_second(), [100, 0, 10_000]);
        rates.sample(Nanos::from_secs(10), [0, 0, 0]);
        assert_eq!(rates.per_second(), [0; 3], "counters were set back");
    }
}

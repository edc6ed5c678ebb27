use base::Nanos;
use std::num::NonZero;

const SECOND: u128 = 1_000_000_000;

/// A token bucket: bounds the rate of something, in tokens per second.
///
/// The bucket holds at most the tokens of [`Self::BURST`], and at least 1. Its state is one
/// instant, which the caller keeps: when the bucket is full again. Work starts with a token or
/// more, and is charged when its size is known. So the bucket can go below zero, by at most one
/// piece of work of each user at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    per_second: NonZero<u64>,
}

impl RateLimit {
    /// A full bucket has the tokens of this time.
    pub const BURST: Nanos = Nanos::from_millis(100);

    /// Creates a limit of so many tokens per second.
    pub const fn new(per_second: NonZero<u64>) -> Self {
        Self { per_second }
    }

    /// Returns the tokens of a full bucket.
    pub fn burst(self) -> u64 {
        self.tokens(self.burst_time())
    }

    /// Returns the tokens at `now` in a bucket that is full at `full_at`: 0 if it is empty.
    pub fn available(self, full_at: Nanos, now: Nanos) -> u64 {
        let missing = Nanos(full_at.0.saturating_sub(now.0));
        self.tokens(Nanos(self.burst_time().0.saturating_sub(missing.0)))
    }

    /// Returns when the bucket is full after `count` tokens were taken at `now`.
    pub fn take(self, full_at: Nanos, now: Nanos, count: u64) -> Nanos {
        Nanos(full_at.0.max(now.0).saturating_add(self.time_of(count).0))
    }

    /// Returns when the bucket has its first token.
    pub fn ready_at(self, full_at: Nanos) -> Nanos {
        let first = full_at.0.saturating_add(self.time_of(1).0);
        Nanos(first.saturating_sub(self.burst_time().0))
    }

    fn burst_time(self) -> Nanos {
        Self::BURST.max(self.time_of(1))
    }

    /// Returns the time in which so many tokens come, rounded up.
    fn time_of(self, count: u64) -> Nanos {
        let time = (u128::from(count) * SECOND).div_ceil(u128::from(self.per_second.get()));
        Nanos(u64::try_from(time).unwrap_or(u64::MAX))
    }

    fn tokens(self, time: Nanos) -> u64 {
        let tokens = u128::from(time.0) * u128::from(self.per_second.get()) / SECOND;
        u64::try_from(tokens).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;

    fn limit(per_second: u64) -> RateLimit {
        RateLimit::new(NonZero::new(per_second).unwrap())
    }

    /// Takes at most `most` tokens at a time for so long, whenever there are some. Returns how many
    /// were taken.
    fn take_for(limit: RateLimit, time: Nanos, most: u64) -> u64 {
        let (mut full_at, mut now, mut taken) = (Nanos::ZERO, Nanos::ZERO, 0);
        loop {
            now = now.max(limit.ready_at(full_at));
            if now > time {
                return taken;
            }
            let count = limit.available(full_at, now).min(most);
            assert!(count > 0, "there is a token when the bucket is ready");
            full_at = limit.take(full_at, now, count);
            taken += count;
        }
    }

    #[test]
    fn burst_is_the_tokens_of_a_tenth_of_a_second_and_at_least_one() {
        let rates = [1, 9, 10, 11, 1_000, 10_000_000_000];
        let bursts = rates.map(|rate| limit(rate).burst());
        assert_eq!(bursts, [1, 1, 1, 1, 100, 1_000_000_000]);
        assert_eq!(limit(1_000).available(Nanos::ZERO, Nanos(5)), 100, "it starts full");
    }

    #[test]
    fn backlog_gets_the_rate_and_one_burst() {
        let mut rng = Rng::new(3);
        for _ in 0..300 {
            let rate = 1 + rng.below(100_000);
            let seconds = 1 + rng.below(5);
            let (limit, most) = (limit(rate), 1 + rng.below(64));
            let taken = take_for(limit, Nanos::from_secs(seconds), most);
            let due = rate * seconds;
            assert!(taken <= due + limit.burst(), "{rate}/s for {seconds} s: {taken}");
            // Each take rounds the time of its tokens up, by less than 1 ns.
            assert!(taken >= due - due / 10_000 - 1, "{rate}/s for {seconds} s: {taken}");
        }
    }

    #[test]
    fn what_was_taken_too_much_is_waited_for() {
        let limit = limit(10);
        let full_at = limit.take(Nanos::ZERO, Nanos::ZERO, 31);
        assert_eq!(limit.available(full_at, Nanos::from_millis(3_099)), 0);
        assert_eq!(limit.ready_at(full_at), Nanos::from_millis(3_100));
        assert_eq!(limit.available(full_at, Nanos::from_millis(3_100)), 1);
    }

    #[test]
    fn tokens_of_a_long_rest_are_at_most_the_burst() {
        let limit = limit(1_000);
        let full_at = limit.take(Nanos::ZERO, Nanos::ZERO, 100);
        assert_eq!(limit.available(full_at, Nanos::from_millis(50)), 50);
        let later = Nanos::from_secs(3_600);
        assert_eq!(limit.available(full_at, later), 100);
        assert_eq!(limit.available(limit.take(full_at, later, 100), later), 0);
    }

    #[test]
    fn largest_rates_and_counts_do_not_overflow() {
        let limit = limit(u64::MAX);
        let full_at = limit.take(Nanos(u64::MAX), Nanos(u64::MAX), u64::MAX);
        assert_eq!(full_at, Nanos(u64::MAX));
        assert!(limit.available(Nanos::ZERO, Nanos::ZERO) > 0);
    }
}

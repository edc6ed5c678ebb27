use base::Nanos;

const SECOND_NS: u128 = 1_000_000_000;

/// How busy a connection was lately.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    at: Nanos,
    /// Commands until then.
    pub(crate) commands: u64,
    /// In a thousand seconds.
    pub(crate) rate: u64,
}

impl Pace {
    /// Of a connection that came now.
    pub(crate) fn new(now: Nanos) -> Self {
        Self { at: now, ..Self::default() }
    }

    /// The mean of what was done since it was last asked for, and of what it was before, as if that
    /// had lasted a second. So a great total of a client that rests is soon forgotten.
    pub(crate) fn at(self, now: Nanos, commands: u64) -> Self {
        let passed = u128::from(now.0.saturating_sub(self.at.0));
        let done = u128::from(commands.saturating_sub(self.commands)) * 1_000;
        let rate = (u128::from(self.rate) + done) * SECOND_NS / (SECOND_NS + passed);
        Self { at: now, commands, rate: u64::try_from(rate).unwrap_or(u64::MAX) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pace after so many milliseconds in which so many commands were done.
    fn pace_of(steps: &[(u64, u64)]) -> u64 {
        let mut pace = Pace::default();
        for (millis, commands) in steps {
            pace = pace.at(Nanos(pace.at.0 + millis * 1_000_000), pace.commands + commands);
        }
        pace.rate
    }

    #[test]
    fn a_pace_comes_near_the_rate_and_forgets_what_was() {
        // The limit of (pace + 1,000 * 1,000) / 2.
        let steady = pace_of(&[(1_000, 1_000); 40]);
        assert!((999_990..=1_000_000).contains(&steady), "{steady}");
        let rests = pace_of(&[(3_600_000, 1_000_000), (1_000, 0), (1_000, 0), (1_000, 0)]);
        let begins = pace_of(&[(1_000, 100)]);
        assert!(rests < begins, "{rests} {begins}");
        assert_eq!(pace_of(&[(0, 0)]), 0);
    }
}

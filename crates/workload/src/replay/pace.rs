use base::Nanos;
use std::fmt;
use std::str::FromStr;

/// When the operations of a replay are due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// As far apart as in the trace.
    Recorded,
    /// As far apart as in the trace, over the speed.
    Scaled(Speed),
    /// As soon as they can be submitted.
    Full,
}

/// How many times as fast as recorded: 0.01 to 1,000,000, with up to 6 decimals, exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speed {
    millionths: u64,
}

const MILLION: u64 = 1_000_000;

impl Speed {
    /// The slowest: the longest trace then ends before the clock does.
    pub(super) const MIN: Self = Self { millionths: MILLION / 100 };

    /// The fastest: a trace of the greatest length then takes minutes.
    pub(super) const MAX: Self = Self { millionths: MILLION * MILLION };

    /// The speed that `text`, a decimal number, stands for.
    fn parse(text: &str) -> Option<Self> {
        let (whole, decimals) = match text.split_once('.') {
            Some((whole, decimals)) => (whole, decimals),
            None => (text, "0"),
        };
        let is_number =
            |digits: &str| !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
        if !is_number(whole) || !is_number(decimals) || decimals.len() > 6 {
            return None;
        }
        let whole: u64 = whole.parse().ok()?;
        let decimals: u64 = format!("{decimals:0<6}").parse().ok()?;
        let millionths = whole.checked_mul(MILLION)?.checked_add(decimals)?;
        let is_known = (Self::MIN.millionths..=Self::MAX.millionths).contains(&millionths);
        is_known.then_some(Self { millionths })
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, decimals) = (self.millionths / MILLION, self.millionths % MILLION);
        if decimals == 0 {
            return write!(f, "{whole}");
        }
        let decimals = format!("{decimals:06}");
        write!(f, "{whole}.{}", decimals.trim_end_matches('0'))
    }
}

impl Pace {
    /// When an operation is due that the trace has at `time`, both from the start; rounded down to
    /// the nanosecond.
    #[inline]
    pub(super) fn due(self, time: Nanos) -> Option<Nanos> {
        match self {
            Self::Recorded => Some(time),
            Self::Scaled(speed) => {
                let due = u128::from(time.0) * u128::from(MILLION) / u128::from(speed.millionths);
                Some(Nanos(u64::try_from(due).expect("the longest trace is short enough")))
            }
            Self::Full => None,
        }
    }
}

impl fmt::Display for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Recorded => f.write_str("recorded"),
            Self::Scaled(speed) => write!(f, "{speed}x"),
            Self::Full => f.write_str("full"),
        }
    }
}

/// A text that names no pace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaceError;

impl fmt::Display for PaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (min, max) = (Speed::MIN, Speed::MAX);
        write!(f, "a pace is recorded, full, or a speed such as 10x, from {min}x to {max}x")
    }
}

impl std::error::Error for PaceError {}

impl FromStr for Pace {
    type Err = PaceError;

    fn from_str(text: &str) -> Result<Self, PaceError> {
        match text {
            "recorded" => Ok(Self::Recorded),
            "full" => Ok(Self::Full),
            _ => {
                let speed = text.strip_suffix('x').and_then(Speed::parse).ok_or(PaceError)?;
                Ok(Self::Scaled(speed))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::trace::DURATION_MAX;
    use super::*;
    use base::Rng;

    fn pace(text: &str) -> Pace {
        text.parse().unwrap()
    }

    #[test]
    fn a_pace_is_read_and_written_alike() {
        for text in ["recorded", "full", "10x", "1x", "2.5x", "0.01x", "1000000x", "0.123456x"] {
            assert_eq!(pace(text).to_string(), text);
        }
        assert_eq!(pace("007.50x").to_string(), "7.5x");
        assert_eq!(pace("2.5x"), Pace::Scaled(Speed { millionths: 2_500_000 }));
    }

    #[test]
    fn what_names_no_pace_is_refused_in_one_sentence() {
        for text in [
            "",
            "x",
            "10",
            "-1x",
            "+1x",
            "0x",
            "0.009999x",
            "1000000.000001x",
            "1.x",
            ".5x",
            "1ex",
            "1.0000001x",
            "NaNx",
            "10X",
            "Full",
            "1_0x",
            "99999999999999999999x",
        ] {
            assert_eq!(text.parse::<Pace>(), Err(PaceError), "{text}");
        }
        let sentence = "a pace is recorded, full, or a speed such as 10x, from 0.01x to 1000000x";
        assert_eq!(PaceError.to_string(), sentence);
    }

    #[test]
    fn a_scaled_due_time_is_the_recorded_one_over_the_speed_rounded_down() {
        let mut rng = Rng::new(1);
        for _ in 0..20_000 {
            let millionths = 10_000 + rng.below(1_000_000_000_000 - 10_000);
            let pace = Pace::Scaled(Speed { millionths });
            let time = rng.below(DURATION_MAX.0) >> rng.below(40);
            let due = u128::from(pace.due(Nanos(time)).unwrap().0);
            // due <= time / speed < due + 1, times the speed and a million.
            let product = u128::from(time) * 1_000_000;
            assert!(due * u128::from(millionths) <= product);
            assert!(product < (due + 1) * u128::from(millionths));
        }
    }

    #[test]
    fn speeds_of_whole_numbers_divide_and_their_inverses_multiply() {
        assert_eq!(pace("10x").due(Nanos(12_345)), Some(Nanos(1_234)));
        assert_eq!(pace("0.1x").due(Nanos(12_345)), Some(Nanos(123_450)));
        assert_eq!(pace("1x").due(Nanos(12_345)), pace("recorded").due(Nanos(12_345)));
        assert_eq!(pace("full").due(Nanos(12_345)), None);
    }

    #[test]
    fn the_longest_trace_at_the_slowest_speed_ends_within_the_clock() {
        let last = DURATION_MAX + Nanos::from_secs(1);
        assert_eq!(pace("0.01x").due(last), Some(Nanos(last.0 * 100)));
    }
}

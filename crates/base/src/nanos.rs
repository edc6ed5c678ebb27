use serde::{Deserialize, Serialize};
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub, SubAssign};

/// An instant or a duration in nanoseconds. Instants count from the start of the clock.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Nanos(pub u64);

const NANOS_PER_SEC: u64 = 1_000_000_000;

impl Nanos {
    /// The start of the clock, and no time at all.
    pub const ZERO: Self = Self(0);

    /// `micros` microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros * 1_000)
    }

    /// `millis` milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis * 1_000_000)
    }

    /// `secs` seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs * NANOS_PER_SEC)
    }

    /// The time that `bytes` take at `bytes_per_second`, rounded up to a nanosecond; zero when the
    /// rate is zero, which stands for "no limit".
    pub const fn for_bytes(bytes: u64, bytes_per_second: u64) -> Self {
        if bytes_per_second == 0 {
            return Self::ZERO;
        }
        if let Some(scaled) = bytes.checked_mul(NANOS_PER_SEC) {
            return Self(scaled.div_ceil(bytes_per_second));
        }
        let scaled = bytes as u128 * NANOS_PER_SEC as u128;
        let nanos = scaled.div_ceil(bytes_per_second as u128);
        assert!(nanos <= u64::MAX as u128, "a transfer takes longer than the clock can count");
        #[expect(clippy::cast_possible_truncation, reason = "checked in the line above")]
        Self(nanos as u64)
    }

    /// The duration in seconds.
    #[expect(clippy::cast_precision_loss, reason = "for reports, where 53 bits are plenty")]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The difference, or zero when `earlier` is later.
    #[must_use]
    pub const fn saturating_sub(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }
}

impl Add for Nanos {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl Sub for Nanos {
    type Output = Self;
    #[inline]
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl AddAssign for Nanos {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl SubAssign for Nanos {
    #[inline]
    fn sub_assign(&mut self, other: Self) {
        self.0 -= other.0;
    }
}

impl Sum for Nanos {
    fn sum<I: Iterator<Item = Self>>(nanos: I) -> Self {
        nanos.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Nanos {
    #[expect(clippy::cast_precision_loss, reason = "for reports, where 53 bits are plenty")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0..1_000 => write!(f, "{} ns", self.0),
            1_000..1_000_000 => write!(f, "{:.1} us", self.0 as f64 / 1e3),
            1_000_000..1_000_000_000 => write!(f, "{:.2} ms", self.0 as f64 / 1e6),
            _ => write!(f, "{:.3} s", self.0 as f64 / 1e9),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Nanos;

    #[test]
    fn bytes_at_a_rate_round_up_to_a_nanosecond() {
        assert_eq!(Nanos::for_bytes(4096, 800_000_000), Nanos(5_120));
        assert_eq!(Nanos::for_bytes(1, 3_200_000_000), Nanos(1));
        assert_eq!(Nanos::for_bytes(4096, 0), Nanos::ZERO);
        // Of this many and more the nanoseconds at 1 byte a second have more than 64 bits.
        let long = u64::MAX / 1_000_000_000 + 1;
        for (bytes, rate) in [(long - 1, 3_000), (long, 3_000), (u64::MAX, 1 << 31)] {
            let nanos = u128::from(bytes) * 1_000_000_000;
            let nanos = u64::try_from(nanos.div_ceil(rate.into())).unwrap();
            assert_eq!(Nanos::for_bytes(bytes, rate), Nanos(nanos));
        }
    }

    #[test]
    fn durations_print_in_the_unit_a_person_would_choose() {
        assert_eq!(Nanos(999).to_string(), "999 ns");
        assert_eq!(Nanos::from_micros(45).to_string(), "45.0 us");
        assert_eq!(Nanos::from_millis(3).to_string(), "3.00 ms");
        assert_eq!(Nanos::from_secs(2).to_string(), "2.000 s");
    }
}

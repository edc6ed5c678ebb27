use std::fmt;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Digits after the point that a nanosecond needs.
const DECIMALS: usize = 9;

/// The number that `text` writes in digits alone; 2^64 - 1 for all from there on.
pub(super) fn whole(text: &[u8]) -> Option<u64> {
    let is_number = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    is_number.then(|| text.iter().fold(0, |number, &digit| appended(number, digit)))
}

fn appended(number: u64, digit: u8) -> u64 {
    number.saturating_mul(10).saturating_add(u64::from(digit - b'0'))
}

/// Nanoseconds in the seconds that `text` writes as a decimal fraction. Digits after the ninth
/// decimal do not count.
pub(super) fn seconds(text: &[u8]) -> Option<u64> {
    let mut parts = text.splitn(2, |&byte| byte == b'.');
    let seconds = whole(parts.next()?)?.checked_mul(NANOS_PER_SECOND)?;
    let Some(decimals) = parts.next() else {
        return Some(seconds);
    };
    whole(decimals)?;
    let padded = decimals.iter().copied().chain([b'0'; DECIMALS]).take(DECIMALS);
    seconds.checked_add(padded.fold(0, appended))
}

/// Nanoseconds that print as the seconds they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seconds(pub(super) u64);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, decimals) = (self.0 / NANOS_PER_SECOND, self.0 % NANOS_PER_SECOND);
        if decimals == 0 {
            return write!(f, "{whole}");
        }
        let decimals = format!("{decimals:09}");
        write!(f, "{whole}.{}", decimals.trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;

    #[test]
    fn whole_numbers_are_digits_alone_and_never_overflow() {
        let max = u64::MAX.to_string();
        for (text, number) in [("0", 0), ("007", 7), ("4096", 4_096), (&max, u64::MAX)] {
            assert_eq!(whole(text.as_bytes()), Some(number), "{text}");
        }
        assert_eq!(whole(b"18446744073709551616"), Some(u64::MAX));
        assert_eq!(whole(b"20000000000000000000"), Some(u64::MAX));
        assert_eq!(whole(&[b'9'; 100]), Some(u64::MAX));
        for text in ["", "-1", "+1", "1.0", "1e3", "0x10", " 1", "1 ", "1_000", "12k"] {
            assert_eq!(whole(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn seconds_are_exact_to_the_nanosecond() {
        for (text, nanos) in [
            ("0", 0),
            ("12.5", 12_500_000_000),
            ("0.000000001", 1),
            ("1.0000000019", 1_000_000_001),
            ("1583280000.123456789", 1_583_280_000_123_456_789),
            ("18446744073.709551615", u64::MAX),
        ] {
            assert_eq!(seconds(text.as_bytes()), Some(nanos), "{text}");
        }
        for text in ["", ".", "1.", ".5", "1.2.3", "-1", "1e9", "1,5", "18446744073.709551616"] {
            assert_eq!(seconds(text.as_bytes()), None, "{text}");
        }
        assert_eq!(seconds(&[b'9'; 100]), None);
    }

    #[test]
    fn seconds_are_written_as_they_are_read() {
        let mut rng = Rng::new(4);
        for nanos in (0..10_000).map(|_| rng.next_u64() >> rng.below(64)) {
            assert_eq!(seconds(Seconds(nanos).to_string().as_bytes()), Some(nanos));
        }
        assert_eq!(Seconds(2_050_000_000).to_string(), "2.05");
        assert_eq!(Seconds(3_000_000_000).to_string(), "3");
    }
}

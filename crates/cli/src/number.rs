//! Formats and parses numbers.

use base::Nanos;

/// Formats `count` with a comma after each three digits.
pub(crate) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats `value`, which is not negative, without its fraction, as [`grouped`].
pub(crate) fn rounded(value: f64) -> String {
    grouped(to_u64(value))
}

/// Formats a mean in nanoseconds, in a suitable unit.
pub(crate) fn duration(nanos: f64) -> String {
    Nanos(to_u64(nanos)).to_string()
}

/// Formats seconds in a suitable unit.
pub(crate) fn seconds(seconds: f64) -> String {
    duration(seconds * 1e9)
}

/// Formats the share of `part` in `whole`, in percent, or a dash if `whole` is zero.
pub(crate) fn percent(part: f64, whole: f64) -> String {
    if whole > 0.0 { format!("{:.1} %", part / whole * 100.0) } else { "-".to_owned() }
}

/// Formats `value` with two digits, or a dash.
pub(crate) fn ratio(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}"))
}

/// Returns `part` over `whole`, unless `whole` is zero.
#[expect(clippy::cast_precision_loss, reason = "for reports, where 53 bits are plenty")]
pub(crate) fn quotient(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// Formats `count` and its noun: `singular`, or with an s.
pub(crate) fn counted(count: u64, singular: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {singular}{plural}", grouped(count))
}

/// Rounds `value`, which is not negative.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rounds for a report; a cast stops at the ends of the range"
)]
pub(crate) fn to_u64(value: f64) -> u64 {
    value.round() as u64
}

/// Parses a number.
pub(crate) fn parse_count(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "must be a whole number, as 100000".to_owned())
}

/// Parses a time in seconds, with an optional fraction.
pub(crate) fn parse_seconds(text: &str) -> Result<Nanos, String> {
    const SECONDS: &str = "a time must be seconds from 0.000000001 to 1000000000, as 5 or 0.25";
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) || fraction.len() > 9 {
        return Err(SECONDS.to_owned());
    }
    let whole: u64 = whole.parse().map_err(|_| SECONDS.to_owned())?;
    let fraction: u64 = format!("{fraction:0<9}").parse().map_err(|_| SECONDS.to_owned())?;
    let in_range = whole <= 1_000_000_000 && whole + fraction > 0;
    in_range.then(|| Nanos::from_secs(whole) + Nanos(fraction)).ok_or_else(|| SECONDS.to_owned())
}

/// Parses a time with a unit, such as 20ms, 1.5s or 250us, or in seconds.
pub(crate) fn parse_time(text: &str) -> Result<Nanos, String> {
    const TIME: &str =
        "a time must be like 20ms, 1.5s or 250us, or 2 for seconds, from 1ns to 1000000000s";
    let units = [("ns", 9), ("us", 6), ("ms", 3), ("s", 0)];
    let (number, places) = units
        .iter()
        .find_map(|(unit, places)| Some((text.strip_suffix(unit)?, *places)))
        .unwrap_or((text, 0));
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    // Decimal places by which the point moves, so that nothing is rounded.
    let digits = format!("{whole:0>width$}", width = places + 1);
    let (seconds, shifted) = digits.split_at_checked(digits.len() - places).ok_or(TIME)?;
    let seconds = format!("{seconds}.{shifted}{fraction}");
    let is_written = !whole.is_empty() && number.contains('.') != fraction.is_empty();
    let seconds = seconds.strip_suffix('.').unwrap_or(&seconds);
    if is_written {
        parse_seconds(seconds).map_err(|_| TIME.to_owned())
    } else {
        Err(TIME.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped_by_three() {
        for (count, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (12_345, "12,345"),
            (123_456, "123,456"),
            (u64::MAX, "18,446,744,073,709,551,615"),
        ] {
            assert_eq!(grouped(count), text);
        }
        assert_eq!(rounded(1_234.5), "1,235");
        assert_eq!((counted(1, "file"), counted(2_000, "file")).1, "2,000 files");
        assert_eq!(counted(1, "file"), "1 file");
    }

    #[test]
    fn seconds_have_fractions_down_to_a_nanosecond() {
        for (text, nanos) in [
            ("5", 5_000_000_000),
            ("0.25", 250_000_000),
            ("0.000000001", 1),
            ("1000000000", 1_000_000_000_000_000_000),
        ] {
            assert_eq!(parse_seconds(text), Ok(Nanos(nanos)), "{text}");
        }
        for text in ["", "0", "0.0", "-1", "1e3", ".5", "5.", "1s", "0.0000000001", "1000000001"] {
            assert!(parse_seconds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_time_has_a_unit_or_is_seconds() {
        for (text, nanos) in [
            ("20ms", 20_000_000),
            ("1.5s", 1_500_000_000),
            ("2", 2_000_000_000),
            ("0.25", 250_000_000),
            ("250us", 250_000),
            ("0.5us", 500),
            ("1234567us", 1_234_567_000),
            ("7ns", 7),
        ] {
            assert_eq!(parse_time(text), Ok(Nanos(nanos)), "{text}");
        }
        for text in
            ["", "ms", "0ms", "5 ms", "-5ms", "5min", "0.1ns", "1.ms", ".5ms", "1..5s", "5m"]
        {
            assert!(parse_time(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_share_of_nothing_is_a_dash() {
        assert_eq!(percent(1.0, 8.0), "12.5 %");
        assert_eq!(percent(0.0, 0.0), "-");
        assert_eq!(ratio(quotient(3, 2)), "1.50");
        assert_eq!(ratio(quotient(3, 0)), "-");
    }

    #[test]
    fn durations_round_to_a_nanosecond() {
        assert_eq!(duration(52_479.6), "52.5 us");
        assert_eq!(seconds(0.25), "250.00 ms");
    }
}

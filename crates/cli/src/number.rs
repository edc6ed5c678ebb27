//! Numbers as people read and write them.

use base::Nanos;
use base::{GIB, KIB, MIB};

/// `count` with a comma after each three digits.
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

/// `value`, not negative, without its fraction, as [`grouped`].
pub(crate) fn rounded(value: f64) -> String {
    grouped(to_u64(value))
}

/// A mean in nanoseconds, in the unit that a person would choose.
pub(crate) fn duration(nanos: f64) -> String {
    Nanos(to_u64(nanos)).to_string()
}

/// Seconds in the unit that a person would choose.
pub(crate) fn seconds(seconds: f64) -> String {
    duration(seconds * 1e9)
}

/// The share of `part` in `whole`, in percent; nothing of nothing has none.
pub(crate) fn percent(part: f64, whole: f64) -> String {
    if whole > 0.0 { format!("{:.1} %", part / whole * 100.0) } else { "-".to_owned() }
}

/// `value` to two digits, or a dash.
pub(crate) fn ratio(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}"))
}

/// `part` over `whole`, unless that is nothing.
#[expect(clippy::cast_precision_loss, reason = "for reports, where 53 bits are plenty")]
pub(crate) fn quotient(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// `count` of `singular`, or of that with an s.
pub(crate) fn counted(count: u64, singular: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {singular}{plural}", grouped(count))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rounds for a report; a cast stops at the ends of the range"
)]
fn to_u64(value: f64) -> u64 {
    value.round() as u64
}

/// The number that `text` writes.
pub(crate) fn parse_count(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "a whole number is expected, as 100000".to_owned())
}

/// The bytes that `text` writes: a number, and a unit of 1024 or a power of it.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => KIB,
        "m" | "mib" => MIB,
        "g" | "gib" => GIB,
        _ => return Err(SIZE.to_owned()),
    };
    let number: u64 = number.parse().map_err(|_| SIZE.to_owned())?;
    number.checked_mul(unit).ok_or_else(|| SIZE.to_owned())
}

const SIZE: &str = "a size is a number of bytes, KiB, MiB or GiB, as 4096, 4KiB or 4k";

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
    fn sizes_have_units_of_1024() {
        for (text, bytes) in [
            ("0", 0),
            ("16", 16),
            ("16B", 16),
            ("4k", 4_096),
            ("4K", 4_096),
            ("4KiB", 4_096),
            ("2MiB", 2 << 20),
            ("2m", 2 << 20),
            ("1g", 1 << 30),
            ("3GiB", 3 << 30),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        let many = format!("{}g", u64::MAX);
        for text in ["", "k", "4kb", "4 k", "-1", "+1", "1.5k", "0x10", "4kk", "\u{664}", &many] {
            assert!(parse_size(text).is_err(), "{text}");
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

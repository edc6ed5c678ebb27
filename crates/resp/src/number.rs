//! Numbers as clients write them and read them.

/// Digits after the point that are kept of a sum.
const FRACTION_DIGITS: usize = 17;

/// Digits of a number of units, at most.
const UNIT_DIGITS: usize = 38;

/// The number that `text` is, if it is written as this program would write it: no sign but a minus,
/// no zero ahead, nothing around.
pub(crate) fn integer(text: &[u8]) -> Option<i64> {
    let (sign, digits) = match text {
        [b'-', digits @ ..] => (-1, digits),
        digits => (1, digits),
    };
    match digits {
        [b'0'] if sign == 1 => Some(0),
        // With the sign in each step, because i64::MIN has no positive counterpart.
        [b'1'..=b'9', ..] => digits.iter().try_fold(0_i64, |number, byte| {
            let digit = byte.wrapping_sub(b'0');
            let more = (digit < 10).then(|| sign * i64::from(digit))?;
            number.checked_mul(10)?.checked_add(more)
        }),
        _ => None,
    }
}

/// The number that `text` is as the bound of a range of scores: decimal, or infinite.
pub(crate) fn parse_bound(text: &[u8]) -> Option<f64> {
    let number: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    (!number.is_nan()).then_some(number)
}

/// The same as a score: none that is too great or too small for a float.
pub(crate) fn parse_score(text: &[u8]) -> Option<f64> {
    let number = parse_bound(text)?;
    let is_written = |what: fn(&u8) -> bool| {
        let digits = text.split(|byte| byte.eq_ignore_ascii_case(&b'e')).next().unwrap_or_default();
        digits.iter().any(what)
    };
    let is_too_great = number.is_infinite() && is_written(u8::is_ascii_digit);
    let is_too_small = number == 0.0 && is_written(|byte| (b'1'..=b'9').contains(byte));
    (!is_too_great && !is_too_small).then_some(number)
}

/// A score as clients read it: 17 digits that count, with an exponent where the number is very
/// great or small.
pub(crate) fn score(number: f64) -> String {
    if number.is_infinite() {
        return if number > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let scientific = format!("{number:.*e}", SCORE_DIGITS - 1);
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let power: i32 = exponent.parse().unwrap_or(0);
    let decimals = i32::try_from(SCORE_DIGITS).unwrap_or(0) - 1 - power;
    if power < -4 || decimals < 0 {
        let sign = if power < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", short(digits), power.unsigned_abs());
    }
    short(&format!("{number:.*}", usize::try_from(decimals).unwrap_or(0))).to_owned()
}

/// Digits of a score that count.
const SCORE_DIGITS: usize = 17;

/// Without zeros at the end of a fraction.
fn short(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

/// A decimal number: exact in units of 10^-17 while that fits, else the nearest float.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Decimal {
    Exact(i128),
    Float(f64),
}

impl Decimal {
    /// The number that `text` is.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let float: f64 = text.parse().ok()?;
        if float.is_nan() {
            return None;
        }
        Some(exact(text).map_or(Self::Float(float), Self::Exact))
    }

    pub(crate) const fn is_infinite(self) -> bool {
        matches!(self, Self::Float(float) if float.is_infinite())
    }

    fn float(self) -> f64 {
        match self {
            Self::Exact(units) => text_of(units).parse().unwrap_or(f64::NAN),
            Self::Float(float) => float,
        }
    }

    /// The sum; `None` when it is no number.
    pub(crate) fn plus(self, other: Self) -> Option<Self> {
        if let (Self::Exact(a), Self::Exact(b)) = (self, other)
            && let Some(sum) = a.checked_add(b)
        {
            return Some(Self::Exact(sum));
        }
        let sum = self.float() + other.float();
        sum.is_finite().then_some(Self::Float(sum))
    }

    /// As clients read it: no exponent, and no zeros at the end of a fraction.
    pub(crate) fn text(self) -> String {
        match self {
            Self::Exact(units) => text_of(units),
            Self::Float(float) => trimmed(&format!("{float:.FRACTION_DIGITS$}")),
        }
    }
}

/// `text` in units, if that is a whole number of few digits.
fn exact(text: &str) -> Option<i128> {
    let (number, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let exponent: i32 = exponent.parse().ok()?;
    let digits = number.strip_prefix(['-', '+']).unwrap_or(number);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all = format!("{whole}{fraction}");
    let behind = i32::try_from(fraction.len()).ok()?.checked_sub(exponent)?;
    let zeros = usize::try_from(i32::try_from(FRACTION_DIGITS).ok()?.checked_sub(behind)?).ok()?;
    if all.len() + zeros > UNIT_DIGITS || !all.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let units: i128 = format!("{all}{:0<zeros$}", "").parse().ok()?;
    Some(if text.starts_with('-') { -units } else { units })
}

fn text_of(units: i128) -> String {
    let one = 10_u128.pow(17);
    let sign = if units < 0 { "-" } else { "" };
    let (whole, fraction) = (units.unsigned_abs() / one, units.unsigned_abs() % one);
    trimmed(&format!("{sign}{whole}.{fraction:0FRACTION_DIGITS$}"))
}

fn trimmed(text: &str) -> String {
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_written_in_one_way() {
        for number in [0, 7, -7, 10, i64::MAX, i64::MIN] {
            assert_eq!(integer(number.to_string().as_bytes()), Some(number));
        }
        let wrong = ["", "-", "+1", "01", "-0", " 1", "1 ", "1.0", "0x1", "9223372036854775808"];
        for text in wrong {
            assert_eq!(integer(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn sums_of_decimals_are_exact() {
        let sum = |a: &str, b: &str| {
            let number = |text: &str| Decimal::parse(text.as_bytes()).unwrap();
            number(a).plus(number(b)).map(Decimal::text)
        };
        assert_eq!(sum("1.1", "2.2").unwrap(), "3.3");
        assert_eq!(sum("10.50", "0.1").unwrap(), "10.6");
        assert_eq!(sum("5.0e3", "2.0e2").unwrap(), "5200");
        assert_eq!(sum("1.85", "1e0").unwrap(), "2.85");
        assert_eq!(sum("1E-17", "25e-1").unwrap(), "2.50000000000000001");
        assert_eq!(sum("-3", "3").unwrap(), "0");
        assert_eq!(sum("-0.5", "0.25").unwrap(), "-0.25");
        assert_eq!(sum("1e300", "1e300").unwrap().len(), 301);
        assert_eq!(sum("inf", "1"), None);
        assert!(["", "nan", "1x", " 1"].iter().all(|no| Decimal::parse(no.as_bytes()).is_none()));
    }
}

use crate::profile::error::ProfileError;
use crate::profile::quote::{listed, shown};
use crate::profile::section::Section;
use base::Nanos;
use std::ops::RangeInclusive;
use toml::de::DeValue;

/// Maximum time of a stage: a minute exceeds every real part of a drive, and sums of many stay far
/// below the clock's maximum.
const STAGE_SECONDS_MAX: f64 = 60.0;

/// Maximum rate in MB/s: a terabyte per second.
const MB_PER_S_MAX: f64 = 1e6;

/// Minimum nonzero rate in MB/s: a kilobyte per second.
const MB_PER_S_MIN: f64 = 1e-3;

/// A key of a section with its value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field<'t> {
    pub(crate) section: Section<'t>,
    pub(crate) key: &'static str,
    pub(crate) value: &'t DeValue<'t>,
    pub(crate) line: usize,
}

impl Field<'_> {
    /// Returns a whole number in `range`.
    pub(crate) fn whole(self, range: RangeInclusive<u32>) -> Result<u32, ProfileError> {
        let (start, end) = range.into_inner();
        let number = self.count(u64::from(start)..=u64::from(end))?;
        Ok(u32::try_from(number).expect("it is in a range of such numbers"))
    }

    /// Returns a whole number of 64 bits in `range`.
    pub(crate) fn count(self, range: RangeInclusive<u64>) -> Result<u64, ProfileError> {
        let number = match self.value {
            DeValue::Integer(digits) => u64::from_str_radix(digits.as_str(), digits.radix()).ok(),
            _ => None,
        };
        number.filter(|number| range.contains(number)).ok_or_else(|| {
            self.must_be(&format!("a whole number from {} to {}", range.start(), range.end()))
        })
    }

    /// Returns a number in `range`, with or without a fraction.
    pub(crate) fn number(self, range: RangeInclusive<f64>) -> Result<f64, ProfileError> {
        self.as_number().filter(|number| range.contains(number)).ok_or_else(|| {
            self.must_be(&format!("a number from {} to {}", range.start(), range.end()))
        })
    }

    /// Returns true or false.
    pub(crate) fn truth(self) -> Result<bool, ProfileError> {
        match self.value {
            DeValue::Boolean(truth) => Ok(*truth),
            _ => Err(self.must_be("true or false")),
        }
    }

    /// Returns a time given in microseconds.
    pub(crate) fn micros(self) -> Result<Nanos, ProfileError> {
        Ok(Nanos(to_u64(self.number(0.0..=STAGE_SECONDS_MAX * 1e6)? * 1e3)))
    }

    /// Returns a time given in nanoseconds; zero if absent.
    pub(crate) fn nanos(field: Option<Self>) -> Result<Nanos, ProfileError> {
        let Some(field) = field else { return Ok(Nanos::ZERO) };
        Ok(Nanos(to_u64(field.number(0.0..=STAGE_SECONDS_MAX * 1e9)?)))
    }

    /// Returns a rate, given in MB/s (10^6 bytes), in bytes per second. Zero means no limit.
    pub(crate) fn rate(self) -> Result<u64, ProfileError> {
        let rate = self.number(0.0..=MB_PER_S_MAX)?;
        if rate > 0.0 && rate < MB_PER_S_MIN {
            return Err(self.must_be(&format!("{MB_PER_S_MIN} or more, or 0 for no limit")));
        }
        Ok(to_u64(rate * 1e6))
    }

    /// Returns the entry of `choices` whose word is the value.
    pub(crate) fn choice<T: Copy>(self, choices: &[(&str, T)]) -> Result<T, ProfileError> {
        let chosen = choices.iter().find(|(word, _)| self.is(word));
        chosen
            .map(|&(_, choice)| choice)
            .ok_or_else(|| self.must_be(&listed(choices.iter().map(|(word, _)| *word), "or")))
    }

    /// Returns whether the value is this string.
    pub(crate) fn is(self, word: &str) -> bool {
        matches!(self.value, DeValue::String(text) if text == word)
    }

    /// Returns whether the value is a string.
    pub(crate) const fn is_text(self) -> bool {
        matches!(self.value, DeValue::String(_))
    }

    /// Returns whether the value is a list.
    pub(crate) fn is_array(self) -> bool {
        matches!(self.value, DeValue::Array(_))
    }

    /// Returns each element of a list as a field of its own; none if the value is no list.
    pub(crate) fn elements(self) -> Vec<Self> {
        let DeValue::Array(elements) = self.value else { return Vec::new() };
        elements.iter().map(|element| Field { value: element.get_ref(), ..self }).collect()
    }

    /// Returns a string of one line.
    pub(crate) fn line_of_text(self) -> Result<String, ProfileError> {
        match self.value {
            DeValue::String(text) if !text.chars().any(char::is_control) => Ok(text.to_string()),
            _ => Err(self.must_be("text in one line")),
        }
    }

    /// Returns the error that the value must be `expected`.
    pub(crate) fn must_be(self, expected: &str) -> ProfileError {
        let Self { section, key, value, .. } = self;
        self.wrong(format!("{key} {} is {}, but must be {expected}", section.place(), shown(value)))
    }

    /// Returns the error `problem` at this key's line.
    pub(crate) fn wrong(self, problem: String) -> ProfileError {
        self.section.source.error(self.line, problem)
    }

    fn as_number(self) -> Option<f64> {
        match self.value {
            DeValue::Float(digits) => digits.as_str().parse().ok(),
            DeValue::Integer(digits) if digits.radix() == 10 => digits.as_str().parse().ok(),
            DeValue::Integer(digits) => {
                u32::from_str_radix(digits.as_str(), digits.radix()).ok().map(f64::from)
            }
            _ => None,
        }
    }
}

/// Rounds `number` to an integer, clamped to the range of `u64`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, and what is cast was checked against a range"
)]
pub(crate) fn to_u64(number: f64) -> u64 {
    number.round() as u64
}

/// Rounds `number` to an integer of 32 bits.
pub(crate) fn to_u32(number: f64) -> u32 {
    u32::try_from(to_u64(number)).unwrap_or(u32::MAX)
}

use crate::profile::error::ProfileError;
use crate::profile::section::Section;
use crate::profile::source::{listed, shown};
use base::Nanos;
use std::ops::RangeInclusive;
use toml::de::DeValue;

/// Longest time of any stage: a minute is beyond every part of a drive, and sums of many stay far
/// from the end of the clock.
const STAGE_SECONDS_MAX: f64 = 60.0;

/// Highest rate in MB/s: a terabyte per second.
const MB_PER_S_MAX: f64 = 1e6;

/// Lowest rate in MB/s that is not zero: a kilobyte per second.
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
    /// A whole number in `range`.
    pub(crate) fn whole(self, range: RangeInclusive<u32>) -> Result<u32, ProfileError> {
        let (start, end) = range.into_inner();
        let number = self.count(u64::from(start)..=u64::from(end))?;
        Ok(u32::try_from(number).expect("it is in a range of such numbers"))
    }

    /// A whole number in `range`, which may be a large one.
    pub(crate) fn count(self, range: RangeInclusive<u64>) -> Result<u64, ProfileError> {
        let number = match self.value {
            DeValue::Integer(digits) => u64::from_str_radix(digits.as_str(), digits.radix()).ok(),
            _ => None,
        };
        number.filter(|number| range.contains(number)).ok_or_else(|| {
            self.must_be(&format!("a whole number from {} to {}", range.start(), range.end()))
        })
    }

    /// A number in `range`, with or without a fraction.
    pub(crate) fn number(self, range: RangeInclusive<f64>) -> Result<f64, ProfileError> {
        self.as_number().filter(|number| range.contains(number)).ok_or_else(|| {
            self.must_be(&format!("a number from {} to {}", range.start(), range.end()))
        })
    }

    /// True or false.
    pub(crate) fn truth(self) -> Result<bool, ProfileError> {
        match self.value {
            DeValue::Boolean(truth) => Ok(*truth),
            _ => Err(self.must_be("true or false")),
        }
    }

    /// A time in microseconds.
    pub(crate) fn micros(self) -> Result<Nanos, ProfileError> {
        Ok(Nanos(to_u64(self.number(0.0..=STAGE_SECONDS_MAX * 1e6)? * 1e3)))
    }

    /// A time in nanoseconds; none is zero.
    pub(crate) fn nanos(field: Option<Self>) -> Result<Nanos, ProfileError> {
        let Some(field) = field else { return Ok(Nanos::ZERO) };
        Ok(Nanos(to_u64(field.number(0.0..=STAGE_SECONDS_MAX * 1e9)?)))
    }

    /// A rate given in MB/s (10^6 bytes), in bytes per second. Zero stands for "no limit".
    pub(crate) fn rate(self) -> Result<u64, ProfileError> {
        let rate = self.number(0.0..=MB_PER_S_MAX)?;
        if rate > 0.0 && rate < MB_PER_S_MIN {
            return Err(self.must_be(&format!("{MB_PER_S_MIN} or more, or 0 for no limit")));
        }
        Ok(to_u64(rate * 1e6))
    }

    /// What stands beside the value in `choices`.
    pub(crate) fn choice<T: Copy>(self, choices: &[(&str, T)]) -> Result<T, ProfileError> {
        let chosen = choices.iter().find(|(word, _)| self.is(word));
        chosen
            .map(|&(_, choice)| choice)
            .ok_or_else(|| self.must_be(&listed(choices.iter().map(|(word, _)| *word), "or")))
    }

    /// Whether the value is this string.
    pub(crate) fn is(self, word: &str) -> bool {
        matches!(self.value, DeValue::String(text) if text == word)
    }

    /// Whether the value is a list.
    pub(crate) fn is_array(self) -> bool {
        matches!(self.value, DeValue::Array(_))
    }

    /// Each element of a list, as if it were the key's value; none if the value is no list.
    pub(crate) fn elements(self) -> Vec<Self> {
        let DeValue::Array(elements) = self.value else { return Vec::new() };
        elements.iter().map(|element| Field { value: element.get_ref(), ..self }).collect()
    }

    /// A string of one line.
    pub(crate) fn line_of_text(self) -> Result<String, ProfileError> {
        match self.value {
            DeValue::String(text) if !text.chars().any(char::is_control) => Ok(text.to_string()),
            _ => Err(self.must_be("text in one line")),
        }
    }

    /// The error that the value is not what it must be.
    pub(crate) fn must_be(self, expected: &str) -> ProfileError {
        let Self { section, key, value, .. } = self;
        self.wrong(format!("{key} {} is {}, but must be {expected}", section.place(), shown(value)))
    }

    /// The error that says `problem` of this key's line.
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

/// `number` rounded to a whole one. Numbers beyond the ends of `u64` become the ends.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, and what is cast was checked against a range"
)]
pub(crate) fn to_u64(number: f64) -> u64 {
    number.round() as u64
}

/// The same for numbers that are small.
pub(crate) fn to_u32(number: f64) -> u32 {
    u32::try_from(to_u64(number)).unwrap_or(u32::MAX)
}

//! The numbers of a profile to fit.

use crate::output::Failure;
use node::profile::Draft;
use node::{Profile, ProfileError};
use serde::Serialize;

/// Largest factor between start and result of a number. The profile's own limits hold too.
const FACTOR_MAX: f64 = 1_000.0;

/// Digits of a fitted number.
const DIGITS: i32 = 4;

/// A number of a profile.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct FitKnob {
    /// Its key, such as `firmware.t_read_us`.
    pub(super) key: String,
    /// Its value in the profile, if the profile has one.
    pub(super) before: Option<String>,
    /// Start of the search.
    pub(super) start: f64,
    /// Whether it is a whole number.
    pub(super) is_whole: bool,
}

impl FitKnob {
    /// Returns the knob that `text` names: a key, or `KEY=START`.
    pub(super) fn parse(text: &str, draft: &Draft) -> Result<Self, Failure> {
        let (key, start) = match text.split_once('=') {
            Some((key, start)) => (key.trim(), Some(start.trim())),
            None => (text.trim(), None),
        };
        if !key.contains('.') {
            let sentence = format!("a knob is a section and a key, as nand.read_us, not {key:?}");
            return Err(Failure::Refused(sentence));
        }
        check_known(key, draft)?;
        let before = draft.knobs().into_iter().find(|knob| knob.key == key).map(|knob| knob.value);
        let of_profile = before.as_deref().map(|value| {
            value.replace('_', "").parse().map_err(|_| {
                Failure::Refused(format!("{key} is {value}, and only single numbers are fitted"))
            })
        });
        let start = match (start, of_profile.transpose()?) {
            (Some(text), _) => text.parse().map_err(|_| {
                Failure::Refused(format!("{key} begins at {text:?}, which is no number"))
            })?,
            (None, Some(value)) => value,
            (None, None) => 0.0,
        };
        if start <= 0.0 || !f64::is_finite(start) {
            return Err(Failure::Refused(format!(
                "{key} cannot begin at {start}: say where the search begins, as --knob {key}=10"
            )));
        }
        let accepts = |value: f64| draft.set(key, &value.to_string()).profile();
        let is_whole = start.fract() == 0.0
            && accepts(start).is_ok()
            && accepts(start + 0.5).is_err()
            && accepts(start - 0.5).is_err();
        let knob = Self { key: key.to_owned(), before, start, is_whole };
        accepts(knob.rounded(start)).map_err(Failure::refused)?;
        Ok(knob)
    }

    /// Returns `value` in the profile's notation.
    pub(super) fn rounded(&self, value: f64) -> f64 {
        if self.is_whole {
            return value.round();
        }
        let exponent = value.abs().log10().floor();
        #[expect(clippy::cast_possible_truncation, reason = "an exponent of a 64-bit number")]
        let decimals = (DIGITS - 1 - exponent as i32).clamp(0, 9);
        let unit = 10_f64.powi(decimals);
        (value * unit).round() / unit
    }

    /// True if the search may use `value`.
    fn allows(&self, value: f64) -> bool {
        let factor = value / self.start;
        (1.0 / FACTOR_MAX..=FACTOR_MAX).contains(&factor)
    }
}

/// Refuses a key that no profile has.
fn check_known(key: &str, draft: &Draft) -> Result<(), Failure> {
    // Keys of a namespace contain its number.
    let kinds =
        if key.starts_with("namespace.") { &["namespace", "block", "zoned"][..] } else { &[] };
    let name = key.rsplit('.').next().unwrap_or(key);
    let is = |known: &String| {
        known == key || kinds.iter().any(|kind| *known == format!("{kind}.{name}"))
    };
    if node::profile::keys().iter().any(is) {
        return Ok(());
    }
    let why = match draft.set(key, "1").profile() {
        Err(ProfileError::Invalid { problem, .. }) => format!(": {problem}"),
        _ => String::new(),
    };
    Err(Failure::Refused(format!("there is no knob {key}{why}")))
}

/// Returns `draft` with each of `knobs` at its value.
pub(super) fn with_values(draft: &Draft, knobs: &[FitKnob], values: &[f64]) -> Draft {
    let pairs = knobs.iter().zip(values);
    pairs.fold(draft.clone(), |draft, (knob, value)| {
        draft.set(&knob.key, &knob.rounded(*value).to_string())
    })
}

/// Returns the profile of `draft` with each of `knobs` at its value, or nothing if the search may
/// not use a value or the profile refuses it.
pub(super) fn profile_with(draft: &Draft, knobs: &[FitKnob], values: &[f64]) -> Option<Profile> {
    if !knobs.iter().zip(values).all(|(knob, value)| knob.allows(*value)) {
        return None;
    }
    with_values(draft, knobs, values).profile().ok()
}

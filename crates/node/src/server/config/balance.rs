use crate::ProfileError;
use crate::profile::schema::Schema;
use crate::profile::section::Section;
use crate::server::BalanceConfig;
use balance::{Memory, Policy, Settings};
use base::Nanos;
use std::ops::RangeInclusive;

pub(super) const SCHEMA: Schema = Schema {
    name: "balance",
    title: "[balance]",
    keys: &["policy", "overload", "spread", "movable", "window_ms", "memory", "release"],
};

/// Reads how reactors execute commands for each other.
pub(super) fn read(section: Section<'_>) -> Result<BalanceConfig, ProfileError> {
    let default = Settings::default();
    let share = |key, range: RangeInclusive<f64>, default: f64| {
        section.optional(key).map_or(Ok(default), |field| field.number(range))
    };
    let policies = Policy::ALL.map(|policy| (policy.name(), policy));
    let policy = section.field("policy")?.choice(&policies)?;
    let memory = if section.truth_or("memory", true)? {
        Memory::On { release: share("release", 0.0..=1.0, Memory::RELEASE)? }
    } else if let Some(field) = section.optional("release") {
        return Err(field.wrong("release means something only with memory = true".to_owned()));
    } else {
        Memory::Off
    };
    let window = section.optional("window_ms").map(|field| field.whole(1..=60_000)).transpose()?;
    let settings = Settings {
        overload: share("overload", 0.0..=1.0, default.overload)?,
        spread: share("spread", 0.0..=1.0, default.spread)?,
        movable: share("movable", 0.0..=1.0, default.movable)?,
        window: window.map_or(default.window, |millis| Nanos::from_millis(millis.into())),
        memory,
    };
    Ok(BalanceConfig { policy, settings })
}

use crate::profile::field::{Field, to_u32, to_u64};
use crate::profile::schema::Schema;
use crate::profile::section::Section;
use crate::profile::{Nand, Profile, ProfileError};
use base::Nanos;
use nand::{FaultKind, FaultRule, When};
use std::fmt::Write;

pub(super) const SCHEMA: Schema = Schema {
    name: "fault",
    title: "[[fault]]",
    keys: &["kind", "ppm", "nth", "die", "block", "page", "from_us", "until_us", "most", "percent"],
};

/// Maximum time in microseconds: 30 years, far below the clock's maximum.
const MICROS_MAX: f64 = 1e15;

/// Maximum time of a slow die, in percent of its normal times.
const PERCENT_MAX: u32 = 1_000_000;

/// Denominator of fault rates.
const MILLION: u32 = 1_000_000;

/// Each kind by its name. The slow die has a placeholder factor.
const KINDS: [(&str, FaultKind); 6] = [
    ("uncorrectable-read", FaultKind::UncorrectableRead),
    ("flipped-bit", FaultKind::FlippedBit),
    ("failed-program", FaultKind::FailedProgram),
    ("failed-erase", FaultKind::FailedErase),
    ("bad-block", FaultKind::BadBlock),
    ("slow-die", FaultKind::SlowDie { percent: 100 }),
];

/// Reads a rule from `section` and checks its places against `profile`.
pub(super) fn read(
    section: Section<'_>,
    profile: Option<&Profile>,
) -> Result<FaultRule, ProfileError> {
    let named = section.field("kind")?.choice(&KINDS)?;
    let kind = match (named, section.optional("percent")) {
        (FaultKind::SlowDie { .. }, _) => {
            let percent = section.field("percent")?.whole(100..=PERCENT_MAX)?;
            FaultKind::SlowDie { percent }
        }
        (_, Some(percent)) => {
            let reason = "percent is given, but only the kind \"slow-die\" has it";
            return Err(percent.wrong(reason.to_owned()));
        }
        (_, None) => named,
    };
    if let (FaultKind::FailedErase, Some(page)) = (kind, section.optional("page")) {
        return Err(page.wrong("page is given, but what is erased is a block".to_owned()));
    }
    let most = section.optional("most").map(|field| field.count(1..=u64::MAX)).transpose()?;
    let from = section.optional("from_us").map(micros).transpose()?.unwrap_or(Nanos::ZERO);
    let until = section.optional("until_us").map(micros).transpose()?;
    if let (Some(field), Some(until)) = (section.optional("until_us"), until)
        && until <= from
    {
        return Err(field.wrong("until_us is not after from_us".to_owned()));
    }
    let place = |key, count: fn(&Nand) -> u32| {
        section.optional(key).map(|field| number(field, count, profile)).transpose()
    };
    let die = place("die", |nand| nand.channels * nand.dies_per_channel)?;
    let block = place("block", |nand| nand.planes_per_die * nand.blocks_per_plane)?;
    let page = place("page", |nand| nand.pages_per_block)?;
    Ok(FaultRule { kind, when: when(section, kind)?, die, block, page, from, until, most })
}

/// Reads the number of a place, below `count`.
fn number(
    field: Field<'_>,
    count: fn(&Nand) -> u32,
    profile: Option<&Profile>,
) -> Result<u32, ProfileError> {
    let number = field.whole(0..=u32::MAX)?;
    match profile.map(|profile| (count(&profile.nand), &profile.name)) {
        Some((count, name)) if number >= count => {
            Err(field.must_be(&format!("from 0 to {} on {name}", count - 1)))
        }
        _ => Ok(number),
    }
}

/// Reads which matching operations have the fault. For a slow die the key is optional: all.
fn when(section: Section<'_>, kind: FaultKind) -> Result<When, ProfileError> {
    match (section.optional("ppm"), section.optional("nth")) {
        (Some(_), Some(nth)) => Err(nth.wrong("both ppm and nth are given".to_owned())),
        (Some(ppm), None) => Ok(When::Ppm(to_u32(ppm.number(0.0..=f64::from(MILLION))?))),
        (None, Some(nth)) => Ok(When::Nth(nth.count(1..=u64::MAX)?)),
        (None, None) if matches!(kind, FaultKind::SlowDie { .. }) => Ok(When::Ppm(MILLION)),
        (None, None) => Err(section.lacks("ppm or nth")),
    }
}

fn micros(field: Field<'_>) -> Result<Nanos, ProfileError> {
    Ok(Nanos(to_u64(field.number(0.0..=MICROS_MAX)? * 1e3)))
}

/// Returns the name of `kind`.
pub(super) fn kind_name(kind: FaultKind) -> &'static str {
    let is_same =
        |other: FaultKind| std::mem::discriminant(&other) == std::mem::discriminant(&kind);
    let (name, _) = KINDS.iter().find(|(_, other)| is_same(*other)).expect("every kind has a name");
    name
}

/// Returns `rule` as a section that [`read`] reads.
pub(super) fn text(rule: &FaultRule) -> String {
    let FaultRule { kind, when, die, block, page, from, until, most } = *rule;
    let name = kind_name(kind);
    let percent = match kind {
        FaultKind::SlowDie { percent } => Some(u64::from(percent)),
        _ => None,
    };
    let (ppm, nth) = match when {
        When::Ppm(ppm) => (Some(u64::from(ppm)), None),
        When::Nth(nth) => (None, Some(nth)),
    };
    let mut text = format!("[[fault]]\nkind = {name:?}\n");
    for (key, number) in [
        ("ppm", ppm),
        ("nth", nth),
        ("die", die.map(u64::from)),
        ("block", block.map(u64::from)),
        ("page", page.map(u64::from)),
        ("most", most),
        ("percent", percent),
    ] {
        if let Some(number) = number {
            writeln!(text, "{key} = {number}").expect("a string takes all text");
        }
    }
    for (key, time) in [("from_us", (from > Nanos::ZERO).then_some(from)), ("until_us", until)] {
        if let Some(Nanos(time)) = time {
            writeln!(text, "{key} = {}.{:03}", time / 1_000, time % 1_000)
                .expect("a string takes all text");
        }
    }
    text
}

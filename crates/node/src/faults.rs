//! Fault plans of the flash as TOML files.

mod rule;

use crate::profile::schema::Schema;
use crate::profile::section::Section;
use crate::profile::source::Source;
use crate::profile::{Profile, ProfileError, read_file};
use nand::{FaultKind, FaultPlan};
use std::fmt::Write;

/// The keys outside of any rule.
const TOP: Schema = Schema { name: "", title: "", keys: &["seed", "fault"] };

/// Loads the plan at `path` and checks that a device of `profile` has all places that it names.
/// Errors are those of a profile.
pub fn load(path: &str, profile: &Profile) -> Result<FaultPlan, ProfileError> {
    read(path, &read_file(path, "a fault plan")?, Some(profile))
}

/// Parses a plan. Errors call it `name`.
pub fn parse(name: &str, text: &str) -> Result<FaultPlan, ProfileError> {
    read(name, text, None)
}

fn read(name: &str, text: &str, profile: Option<&Profile>) -> Result<FaultPlan, ProfileError> {
    let source = Source { name, text };
    let table = source.table()?;
    let top = Section::top(source, &TOP, &table)?;
    let seed = top.optional("seed").map(|field| field.count(0..=u64::MAX)).transpose()?;
    let rules = match top.optional("fault") {
        None => Vec::new(),
        Some(_) => {
            let rules = top.elements(&rule::SCHEMA)?.into_iter();
            let rules = rules.map(|section| rule::read(section, profile));
            rules.collect::<Result<_, _>>()?
        }
    };
    Ok(FaultPlan { seed: seed.unwrap_or(0), rules })
}

/// Returns `plan` as text that [`parse`] reads.
pub fn text(plan: &FaultPlan) -> String {
    let mut text = format!("seed = {}\n", plan.seed);
    for rule in &plan.rules {
        write!(text, "\n{}", rule::text(rule)).expect("a string takes all text");
    }
    text
}

/// Returns the name of `kind` in a plan's file.
pub fn kind_name(kind: FaultKind) -> &'static str {
    rule::kind_name(kind)
}

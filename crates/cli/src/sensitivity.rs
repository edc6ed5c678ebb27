//! `kvasir device sensitivity`: what each number and word of a profile moves.
//!
//! 1. [`flash`] cuts the profile's flash so that it is aged within a second.
//! 2. Each of the profile's knobs is changed, one at a time (`node::profile::Draft`).
//! 3. [`load`] measures the profile and each change of it under the same loads.
//! 4. [`report`] says what moved most, [`figure`] draws it.

mod figure;
mod flash;
mod load;
mod report;

use crate::args::SensitivityArgs;
use crate::output::{Failure, Output};
use crate::outputs;
use crate::progress::{Bar, Progress, Unit};
use load::{Amounts, Loads};
use node::Profile;
use node::profile::{Change, Draft, Knob};
use report::{Changed, Report, Row};
use std::path::Path;

/// Names the device and its loads.
const SEED: u64 = 1;

/// Measures what `args` ask for.
pub(crate) fn run(args: &SensitivityArgs) -> Result<Output, Failure> {
    let text = Profile::text(&args.profile).map_err(Failure::refused)?;
    let given = Draft::new(&args.profile, &text).map_err(Failure::refused)?;
    let outputs: Vec<&Path> = args.plot.iter().map(AsRef::as_ref).collect();
    outputs::check(&outputs, &[Path::new(&args.profile)])?;
    let whole = given.with_over_provisioning().map_err(Failure::refused)?;
    let (draft, cut) = flash::cut(&whole)?;
    let mut bar = Progress::new(args.json).bar("changing knobs", Unit::Count);
    let report = measure(&args.profile, &whole, &draft, cut, &mut bar)?;
    drop(bar);
    let undrawn = args.plot.as_ref().and_then(|path| figure::draw(path, &report));
    let output = if args.json { Output::json(&report) } else { Output::new(report.table()) };
    Ok(output.with_errors(undrawn))
}

/// Measures `draft`, the profile `whole` with its flash cut, and every change of it.
fn measure(
    name: &str,
    whole: &Draft,
    draft: &Draft,
    cut: Option<String>,
    bar: &mut Bar,
) -> Result<Report, Failure> {
    let knobs = draft.knobs();
    let total: usize = 1 + knobs.iter().map(|knob| knob.changes.len()).sum::<usize>();
    let (mut done, total) = (0, total as u64);
    let mut step = || {
        done += 1;
        bar.set(done, total);
    };
    let profile = draft.profile().map_err(Failure::refused)?;
    let amounts = Amounts::of(&profile);
    let base = load::run(&profile, &amounts)?;
    step();
    let written = whole.knobs();
    let value = |knob: &Knob| {
        let as_given = written.iter().find(|given| given.key == knob.key);
        as_given.unwrap_or(knob).value.clone()
    };
    let mut rows = Vec::new();
    for knob in &knobs {
        let mut changes = Vec::new();
        for &change in &knob.changes {
            changes.push(Changed::new(change, try_change(draft, knob, change, &amounts), &base));
            step();
        }
        rows.push(Row { key: knob.key.clone(), value: value(knob), changes });
    }
    Ok(Report::new(name, cut, base, rows))
}

/// What `draft` does with `knob` changed; why it cannot be, if it cannot.
fn try_change(
    draft: &Draft,
    knob: &Knob,
    change: Change,
    amounts: &Amounts,
) -> Result<Loads, String> {
    let changed = draft.changed(&knob.key, change).map_err(report::problem)?;
    let profile = changed.profile().map_err(report::problem)?;
    load::run(&profile, amounts).map_err(|failure| match failure {
        Failure::Refused(sentence) | Failure::Broken(sentence) => sentence,
    })
}

#[cfg(test)]
mod tests;

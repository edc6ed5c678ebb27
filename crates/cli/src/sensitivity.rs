//! `kvasir device sensitivity`: measures the effect of each number and word of a profile.
//!
//! 1. [`flash`] shrinks the profile's flash so that it is aged within a second.
//! 2. Each of the profile's knobs is changed, one at a time (`node::profile::Draft`).
//! 3. [`load`] measures the profile and each change of it under the same loads.
//! 4. [`spread`] separates effects of a knob from differences between seeds.
//! 5. [`report`] prints the largest effects, [`figure`] draws them.

mod figure;
mod flash;
mod load;
mod report;
mod spread;

use crate::args::SensitivityArgs;
use crate::output::{Failure, Output};
use crate::outputs;
use crate::parallel;
use crate::progress::{Bar, Progress, Unit};
use load::{Amounts, Loads};
use node::Profile;
use node::profile::{Change, Draft, Knob};
use report::{Base, Changed, Report, Row};
use std::num::NonZeroUsize;
use std::path::Path;

/// Random seed of the device and its loads.
const SEED: u64 = 1;

/// Seeds, from [`SEED`] on, with which the unchanged profile is measured to learn the noise.
const SEEDS: u64 = 8;

/// Runs the measurement that `args` describe.
pub(crate) fn run(args: &SensitivityArgs) -> Result<Output, Failure> {
    let text = Profile::text(&args.profile).map_err(Failure::refused)?;
    let given = Draft::new(&args.profile, &text).map_err(Failure::refused)?;
    let outputs: Vec<&Path> = args.plot.iter().map(AsRef::as_ref).collect();
    outputs::check(&outputs, &[Path::new(&args.profile)])?;
    let whole = given.with_over_provisioning().map_err(Failure::refused)?;
    let (draft, cut) = flash::cut(&whole)?;
    let mut bar = Progress::new(args.json).bar("changing knobs", Unit::Count);
    let given = Given { name: &args.profile, whole: &whole, draft: &draft, cut };
    let report = measure(&given, &draft.knobs(), parallel::cores(), &mut bar)?;
    drop(bar);
    let undrawn = args.plot.as_ref().and_then(|path| figure::draw(path, &report));
    let output = if args.json { Output::json(&report) } else { Output::new(report.table()) };
    Ok(output.with_errors(undrawn))
}

/// A profile, and its measured version.
struct Given<'a> {
    name: &'a str,
    /// Unchanged.
    whole: &'a Draft,
    /// With smaller flash.
    draft: &'a Draft,
    /// What was made smaller, if anything.
    cut: Option<String>,
}

/// A device to measure.
enum Job<'a> {
    /// Unchanged, with this seed.
    Unchanged(u64),
    Changed(&'a Knob, Change),
}

/// Measures the draft of `given`, and every change of `knobs`, on this many `threads`. The report
/// does not depend on the number of threads.
fn measure(
    given: &Given<'_>,
    knobs: &[Knob],
    threads: NonZeroUsize,
    bar: &mut Bar,
) -> Result<Report, Failure> {
    let profile = given.draft.profile().map_err(Failure::refused)?;
    let amounts = Amounts::of(&profile);
    let mut jobs: Vec<Job<'_>> = (0..SEEDS).map(|more| Job::Unchanged(SEED + more)).collect();
    jobs.extend(
        knobs
            .iter()
            .flat_map(|knob| knob.changes.iter().map(move |&change| Job::Changed(knob, change))),
    );
    let measure = |job: &Job<'_>| match job {
        Job::Unchanged(seed) => load::run(&profile, &amounts, *seed),
        Job::Changed(knob, change) => try_change(given.draft, knob, *change, &amounts),
    };
    let total = jobs.len() as u64;
    let mut results =
        parallel::map(&jobs, threads, measure, |done| bar.set(done, total)).into_iter();
    let unchanged = (0..SEEDS).filter_map(|_| results.next());
    let base = Base::new(unchanged.collect::<Result<_, _>>()?);
    let written = given.whole.knobs();
    let value = |knob: &Knob| {
        let as_given = written.iter().find(|given| given.key == knob.key);
        as_given.unwrap_or(knob).value.clone()
    };
    let rows = knobs.iter().map(|knob| {
        let measured = knob.changes.iter().zip(&mut results);
        let changes = measured.map(|(&change, loads)| {
            Changed::new(change, loads.map_err(|failure| failure.to_string()), &base)
        });
        Row { key: knob.key.clone(), value: value(knob), changes: changes.collect() }
    });
    let rows = rows.collect();
    Ok(Report::new(given.name, given.cut.clone(), base, rows))
}

/// Returns `draft` with `knob` changed, or why the change is impossible.
fn try_change(
    draft: &Draft,
    knob: &Knob,
    change: Change,
    amounts: &Amounts,
) -> Result<Loads, Failure> {
    let problem = |error| Failure::Refused(report::problem(error));
    let changed = draft.changed(&knob.key, change).map_err(problem)?;
    load::run(&changed.profile().map_err(problem)?, amounts, SEED)
}

#[cfg(test)]
mod tests;

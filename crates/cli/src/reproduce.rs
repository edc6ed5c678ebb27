//! `kvasir reproduce`: reruns experiments of published systems and prints both figures.
//!
//! 1. [`catalogue`] lists the experiments of all papers, and which can be rerun.
//! 2. Each experiment that can be rerun is a function in its own file. [`moke`] has the device and
//!    load of the MoKE experiments, [`open_channel`] those of FEMU. Experiments in real time share
//!    [`polled_drive`] and [`read_threads`].
//! 3. [`criteria`] has the bounds that an experiment must meet. Their file was written before the
//!    experiment first ran.
//! 4. [`report`] formats the [`finding`] of an experiment.

mod catalogue;
mod core_pair;
mod criteria;
mod filebench;
mod finding;
mod flash_delay;
mod fresh;
mod gc_blocking;
mod grid;
mod guest_queue;
mod handlers;
mod index_cost;
mod index_time;
mod key_size;
mod models;
mod moke;
mod octokv;
mod open_channel;
mod optimisation;
mod page_move;
mod polled_drive;
mod processor;
mod read_threads;
mod registers;
mod report;
mod run;
mod scalability;

use crate::args::ReproduceArgs;
use crate::output::{Failure, Output};
use crate::outputs;
use crate::path;
use crate::plot::{self, Figure};
use crate::progress::Progress;
use catalogue::{ENTRIES, Entry, Experiment};
use report::Report;
use run::Run;
use std::fs;
use std::mem;
use std::path::{Path, PathBuf};

/// Reruns the experiments that `args` name.
pub(crate) fn run(args: &ReproduceArgs) -> Result<Output, Failure> {
    if args.list {
        return Ok(catalogue::list(args.json));
    }
    let chosen = chosen(&args.ids)?;
    if let Some(folder) = &args.plot {
        prepare(folder, &chosen)?;
    }
    let run = Run { is_control: args.control, progress: Progress::new(args.json) };
    let (mut reports, mut broken) = (Vec::new(), Vec::new());
    for (entry, experiment) in chosen {
        let mut report = match rerun(entry, experiment, run) {
            Ok(report) => report,
            Err(failure) if reports.is_empty() => return Err(failure),
            // Stop, but print the experiments that have finished.
            Err(failure) => {
                broken.push(failure.of(entry.id).to_string());
                break;
            }
        };
        let plot = args.plot.as_deref().and_then(|folder| {
            let file = svg_path(folder, entry.id);
            let undrawn = draw(&file, &mut report);
            let is_drawn = undrawn.is_none();
            broken.extend(undrawn);
            is_drawn.then_some(file)
        });
        reports.push((report, plot));
    }
    let verdicts: Vec<&Report> = reports.iter().map(|(report, _)| report).collect();
    let (unexpected, known) = failures(&verdicts, args.control);
    let broken = (!broken.is_empty()).then(|| broken.join("; "));
    let output = output(&reports, args.json).with_errors(unexpected).with_errors(broken);
    Ok(output.with_known_failures(known))
}

/// Runs `experiment` of the catalogue's `entry`.
fn rerun(entry: &Entry, experiment: &Experiment, run: Run) -> Result<Report, Failure> {
    let &Entry { id, what, .. } = entry;
    let finding = (experiment.run)(run)?;
    // A control must fail because of its control: a known failure does not excuse it.
    let is_known = !finding.holds && !run.is_control;
    let known_failure = if is_known { criteria::known_failure(id) } else { None };
    Ok(Report { id, what, source: experiment.source, finding, known_failure })
}

/// Returns the experiments that `ids` name, in this order; without ids all that can be rerun.
fn chosen(ids: &[String]) -> Result<Vec<(&'static Entry, &'static Experiment)>, Failure> {
    if ids.is_empty() {
        let done = |entry: &'static Entry| Some((entry, entry.experiment.as_ref()?));
        return Ok(ENTRIES.iter().filter_map(done).collect());
    }
    ids.iter().map(|id| named(id)).collect()
}

fn named(id: &str) -> Result<(&'static Entry, &'static Experiment), Failure> {
    let entry = ENTRIES.iter().find(|entry| entry.id.eq_ignore_ascii_case(id));
    let entry = entry.ok_or_else(|| {
        Failure::Refused(format!("there is no experiment {id:?}; kvasir reproduce --list has all"))
    })?;
    let experiment = entry.experiment.as_ref().ok_or_else(|| {
        Failure::Refused(format!(
            "{} cannot be rerun yet; kvasir reproduce --list says what can",
            entry.id
        ))
    })?;
    Ok((entry, experiment))
}

/// Checks that the figures of the `chosen` experiments can be written into `folder`.
fn prepare(folder: &Path, chosen: &[(&Entry, &Experiment)]) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(|error| {
        Failure::Refused(format!("{} cannot be a folder: {error}", path::shown(folder)))
    })?;
    let files: Vec<PathBuf> = chosen.iter().map(|(entry, _)| svg_path(folder, entry.id)).collect();
    files.iter().try_for_each(|file| outputs::check(&[file], &[]))
}

fn svg_path(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.svg"))
}

/// Draws the panels of `report`, which it takes, into `file`. Returns an error sentence if the file
/// cannot be written.
fn draw(file: &Path, report: &mut Report) -> Option<String> {
    let Report { id, what, finding, .. } = report;
    let figure = Figure {
        title: format!("{id}: {what}"),
        caption: finding.setup.clone(),
        panels: mem::take(&mut finding.panels),
    };
    plot::write(file, &figure)
}

fn output(reports: &[(Report, Option<PathBuf>)], is_json: bool) -> Output {
    if !is_json {
        let texts: Vec<String> =
            reports.iter().map(|(report, plot)| report.table(plot.as_deref())).collect();
        return Output::new(texts.join("\n"));
    }
    match reports {
        [(report, _)] => Output::json(report),
        reports => Output::json(&reports.iter().map(|(report, _)| report).collect::<Vec<_>>()),
    }
}

/// Returns a sentence on the `reports` that fail unexpectedly, and one on the known failures, if
/// there are any.
fn failures(reports: &[&Report], is_control: bool) -> (Option<String>, Option<String>) {
    let ids = |fails: fn(&Report) -> bool| -> Vec<&str> {
        reports.iter().filter(|report| fails(report)).map(|report| report.id).collect()
    };
    let reason = if is_control { ": what the paper credits was switched off" } else { "" };
    let unexpected = not_holding(&ids(Report::fails_unexpectedly));
    let known = not_holding(&ids(|report| report.known_failure.is_some()));
    (
        unexpected.map(|names| names + reason),
        known.map(|names| names + ", which is known: experiments/criteria.toml has the reason"),
    )
}

/// Returns a sentence that the experiments `failed` do not hold, if there are any.
fn not_holding(failed: &[&str]) -> Option<String> {
    let (last, before) = failed.split_last()?;
    Some(match before {
        [] => format!("{last} does not hold"),
        _ => format!("{} and {last} do not hold", before.join(", ")),
    })
}

#[cfg(test)]
mod tests {
    use super::finding::{Finding, Verdict};
    use super::*;

    #[test]
    fn failed_criteria_are_one_sentence() {
        assert_eq!(not_holding(&[]), None);
        assert_eq!(not_holding(&["b"]).unwrap(), "b does not hold");
        assert_eq!(not_holding(&["a", "b"]).unwrap(), "a and b do not hold");
        assert_eq!(not_holding(&["a", "b", "c"]).unwrap(), "a, b and c do not hold");
    }

    fn report(id: &'static str, holds: bool, known: bool, beside: Option<bool>) -> Report {
        let beside = beside.map(|holds| Verdict { criterion: String::new(), holds });
        let finding = Finding { holds, beside, ..Finding::default() };
        let known_failure = known.then(|| "reason".to_owned());
        Report { id, what: "", source: "", finding, known_failure }
    }

    #[test]
    fn a_known_failure_is_no_error_and_its_second_criterion_must_hold() {
        let known = "a does not hold, which is known: experiments/criteria.toml has the reason";
        let told = |reports: &[Report], is_control| {
            failures(&reports.iter().collect::<Vec<_>>(), is_control)
        };
        let is_known = |beside| report("a", false, true, beside);
        assert_eq!(told(&[report("a", true, false, None)], false), (None, None));
        assert_eq!(told(&[is_known(Some(true))], false), (None, Some(known.to_owned())));
        let other = report("b", false, false, None);
        let (unexpected, also) = told(&[is_known(Some(true)), other], false);
        assert_eq!(unexpected.unwrap(), "b does not hold");
        assert_eq!(also.unwrap(), known);
        let (unexpected, _) = told(&[is_known(Some(false))], false);
        assert_eq!(unexpected.unwrap(), "a does not hold");
        let (unexpected, known) = told(&[report("a", false, false, Some(false))], true);
        let switched_off = "a does not hold: what the paper credits was switched off";
        assert_eq!((unexpected.unwrap(), known), (switched_off.to_owned(), None));
    }

    #[test]
    fn without_a_name_all_that_can_be_rerun_is_chosen() {
        let names = |ids: &[&str]| {
            let ids: Vec<String> = ids.iter().map(|&id| id.to_owned()).collect();
            chosen(&ids).map(|chosen| chosen.iter().map(|(entry, _)| entry.id).collect::<Vec<_>>())
        };
        let all = [
            "FEMU-2a", "FEMU-2b", "FEMU-2c", "FEMU-3", "FEMU-4", "FEMU-5", "FEMU-5b", "FEMU-6a",
            "FEMU-g", "MoKE-1a", "MoKE-1b", "MoKE-1c", "MoKE-1d", "MoKE-idx", "OCT-qd", "OCT-util",
            "OCT-rt", "OCT-tp", "OCT-lb", "OCT-auto",
        ];
        assert_eq!(names(&[]).unwrap(), all);
        assert_eq!(names(&["moke-1D", "MoKE-1a"]).unwrap(), ["MoKE-1d", "MoKE-1a"]);
        assert!(names(&["MoKE-1a", "MoKE-1e"]).is_err());
    }
}

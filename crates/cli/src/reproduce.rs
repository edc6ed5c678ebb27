//! `kvasir reproduce`: experiments of the published systems, their figures beside ours.
//!
//! 1. [`catalogue`] lists the experiments of all papers, and which can be rerun.
//! 2. Each experiment that can is a function in a file of its own; [`moke`] is what those of MoKE
//!    share, and [`open_channel`] those of FEMU: the device of the paper and its hosts. Those in
//!    real time share [`polled_drive`] and [`read_threads`].
//! 3. [`criteria`] are the bounds that an experiment has to keep. They stand in a file that was
//!    written before the experiment first ran.
//! 4. [`report`] says what came of it.

mod catalogue;
mod core_pair;
mod criteria;
mod filebench;
mod flash_delay;
mod fresh;
mod gc_blocking;
mod grid;
mod handlers;
mod index_cost;
mod index_time;
mod key_size;
mod models;
mod moke;
mod open_channel;
mod page_move;
mod polled_drive;
mod processor;
mod read_threads;
mod registers;
mod report;
mod scalability;

use crate::args::ReproduceArgs;
use crate::output::{Failure, Output};
use crate::outputs;
use crate::path;
use crate::plot::{Figure, Panel, svg};
use crate::progress::Progress;
use catalogue::{ENTRIES, Entry, Experiment};
use report::{Report, Row};
use serde::Serialize;
use std::fs;
use std::io;
use std::mem;
use std::path::{Path, PathBuf};

/// How an experiment is run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    /// Whether what the paper credits is switched off.
    is_control: bool,
    progress: Progress,
}

/// What came of an experiment.
#[derive(Default, Serialize)]
pub(super) struct Finding {
    setup: String,
    /// What the device and the load rest on that the paper does not state.
    assumptions: Vec<String>,
    rows: Vec<Row>,
    criterion: String,
    /// Whether the criterion is met.
    holds: bool,
    #[serde(skip)]
    panels: Vec<Panel>,
}

/// Reruns what `args` ask for.
pub(crate) fn run(args: &ReproduceArgs) -> Result<Output, Failure> {
    if args.list {
        return Ok(catalogue::list(args.json));
    }
    let chosen = chosen(&args.ids)?;
    if let Some(folder) = &args.plot {
        prepare(folder, &chosen)?;
    }
    let run = Run { is_control: args.control, progress: Progress::new(args.json) };
    let mut reports = Vec::new();
    for (entry, experiment) in chosen {
        let &Entry { id, what, .. } = entry;
        let &Experiment { source, run: experiment } = experiment;
        let mut report = Report { id, what, source, finding: experiment(run)? };
        let plot = args.plot.as_deref().map(|folder| draw(folder, &mut report)).transpose()?;
        reports.push((report, plot));
    }
    let failed = reports.iter().filter(|(report, _)| !report.finding.holds);
    let failed = failed.map(|(report, _)| report.id);
    let errors = errors(&failed.collect::<Vec<_>>(), args.control);
    Ok(output(&reports, args.json).with_errors(errors))
}

/// The experiments that `ids` name, in this order; all that can be rerun where there are none.
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

/// Makes sure that the figures of what was `chosen` can be written into `folder`.
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

/// Draws the panels of `report`, which it takes, into a file in `folder`, whose path it gives.
fn draw(folder: &Path, report: &mut Report) -> Result<PathBuf, Failure> {
    let Report { id, what, finding, .. } = report;
    let figure = Figure {
        title: format!("{id}: {what}"),
        caption: finding.setup.clone(),
        panels: mem::take(&mut finding.panels),
    };
    let file = svg_path(folder, id);
    fs::write(&file, svg(&figure)).map_err(|error| unwritable(&file, &error))?;
    Ok(file)
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::Broken(format!("{} cannot be written: {error}", path::shown(path)))
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

/// That the experiments `failed` do not hold, if there are any, as a sentence.
fn errors(failed: &[&str], is_control: bool) -> Option<String> {
    let (last, before) = failed.split_last()?;
    let (names, verb) = match before {
        [] => ((*last).to_owned(), "does"),
        _ => (format!("{} and {last}", before.join(", ")), "do"),
    };
    let reason = if is_control { ": what the paper credits was switched off" } else { "" };
    Some(format!("{names} {verb} not hold{reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_hold_is_one_sentence() {
        assert_eq!(errors(&[], false), None);
        assert_eq!(errors(&["b"], false).unwrap(), "b does not hold");
        assert_eq!(errors(&["a", "b"], false).unwrap(), "a and b do not hold");
        assert_eq!(errors(&["a", "b", "c"], false).unwrap(), "a, b and c do not hold");
        assert_eq!(
            errors(&["a"], true).unwrap(),
            "a does not hold: what the paper credits was switched off"
        );
    }

    #[test]
    fn without_a_name_all_that_can_be_rerun_is_chosen() {
        let names = |ids: &[&str]| {
            let ids: Vec<String> = ids.iter().map(|&id| id.to_owned()).collect();
            chosen(&ids).map(|chosen| chosen.iter().map(|(entry, _)| entry.id).collect::<Vec<_>>())
        };
        let all = [
            "FEMU-2a", "FEMU-2b", "FEMU-2c", "FEMU-3", "FEMU-4", "FEMU-5", "FEMU-5b", "FEMU-6a",
            "FEMU-g", "MoKE-1a", "MoKE-1b", "MoKE-1c", "MoKE-1d", "MoKE-idx",
        ];
        assert_eq!(names(&[]).unwrap(), all);
        assert_eq!(names(&["moke-1D", "MoKE-1a"]).unwrap(), ["MoKE-1d", "MoKE-1a"]);
        assert!(names(&["MoKE-1a", "MoKE-1e"]).is_err());
    }
}

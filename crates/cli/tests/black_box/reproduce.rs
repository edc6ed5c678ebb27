//! Experiments are rerun as they are shipped, in their full size; without optimisation that takes
//! minutes.

use crate::program::{Ran, json, kvasir};
use roxmltree::Document;
use serde_json::Value;
use std::fs::{self, read_to_string};
use tempfile::tempdir;

/// All of the papers, system by system.
const IDS: &str = "FEMU-2a FEMU-2b FEMU-2c FEMU-3 FEMU-4 FEMU-5 FEMU-5b FEMU-6a FEMU-6b FEMU-g \
                   MoKE-1a MoKE-1b MoKE-1c MoKE-1d MoKE-idx \
                   LS-T1 LS-4 LS-9 LS-10 LS-11 LS-T4 LS-12 LS-13 LS-14 LS-15 LS-16 \
                   OCT-qd OCT-util OCT-rt OCT-tp OCT-lb OCT-auto \
                   CR-5 CR-6 CR-7 CR-8 CR-9 CR-10 CR-11";

fn is_done(id: &str) -> bool {
    let femu = [
        "FEMU-2a", "FEMU-2b", "FEMU-2c", "FEMU-3", "FEMU-4", "FEMU-5", "FEMU-5b", "FEMU-6a",
        "FEMU-g",
    ];
    id.starts_with("MoKE-") || id.starts_with("OCT-") || femu.contains(&id)
}

const CRITERIA: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/criteria.toml"));

/// The report of `id` and how the program ended, which agree, in the promised form.
#[track_caller]
pub(crate) fn reproduced(arguments: &str, id: &str) -> (Ran, Value) {
    let ran = kvasir(format!("reproduce {id} --json {arguments}").split_whitespace());
    let report = ran.json();
    assert_report(&report, id);
    let code = match &report["holds"] {
        Value::Bool(true) => 0,
        _ if report["known_failure"].is_string() => 3,
        _ => 1,
    };
    assert_eq!(ran.code, Some(code), "{}", ran.stderr);
    (ran, report)
}

#[track_caller]
fn assert_report(report: &Value, id: &str) {
    let keys: Vec<&String> = report.as_object().unwrap().keys().collect();
    let promised = ["assumptions", "criterion", "holds", "id", "rows", "setup", "source"];
    let always: Vec<_> =
        keys.into_iter().filter(|key| !["beside", "known_failure"].contains(&&key[..])).collect();
    assert_eq!(always, promised, "in the order of the alphabet");
    assert_eq!(report["id"], id);
    let (paper, _) = id.split_once('-').unwrap();
    let paper = if paper == "OCT" { "OctoKV" } else { paper };
    let source = if id == "OCT-auto" { "Kvasir, decision " } else { &format!("{paper}, section ") };
    assert!(report["source"].as_str().unwrap().starts_with(source));
    let subject = if paper == "OctoKV" { "a target of 6 cores" } else { "profile " };
    assert!(report["setup"].as_str().unwrap().contains(subject));
    let assumptions = report["assumptions"].as_array().unwrap();
    assert!(assumptions.len() > 1 && assumptions.iter().all(Value::is_string));
    let criterion = format!("[{id}]\ncriterion = {}\n", report["criterion"]);
    assert!(CRITERIA.contains(&criterion), "{criterion}");
    assert!(report["holds"].is_boolean());
    for row in report["rows"].as_array().unwrap() {
        let keys: Vec<&String> = row.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["label", "ours", "paper", "unit"]);
        assert!(row["label"].is_string() && row["unit"].is_string() && row["ours"].is_f64());
        assert!(row["paper"].is_f64() || row["paper"].is_null());
    }
}

/// The experiment holds; without what the paper credits it does not. Gives both reports.
#[track_caller]
pub(crate) fn assert_holds_for_its_reason(id: &str) -> (Value, Value) {
    let (ran, report) = reproduced("", id);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{}", ran.stdout);
    let (ran, control) = reproduced("--control", id);
    assert_eq!(ran.code, Some(1), "{}", ran.stdout);
    let sentence = format!("kvasir: {id} does not hold: what the paper credits was switched off\n");
    assert_eq!(ran.stderr, sentence);
    assert!(control["setup"].as_str().unwrap().contains("; control: "));
    let labels = |report: &Value| {
        let rows = report["rows"].as_array().unwrap();
        rows.iter().map(|row| row["label"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(labels(&report), labels(&control));
    (report, control)
}

/// Ours and the paper's in the row that `label` names.
#[track_caller]
pub(crate) fn figures(report: &Value, label: &str) -> (f64, Option<f64>) {
    let rows = report["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["label"] == label);
    let row = row.unwrap_or_else(|| panic!("no row {label:?} in {rows:?}"));
    (row["ours"].as_f64().unwrap(), row["paper"].as_f64())
}

#[track_caller]
pub(crate) fn assert_figure(report: &Value, label: &str, expected: f64, tolerance: f64) {
    let (ours, _) = figures(report, label);
    assert!((ours - expected).abs() <= tolerance, "{label}: {ours}, not {expected}");
}

#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without optimisation")]
fn flash_adds_a_sense_and_the_values_transfer_to_a_retrieve() {
    let (report, _) = assert_holds_for_its_reason("MoKE-1b");
    // Index and link; the array and 4096 bytes at 800 MB/s beside them.
    let (without, paper) = figures(&report, "retrieve without flash delays");
    assert!((without - (4.2 + 2.28)).abs() < 1e-9, "{without}");
    assert_eq!(paper, Some(29.5));
    assert_figure(&report, "retrieve: the difference", 45.0 + 5.12, 1e-9);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without optimisation")]
fn flash_adds_a_program_and_the_pages_transfer_to_a_store() {
    let (report, _) = assert_holds_for_its_reason("MoKE-1c");
    let (without, paper) = figures(&report, "store without flash delays");
    assert!((without - (4.4 + 2.28)).abs() < 1e-9, "{without}");
    assert_eq!(paper, Some(28.7));
    assert_figure(&report, "store: the difference", 660.0 + 20.48, 1e-9);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without optimisation")]
fn the_index_is_as_fast_as_the_papers_and_its_costs_apply() {
    let (report, _) = assert_holds_for_its_reason("MoKE-idx");
    for (label, paper) in [
        ("hash: read, mean", 4.2),
        ("hash: read, 99th percentile", 4.8),
        ("hash: write of a new key, mean", 4.4),
        ("hash: overwrite, 99th percentile", 16.2),
        ("btree: overwrite, mean", 4.4),
    ] {
        let (ours, of_paper) = figures(&report, label);
        assert!(ours > 0.0 && of_paper == Some(paper), "{label}");
    }
    let rows = report["rows"].as_array().unwrap();
    let moved = rows.iter().filter(|row| row["label"].as_str().unwrap().contains(", moved by T_"));
    let moved: Vec<f64> = moved.map(|row| row["ours"].as_f64().unwrap()).collect();
    for (moved, cost) in moved.iter().zip([3.001, 7.013, 12.107, 20.011]) {
        assert!((moved - cost).abs() < 1e-6, "{moved}, not {cost}");
    }
    assert_eq!(moved.len(), 4);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without optimisation")]
fn several_are_an_array_and_each_has_a_figure_in_its_folder() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("new/figures");
    let arguments = format!("reproduce MoKE-1c FEMU-3 --json --plot {}", path.display());
    let reports = json(arguments.split(' '));
    let legends = [("MoKE-1c", "paper, host included"), ("FEMU-3", "two registers")];
    for (report, (id, legend)) in reports.as_array().unwrap().iter().zip(legends) {
        assert_report(report, id);
        let text = read_to_string(path.join(format!("{id}.svg"))).unwrap();
        let figure = Document::parse(&text).unwrap();
        assert_eq!(figure.root_element().tag_name().name(), "svg");
        let has = |words: &str| figure.descendants().any(|node| node.text() == Some(words));
        assert!(has(legend) && text.contains(&format!(">{id}: ")), "{text}");
    }
    assert_eq!(reports.as_array().unwrap().len(), 2);
    assert_eq!(fs::read_dir(path).unwrap().count(), 2);
}

/// The table of MoKE-1c, with figures of the paper, is in the guide.
#[test]
fn the_table_fits_a_terminal_and_says_whether_it_holds() {
    for (arguments, verdict) in [("", "holds"), (" --control", "does not hold")] {
        let ran = kvasir(format!("reproduce FEMU-3{arguments}").split(' '));
        assert!(ran.stdout.lines().all(|line| line.len() <= 80), "{}", ran.stdout);
        assert!(ran.stdout.lines().any(|line| line.trim() == verdict), "{}", ran.stdout);
        assert!(ran.stdout.starts_with("FEMU-3: two reads of a plane, one and two registers\n"));
        let row = "  lower pages: second read, one register               -     200.866  us";
        assert!(ran.stdout.lines().any(|line| line == row), "{}", ran.stdout);
    }
}

#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without optimisation")]
fn the_experiment_prints_the_output_of_the_guide() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/reproduce.md");
    let shown = read_to_string(page).unwrap();
    let printed = kvasir(["reproduce", "MoKE-1c"]).stdout;
    assert!(shown.contains(&format!("```text\n{printed}```")));
    let row = "  store without flash delays                  28.700       6.680  us";
    assert!(printed.lines().any(|line| line == row), "{printed}");
    assert!(printed.lines().all(|line| line.len() <= 80), "{printed}");
}

#[test]
fn all_experiments_of_the_papers_are_listed_and_those_that_are_done() {
    let list = json(["reproduce", "--list", "--json"]);
    let list = list.as_array().unwrap();
    let ids: Vec<&str> = list.iter().map(|entry| entry["id"].as_str().unwrap()).collect();
    assert_eq!(ids, IDS.split_whitespace().collect::<Vec<_>>());
    for entry in list {
        let id = entry["id"].as_str().unwrap();
        assert_eq!(entry["done"], is_done(id), "{id}");
        assert!(!entry["system"].as_str().unwrap().is_empty(), "{id}");
        assert!(!entry["what"].as_str().unwrap().is_empty(), "{id}");
    }
    let table = kvasir(["reproduce", "--list"]).stdout;
    assert!(table.lines().all(|line| line.len() <= 80), "{table}");
    for (line, id) in table.lines().skip(1).zip(&ids) {
        let done = if is_done(id) { " done " } else { " not yet " };
        assert!(line.starts_with(&format!("  {id} ")) && line.contains(done), "{line}");
    }
    assert_eq!(table.lines().count(), 1 + ids.len());
}

#[test]
fn the_status_tells_a_known_failure_from_another() {
    let known = "FEMU-5 does not hold, which is known: experiments/criteria.toml has the reason";
    let control = "FEMU-3 does not hold: what the paper credits was switched off";
    for (arguments, code, said) in [
        ("FEMU-3", 0, String::new()),
        ("FEMU-3 --control", 1, format!("kvasir: {control}\n")),
        ("FEMU-3 FEMU-5", 3, format!("kvasir: {known}\n")),
    ] {
        let ran = kvasir(format!("reproduce {arguments}").split(' '));
        assert_eq!((ran.code, ran.stderr), (Some(code), said), "{arguments}");
        let is_known = ran.stdout.contains("does not hold, which is known: one of six");
        assert_eq!(is_known, code == 3, "{}", ran.stdout);
        assert_eq!(ran.stdout.contains("  beside it    the same six: time"), code == 3);
    }
}

#[test]
fn a_report_is_printed_although_its_figure_cannot_be_written() {
    let folder = tempdir().unwrap();
    std::os::unix::fs::symlink("/dev/full", folder.path().join("FEMU-3.svg")).unwrap();
    let ran = kvasir(["reproduce", "FEMU-3", "--plot", folder.path().to_str().unwrap()]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stdout.lines().any(|line| line.trim() == "holds"), "{}", ran.stdout);
    assert!(ran.stderr.contains("FEMU-3.svg cannot be written: No space left"), "{}", ran.stderr);
}

#[test]
fn unknown_experiments_are_refused() {
    for (arguments, words) in [
        ("reproduce MoKE-1e", "there is no experiment \"MoKE-1e\"; kvasir reproduce --list"),
        ("reproduce MoKE-1a nothing", "there is no experiment \"nothing\""),
        ("reproduce LS-9", "LS-9 cannot be rerun yet; kvasir reproduce --list"),
        ("reproduce MoKE-1c --plot", "--plot"),
        ("reproduce --list MoKE-1c", "cannot be used with"),
        ("reproduce --list --control", "cannot be used with"),
    ] {
        let ran = kvasir(arguments.split(' '));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{arguments}: {}", ran.stderr);
        assert!(ran.stderr.starts_with("kvasir: ") && ran.stderr.contains(words), "{}", ran.stderr);
        assert_eq!(ran.stderr.lines().count(), 1);
    }
}

#[test]
fn a_folder_that_cannot_be_made_is_refused_before_the_experiment_runs() {
    let ran = kvasir(["reproduce", "MoKE-1a", "--plot", "/dev/null/figures"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    assert!(
        ran.stderr.starts_with("kvasir: /dev/null/figures cannot be a folder: "),
        "{}",
        ran.stderr
    );
}

/// Each takes a minute: `cargo xtask soak` runs them.
mod long {
    use super::*;

    #[test]
    #[cfg_attr(debug_assertions, ignore = "takes minutes without optimisation")]
    fn long_keys_cost_a_transfer_and_without_its_cost_nothing() {
        let (report, control) = assert_holds_for_its_reason("MoKE-1a");
        assert_figure(&control, "retrieve: 17 B below 16 B", 0.0, 0.1);
        // One handler: 4.2 us for each retrieve, and 1 us for a long key.
        assert_figure(&report, "retrieve, key of 16 B", 1e6 / 4.2, 100.0);
        for bytes in [17, 32, 64, 128, 255] {
            assert_figure(&report, &format!("retrieve, key of {bytes} B"), 1e6 / 5.2, 100.0);
        }
    }

    #[test]
    #[cfg_attr(debug_assertions, ignore = "takes minutes without optimisation")]
    fn reads_suffer_at_depth_for_want_of_handlers() {
        let (report, _) = assert_holds_for_its_reason("MoKE-1d");
        for handlers in ["one handler", "two handlers", "unlimited handlers"] {
            assert_figure(&report, &format!("{handlers}, queue depth 1"), 56.6, 1e-9);
        }
        // Of 64 outstanding each waits for the handler's work on all: 64 x 4.2 us.
        assert_figure(&report, "one handler, queue depth 64", 64.0 * 4.2, 0.1);
    }
}

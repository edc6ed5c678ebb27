//! `device sensitivity`: what it prints, writes and refuses.

use crate::program::kvasir;
use std::ffi::OsStr;
use std::fs::{read_to_string, write};
use std::process::Command;
use tempfile::tempdir;

const GUIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide");

/// The indented blocks of the guide's page: the command, the profile, what is printed.
fn blocks() -> Vec<String> {
    let page = read_to_string(format!("{GUIDE}/sensitivity.md")).unwrap();
    let mut blocks = vec![String::new()];
    for line in page.lines() {
        match line.strip_prefix("    ") {
            Some(line) => blocks.last_mut().unwrap().extend([line, "\n"]),
            None if line.is_empty() && !blocks.last().unwrap().is_empty() => {
                *blocks.last_mut().unwrap() += "\n";
            }
            None if !line.is_empty() && !blocks.last().unwrap().is_empty() => {
                blocks.push(String::new());
            }
            None => {}
        }
    }
    blocks.into_iter().map(|block| block.trim_end().to_owned()).collect()
}

#[test]
fn the_sensitivity_prints_and_draws_the_output_of_the_guide() {
    let [command, profile, shown, ..] = &blocks()[..] else { panic!("three blocks") };
    let folder = tempdir().unwrap();
    write(folder.path().join("mine.toml"), profile).unwrap();
    let ran = Command::new(env!("CARGO_BIN_EXE_kvasir"))
        .args(command.split(' ').skip(1))
        .current_dir(&folder)
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&ran.stderr), "");
    let printed = String::from_utf8(ran.stdout).unwrap();
    assert_eq!(printed.trim_end(), shown, "{printed}");
    assert!(printed.lines().all(|line| line.len() <= 80), "{printed}");
    let drawn = read_to_string(folder.path().join("mine.svg")).unwrap();
    let figure = read_to_string(format!("{GUIDE}/sensitivity.svg")).unwrap();
    assert!(drawn == figure, "draw docs/guide/sensitivity.svg anew");
}

/// A device of zones is measured quickly.
#[test]
fn each_change_is_measured_or_refused_in_json() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("zones.toml");
    let text = read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../node/profiles/zn540.toml"));
    let text = text.unwrap().replace("blocks_per_plane = 973", "blocks_per_plane = 16");
    let text = text.replace("pages_per_block = 1077", "pages_per_block = 16");
    let text = text.replace("size_gb = 1020.901982208", "over_provisioning = 0.1");
    write(&path, text).unwrap();
    let arguments = ["device", "sensitivity", path.to_str().unwrap(), "--json"];
    let report = kvasir(arguments).json();
    let loads = report["base"].as_array().unwrap();
    let names: Vec<_> = loads.iter().map(|load| load["load"].as_str().unwrap()).collect();
    assert_eq!(names, ["read QD1", "read QD64", "write QD1", "write QD64"]);
    let mut kinds = [0, 0];
    for knob in report["knobs"].as_array().unwrap() {
        for change in knob["changes"].as_array().unwrap() {
            let figures = change["figures"].as_array().map(Vec::len);
            let is_refused = change["refused"].is_string();
            assert_eq!(figures, (!is_refused).then_some(names.len()), "{knob}");
            kinds[usize::from(is_refused)] += 1;
        }
    }
    assert!(kinds[0] > 20 && kinds[1] > 2, "{kinds:?}");
    let read = |report: &serde_json::Value| report["figures"]["mean_ns"].as_f64().unwrap();
    let knobs = report["knobs"].as_array().unwrap();
    let knob = knobs.iter().find(|knob| knob["key"] == "nand.read_us").unwrap();
    let doubled = &knob["changes"][1]["figures"][0];
    assert!((read(doubled) - read(&loads[0]) - 50_000.0).abs() < 1.0, "{doubled}");
}

#[test]
fn impossible_input_is_refused_before_measuring() {
    for (arguments, reason) in [
        (&["nosuch"][..], "there is no profile \"nosuch\""),
        (&["moke", "--plot", "/nosuch/file.svg"][..], "cannot be written"),
        (&["moke", "--plot", "file.png"][..], "give a path that ends in .svg"),
        (&[][..], "--help"),
    ] {
        let words = ["device", "sensitivity"].iter().chain(arguments).map(OsStr::new);
        let ran = kvasir(words);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(ran.stderr.contains(reason) && ran.stderr.lines().count() == 1, "{}", ran.stderr);
    }
}

//! Profiles held against measured points, and fitted to them.

use crate::program::{SMALL, json, kvasir};
use serde_json::Value;
use std::fs::{self, read_to_string};
use std::path::Path;
use tempfile::tempdir;

const PM983: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/calibration/pm983-kv.csv");

const HEADER: &str = "workload,value_bytes,key_bytes,queue_depth,ops_per_second,latency_ns,use\n";

fn written(folder: &Path, name: &str, rows: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, format!("{HEADER}{rows}")).unwrap();
    path.to_str().unwrap().to_owned()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

/// The criterion KV-SSD.
#[test]
fn pm983_kv_is_within_its_bound_of_every_published_rate() {
    let criteria = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/criteria.toml");
    let criteria: toml::Table = read_to_string(criteria).unwrap().parse().unwrap();
    let bound = criteria["KV-SSD"]["error_max"].as_float().unwrap();
    let report = json(["device", "calibrate", PM983, "--device", "pm983-kv", "--json"]);
    let points = report["points"].as_array().unwrap();
    let rates = points.iter().filter(|point| point["figure"] == "ops_per_second");
    assert_eq!(rates.count(), 18);
    for point in points {
        assert!(number(&point["error"]).abs() <= bound, "{point}");
    }
}

/// A device of known numbers is measured; from other numbers the search finds them again.
#[test]
fn the_numbers_that_points_were_made_of_are_found_and_written() {
    let folder = tempdir().unwrap();
    let loads = ["insert,512,16,1", "insert,4096,16,1", "read,512,16,1", "read,4096,16,1"];
    let rows = |figures: &[f64]| {
        let rows = loads.iter().zip(figures);
        rows.map(|(load, figure)| format!("{load},{figure},,\n")).collect::<Vec<_>>().concat()
    };
    let known = folder.path().join("known.toml");
    let text = read_to_string(SMALL).unwrap();
    let text = text.replace("t_read_us = 4.2", "t_read_us = 100");
    let text = text.replace("t_write_us = 4.4", "t_write_us = 200\nt_write_kib_us = 60");
    fs::write(&known, text).unwrap();
    let guess = written(folder.path(), "guess.csv", &rows(&[1.0; 4]));
    let arguments = ["device", "calibrate", &guess, "--json", "--device"];
    let measured = json(arguments.into_iter().chain([known.to_str().unwrap()]));
    let figures: Vec<f64> =
        measured["points"].as_array().unwrap().iter().map(|point| number(&point["ours"])).collect();
    let points = written(folder.path(), "points.csv", &rows(&figures));
    let fitted = folder.path().join("fitted.toml");
    let knobs = "firmware.t_read_us,firmware.t_write_us,firmware.t_write_kib_us=20";
    let report = json([
        "device",
        "calibrate",
        &points,
        "--device",
        SMALL,
        "--knob",
        knobs,
        "--json",
        "--output",
        fitted.to_str().unwrap(),
    ]);
    let found: Vec<f64> =
        report["knobs"].as_array().unwrap().iter().map(|knob| number(&knob["after"])).collect();
    for (found, known) in found.iter().zip([100.0, 200.0, 60.0]) {
        assert!((found / known - 1.0).abs() < 0.03, "{report:#}");
    }
    assert!(number(&report["error"]["largest"]) < 0.01, "{report:#}");
    let shown = json(["device", "show", fitted.to_str().unwrap(), "--json"]);
    assert_eq!(shown["fitted"]["value_bytes"], serde_json::json!([512, 4_096]));
    assert_eq!(shown["fitted"]["workloads"], serde_json::json!(["insert", "read"]));
    let assumed = shown["assumptions"].as_array().unwrap();
    assert!(assumed.iter().any(|one| one["key"] == "firmware.t_write_kib_us"), "{assumed:?}");
    let target = format!("sim:{}", fitted.display());
    let bench = |more: &str| {
        let load = format!("bench store --ops 100 --queue-depth 1 --json --target {target} {more}");
        json(load.split(' ').filter(|word| !word.is_empty()))["beyond_fit"].clone()
    };
    assert_eq!(bench(""), Value::Null);
    let beyond = bench("--value-size 8KiB");
    assert_eq!(beyond, "fitted to points.csv: values of 512 B to 4.0 KiB, not 8.0 KiB");
}

#[test]
fn a_point_beyond_those_that_are_fitted_to_is_refused_or_marked() {
    let folder = tempdir().unwrap();
    let rows = "insert,512,16,1,10000,,\ninsert,1024,16,1,9000,,check\n";
    let points = written(folder.path(), "points.csv", rows);
    let ask = |more: &[&str]| {
        let arguments = ["device", "calibrate", &points, "--device", SMALL];
        kvasir(arguments.iter().chain(&["--knob", "firmware.t_write_us"]).chain(more))
    };
    let refused = ask(&[]);
    assert_eq!(refused.code, Some(2));
    let sentence =
        "points.csv:3: the point lies beyond what is fitted: values of 512 B, not 1.0 KiB";
    assert!(refused.stderr.contains(sentence), "{}", refused.stderr);
    let shown = ask(&["--extrapolate"]);
    assert_eq!((shown.code, shown.stderr.as_str()), (Some(0), ""));
    assert!(shown.stdout.lines().any(|line| line.ends_with(" beyond")), "{}", shown.stdout);
}

#[test]
fn impossible_fits_are_refused_with_a_sentence() {
    let folder = tempdir().unwrap();
    let points = written(folder.path(), "points.csv", "insert,512,16,1,10000,,\n");
    let blocks = written(folder.path(), "blocks.csv", "randread,4096,16,1,10000,,\n");
    for (file, knob, words) in [
        (&points, "t_write_us", "a knob is a section and a key, as nand.read_us, not"),
        (&points, "firmware.t_update_us", "say where the search begins, as --knob"),
        (&points, "firmware.t_update_us=x", "begins at \"x\", which is no number"),
        (&points, "firmware.t_updat_us=3", "did you mean \"t_update_us\"?"),
        (
            &points,
            "nand.reed_us",
            "there is no knob nand.reed_us: unknown key \"reed_us\" in [nand]; did you mean \
             \"read_us\"?",
        ),
        (&points, "log.ack", "and only single numbers are fitted"),
        (&points, "nand.read_us,nand.read_us", "the knob nand.read_us is given twice"),
        (&points, "nand.read_us,nand.erase_us", "points.csv: 2 knobs cannot be fitted to 1 point"),
        (&blocks, "nand.read_us", "blocks.csv:2: "),
    ] {
        let ran = kvasir(["device", "calibrate", file, "--device", SMALL, "--knob", knob]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{knob}");
        assert!(ran.stderr.contains(words) && ran.stderr.lines().count() == 1, "{}", ran.stderr);
    }
    fs::write(&points, format!("{HEADER}insert,512,16,0,10000,,\n")).unwrap();
    let ran = kvasir(["device", "calibrate", &points, "--device", SMALL]);
    let sentence = "points.csv:2: queue_depth is \"0\", but must be a whole number from 1 to 65535";
    assert!(ran.stderr.contains(sentence), "{}", ran.stderr);
}

/// As a spreadsheet writes it.
#[test]
fn points_that_are_only_checked_need_no_knobs() {
    let folder = tempdir().unwrap();
    let points = folder.path().join("points.csv");
    fs::write(&points, format!("\u{feff}{HEADER}insert,512,16,1,10000,,check\n")).unwrap();
    let arguments = ["device", "calibrate", points.to_str().unwrap(), "--device", SMALL];
    let report = json(arguments.iter().chain(&["--json"]));
    assert_eq!(report["points"][0]["measured"], 10_000.0);
    let ran = kvasir(arguments.iter().chain(&["--knob", "nand.read_us"]));
    assert!(ran.stderr.contains("1 knob cannot be fitted to 0 points"), "{}", ran.stderr);
}

#[test]
fn a_calibration_is_drawn() {
    let folder = tempdir().unwrap();
    let rows = "insert,512,16,1,10000,,\nread,512,16,1,,90000,\n";
    let points = written(folder.path(), "points.csv", rows);
    let plot = folder.path().join("plot.svg");
    let ran = kvasir([
        "device",
        "calibrate",
        &points,
        "--device",
        SMALL,
        "--plot",
        plot.to_str().unwrap(),
    ]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let svg = read_to_string(plot).unwrap();
    for text in ["insert QD1, measured", "read QD1", "operations a second", "latency"] {
        assert!(svg.contains(text), "{text}");
    }
}

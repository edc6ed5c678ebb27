//! `bench replay`, on traces written out.

use crate::program::{json, kvasir};
use serde_json::Value;
use std::fs;
use tempfile::tempdir;

const SAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/traces");

fn replay(trace: &str, options: &str) -> Value {
    let folder = tempdir().unwrap();
    let path = folder.path().join("trace.csv");
    fs::write(&path, trace).unwrap();
    let options = options.split_whitespace();
    json(["bench", "replay", path.to_str().unwrap(), "--json"].into_iter().chain(options))
}

/// A store, a hit, a miss, a delete, and a miss of what was deleted.
const SHORT: &str = "\
0,store,a,100
1,retrieve,a,100
2,retrieve,b,0
3,delete,a,100
4,retrieve,a,0
";

#[test]
fn operations_are_due_when_they_were_recorded() {
    let report = replay(SHORT, "");
    assert_eq!(
        (&report["ops"], &report["errors"], &report["misses"]),
        (&5.into(), &0.into(), &2.into())
    );
    // The last is a miss: the index is asked, and nothing else.
    let seconds = report["simulated_seconds"].as_f64().unwrap();
    assert!((seconds - 4.000_004_2).abs() < 1e-9, "{seconds}");
    assert_eq!(report["load"]["pace"], "recorded");
    assert_eq!((&report["trace"]["operations"], &report["trace"]["keys"]), (&5.into(), &2.into()));
}

#[test]
fn a_pace_brings_operations_closer() {
    let seconds = |pace: &str| {
        let report = replay(SHORT, &format!("--pace {pace}"));
        assert_eq!(report["errors"], 0, "{pace}");
        report["simulated_seconds"].as_f64().unwrap()
    };
    assert!((seconds("10x") - 0.400_004_2).abs() < 1e-9);
    assert!(seconds("full") < 0.01, "as fast as they go");
}

#[test]
fn keys_that_the_trace_finds_are_there_before() {
    let report = replay("0,retrieve,a,500\n1,exist,b,70\n2,retrieve,c,0\n", "");
    assert_eq!((&report["fill"]["keys"], &report["misses"]), (&2.into(), &1.into()));
    assert_eq!(report["space"]["stored_bytes"], 1 + 500 + 1 + 70);
}

#[test]
fn the_samples_are_replayed_without_an_error() {
    for (sample, operations) in [("sample.csv", 2_000), ("sample-twitter.csv", 200)] {
        let path = format!("{SAMPLES}/{sample}");
        for target in ["sim:moke", "sim:moke?payload=full"] {
            let arguments = ["bench", "replay", &path, "--target", target, "--pace", "100x"];
            let report = json(arguments.into_iter().chain(["--json"]));
            assert_eq!((&report["ops"], &report["errors"]), (&operations.into(), &0.into()));
        }
    }
}

#[test]
fn a_replay_has_a_timeline_and_a_figure() {
    let folder = tempdir().unwrap();
    let [timeline, figure] = ["timeline", "figure.svg"].map(|name| folder.path().join(name));
    let path = format!("{SAMPLES}/sample.csv");
    let arguments = ["bench", "replay", &path, "--json", "--trace", timeline.to_str().unwrap()];
    json(arguments.into_iter().chain(["--plot", figure.to_str().unwrap()]));
    let timeline = fs::read_to_string(timeline).unwrap();
    let timeline: Value = serde_json::from_str(&timeline).unwrap();
    assert!(timeline["traceEvents"].as_array().unwrap().len() > 2_000);
    assert!(fs::read_to_string(figure).unwrap().contains("replay on sim:moke"));
}

#[test]
fn a_replay_is_the_same_each_time_and_its_table_fits_a_terminal() {
    let path = format!("{SAMPLES}/sample.csv");
    let ran = || kvasir(["bench", "replay", &path, "--pace", "full"]);
    let (first, second) = (ran(), ran());
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    let digest = |stdout: &str| stdout.lines().next_back().unwrap().to_owned();
    assert_eq!(digest(&first.stdout), digest(&second.stdout));
    assert!(first.stdout.lines().all(|line| line.len() <= 80), "{}", first.stdout);
}

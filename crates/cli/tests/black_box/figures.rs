//! Files that `bench` writes for people to look at.

use crate::drive::formatted;
use crate::program::{Ran, finished, json, kvasir};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::read_to_string;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;
use tempfile::tempdir;

#[test]
fn a_figure_shows_every_kind_of_operation_and_is_the_same_each_time() {
    let folder = tempdir().unwrap();
    let draw = |name: &str| {
        let path = folder.path().join(name);
        let arguments = ["bench", "ycsb-f", "--ops", "2000", "--keys", "2000", "--plot"];
        let ran = kvasir(arguments.iter().copied().chain([path.to_str().unwrap()]));
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
        read_to_string(path).unwrap()
    };
    let figure = draw("a.svg");
    assert!(figure.starts_with("<svg") || figure.starts_with("<?xml"), "{}", &figure[..100]);
    for text in
        ["ycsb-f on sim:moke", "retrieve", "read-modify-write", "99.9%", "operations a second"]
    {
        assert!(figure.contains(text), "{text} is missing");
    }
    assert_eq!(figure, draw("b.svg"));
}

#[test]
fn a_figure_that_would_not_be_svg_is_refused_before_anything_is_done() {
    let folder = tempdir().unwrap();
    for words in [
        "bench store --ops 9",
        "bench replay Cargo.toml",
        "device sensitivity moke",
        "device calibrate none.csv --device moke",
    ] {
        for name in ["a.png", "a.pdf", "a.svg.gz"] {
            let path = folder.path().join(name);
            let ran = kvasir(words.split(' ').chain(["--plot", path.to_str().unwrap()]));
            assert_eq!((ran.code, &ran.stdout[..]), (Some(2), ""), "{words}: {}", ran.stderr);
            let is_told = ran.stderr.contains("give a path that ends in .svg");
            assert!(is_told && ran.stderr.lines().count() == 1, "{words}: {}", ran.stderr);
            assert!(!path.exists(), "{words}");
        }
    }
}

/// The report is there, and what is missing beside it is told.
#[track_caller]
fn assert_reported(words: &str, said: &str) {
    let ran = kvasir(words.split(' '));
    assert_eq!(ran.code, Some(1), "{words}: {}", ran.stderr);
    assert!(ran.json()["ops"].as_u64() > Some(0), "{words}: {}", ran.stdout);
    let sentence = format!("kvasir: {said} cannot be written: No space left on device");
    assert!(ran.stderr.starts_with(&sentence), "{words}: {}", ran.stderr);
}

#[test]
fn a_full_disk_loses_no_report() {
    let load = "bench mixed --ops 500 --keys 500 --json";
    assert_reported(&format!("{load} --trace /dev/full"), "the timeline /dev/full");
    assert_reported(&format!("{load} --plot /dev/full"), "the figure /dev/full");
    assert_reported(&format!("{load} --cut-at 1ms --trace /dev/full"), "the timeline /dev/full");
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/traces/sample.csv");
    let replay = format!("bench replay {trace} --pace full --json");
    assert_reported(&format!("{replay} --trace /dev/full"), "the timeline /dev/full");
    let (_folder, path) = formatted();
    let drive = format!("{load} --target file:{}", path.display());
    assert_reported(&format!("{drive} --plot /dev/full"), "the figure /dev/full");
}

/// Runs `bench retrieve` on a new drive, which may write no file after half of `seconds`.
fn ran_on_a_drive_that_cannot_be_closed(seconds: u64) -> Ran {
    let (_folder, path) = formatted();
    let load = format!("bench retrieve --keys 200 --json --seconds {seconds} --target file:");
    let child = Command::new("sh")
        .args(["-c", "trap '' XFSZ; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_kvasir")])
        .args(format!("{load}{}", path.display()).split(' '))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    sleep(Duration::from_millis(seconds * 500));
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    prlimit(Some(Pid::from_child(&child)), Resource::Fsize, none).unwrap();
    finished(child)
}

/// The close writes a checkpoint. On a busy machine, the first seconds are too few to store the
/// pairs before the limit.
#[test]
fn a_drive_that_cannot_be_closed_loses_no_report() {
    let mut runs = [2, 8, 32].into_iter().map(ran_on_a_drive_that_cannot_be_closed);
    let ran = runs.find(|ran| !ran.stdout.is_empty()).expect("a run that reports");
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.json()["ops"].as_u64() > Some(0), "{}", ran.stdout);
    assert!(ran.stderr.contains("could not be written: File too large"), "{}", ran.stderr);
}

/// Spans by track, each as (start, end) in nanoseconds.
fn tracks(timeline: &Value) -> BTreeMap<String, Vec<(i64, i64)>> {
    let events = timeline["traceEvents"].as_array().unwrap();
    let place = |event: &Value| (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap());
    let names: BTreeMap<(u64, u64), String> = events
        .iter()
        .filter(|event| event["name"] == "thread_name")
        .map(|event| (place(event), event["args"]["name"].as_str().unwrap().to_owned()))
        .collect();
    let mut tracks: BTreeMap<String, Vec<(i64, i64)>> = BTreeMap::new();
    for event in events.iter().filter(|event| event["ph"] == "X") {
        #[expect(clippy::cast_possible_truncation, reason = "some milliseconds")]
        let nanos = |key: &str| (event[key].as_f64().unwrap() * 1e3).round() as i64;
        let (start, time) = (nanos("ts"), nanos("dur"));
        tracks.entry(names[&place(event)].clone()).or_default().push((start, start + time));
    }
    tracks
}

/// On `moke` a retrieve alone is 4,200 ns of a handler, 45,000 of a die, 5,120 of a channel, 2,280
/// of the link.
#[test]
fn a_timeline_has_the_stages_of_each_command_on_the_tracks_that_did_them() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("timeline.json");
    let arguments = "bench retrieve --queue-depth 1 --ops 200 --keys 400 --json --trace";
    json(arguments.split(' ').chain([path.to_str().unwrap()]));
    let timeline: Value = serde_json::from_str(&read_to_string(path).unwrap()).unwrap();
    let tracks = tracks(&timeline);
    let mut spent: BTreeMap<&str, i64> = BTreeMap::new();
    for (name, spans) in &tracks {
        let kind = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == ' ');
        *spent.entry(kind).or_default() += spans.iter().map(|(from, to)| to - from).sum::<i64>();
    }
    let expected = [
        ("channel", 200 * 5_120),
        ("die", 200 * 45_000),
        ("handler", 200 * 4_200),
        ("the link to the host", 200 * 2_280),
    ];
    assert_eq!(spent, BTreeMap::from(expected));
    let events = timeline["traceEvents"].as_array().unwrap();
    let commands: BTreeSet<u64> =
        events.iter().filter_map(|event| event["args"]["command"].as_u64()).collect();
    assert_eq!(commands.len(), 200);
}

#[test]
fn nothing_does_two_things_at_once_on_a_timeline() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("timeline.json");
    let arguments = "bench mixed --ops 3000 --keys 1000 --json --trace";
    json(arguments.split(' ').chain([path.to_str().unwrap()]));
    let timeline: Value = serde_json::from_str(&read_to_string(path).unwrap()).unwrap();
    let tracks = tracks(&timeline);
    assert!(tracks.len() > 64, "all dies have a track: {}", tracks.len());
    for (name, mut spans) in tracks {
        spans.sort_unstable();
        assert!(spans.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{name}");
    }
}

#[test]
fn a_trace_changes_nothing_that_is_measured() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("timeline.json");
    let arguments = "bench mixed --ops 3000 --keys 1000 --json";
    let plain = json(arguments.split(' '));
    let traced = json(arguments.split(' ').chain(["--trace", path.to_str().unwrap()]));
    assert_eq!(plain["digest"], traced["digest"]);
}

//! Real time: what holds on any machine, however busy. How well time is kept is measured by
//! `experiments/realtime`.

use crate::program::json;
use serde_json::Value;
use std::fs;
use tempfile::tempdir;

fn bench(arguments: &str) -> Value {
    json(format!("bench {arguments} --json").split(' '))
}

#[test]
fn a_device_in_real_time_takes_no_less_than_its_profile_says() {
    let report = bench("retrieve --target emu:moke --queue-depth 1 --ops 200 --keys 200");
    assert_eq!((&report["clock"], &report["errors"]), (&"real".into(), &0.into()));
    let latency = &report["latency_ns"]["retrieve"];
    // Histograms have 3 digits.
    assert!(latency["p50"].as_u64().unwrap() >= 56_600 * 999 / 1_000, "{latency}");
    assert!(report["wall_seconds"].as_f64().unwrap() >= 200.0 * 56.6e-6);
}

#[test]
fn lateness_is_its_own_stage() {
    let report = bench("retrieve --target emu:moke --queue-depth 1 --ops 200 --keys 200");
    let stages = report["stages_ns"]["retrieve"].as_object().unwrap();
    for (stage, nanos) in
        [("link", 2_280.0), ("index", 4_200.0), ("channel", 5_120.0), ("array", 45_000.0)]
    {
        let spent = stages[stage].as_f64().unwrap();
        assert!((spent - nanos).abs() < 1e-6, "{stage}: {spent}");
    }
    assert!(stages["late"].as_f64().unwrap() > 0.0);
    let sum: f64 = stages.values().map(|nanos| nanos.as_f64().unwrap()).sum();
    let mean = report["latency_ns"]["retrieve"]["mean"].as_f64().unwrap();
    assert!((sum - mean).abs() < mean * 1e-9, "{sum}, not {mean}");
    let events = &report["event_lateness_ns"];
    assert!(events["events"].as_u64().unwrap() >= 200 * 4, "{events}");
    assert!(report["lateness_ns"]["retrieve"]["p99"].as_u64().unwrap() > 0);
}

#[test]
fn virtual_time_is_never_late() {
    let report = bench("retrieve --ops 200 --keys 200");
    assert_eq!(report["clock"], "virtual");
    assert_eq!(report["stages_ns"]["retrieve"]["late"], 0.0);
    assert!(report.get("event_lateness_ns").is_none() && report.get("lateness_ns").is_none());
}

/// Keys are stored in virtual time: 3,000 stores of 687 us one by one would be seconds.
#[test]
fn keys_are_stored_before_without_waiting_for_the_wall() {
    let report = bench("exist --target emu:moke --queue-depth 1 --ops 10 --keys 60000");
    assert!(report["fill"]["seconds"].as_f64().unwrap() > 0.6);
    assert!(report["wall_seconds"].as_f64().unwrap() < 0.5, "only what is measured");
}

#[test]
fn a_demo_in_real_time_stores_every_byte_and_says_how_late_it_was() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("a"), "hello").unwrap();
    let path = folder.path().to_str().unwrap();
    let report = json(["demo", path, "--clock", "real", "--json"]);
    assert_eq!((&report["clock"], &report["errors"]), (&"real".into(), &0.into()));
    assert!(report["latency_ns"]["store"]["mean"].as_f64().unwrap() >= 660_000.0);
    assert!(report["event_lateness_ns"]["events"].as_u64().unwrap() > 0);
    let stages = report["stages_ns"]["retrieve"].as_object().unwrap();
    assert!(stages["late"].as_f64().unwrap() > 0.0);
    let sum: f64 = stages.values().map(|nanos| nanos.as_f64().unwrap()).sum();
    let mean = report["latency_ns"]["retrieve"]["mean"].as_f64().unwrap();
    assert!((sum - mean).abs() < mean * 1e-9, "{sum}, not {mean}");
}

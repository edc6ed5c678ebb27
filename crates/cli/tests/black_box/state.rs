//! `bench --state` and `bench --pause-after`.

use crate::program::{Ran, SMALL, json, kvasir};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const BLOCKS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/black_box/blocks.toml");

/// A place for a state, in a folder that goes when it is dropped.
fn place() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("device.state");
    (folder, path)
}

fn words(load: &str, state: Option<&Path>) -> Vec<String> {
    let mut words: Vec<String> = format!("bench {load}").split(' ').map(str::to_owned).collect();
    if let Some(state) = state {
        words.extend(["--state".to_owned(), state.to_str().unwrap().to_owned()]);
    }
    words
}

/// The report of a load, but for what depends on this machine.
fn report(load: &str, state: Option<&Path>) -> Value {
    let mut words = words(load, state);
    words.push("--json".to_owned());
    let mut report = json(words);
    for of_machine in ["wall_seconds", "ops_per_wall_second"] {
        report.as_object_mut().unwrap().remove(of_machine);
    }
    if let Some(precondition) = report.get_mut("precondition") {
        precondition.as_object_mut().unwrap().remove("wall_seconds");
    }
    report
}

#[track_caller]
fn refused(load: &str, state: &Path, sentence: &str) {
    let before = fs::read(state).ok();
    let Ran { code, stdout, stderr } = kvasir(words(load, Some(state)));
    let expected = format!("kvasir: the state {} {sentence}\n", state.display());
    assert_eq!((code, stdout.as_str(), stderr), (Some(2), "", expected), "{load}");
    assert!(fs::read(state).ok() == before, "{load} changes nothing");
}

#[test]
fn a_run_saved_in_the_middle_and_finished_by_another_process_is_the_unbroken_run() {
    let other = format!("sim:{SMALL}?shuffle=1&index=btree");
    for load in [
        format!("mixed --target sim:{SMALL} --keys 3000 --ops 12000 --pause-after 5000"),
        format!("ycsb-d --target {other} --keys 2000 --ops 4000 --pause-after 1"),
        format!(
            "store --target sim:{SMALL}?payload=full --keys 2000 --ops 9000 --pause-after 8999"
        ),
        format!("randwrite --target sim:{BLOCKS} --precondition 50% --ops 9000 --pause-after 4000"),
        format!("write --target sim:{BLOCKS}?ns=3 --queue-depth 1 --ops 9000 --pause-after 4001"),
    ] {
        let unbroken = report(&load, None);
        let (folder, state) = place();
        let paused = kvasir(words(&load, Some(&state)));
        assert_eq!((paused.code, paused.stderr.as_str()), (Some(0), ""), "{load}");
        assert!(paused.stdout.starts_with("paused after "), "{}", paused.stdout);
        assert!(paused.stdout.ends_with("; the same command goes on\n"), "{}", paused.stdout);
        assert_eq!(report(&load, Some(&state)), unbroken, "{load}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
    }
}

#[test]
fn the_next_run_finds_the_keys_of_the_one_before() {
    let (_folder, state) = place();
    let device = format!("--target sim:{SMALL}?payload=full --keys 2000");
    let first = report(&format!("store {device} --ops 2000"), Some(&state));
    assert_eq!(first["digest"], report(&format!("store {device} --ops 2000"), None)["digest"]);
    // Each is judged, so values of another version than the last are errors.
    for load in ["retrieve", "mixed", "ycsb-c", "ycsb-f --distribution uniform", "retrieve"] {
        let next = report(&format!("{load} {device} --ops 3000"), Some(&state));
        assert_eq!((&next["errors"], &next["fill"]), (&0.into(), &Value::Null), "{load}");
    }
    for (load, sentence) in [
        ("retrieve --keys 1999 --ops 10", "has --keys 2000, not 1999"),
        ("retrieve --keys 2000 --key-size 17", "has --key-size 16, not 17"),
        ("retrieve --keys 2000 --value-size 1KiB", "has --value-size 4KiB, not 1KiB"),
    ] {
        let load = format!("{load} --target sim:{SMALL}?payload=full");
        refused(&load, &state, sentence);
    }
    let seeded = format!("retrieve --target sim:{SMALL}?payload=full&seed=1 --keys 2000 --seed 2");
    refused(&seeded, &state, "has --seed 1, not 2");
    refused(&format!("mixed {device} --seed 2"), &state, "is of a device with seed 1, not 2");
    let used = "has a device that was used before:";
    let plan = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/faults/worn.toml");
    let faults = format!("mixed {device} --faults {plan}");
    refused(&faults, &state, &format!("{used} --faults is for a new one"));
    let aged = format!("mixed --target sim:{SMALL}?payload=full --precondition 50%");
    refused(&aged, &state, &format!("{used} --precondition is for a new one"));

    let delete = report(&format!("delete {device} --ops 500"), Some(&state));
    assert_eq!(delete["errors"], 0);
    let unknown = "does not tell what all of its keys hold, because the runs on it deleted, added \
                   or overwrote keys that they did not read; this workload is for another";
    refused(&format!("exist {device} --ops 500"), &state, unknown);
}

#[test]
fn a_paused_run_is_gone_on_with_as_it_began_or_not_at_all() {
    let (_folder, state) = place();
    let load = format!("mixed --target sim:{SMALL} --keys 500 --ops 900");
    assert_eq!(kvasir(words(&format!("{load} --pause-after 300"), Some(&state))).code, Some(0));
    for (other, sentence) in [
        (format!("{load} --pause-after 400"), "has a run that paused after 300"),
        (load.replace("900", "901"), "has an end Operations(900), not Operations(901)"),
        (load.replace("mixed", "exist"), "has workload mixed, not exist"),
        (format!("{load} --queue-depth 3"), "has a load QueueDepth(64), not QueueDepth(3)"),
    ] {
        refused(&other, &state, sentence);
    }
    assert_eq!(kvasir(words(&load, Some(&state))).code, Some(0));
}

#[test]
fn a_file_that_is_no_whole_state_of_the_device_is_refused() {
    let (_folder, state) = place();
    let load = format!("mixed --target sim:{SMALL} --keys 500 --ops 900");
    fs::write(&state, "something else").unwrap();
    refused(&load, &state, "is no saved device");
    fs::remove_file(&state).unwrap();
    assert_eq!(kvasir(words(&load, Some(&state))).code, Some(0));
    let whole = fs::read(&state).unwrap();
    let sentence = format!("is of the profile {SMALL}, which is not the same as moke now");
    refused("mixed --keys 500 --ops 900", &state, &sentence);
    fs::write(&state, &whole[..whole.len() - 1]).unwrap();
    refused(&load, &state, "is cut off in its section \"end\"");
    let mut flipped = whole;
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    fs::write(&state, flipped).unwrap();
    let Ran { code, stderr, .. } = kvasir(words(&load, Some(&state)));
    assert!(code == Some(2) && stderr.contains("is damaged in its section \""), "{stderr}");
}

#[test]
fn what_cannot_be_paused_or_saved_is_refused() {
    for (load, sentence) in [
        ("mixed --ops 100 --pause-after 100", "the run ends after 100 operations"),
        ("mixed --target emu:moke --state x", "--state and --pause-after are for virtual time"),
        ("mixed --state x --cut-at 5ms", "cannot be used with"),
        ("mixed --pause-after 5 --trace x", "cannot be used with"),
    ] {
        let ran = kvasir(words(load, None));
        assert_eq!(ran.code, Some(2), "{load}");
        assert!(ran.stderr.contains(sentence), "{load}: {}", ran.stderr);
    }
}

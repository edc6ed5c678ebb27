//! `bench --state` and `bench --pause-after`.

use crate::program::{Ran, SMALL, json, kvasir};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const BLOCKS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/black_box/blocks.toml");

const WORN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/faults/worn.toml");

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
        format!("mixed --target sim:{SMALL} --faults {WORN} --ops 9000 --keys 900 --pause-after 4"),
    ] {
        let unbroken = report(&load, None);
        let (folder, state) = place();
        let paused = kvasir(words(&load, Some(&state)));
        assert_eq!((paused.code, paused.stderr.as_str()), (Some(0), ""), "{load}");
        assert!(paused.stdout.starts_with("paused after "), "{}", paused.stdout);
        assert!(paused.stdout.ends_with("; the same command continues\n"), "{}", paused.stdout);
        assert_eq!(report(&load, Some(&state)), unbroken, "{load}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
    }
}

/// Errors of a plan of faults do not change the exit status, in the first run and in later ones.
#[test]
fn a_device_keeps_its_plan_of_faults() {
    let (folder, state) = place();
    let plan = folder.path().join("plan.toml");
    let kept = "seed = 3\n[[fault]]\nkind = \"uncorrectable-read\"\nppm = 20000\n";
    fs::write(&plan, kept).unwrap();
    let device = format!("--target sim:{SMALL} --keys 1000 --ops 1000");
    let faults = format!("{device} --faults {}", plan.display());
    assert_eq!(report(&format!("store {faults}"), Some(&state))["errors"], 0);
    let unreadable =
        |report: Value| report["faults"]["counts"]["uncorrectable_reads"].as_u64().unwrap();
    let first = unreadable(report(&format!("retrieve {faults}"), Some(&state)));
    let both = unreadable(report(&format!("retrieve {device} --seed 1"), Some(&state)));
    assert!(0 < first && first < both, "{first}, then {both}");
    fs::write(&plan, kept.replace('3', "4")).unwrap();
    let sentence = "has a device with another plan of faults, which it keeps: leave --faults out";
    refused(&format!("retrieve {faults}"), &state, sentence);
}

/// The file may have one block only, which no device fits.
#[test]
fn results_are_printed_even_if_the_device_cannot_be_saved() {
    let (folder, state) = place();
    let load = words(&format!("store --target sim:{SMALL} --keys 500 --ops 500"), Some(&state));
    let limited = "trap '' XFSZ; ulimit -f 1; exec \"$@\"";
    let ran = Command::new("sh")
        .args(["-c", limited, "sh", env!("CARGO_BIN_EXE_kvasir")])
        .args(load)
        .output()
        .unwrap();
    let [stdout, stderr] = [ran.stdout, ran.stderr].map(|text| String::from_utf8(text).unwrap());
    assert_eq!(ran.status.code(), Some(1), "{stderr}");
    assert!(stdout.contains("\ndigest "), "{stdout}");
    let sentence = format!("kvasir: the state {} cannot be written: ", state.display());
    assert!(stderr.starts_with(&sentence) && stderr.lines().count() == 1, "{stderr}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left");
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
    let others = format!("retrieve --target sim:{SMALL}?payload=full --ops 10");
    assert_eq!(report(&others, Some(&state))["keys"], 2_000, "as many as there are");
    let index = others.replace("full", "full&index=btree");
    refused(&index, &state, "is of a device whose index is hash, not btree");
    let faults = format!("mixed {device} --faults {WORN}");
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
        (load.replace("900", "901"), "has a run with --ops 900, not --ops 901"),
        (load.replace("ops 900", "seconds 0.5"), "has a run with --ops 900, not --seconds 0.5"),
        (format!("{load} --read-percent 51"), "has --read-percent 50, not 51"),
        (load.replace("mixed", "exist"), "has workload mixed, not exist"),
        (format!("{load} --queue-depth 3"), "has a run with --queue-depth 64, not --queue-depth 3"),
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
    refused(&load, &state, "is not a saved device");
    fs::remove_file(&state).unwrap();
    assert_eq!(kvasir(words(&load, Some(&state))).code, Some(0));
    let whole = fs::read(&state).unwrap();
    let sentence = format!("is of the profile {SMALL}, which is not the same as moke now");
    refused("mixed --keys 500 --ops 900", &state, &sentence);
    fs::write(&state, &whole[..whole.len() - 1]).unwrap();
    refused(&load, &state, "ends in the middle of its section \"end\"");
    let mut flipped = whole;
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    fs::write(&state, flipped).unwrap();
    let Ran { code, stderr, .. } = kvasir(words(&load, Some(&state)));
    assert!(code == Some(2) && stderr.contains("is damaged in its section \""), "{stderr}");
}

#[test]
fn loads_that_cannot_be_paused_or_saved_are_refused() {
    for (load, sentence) in [
        ("mixed --ops 100 --pause-after 100", "the run ends after 100 operations"),
        ("mixed --target emu:moke --state x", "--state and --pause-after are for virtual time"),
        ("mixed --state /dev/null", "/dev/null is not a regular file"),
        ("mixed --state x --cut-at 5ms", "cannot be used with"),
        ("mixed --pause-after 5 --trace x", "cannot be used with"),
    ] {
        let ran = kvasir(words(load, None));
        assert_eq!(ran.code, Some(2), "{load}");
        assert!(ran.stderr.contains(sentence), "{load}: {}", ran.stderr);
    }
}

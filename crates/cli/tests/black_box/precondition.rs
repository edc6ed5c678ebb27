//! `bench --precondition`: what was measured of an aged device, and how it was aged.

use crate::program::{SMALL, json, kvasir};
use serde_json::Value;
use std::fs::{self, read_to_string};
use tempfile::tempdir;

const BLOCKS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/black_box/blocks.toml");

fn bench(profile: &str, arguments: &str) -> Value {
    let (workload, rest) = arguments.split_once(' ').unwrap();
    let (options, rest) = rest.split_once(' ').unwrap();
    let arguments = format!("bench {workload} --target sim:{profile}{options} {rest} --json");
    json(arguments.split_whitespace())
}

#[track_caller]
fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Steady, and by how much the write amplification differed at last.
#[track_caller]
fn assert_is_steady(precondition: &Value) {
    assert_eq!(precondition["is_steady"], true, "{precondition}");
    assert!(number(&precondition["change"]) < 0.01, "{precondition}");
    let capacities = precondition["capacities_overwritten"].as_u64().unwrap();
    assert!((2..=16).contains(&capacities), "{precondition}");
    assert!(number(&precondition["simulated_seconds"]) > 0.0);
    assert!(number(&precondition["wall_seconds"]) > 0.0);
}

#[test]
fn an_aged_device_is_steady_and_stays_so_while_it_is_measured() {
    // Fewer operations than a capacity would be noise.
    let report = bench(BLOCKS, "randwrite ?ns=2 --precondition 90% --ops 30000");
    let precondition = &report["precondition"];
    assert_is_steady(precondition);
    assert!((number(&precondition["fill"]) - 0.9).abs() < 0.001);
    let blocks = report["blocks"].as_f64().unwrap();
    assert!((blocks - 0.9 * 64e6 / 4_096.0).abs() < 1.0, "{blocks}");
    let (aged, measured) =
        (number(&precondition["write_amplification"]), number(&report["write_amplification"]));
    assert!(aged > 1.1 && (measured / aged - 1.0).abs() < 0.03, "{aged}, then {measured}");
    assert!(report["fill"].is_null());
}

#[test]
fn counters_start_after_the_precondition() {
    for arguments in [
        "randread ?ns=2 --precondition 0.9 --ops 500",
        "retrieve ?ns=1 --precondition 50% --ops 500",
    ] {
        let report = bench(BLOCKS, arguments);
        assert_is_steady(&report["precondition"]);
        assert_eq!((&report["ops"], &report["errors"]), (&500.into(), &0.into()));
        assert!(report["write_amplification"].is_null(), "{arguments}");
        // Cleaning that was under way may end, with an extent of eight blocks at most.
        assert!(report["gc"]["block_erases"].as_u64().unwrap() <= 16, "{}", report["gc"]);
        assert_eq!(report["latency_ns"].as_object().unwrap().len(), 1);
    }
}

#[test]
fn pairs_are_filled_to_the_share_that_was_asked_for() {
    for (sizes, key_bytes) in [("4KiB", 16), ("1KiB", 200), ("uniform:64B-12KiB", 16)] {
        let arguments =
            format!("?payload=full --precondition 70% --ops 500 --key-size {key_bytes}");
        let report = bench(SMALL, &format!("retrieve {arguments} --value-size {sizes}"));
        let fill = number(&report["precondition"]["fill"]);
        assert!((0.699..=0.701).contains(&fill), "{sizes}: {fill}");
        let space = &report["space"];
        let used = number(&space["used_bytes"]) / number(&space["capacity_bytes"]);
        assert!((used - fill).abs() < 0.001, "{sizes}: {used}");
        assert_eq!(space["pairs"], report["keys"]);
        assert_eq!(report["errors"], 0);
    }
}

/// Whatever is done to the keys that a precondition stored, they are there.
#[test]
fn every_workload_finds_the_pairs_of_a_precondition() {
    for workload in ["store", "mixed", "delete", "exist", "ycsb-a", "ycsb-d", "ycsb-e", "ycsb-f"] {
        let report =
            bench(SMALL, &format!("{workload} ?payload=full --precondition 40% --ops 500"));
        assert_eq!((&report["ops"], &report["errors"]), (&500.into(), &0.into()), "{workload}");
    }
    for workload in ["read", "write", "randread", "randwrite", "mixed"] {
        let arguments = format!("{workload} ?ns=2&payload=full --precondition 40% --ops 500");
        assert_eq!(bench(BLOCKS, &arguments)["errors"], 0, "{workload}");
    }
    for workload in ["read", "write", "randread"] {
        let arguments = format!("{workload} ?ns=3&payload=full --precondition 40% --ops 3000");
        let report = bench(BLOCKS, &arguments);
        assert_eq!(report["errors"], 0, "{workload}");
        assert_eq!(report["precondition"]["capacities_overwritten"], 0);
        assert_eq!(report["precondition"]["is_steady"], true);
    }
}

/// Where there is always a block without live data nothing is moved: write amplification is 1 from
/// the start.
#[test]
fn a_device_that_has_nothing_to_move_is_steady_at_once() {
    let report = bench(BLOCKS, "randread ?ns=2 --precondition 0.5% --ops 100");
    let precondition = &report["precondition"];
    assert_is_steady(precondition);
    // The flash has 1.3 capacities, and two more are compared after it was written once.
    assert_eq!(precondition["capacities_overwritten"], 3);
    assert!((number(&precondition["write_amplification"]) - 1.0).abs() < 1e-3);
}

#[test]
fn a_precondition_ends_where_no_time_passes() {
    let text = kvasir(["device", "show", "ideal"]).stdout;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ideal.toml");
    // The profile itself has some gigabytes.
    let small = text.lines().map(|line| match line.split_once(" = ") {
        Some(("channels" | "dies_per_channel", _)) => line.replace('8', "2"),
        Some(("pages_per_block", _)) => "pages_per_block = 64".to_owned(),
        Some(("blocks_per_plane", _)) => "blocks_per_plane = 16".to_owned(),
        Some(("size_gb", _)) => "over_provisioning = 0.8".to_owned(),
        _ => line.to_owned(),
    });
    std::fs::write(&path, small.collect::<Vec<_>>().join("\n")).unwrap();
    let report = bench(
        path.to_str().unwrap(),
        "retrieve ?seed=1 --precondition 50% --ops 100 --value-size 64KiB",
    );
    assert_eq!(report["precondition"]["simulated_seconds"], 0.0);
    assert_eq!(report["errors"], 0);
}

#[test]
fn a_device_can_be_full_of_blocks() {
    let report = bench(BLOCKS, "randread ?ns=2 --precondition 100% --ops 100");
    assert_is_steady(&report["precondition"]);
}

/// Sixteen extents are too few for their cleaning to be even.
#[test]
fn an_unsteady_device_is_measured_at_the_limit_with_a_note() {
    let report = bench(SMALL, "retrieve ?seed=1 --precondition 100% --ops 500");
    let precondition = &report["precondition"];
    assert_eq!(precondition["is_steady"], false, "{precondition}");
    assert_eq!(precondition["capacities_overwritten"], precondition["capacities_max"]);
    assert_eq!(precondition["capacities_max"], 16);
    assert!(number(&precondition["change"]) >= 0.01);
    assert_eq!((&report["ops"], &report["errors"]), (&500.into(), &0.into()));
}

#[test]
fn the_same_command_ages_a_device_in_the_same_way() {
    let digest = |seed: u32| {
        let arguments = format!("randwrite ?ns=2 --precondition 90% --ops 500 --seed {seed}");
        bench(BLOCKS, &arguments)["digest"].clone()
    };
    assert_eq!(digest(1), digest(1));
    assert_ne!(digest(1), digest(2));
}

#[test]
fn a_table_says_how_a_device_was_aged() {
    let arguments =
        format!("bench randread --target sim:{BLOCKS}?ns=2 --precondition 90% --ops 500");
    let ran = kvasir(arguments.split_whitespace());
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert!(ran.stdout.contains("\n  preconditioned       to 90.0 %, then "), "{}", ran.stdout);
    assert!(
        ran.stdout.contains("\n  steady               at write amplification "),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.lines().all(|line| line.len() <= 80), "{}", ran.stdout);
}

#[test]
fn one_of_two_namespaces_of_pairs_is_filled_to_its_own_size() {
    let profile = read_to_string(SMALL).unwrap();
    let (device, _) = profile.split_once("[[namespace]]").unwrap();
    let kv = |size_gb: f64| {
        format!("[[namespace]]\nkind = \"kv\"\nsize_gb = {size_gb}\nover_provisioning = 0.6\n")
    };
    let folder = tempdir().unwrap();
    let mine = folder.path().join("mine.toml");
    fs::write(&mine, format!("{device}{}{}", kv(0.016), kv(0.008))).unwrap();
    let report = bench(mine.to_str().unwrap(), "retrieve ?ns=2 --precondition 50% --ops 100");
    let fill = number(&report["precondition"]["fill"]);
    assert!((0.49..=0.51).contains(&fill), "{fill}");
    let stored = number(&report["space"]["stored_bytes"]);
    assert!((0.45 * 8e6..=0.5 * 8e6).contains(&stored), "{stored}");
}

//! What each workload of `bench` does, against its definition.

use crate::program::json;
use serde_json::Value;

fn bench(arguments: &str) -> Value {
    json(format!("bench {arguments} --json").split(' '))
}

/// The kinds of operations that the run of `report` did.
fn kinds(report: &Value) -> Vec<&str> {
    report["latency_ns"].as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn ycsb_workloads_do_the_kinds_of_operations_that_they_define() {
    for (workload, expected, distribution) in [
        ("ycsb-a", vec!["retrieve", "store"], "zipfian"),
        ("ycsb-b", vec!["retrieve", "store"], "zipfian"),
        ("ycsb-c", vec!["retrieve"], "zipfian"),
        ("ycsb-d", vec!["retrieve", "store"], "latest"),
        ("ycsb-e", vec!["scan", "store"], "zipfian"),
        ("ycsb-f", vec!["read_modify_write", "retrieve"], "zipfian"),
    ] {
        let report = bench(&format!("{workload} --ops 2000 --keys 2000"));
        assert_eq!(kinds(&report), expected, "{workload}");
        assert_eq!((&report["ops"], &report["errors"]), (&2_000.into(), &0.into()), "{workload}");
        assert_eq!(report["distribution"], distribution, "{workload}");
    }
    let chosen = bench("ycsb-b --ops 2000 --keys 2000 --distribution uniform");
    assert_eq!(chosen["distribution"], "uniform");
}

/// 5 % of the operations store new keys.
#[test]
fn inserts_make_new_pairs_and_overwrites_do_not() {
    for (workload, least, most) in
        [("ycsb-a", 0, 0), ("ycsb-f", 0, 0), ("ycsb-d", 400, 600), ("ycsb-e", 30, 70)]
    {
        let operations = if workload == "ycsb-e" { 1_000 } else { 10_000 };
        let report = bench(&format!("{workload} --ops {operations} --keys 2000"));
        let new = report["space"]["pairs"].as_u64().unwrap() - 2_000;
        assert!((least..=most).contains(&new), "{workload}: {new}");
    }
}

/// Uniform from 1 to 100 keys: 50.5 on average, each a sense of the List and one of its Retrieve.
#[test]
fn a_scan_is_of_50_keys_on_average() {
    let report = bench("ycsb-e --ops 4000 --keys 20000 --queue-depth 1");
    let index = report["stages_ns"]["scan"]["index"].as_f64().unwrap();
    assert!((index - 2.0 * 4_200.0).abs() < 1e-6, "one List, and the last of the Retrieves");
    // One handler takes the Retrieves one after the other. The last to end is mostly one of the
    // last to begin.
    let handler = report["stages_ns"]["scan"]["handler"].as_f64().unwrap();
    let mean_keys = handler / 4_200.0 + 1.0;
    assert!((46.0..51.0).contains(&mean_keys), "{mean_keys} keys");
}

/// A retrieve and then a store, each alone on the device: see `bench.rs` for their stages.
#[test]
fn a_read_modify_write_alone_takes_a_retrieve_and_an_overwrite() {
    let report = bench("ycsb-f --ops 500 --keys 500 --queue-depth 1");
    let mean = |kind: &str| report["latency_ns"][kind]["mean"].as_f64().unwrap();
    let overwrite = 2_280.0 + 4_400.0 + 45_000.0 + 20_480.0 + 660_000.0;
    assert!((mean("read_modify_write") - mean("retrieve") - overwrite).abs() < 1.0);
    assert!((mean("retrieve") - 56_600.0).abs() < 1.0);
}

#[test]
fn sizes_of_values_are_as_asked_for() {
    for (sizes, least, most) in [
        ("uniform:1KiB-3KiB", 2_000.0, 2_096.0),
        ("mix:100B=1,300B=3", 245.0, 255.0),
        ("zipfian:64B-4KiB", 64.0, 1_000.0),
        ("2MiB", 2_097_152.0, 2_097_152.0),
    ] {
        let keys = if sizes == "2MiB" { 20 } else { 5_000 };
        let report = bench(&format!("retrieve --keys {keys} --ops {keys} --value-size {sizes}"));
        assert_eq!((&report["errors"], &report["value_sizes"]), (&0.into(), &sizes.into()));
        let stored = report["space"]["stored_bytes"].as_f64().unwrap();
        let mean = stored / f64::from(keys) - 16.0;
        assert!((least..=most).contains(&mean), "{sizes}: {mean}");
        let stated = report["value_bytes"].as_f64().unwrap();
        assert!((mean / stated - 1.0).abs() < 0.1, "{sizes}: {mean}, said {stated}");
    }
}

#[test]
fn stored_pairs_count_after_overwrites_and_deletes() {
    let report = bench("delete --keys 300 --ops 100 --value-size 1KiB");
    assert_eq!(report["space"]["stored_bytes"], 200 * (16 + 1_024));
    let report = bench("mixed --keys 300 --ops 2000 --value-size 1KiB");
    assert_eq!(report["space"]["stored_bytes"], 300 * (16 + 1_024));
}

#[test]
fn a_run_for_a_time_ends_when_it_has_passed() {
    let report = bench("retrieve --seconds 0.05 --keys 1000 --queue-depth 4");
    let seconds = report["simulated_seconds"].as_f64().unwrap();
    assert!((0.05..0.0502).contains(&seconds), "{seconds}");
    let alone = bench("retrieve --seconds 0.01 --keys 1000 --queue-depth 1");
    // 56.6 us each: the last is submitted before the time is over.
    assert_eq!(alone["ops"], 177);
}

#[test]
fn a_run_for_a_time_says_why_it_ended_before() {
    let report = bench("retrieve --target sim:ideal --seconds 0.001 --keys 100");
    assert_eq!((&report["early_end"], &report["errors"]), (&"no time passes".into(), &0.into()));
    for workload in ["delete --keys 10", "ycsb-d --key-size 1 --keys 250"] {
        let report = bench(&format!("{workload} --seconds 1"));
        assert_eq!(report["early_end"], "no key is left", "{workload}");
    }
    let report = bench("retrieve --seconds 0.01 --keys 100");
    assert!(report.get("early_end").is_none());
}

/// One at a time nothing is read from memory: a sense for each value, and one more for each key
/// that a List or an overwrite looks at.
#[test]
fn reads_are_counted_for_each_retrieve_of_any_operation() {
    for (workload, reads) in [("ycsb-c", 1.0), ("ycsb-e", 1.0), ("ycsb-f", 1.0)] {
        let report = bench(&format!("{workload} --ops 300 --keys 300 --queue-depth 1"));
        assert_eq!(report["flash_reads_per_retrieve"], reads, "{workload}");
    }
}

#[test]
fn operations_are_counted_by_kind() {
    let report = bench("ycsb-a --ops 10000 --keys 1000");
    let count = |kind: &str| report["ops_by_kind"][kind].as_u64().unwrap();
    assert_eq!(count("retrieve") + count("store"), 10_000);
    // Half of them, within four standard deviations.
    assert!((4_800..=5_200).contains(&count("retrieve")), "{}", count("retrieve"));
}

/// Four values of 4 KiB share a page, and one page after the other is asked for.
#[test]
fn sequential_keys_are_neighbours_on_the_flash() {
    for order in ["sequential", "uniform"] {
        let arguments = format!("retrieve --keys 4000 --ops 4000 --distribution {order}");
        let report = bench(&format!("{arguments} --queue-depth 4"));
        assert_eq!(report["errors"], 0);
        let queue = report["stages_ns"]["retrieve"]["queue"].as_f64().unwrap();
        // Neighbours lie on one die, so that four at a time wait for each other there.
        assert_eq!(queue > 30_000.0, order == "sequential", "{order}: {queue}");
    }
}

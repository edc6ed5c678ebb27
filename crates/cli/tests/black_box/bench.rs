use crate::program::{SMALL, json, kvasir};
use serde_json::Value;
use std::fs;
use tempfile::tempdir;

fn bench(arguments: &str) -> Value {
    json(format!("bench {arguments} --json").split(' '))
}

fn small(options: &str) -> String {
    format!("--target sim:{SMALL}{options}")
}

#[track_caller]
fn assert_is(value: &Value, expected: f64) {
    let value = value.as_f64().unwrap_or_else(|| panic!("{value} is no number"));
    assert!((value - expected).abs() <= expected * 1e-9, "{value}, not {expected}");
}

/// One operation at a time on the profile moke, nanoseconds: firmware, array, channel, link.
const RETRIEVE_NS: f64 = 4_200.0 + 45_000.0 + 5_120.0 + (1_000.0 + 1_280.0);
const STORE_NS: f64 = (1_000.0 + 1_280.0) + 4_400.0 + 20_480.0 + 660_000.0;
const EXIST_NS: f64 = 4_200.0 + 45_000.0;

#[test]
fn a_retrieve_alone_takes_the_sum_of_its_stages() {
    let report = bench("retrieve --queue-depth 1 --ops 500 --keys 200");
    let latency = &report["latency_ns"]["retrieve"];
    assert_is(&latency["mean"], RETRIEVE_NS);
    assert_is(&latency["max"], RETRIEVE_NS);
    assert_is(&report["ops_per_second"], 1e9 / RETRIEVE_NS);
    for (stage, nanos) in
        [("index", 4_200.0), ("array", 45_000.0), ("channel", 5_120.0), ("link", 2_280.0)]
    {
        assert_is(&report["stages_ns"]["retrieve"][stage], nanos);
    }
    assert_is(&report["flash_reads_per_retrieve"], 1.0);
    assert!(report["write_amplification"].is_null());
}

#[test]
fn a_store_alone_takes_the_sum_of_its_stages_and_a_page() {
    let report = bench("store --queue-depth 1 --ops 500");
    assert_is(&report["latency_ns"]["store"]["mean"], STORE_NS);
    assert_is(&report["stages_ns"]["store"]["array"], 660_000.0);
    assert_is(&report["write_amplification"], 16_384.0 / (16.0 + 4_096.0));
    assert!(report["flash_reads_per_retrieve"].is_null());
}

#[test]
fn an_exist_alone_takes_its_firmware_and_a_sense() {
    let report = bench("exist --queue-depth 1 --ops 100 --keys 100");
    assert_is(&report["latency_ns"]["exist"]["mean"], EXIST_NS);
}

#[test]
fn at_a_low_rate_operations_do_not_meet() {
    let report = bench("retrieve --rate 1000 --ops 100 --keys 100");
    assert_is(&report["latency_ns"]["retrieve"]["mean"], RETRIEVE_NS);
    assert_is(&report["simulated_seconds"], 0.099 + RETRIEVE_NS / 1e9);
    assert_eq!(report["load"]["rate"], 1_000);
}

#[test]
fn above_the_handlers_rate_latency_counts_from_when_each_was_due() {
    // One handler takes 4.2 us for each and one is due each 1 us, so that each waits 3.2 us longer
    // than the one before. Waiting for a die that is busy is what the formula leaves out.
    let report = bench("retrieve --rate 1000000 --ops 1000 --keys 1000");
    let expected = 999.0 / 2.0 * 3_200.0 + RETRIEVE_NS;
    let mean = report["latency_ns"]["retrieve"]["mean"].as_f64().unwrap();
    assert!(mean >= expected && mean < expected * 1.02, "{mean}, not {expected}");
}

#[test]
fn at_a_rate_with_a_queue_depth_what_is_due_waits_with_the_host() {
    // Never two at a time, so that operation i, due after i us, ends after i + 1 retrieves alone.
    let report = bench("retrieve --rate 1000000 --queue-depth 1 --ops 1000 --keys 1000");
    let latency = &report["latency_ns"]["retrieve"];
    assert_is(&latency["max"], 1_000.0 * RETRIEVE_NS - 999.0 * 1_000.0);
    assert_is(&latency["mean"], 1_001.0 / 2.0 * RETRIEVE_NS - 999.0 / 2.0 * 1_000.0);
    assert_eq!(report["load"], serde_json::json!({ "rate": 1_000_000, "queue_depth": 1 }));
    let printed = kvasir(["bench", "retrieve", "--rate", "9000", "--queue-depth", "7"]);
    let told = "9,000 due in a second, at most 7 outstanding";
    assert!(printed.stdout.contains(told), "{}", printed.stdout);
}

#[test]
fn a_value_of_many_pages_is_a_read_of_each() {
    let report = bench("retrieve --queue-depth 1 --ops 20 --keys 20 --value-size 1MiB");
    assert_is(&report["flash_reads_per_retrieve"], 64.0);
    assert_is(&bench("mixed --ops 100 --keys 10 --queue-depth 1")["flash_reads_per_retrieve"], 1.0);
}

#[test]
fn the_digest_is_the_seeds_and_not_the_payloads() {
    for workload in ["store", "retrieve", "mixed", "delete", "exist"] {
        let digest = |options: &str, seed: u32| {
            let target = small(options);
            let report = bench(&format!("{workload} {target} --ops 300 --keys 300 --seed {seed}"));
            report["digest"].as_str().unwrap().to_owned()
        };
        let none = digest("?payload=none", 1);
        assert_eq!(none.len(), 16);
        assert_eq!(none, digest("", 1));
        assert_eq!(none, digest("?payload=full", 1), "{workload}");
        assert_eq!(none, digest("?payload=checksum", 1), "{workload}");
        assert_ne!(none, digest("", 2), "{workload}");
    }
}

#[test]
fn shuffling_changes_the_order_of_what_happens_at_one_instant() {
    let digest = |options: &str| {
        let target = format!("--target sim:moke?{options}");
        bench(&format!("mixed {target} --ops 2000 --keys 2000"))["digest"].clone()
    };
    assert_eq!(digest("shuffle=0&seed=1"), digest("seed=1"));
    assert_eq!(digest("shuffle=1&seed=1"), digest("seed=1&shuffle=1"));
    assert_ne!(digest("shuffle=1&seed=1"), digest("shuffle=0&seed=1"));
    assert_ne!(digest("shuffle=1&seed=1"), digest("shuffle=1&seed=2"));
}

#[test]
fn stores_that_are_answered_from_a_buffer_are_programmed_where_they_belong() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("buffered.toml");
    let moke = kvasir(["device", "show", "moke"]).stdout;
    let buffered = moke.replace("ack = \"program\"", "ack = \"buffer\"\nbuffer_kib = 65536");
    assert_ne!(buffered, moke);
    fs::write(&path, buffered).unwrap();
    let target = format!("--target sim:{}", path.display());
    let report = bench(&format!("store {target} --ops 2000"));
    // Four values fill a page; their keys lie beside it, so that this is a little less than 1.
    assert_is(&report["write_amplification"], 16_384.0 / (4.0 * (16.0 + 4_096.0)));
    let report = bench(&format!("retrieve {target} --keys 200 --ops 400 --queue-depth 1"));
    assert_is(&report["latency_ns"]["retrieve"]["mean"], RETRIEVE_NS);
    assert_is(&report["flash_reads_per_retrieve"], 1.0);
}

#[test]
fn a_report_has_the_keys_that_are_promised() {
    let report = bench(&format!("mixed {} --ops 200 --keys 100", small("?payload=full")));
    for key in [
        "workload",
        "target",
        "ops",
        "errors",
        "errors_by_status",
        "ops_per_second",
        "wall_seconds",
        "ops_per_wall_second",
        "latency_ns",
        "stages_ns",
        "write_amplification",
        "flash_reads_per_retrieve",
        "digest",
        "fill",
        "device",
        "seed",
        "device_seed",
        "load",
        "keys",
        "key_bytes",
        "value_bytes",
        "distribution",
        "simulated_seconds",
        "index_bytes_per_pair",
        "space",
        "gc",
    ] {
        assert!(!report[key].is_null(), "{key} is missing");
    }
    for kind in ["store", "retrieve"] {
        let latency = report["latency_ns"][kind].as_object().unwrap();
        assert_eq!(latency.len(), 5);
        assert!(["mean", "p50", "p99", "p999", "max"].iter().all(|key| latency.contains_key(*key)));
        let stages = report["stages_ns"][kind].as_object().unwrap();
        assert_is(&latency["mean"], stages.values().map(|nanos| nanos.as_f64().unwrap()).sum());
    }
    assert_eq!(report["space"]["pairs"], 100);
    assert_eq!(report["space"]["stored_bytes"], 100 * (16 + 4_096));
}

#[test]
fn overwriting_a_full_device_shows_its_cleaning() {
    let report = bench(&format!("store {} --ops 20000 --keys 6500", small("")));
    assert!(report["gc"]["victims"].as_u64().unwrap() > 0);
    assert!(report["gc"]["block_erases"].as_u64().unwrap() > 0);
    assert!(report["write_amplification"].as_f64().unwrap() > 1.0);
    assert_eq!(report["space"]["pairs"], 6_500);
}

#[test]
fn figures_are_of_the_measured_operations_only() {
    let report = bench(&format!("delete {} --ops 400", small("")));
    assert_eq!((&report["ops"], &report["fill"]["keys"]), (&400.into(), &400.into()));
    assert_eq!(report["space"]["pairs"], 0);
    assert!(report["index_bytes_per_pair"].is_null());
    assert!(report["write_amplification"].is_null(), "what was stored before is not measured");
}

#[test]
fn a_device_that_gets_full_is_an_error_with_its_report() {
    // 4112 bytes each would fit; what a record takes beside them does not.
    let full = format!("bench store {} --ops 7780 --json", small(""));
    let ran = kvasir(full.split(' '));
    assert_eq!(ran.code, Some(1));
    let report = ran.json();
    let errors = report["errors"].as_u64().unwrap();
    assert!(errors > 0 && errors < 400, "{errors}");
    assert_eq!(report["errors_by_status"]["Capacity Exceeded"], errors);
    let sentence =
        format!("kvasir: {errors} of 7780 operations failed: {errors} Capacity Exceeded\n");
    assert_eq!(ran.stderr, sentence);
    let ran = kvasir(full.replace("store", "retrieve --keys 7780").split(' '));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    assert!(ran.stderr.starts_with("kvasir: the device is full after "), "{}", ran.stderr);
}

#[test]
fn the_table_fits_a_terminal_and_ends_with_the_digest() {
    let ran = kvasir(["bench", "mixed", "--ops", "1000", "--keys", "500"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert!(ran.stdout.lines().all(|line| line.len() <= 80), "{}", ran.stdout);
    let last = ran.stdout.lines().next_back().unwrap();
    assert!(last.starts_with("digest ") && last.len() == 23, "{last}");
}

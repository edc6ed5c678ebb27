//! `bench` on namespaces of blocks and of zones.

use crate::program::json;
use serde_json::Value;

/// A device with a namespace of pairs, one of blocks and one of zones, in this order.
const BLOCKS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/black_box/blocks.toml");

fn bench(workload: &str, options: &str, arguments: &str) -> Value {
    let target = format!("sim:{BLOCKS}{options}");
    let arguments = format!("bench {workload} --target {target} {arguments} --json");
    json(arguments.split_whitespace())
}

#[track_caller]
fn assert_is(value: &Value, expected: f64) {
    let value = value.as_f64().unwrap_or_else(|| panic!("{value} is no number"));
    assert!((value - expected).abs() <= expected * 1e-9, "{value}, not {expected}");
}

/// One at a time on pages of 4 KiB, in nanoseconds: firmware, array, channel, link.
const READ_NS: f64 = 4_200.0 + 45_000.0 + 5_120.0 + (1_000.0 + 1_280.0);
const WRITE_NS: f64 = (1_000.0 + 1_280.0) + 4_400.0 + 5_120.0 + 660_000.0;

#[test]
fn a_block_alone_takes_the_sum_of_its_stages() {
    for (workload, kind, expected) in [
        ("read", "read", READ_NS),
        ("randread", "read", READ_NS),
        ("write", "write", WRITE_NS),
        ("randwrite", "write", WRITE_NS),
    ] {
        let report = bench(workload, "", "--queue-depth 1 --ops 200 --span 1MiB");
        assert_is(&report["latency_ns"][kind]["mean"], expected);
        assert_is(&report["latency_ns"][kind]["max"], expected);
        assert_is(&report["ops_per_second"], 1e9 / expected);
        assert_eq!(report["ops_by_kind"][kind], 200);
    }
}

#[test]
fn a_read_of_zones_takes_as_long_as_one_of_blocks() {
    let report = bench("randread", "?ns=3", "--queue-depth 1 --ops 200 --span 1MiB");
    assert_is(&report["latency_ns"]["read"]["mean"], READ_NS);
}

#[test]
fn a_report_on_blocks_has_its_keys() {
    let report = bench("randwrite", "", "--ops 200 --span 1MiB --block-size 8KiB");
    let expected = [("blocks", 128), ("block_bytes", 8_192), ("namespace", 2), ("ops", 200)];
    for (key, value) in expected {
        assert_eq!(report[key], value, "{key}");
    }
    assert_eq!(
        (&report["workload"], &report["distribution"]),
        (&"randwrite".into(), &"uniform".into())
    );
    for key in ["victims", "blocks_moved", "copybacks", "block_erases", "wear_moves"] {
        assert_eq!(report["gc"][key], 0, "{key}");
    }
    assert_is(&report["write_amplification"], 1.0);
    assert!(report["flash_reads_per_retrieve"].is_null() && report["fill"].is_null());
    assert!(report.get("keys").is_none() && report.get("precondition").is_none());
    let report = bench("randread", "", "--ops 200 --span 1MiB");
    assert_eq!(report["fill"]["keys"], 256);
    assert!(report["write_amplification"].is_null());
}

#[test]
fn blocks_of_every_size_come_back_as_they_were_written() {
    for options in ["?payload=full", "?payload=none", "?payload=full&ns=3"] {
        for size in ["4KiB", "20KiB", "64KiB", "1MiB"] {
            // The 3 MiB of a zone are no multiple of it.
            if size == "20KiB" && options.contains("ns=3") {
                continue;
            }
            for workload in ["read", "randread"] {
                let report = bench(workload, options, &format!("--block-size {size} --ops 300"));
                assert_eq!((&report["ops"], &report["errors"]), (&300.into(), &0.into()));
                assert_eq!(report["ops_by_kind"]["read"], 300);
            }
        }
    }
}

#[test]
fn the_digest_is_the_seeds_and_not_the_payloads() {
    for (workload, ns) in
        [("read", 2), ("write", 2), ("randread", 2), ("randwrite", 2), ("mixed", 2), ("write", 3)]
    {
        let digest = |options: &str, seed: u32| {
            let options = format!("?ns={ns}&{options}");
            let report = bench(workload, &options, &format!("--ops 3000 --seed {seed}"));
            report["digest"].as_str().unwrap().to_owned()
        };
        let none = digest("payload=none", 1);
        assert_eq!(none, digest("payload=full", 1), "{workload}");
        assert_eq!(none, digest("payload=checksum", 1), "{workload}");
        assert_ne!(none, digest("payload=none", 2), "{workload}");
    }
}

#[test]
fn blocks_can_be_read_and_overwritten_at_a_time() {
    let report = bench("mixed", "?ns=2&payload=full", "--ops 20000 --read-percent 30");
    let count = |kind: &str| report["ops_by_kind"][kind].as_u64().unwrap();
    assert_eq!(count("read") + count("write"), 20_000);
    // 30 %, within four standard deviations.
    assert!((5_740..=6_260).contains(&count("read")), "{}", count("read"));
    assert!(report["gc"]["victims"].as_u64().unwrap() > 0);
}

#[test]
fn the_namespace_is_the_first_that_the_workload_is_for() {
    let report = bench("randwrite", "", "--ops 9");
    assert_eq!(report["namespace"], 2);
    let report = bench("read", "?ns=3", "--ops 9");
    assert_eq!(report["namespace"], 3);
    let report = bench("mixed", "", "--ops 9 --keys 9");
    assert_eq!(report["keys"], 9, "pairs come first in this profile");
    let report = bench("mixed", "?ns=2", "--ops 9");
    assert_eq!(report["namespace"], 2);
}

/// 64 MB on flash of 1.3 times as much: after two rounds it has to be cleaned.
#[test]
fn overwriting_at_random_shows_the_cleaning() {
    let report = bench("randwrite", "", "--ops 60000");
    let count = |key: &str| report["gc"][key].as_u64().unwrap();
    assert!(count("victims") > 50 && count("block_erases") >= count("victims"));
    assert!(count("blocks_moved") > 0);
    let amplification = report["write_amplification"].as_f64().unwrap();
    // What was moved is programmed beside what was written; pages hold one block each here.
    let moved = 1.0 + report["gc"]["blocks_moved"].as_f64().unwrap() / 60_000.0;
    // Of what is under way at the end one of both may be counted.
    assert!((amplification - moved).abs() < 1e-3, "{amplification}, not {moved}");
}

/// A zone holds 768 blocks of 4 KiB; each is reset before it is written again.
#[test]
fn zones_are_written_in_turn_and_around_again() {
    for load in ["--queue-depth 1", "--queue-depth 64", "--rate 20000", "--queue-depth 5000"] {
        let report = bench("write", "?ns=3", &format!("{load} --span 6MiB --ops 6144"));
        assert_eq!(report["ops_by_kind"]["write"], 6_144, "{load}");
        assert_is(&report["write_amplification"], 1.0);
        // Two zones of eight flash blocks; each is full four times and reset three times.
        assert_eq!(report["gc"]["block_erases"], 2 * 3 * 8, "{load}");
    }
}

#[test]
fn the_whole_of_a_namespace_can_be_used() {
    for ns in [2, 3] {
        // The default, since both have fewer than 100,000 blocks.
        let report = bench("read", &format!("?ns={ns}"), "--ops 10");
        let blocks = report["blocks"].as_u64().unwrap();
        let size = if ns == 2 { 64_000_000 } else { 60_000_000 };
        assert!(blocks <= size / 4_096 && blocks * 4_096 + (3 << 20) > size, "{blocks}");
    }
}

#[test]
fn hot_blocks_are_asked_for_often() {
    let mean = |law: &str| {
        let arguments = format!("--ops 5000 --queue-depth 16 --distribution {law}");
        let report = bench("randread", "", &arguments);
        assert_eq!(report["distribution"], law);
        report["stages_ns"]["read"]["queue"].as_f64().unwrap()
    };
    let (uniform, zipfian) = (mean("uniform"), mean("zipfian"));
    assert!(zipfian > uniform * 1.02, "{zipfian} and {uniform}: hot blocks lie on one die");
}

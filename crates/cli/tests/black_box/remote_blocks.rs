//! `bench` on blocks over NVMe/TCP.

use crate::program::{json, kvasir};
use crate::serving::{Serving, keys};
use serde_json::Value;

/// A device with a namespace of pairs, one of blocks and one of zones, in this order.
const BLOCKS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/black_box/blocks.toml");

fn serve(device: &str) -> Serving {
    Serving::start(["--device", device, "--nvme-tcp", ":0", "--clock", "none"])
}

fn bench(arguments: &str, target: &str) -> Value {
    json(format!("bench {arguments} --json --target {target}").split(' '))
}

#[track_caller]
fn refused(arguments: &str, target: &str, words: &str) {
    let ran = kvasir(format!("bench {arguments} --target {target}").split(' '));
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains(words), "{}", ran.stderr);
}

#[test]
fn blocks_are_written_and_read_and_checked() {
    let served = serve(BLOCKS);
    let target = format!("{}?ns=2", served.uri(0));
    for (workload, reads) in
        [("read", 300), ("write", 0), ("randread", 300), ("randwrite", 0), ("mixed", 150)]
    {
        for options in ["", "&digests=header,data&queues=2"] {
            let target = format!("{target}{options}");
            let bytes: u64 = if workload == "mixed" { 4_096 } else { 8_192 };
            let words = format!("--ops 300 --span 1MiB --block-size {bytes} --queue-depth 9");
            let report = bench(&format!("{workload} {words}"), &target);
            let blocks = (1 << 20) / bytes;
            let expected =
                [("errors", 0), ("ops", 300), ("blocks", blocks), ("block_bytes", bytes)];
            for (name, value) in expected {
                assert_eq!(report[name], value, "{workload}: {name}");
            }
            assert_eq!(report["target"], target);
            let found = report["ops_by_kind"]["read"].as_u64().unwrap_or(0);
            assert!(found.abs_diff(reads) < 50, "{workload}: {found} reads");
        }
    }
    let table = kvasir(["bench", "randread", "--ops", "50", "--span", "1MiB", "--target", &target]);
    assert!(table.stdout.contains("256 of 4.0 KiB"), "{}", table.stdout);
    assert_eq!(keys(&served.uri(0)).len(), 0, "nothing became of the pairs");
    served.stop();
}

/// What a host writes while another measures is not what that one expects.
#[test]
fn blocks_that_another_host_writes_are_errors() {
    let served = serve("mem:64MiB?kind=block");
    let target = served.uri(0);
    let words = "--span 4KiB --block-size 4KiB --queue-depth 1";
    let load = {
        let arguments = format!("bench randread {words} --seconds 2 --json --target {target}");
        std::thread::spawn(move || kvasir(arguments.split(' ')))
    };
    // Of another seed, and so other data. As often as it takes for the load to have begun.
    while !load.is_finished() {
        assert_eq!(bench(&format!("write {words} --ops 1 --seed 7"), &target)["errors"], 0);
    }
    let ran = load.join().unwrap();
    assert_eq!(ran.code, Some(1));
    let report = ran.json();
    assert!(report["errors"].as_u64().unwrap() > 0, "{report}");
    // Both wrote version 0; the seeds tell them apart.
    let first = &report["mismatch"];
    let text = |name: &str| first[name].as_str().unwrap();
    assert_eq!(text("place"), "block 0");
    assert!(text("expected").starts_with("version 0, 4096 bytes that begin with "), "{first}");
    assert!(text("found").starts_with("4096 bytes that begin with "), "{first}");
    assert!(!text("expected").ends_with(text("found")), "{first}");
    let said = format!("expected {}, found {}", text("expected"), text("found"));
    let said = format!("; the first is block 0: {said}; others may write to this target\n");
    assert!(ran.stderr.ends_with(&said), "{}", ran.stderr);
    served.stop();
}

#[test]
fn an_unsupported_load_is_refused_with_the_supported_ones() {
    let served = serve(BLOCKS);
    let of = |nsid: u32| format!("{}?ns={nsid}", served.uri(0));
    refused("randread", &of(1), "randread is not for namespace 1, which has pairs, for store,");
    refused("store", &of(2), "store is not for namespace 2, which has blocks, for read, write,");
    refused("randread", &of(3), "randread is not for namespace 3, which has zones, which are");
    refused("randread --span 900GiB", &of(2), "the namespace has room for 1 to ");
    refused("mixed --keys 9", &of(2), "--keys is of pairs, but this workload is on blocks");
    refused("mixed --span 1MiB", &of(1), "--span is of blocks, but this workload is on pairs");
    let kv = kvasir(["kv", "list", "--target", &of(2)]);
    assert!(kv.stderr.contains("is of the command set NVM, and not of Key Value"), "{kv:?}");
    served.stop();
}

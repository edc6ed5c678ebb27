//! `bench --faults` and `bench --cut-at`.

use crate::program::{SMALL, json, kvasir};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const WORN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/faults/worn.toml");

fn bench(arguments: &str) -> Value {
    json(format!("bench {arguments} --json").split_whitespace())
}

/// The file `name` with this content, in a folder that goes when it is dropped.
fn file(name: &str, text: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, text).unwrap();
    (folder, path)
}

/// The small device with a buffer of 4 MiB, and capacitors that program so many pages of it.
fn buffered(pages: u32) -> (TempDir, PathBuf) {
    let text = fs::read_to_string(SMALL).unwrap();
    let buffer = "ack = \"buffer\"\nbuffer_kib = 4096";
    let text = text.replace("ack = \"program\"", buffer);
    assert!(text.contains(buffer));
    file("buffered.toml", &format!("{text}\n[power]\ncapacitor_mj = {pages}\nprogram_uj = 1000\n"))
}

fn shown(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn acknowledged_writes_survive_a_power_loss() {
    for (workload, options, items) in [
        ("store", "--keys 4000", 4_000),
        ("mixed", "--keys 4000 --seed 3", 4_000),
        ("delete", "--keys 4000 --ops 4000", 4_000),
        ("ycsb-a", "--keys 4000", 4_000),
        ("randwrite", "--target sim:970pro --span 16MiB --block-size 16KiB", 1_024),
    ] {
        let target = if options.contains("--target") { "" } else { "--target sim:" };
        let small = if target.is_empty() { "" } else { SMALL };
        let report = bench(&format!("{workload} {target}{small} {options} --cut-at 2.5ms"));
        let power = &report["power"];
        assert_eq!(power["cut_at_ns"], 2_500_000);
        assert_eq!(power["saved"]["lost_pages"], 0, "{workload}");
        let checked = &power["checked"];
        assert_eq!(checked["items"], items, "{workload}");
        assert!(checked["unanswered"].as_u64().unwrap() > 0, "the cut was within the load");
        assert_eq!(power["run_ended_ns"], Value::Null, "{workload}");
        assert_eq!((&checked["lost"], &checked["unrecovered"]), (&0.into(), &0.into()));
        assert!(power["opened"]["time_ns"].as_u64().unwrap() > 0);
    }
    let late = &bench(&format!("store --target sim:{SMALL} --ops 100 --cut-at 2"))["power"];
    assert!(late["run_ended_ns"].as_u64() < late["cut_at_ns"].as_u64(), "{late}");
    assert_eq!(
        (&late["cut_at_ns"], &late["checked"]["unanswered"]),
        (&2_000_000_000_u64.into(), &0.into())
    );
}

#[test]
fn a_buffer_without_capacitors_is_lost_as_far_as_they_do_not_reach() {
    let report = |pages| {
        let (_folder, profile) = buffered(pages);
        bench(&format!("store --target sim:{} --keys 3000 --cut-at 3ms", shown(&profile)))
    };
    let [none, some, all] = [0, 40, 100_000].map(report);
    let lost = |report: &Value| report["power"]["saved"]["lost_pages"].as_u64().unwrap();
    let keys = |report: &Value| report["power"]["checked"]["lost"].as_u64().unwrap();
    assert_eq!((lost(&all), keys(&all)), (0, 0));
    assert_eq!(lost(&none) - lost(&some), 40, "each page of energy saves one");
    // A page has room for one value of 4 KiB; some are of stores that had no answer yet.
    assert_eq!(keys(&none) - keys(&some), 40, "and each page is a key");
    assert!(lost(&some) - keys(&some) <= 64);
}

#[test]
fn a_fault_is_counted_and_listed_and_hurts_its_page_only() {
    let rule = "[[fault]]\nkind = \"uncorrectable-read\"\nnth = 100\n";
    let (_folder, plan) = file("plan.toml", rule);
    let arguments = format!(
        "retrieve --target sim:{SMALL} --keys 2000 --ops 4000 --distribution sequential \
         --faults {}",
        shown(&plan)
    );
    let report = bench(&arguments);
    let faults = &report["faults"];
    assert_eq!(faults["counts"]["uncorrectable_reads"], 1);
    let listed = faults["list"].as_array().unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(
        (&listed[0]["kind"], &listed[0]["nth"]),
        (&"uncorrectable-read".into(), &100.into())
    );
    // Values of 4 KiB have a page each, and each key is asked for twice.
    assert_eq!(report["errors"], 2);
    assert_eq!(report["errors_by_status"]["Unrecovered Error"], 2);
    let again = bench(&arguments);
    assert_eq!((&again["digest"], &again["faults"]), (&report["digest"], faults));
}

#[test]
fn programs_and_erases_may_fail_and_nothing_is_lost() {
    let (_folder, plan) = file(
        "plan.toml",
        "seed = 5\n[[fault]]\nkind = \"failed-program\"\nppm = 300\n\
         [[fault]]\nkind = \"failed-erase\"\nppm = 20000\nmost = 2\n",
    );
    let report = bench(&format!(
        "store --target sim:{SMALL} --keys 5000 --ops 30000 --faults {} --cut-at 900ms",
        shown(&plan)
    ));
    assert!(report["faults"]["counts"]["failed_programs"].as_u64().unwrap() > 0);
    assert_eq!(report["errors"], 0);
    let checked = &report["power"]["checked"];
    assert_eq!((&checked["lost"], &checked["unrecovered"]), (&0.into(), &0.into()));
}

#[test]
fn wrong_plans_and_cuts_are_refused_in_a_sentence() {
    let (_folder, plan) =
        file("plan.toml", "seed = 1\n[[fault]]\nkind = \"uncorrectable\"\nppm = 1\n");
    let plan = shown(&plan);
    for (arguments, said) in [
        (format!("store --faults {plan}"), "plan.toml line 3: kind "),
        ("store --faults nowhere.toml".to_owned(), "nowhere.toml"),
        (format!("store --faults {plan} --trace {plan}"), "plan.toml is also another input"),
        (
            format!("replay {plan} --faults {WORN} --trace {WORN}"),
            "worn.toml is also another input",
        ),
        ("store --cut-at -1ms".to_owned(), "a time must be like 20ms"),
        ("store --target emu:ideal --cut-at 1ms".to_owned(), "--cut-at is for virtual time"),
        ("read --target sim:zn540 --cut-at 1ms".to_owned(), "--cut-at is for pairs and blocks"),
        ("store --cut-at 5min".to_owned(), "a time must be like 20ms"),
        ("store --rate 100 --cut-at 5ms".to_owned(), "--cut-at"),
    ] {
        let ran = kvasir(format!("bench {arguments}").split_whitespace());
        assert_eq!(ran.code, Some(2), "{arguments}: {ran:?}");
        assert!(ran.stderr.contains(said), "{arguments}: {}", ran.stderr);
        assert_eq!(ran.stdout, "");
    }
}

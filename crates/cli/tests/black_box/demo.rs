use crate::program::{SMALL, json, kvasir};
use base::Rng;
use base::checksum::hash128;
use serde_json::Value;
use std::ffi::OsStr;
use std::fs::{self, create_dir, create_dir_all, hard_link};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use tempfile::{TempDir, tempdir};

const MIB: usize = 1 << 20;

/// Bytes that are like no others.
fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; len];
    Rng::new(seed).fill(&mut bytes);
    bytes
}

fn write(folder: &Path, path: &str, bytes: &[u8]) {
    let path = folder.join(path);
    create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

fn demo(path: &Path, options: &[&str]) -> Value {
    let arguments = ["demo", "--json"].iter().chain(options).map(OsStr::new);
    json(arguments.chain([path.as_os_str()]))
}

#[track_caller]
fn assert_counts(report: &Value, expected: &[(&str, u64)]) {
    for (name, treatment) in report["treatments"].as_object().unwrap() {
        let count = expected.iter().find(|(expected, _)| expected == name).map_or(0, |(_, n)| *n);
        assert_eq!(treatment["count"], count, "{name}: {treatment}");
        let examples = treatment["examples"].as_array().unwrap().len() as u64;
        assert_eq!(examples, count.min(3), "{name}: {treatment}");
    }
}

/// A tree with two plain files, a long one and one of each that is special.
fn special_tree() -> TempDir {
    let folder = tempdir().unwrap();
    let root = folder.path();
    write(root, "plain", b"plain");
    write(root, "folder/plain", &noise(5_000, 1));
    write(root, "long", &noise(3 * MIB + 7, 2));
    write(root, "exact", &noise(2 * MIB, 3));
    write(root, "one chunk", &noise(MIB, 4));
    write(root, "empty", b"");
    write(root, &format!("{}/{}", "a".repeat(200), "b".repeat(200)), b"deep");
    fs::write(root.join(OsStr::from_bytes(b"not \xff utf-8\n")), b"bytes").unwrap();
    write(root, "first name", b"two names");
    hard_link(root.join("first name"), root.join("second name")).unwrap();
    symlink("plain", root.join("link")).unwrap();
    symlink("..", root.join("loop")).unwrap();
    symlink("nowhere", root.join("dangling")).unwrap();
    let made = Command::new("mkfifo").arg(root.join("pipe")).status().unwrap();
    assert!(made.success());
    write(root, ".git/config", b"git's");
    write(root, "target/CACHEDIR.TAG", b"cargo's");
    write(root, "source/target/kept", b"no tag");
    folder
}

#[test]
fn every_special_file_is_treated_and_counted() {
    let folder = special_tree();
    let report = demo(folder.path(), &[]);
    assert_counts(
        &report,
        &[
            ("empty_files", 1),
            ("hard_links", 2),
            ("long_paths", 1),
            ("names_not_utf8", 1),
            ("symbolic_links", 3),
            ("other_kinds", 1),
            ("skipped_folders", 2),
        ],
    );
    assert_eq!((&report["files"], &report["errors"]), (&11.into(), &0.into()));
    // Four chunks of one file and two of another.
    assert_eq!(report["pairs"], 9 + 4 + 2);
    let values = 5 + 5_000 + 3 * MIB + 7 + 2 * MIB + MIB + 4 + 5 + 2 * 9 + 6;
    assert_eq!(report["value_bytes"], values);
    let keys = "plain".len() + "folder/plain".len() + 4 * ("long".len() + 5);
    let keys = keys + 2 * ("exact".len() + 5) + "empty".len() + 255 + b"not \xff utf-8\n".len();
    let keys = keys
        + "one chunk".len()
        + "first name".len()
        + "second name".len()
        + "source/target/kept".len();
    assert_eq!(report["key_bytes"], keys);
    assert_eq!(report["space"]["stored_bytes"], keys + values);
    assert_eq!(report["treatments"]["names_not_utf8"]["examples"][0], "not \\xff utf-8\\n");
}

#[test]
fn all_includes_regenerable_files() {
    let folder = special_tree();
    let report = demo(folder.path(), &["--all"]);
    assert_eq!(report["treatments"]["skipped_folders"]["count"], 0);
    assert_eq!(report["files"], 13);
}

#[test]
fn a_tree_and_a_seed_give_one_digest() {
    let folder = special_tree();
    let digest = |seed| demo(folder.path(), &["--seed", seed])["digest"].clone();
    let first = digest("1");
    assert_eq!(first.as_str().unwrap().len(), 16);
    assert_eq!(first, digest("1"));
    assert_ne!(first, digest("2"));
    fs::write(folder.path().join("plain"), b"plaim").unwrap();
    assert_ne!(first, digest("1"), "a byte is another");
}

#[test]
fn a_report_has_the_keys_that_are_promised() {
    let folder = tempdir().unwrap();
    write(folder.path(), "a", &noise(100, 1));
    let report = demo(folder.path(), &[]);
    for key in [
        "path",
        "device",
        "description",
        "seed",
        "files",
        "pairs",
        "key_bytes",
        "value_bytes",
        "errors",
        "faults",
        "queue_depth",
        "simulated_seconds",
        "wall_seconds",
        "latency_ns",
        "stages_ns",
        "write_amplification",
        "flash_reads_per_retrieve",
        "index_bytes_per_pair",
        "space",
        "gc",
        "memory_limit_bytes",
        "treatments",
        "digest",
    ] {
        assert!(!report[key].is_null(), "{key} is missing");
    }
    // One page of 16 KiB for a byte of key and 100 of value, and one read of it.
    let amplification = report["write_amplification"].as_f64().unwrap();
    assert!((amplification - 16_384.0 / 101.0).abs() < 1e-9, "{amplification}");
    assert_eq!(report["flash_reads_per_retrieve"], 1.0);
    // Firmware, array, channel and link of the profile moke, for a value of 100 bytes.
    let retrieve = 4_200.0 + 45_000.0 + 125.0 + 1_000.0 + 32.0;
    assert_eq!(report["latency_ns"]["retrieve"]["mean"], retrieve);
}

#[test]
fn files_beyond_the_device_are_left_out_whole() {
    let folder = tempdir().unwrap();
    for (name, len) in [("a", 10 * MIB), ("b", 10 * MIB), ("c", 20 * MIB), ("d", 10), ("e", 10)] {
        write(folder.path(), name, &noise(len, len as u64));
    }
    let report = demo(folder.path(), &["--device", SMALL]);
    assert_counts(&report, &[("beyond_device", 3)]);
    assert_eq!((&report["files"], &report["pairs"]), (&2.into(), &20.into()));
    assert_eq!(report["space"]["pairs"], 20);
    let used = report["space"]["used_bytes"].as_u64().unwrap();
    // Three chunks of 1 MiB fill an extent of 4 MiB, which has a summary too; and the device keeps
    // records of its own.
    let chunks = 20 * (4 * MIB as u64).div_ceil(3);
    assert!((chunks..chunks + 200).contains(&used), "the third file is deleted again: {used}");
}

#[test]
fn files_beyond_the_memory_limit_are_left_out() {
    let folder = tempdir().unwrap();
    for name in ["a", "b", "c"] {
        write(folder.path(), name, &noise(MIB, 1));
    }
    let report = demo(folder.path(), &["--memory", "2500k"]);
    assert_counts(&report, &[("beyond_memory", 1)]);
    assert_eq!((&report["files"], &report["memory_limit_bytes"]), (&2.into(), &2_560_000.into()));
}

#[test]
fn a_key_that_is_taken_is_never_overwritten() {
    let folder = tempdir().unwrap();
    let long = format!("d/{}", "x".repeat(254));
    let shortened = format!("{}~{:032x}", &long[..222], hash128(long.as_bytes()));
    write(folder.path(), &long, b"the long path");
    write(folder.path(), &shortened, b"the path that is its key");
    let report = demo(folder.path(), &[]);
    assert_counts(&report, &[("long_paths", 1), ("taken_keys", 1)]);
    assert_eq!((&report["files"], &report["value_bytes"]), (&1.into(), &13.into()));
}

/// Paths of more than 4096 bytes cannot be opened, by root neither.
#[test]
fn unreadable_files_are_counted_with_a_reason() {
    let folder = tempdir().unwrap();
    let name = "n".repeat(200);
    let mut deep = folder.path().join("root");
    while deep.as_os_str().len() < 3_850 {
        deep.push(&name);
    }
    create_dir_all(&deep).unwrap();
    let leaf = folder.path().join("leaf");
    create_dir(&leaf).unwrap();
    fs::write(leaf.join("f".repeat(250)), b"unreachable").unwrap();
    create_dir(leaf.join("g".repeat(250))).unwrap();
    fs::write(leaf.join("near"), b"reachable").unwrap();
    fs::rename(&leaf, deep.join("leaf")).unwrap();
    let report = demo(&folder.path().join("root"), &[]);
    assert_counts(
        &report,
        &[("unreadable_files", 1), ("unreadable_folders", 1), ("long_paths", 1)],
    );
    assert_eq!(report["files"], 1);
    for name in ["unreadable_files", "unreadable_folders"] {
        let example = report["treatments"][name]["examples"][0].as_str().unwrap();
        assert!(example.contains(": File name too long"), "{example}");
    }
}

/// The kernel makes the content of this file as it is read, and says that it has none.
#[cfg(target_os = "linux")]
#[test]
fn a_file_that_is_longer_than_it_says_is_stored_as_read() {
    let report = demo(Path::new("/proc/sys/kernel/random/uuid"), &[]);
    assert_counts(&report, &[("changed_files", 1)]);
    // 32 digits, four hyphens and the end of the line.
    assert_eq!((&report["files"], &report["value_bytes"]), (&1.into(), &37.into()));
    let report = demo(Path::new("/proc/self/status"), &[]);
    assert_counts(&report, &[("changed_files", 1)]);
    assert!(report["value_bytes"].as_u64().unwrap() > 0);
}

#[test]
fn a_folder_without_files_is_said_to_be_one() {
    let folder = tempdir().unwrap();
    let report = demo(folder.path(), &[]);
    assert_eq!((&report["files"], &report["pairs"]), (&0.into(), &0.into()));
    assert!(report["write_amplification"].is_null());
    let ran = kvasir([OsStr::new("demo"), folder.path().as_os_str()]);
    assert_eq!(ran.code, Some(0));
    assert!(ran.stdout.contains("0 files as 0 pairs"), "{}", ran.stdout);
    let is_silent = |line: &str| line == "  read back            0 pairs";
    assert!(ran.stdout.lines().any(is_silent), "{}", ran.stdout);
}

#[test]
fn the_table_fits_a_terminal_and_ends_with_the_digest() {
    let folder = special_tree();
    let ran = kvasir([OsStr::new("demo"), folder.path().as_os_str()]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let is_narrow = |line: &str| line.chars().count() <= 80;
    assert!(ran.stdout.lines().all(is_narrow), "{}", ran.stdout);
    assert!(ran.stdout.lines().next_back().unwrap().starts_with("digest "), "{}", ran.stdout);
}

#[test]
fn files_go_to_the_first_namespace_of_keys_and_values() {
    let profile = fs::read_to_string(SMALL).unwrap();
    let (device, kv) = profile.split_once("[[namespace]]").unwrap();
    let blocks = "kind = \"block\"\nsize_gb = 0.008\nover_provisioning = 1\n\
                  ack = \"program\"\ngc_victims = \"greedy\"\n";
    let kv = kv.lines().filter(|line| !line.contains("over_provisioning"));
    let kv = kv.map(|line| if line.starts_with("size_gb") { "size_gb = 0.016" } else { line });
    let kv = kv.collect::<Vec<_>>().join("\n");
    let folder = tempdir().unwrap();
    let mine = folder.path().join("mine.toml");
    let text =
        format!("{device}[[namespace]]\n{blocks}[[namespace]]{kv}\nover_provisioning = 0.5\n");
    fs::write(&mine, text).unwrap();
    let files = tempdir().unwrap();
    write(files.path(), "a", b"some bytes");
    write(files.path(), "b", &noise(5_000, 1));
    let report = demo(files.path(), &["--device", mine.to_str().unwrap()]);
    assert_eq!((&report["pairs"], &report["errors"]), (&2.into(), &0.into()));
    assert_counts(&report, &[]);
}

//! `kvasir format`, `inspect` and `check`: drives on files.

use crate::program::{Ran, json, kvasir};
use crate::redis::Client;
use crate::serving::{Serving, store};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;
use tempfile::{TempDir, tempdir};

/// A drive of the fewest extents, in a folder that goes when it is dropped.
pub(crate) const SIZE: &str = "72MiB";

/// Bytes of its superblock's place.
const SUPERBLOCK: u64 = 4_096;

pub(crate) fn formatted() -> (TempDir, PathBuf) {
    let folder = tempdir().unwrap();
    let path = folder.path().join("drive.kv");
    let made = kvasir(["format", shown(&path), "--size", SIZE]);
    assert_eq!((made.code, &made.stderr[..]), (Some(0), ""));
    (folder, path)
}

pub(crate) fn shown(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn refused(arguments: &[&str]) -> String {
    let Ran { code, stdout, stderr } = kvasir(arguments);
    assert_eq!((code, &stdout[..]), (Some(2), ""), "{stderr}");
    stderr
}

#[test]
fn a_path_that_holds_something_is_formatted_only_by_force() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("data");
    fs::write(&path, vec![7; 80 << 20]).unwrap();
    let sentence = refused(&["format", shown(&path)]);
    let expected = "holds data of an unknown format: --force overwrites it\n";
    assert!(sentence.ends_with(expected), "{sentence}");
    assert!(fs::read(&path).unwrap().iter().all(|byte| *byte == 7), "nothing is written");
    let sentence = refused(&["format", shown(&path), "--size", SIZE]);
    assert!(sentence.ends_with("--force overwrites it and gives it --size\n"), "{sentence}");
    assert_eq!(kvasir(["format", shown(&path), "--force"]).code, Some(0));
    let sentence = refused(&["format", shown(&path)]);
    assert!(sentence.contains("holds a Kvasir drive"), "{sentence}");
    // One that is too small stays as it is.
    let small = folder.path().join("small");
    fs::write(&small, vec![7; 20 << 20]).unwrap();
    for more in [&[][..], &["--fill"]] {
        let words = [&["format", shown(&small), "--force"], more].concat();
        assert!(refused(&words).contains("are too few for a drive"));
    }
    assert!(fs::read(&small).unwrap().iter().all(|byte| *byte == 7), "nothing is written");
    let none = folder.path().join("none");
    assert!(refused(&["format", shown(&none)]).contains("--size says how large"));
    assert!(refused(&["format", shown(&none), "--size", "1MiB"]).contains("too few"));
    assert!(!none.exists(), "what was made for nothing stays");
}

/// Larger, smaller, from nothing: the file is then a sound drive of exactly that size.
#[test]
fn force_and_size_give_an_existing_file_another_size() {
    let (_folder, path) = formatted();
    let device = shown(&path);
    for size in ["96MiB", "80MiB", "100MB"] {
        let made = json(["format", device, "--force", "--size", size, "--json"]);
        let bytes = base::parse_size(size).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().len(), bytes);
        assert!(made["size_bytes"].as_u64().unwrap() <= bytes, "{made}");
        assert_eq!(json(["check", device, "--json"])["is_whole"], true);
        assert_eq!(json(["inspect", device, "--json"])["pairs"], 0);
    }
    let before = fs::read(&path).unwrap();
    assert!(refused(&["format", device, "--force", "--size", "1MiB"]).contains("too few"));
    let sentence = refused(&["format", device, "--force", "--size", "90000TiB"]);
    assert!(sentence.contains("make the file smaller"), "{sentence}");
    assert!(fs::read(&path).unwrap() == before, "a size that cannot be changes nothing");
    fs::write(&path, "").unwrap();
    assert!(refused(&["format", device]).contains("is a file of 0 bytes: --size says how large"));
    assert_eq!(kvasir(["format", device, "--size", SIZE]).code, Some(0));
    let served = Serving::start(["--device", device, "--resp", ":0"]);
    let sentence = refused(&["format", device, "--force", "--size", SIZE]);
    assert!(sentence.contains("stop that program"), "{sentence}");
    served.stop();
}

#[test]
fn a_drive_that_was_filled_has_no_place_left_that_was_never_written() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("drive.kv");
    let made = json(["format", shown(&path), "--size", SIZE, "--fill", "--json"]);
    assert!(made["extents"].as_u64() > Some(0), "{made}");
    // Where a file system tells of these, it shows what only has its place as a hole.
    let file = fs::File::open(&path).unwrap();
    let hole = rustix::fs::seek(&file, rustix::fs::SeekFrom::Hole(1 << 20)).unwrap();
    assert_eq!(hole, file.metadata().unwrap().len());
    assert_eq!(kvasir(["check", shown(&path)]).code, Some(0));
}

/// Where `mkfs.ext4` is not installed a file system cannot be made.
#[test]
fn a_file_system_is_named_and_stays() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("image");
    fs::File::create(&path).unwrap().set_len(80 << 20).unwrap();
    let made = ["mkfs.ext4", "/sbin/mkfs.ext4", "/usr/sbin/mkfs.ext4"].into_iter().any(|tool| {
        let made = Command::new(tool).args(["-q", "-F"]).arg(&path).status();
        made.is_ok_and(|status| status.success())
    });
    if !made {
        return;
    }
    let before = fs::read(&path).unwrap();
    let sentence = refused(&["format", shown(&path)]);
    assert!(sentence.contains("ext4 file system: --force overwrites it"), "{sentence}");
    for command in ["check", "inspect"] {
        let sentence = refused(&[command, shown(&path)]);
        assert!(sentence.contains("ext4 file system: it is not a Kvasir drive"), "{sentence}");
    }
    assert!(fs::read(&path).unwrap() == before);
}

#[test]
fn a_drive_in_use_is_neither_formatted_nor_looked_at() {
    let (_folder, path) = formatted();
    let device = path.to_str().unwrap();
    let served = Serving::start(["--device", device, "--nvme-tcp", ":0"]);
    store("key", &served.uri(0));
    let process = served.process().as_raw_nonzero();
    for command in ["check", "inspect"] {
        let sentence = refused(&[command, device]);
        let expected = format!("is in use by process {process} (kvasir): stop that process first");
        assert!(sentence.contains(&expected) && sentence.contains("kvasir top"), "{sentence}");
    }
    for words in
        [&["format", device, "--force"][..], &["serve", "--device", device, "--resp", ":0"]]
    {
        let sentence = refused(words);
        let expected = process.to_string();
        assert!(sentence.contains(&expected), "{sentence}");
        assert!(!sentence.contains("kvasir format"), "it is there: {sentence}");
    }
    served.stop();
    let none = format!("{device}.none");
    let sentence = refused(&["serve", "--device", &none, "--resp", ":0"]);
    assert!(sentence.ends_with("make it with kvasir format\n"), "{sentence}");
    assert_eq!(kvasir(["check", device]).code, Some(0));
}

#[test]
fn inspect_and_check_write_nothing_and_print_the_contents() {
    let (_folder, path) = formatted();
    let device = path.to_str().unwrap();
    let served = Serving::start(["--device", device, "--nvme-tcp", ":0"]);
    for number in 0..20 {
        store(&format!("key{number}"), &served.uri(0));
    }
    served.stop();
    let before = fs::read(&path).unwrap();
    let checked = json(["check", device, "--json"]);
    assert_eq!((&checked["is_whole"], &checked["found"]), (&true.into(), &0.into()));
    // Two records keep the namespace.
    assert_eq!((&checked["records"], &checked["values"]), (&22.into(), &22.into()));
    let facts = json(["inspect", device, "--json"]);
    assert_eq!((&facts["pairs"], &facts["tombstones"]), (&20.into(), &0.into()));
    assert_eq!(facts["internal_records"], 2);
    assert_eq!(facts["size_bytes"], before.len());
    let (mut keys, mut free) = (Vec::new(), 0);
    let manifest = fs::read("Cargo.toml").unwrap();
    for extent in 0..facts["extents"].as_u64().unwrap() {
        let number = extent.to_string();
        let arguments = ["inspect", device, "--extent", &number, "--json"];
        let listed = kvasir(arguments);
        if listed.code == Some(2) {
            assert!(listed.stderr.ends_with("is free\n"), "{}", listed.stderr);
            free += 1;
            continue;
        }
        let pages = listed.json()["pages"].as_array().unwrap().clone();
        for record in pages.iter().flat_map(|page| page["records"].as_array().into_iter().flatten())
        {
            if record["space"] == 1 {
                assert_eq!((&record["kind"], &record["is_live"]), (&"value".into(), &true.into()));
                let at = usize::try_from(record["value_byte"].as_u64().unwrap()).unwrap();
                assert!(before[at..at + manifest.len()] == manifest, "{record}");
                keys.push(record["key"].as_str().unwrap().to_owned());
            }
        }
    }
    keys.sort();
    let mut expected: Vec<_> = (0..20).map(|number| format!("\"key{number}\"")).collect();
    expected.sort();
    assert_eq!((keys, &facts["free_extents"]), (expected, &free.into()));
    let text = kvasir(["inspect", device]).stdout;
    assert!(text.contains("by a checkpoint and 0 records"), "{text}");
    assert!(text.lines().all(|line| line.len() <= 80 || line.contains(device)), "{text}");
    assert!(refused(&["inspect", device, "--extent", "99"]).contains("has extents 0 to"));
    assert!(fs::read(&path).unwrap() == before, "nothing is written");
}

/// Two records keep the namespace: they are no pair to `inspect`, NVMe or Redis.
#[test]
fn an_empty_drive_has_no_pairs() {
    let (_folder, path) = formatted();
    let facts = json(["inspect", shown(&path), "--json"]);
    let figures = ["pairs", "internal_records", "live_bytes"].map(|name| facts[name].clone());
    assert_eq!(figures, [0.into(), 2.into(), 0.into()] as [Value; 3]);
    let served = Serving::start(["--device", shown(&path), "--nvme-tcp", ":0", "--resp", ":0"]);
    let info = json(["kv", "info", "--json", "--target", &served.uri(0)]);
    assert_eq!(info["used_bytes"], 0, "{info}");
    let mut client = Client::of(&served);
    client.says("dbsize", ":0");
    client.says("hset hash field value", ":1");
    client.says("set key value", "+OK");
    client.says("dbsize", ":2");
    drop(client);
    let info = json(["kv", "info", "--json", "--target", &served.uri(0)]);
    assert!(info["used_bytes"].as_u64() > Some(0), "{info}");
    served.stop();
    let facts = json(["inspect", shown(&path), "--json"]);
    assert_eq!(facts["pairs"], 2, "the hash and the string: {facts}");
    let text = kvasir(["inspect", shown(&path)]).stdout;
    assert!(text.contains("  pairs                2\n  internal records     "), "{text}");
}

#[test]
fn byte_counters_survive_restarts_since_the_format() {
    let (_folder, path) = formatted();
    let device = path.to_str().unwrap();
    let value = fs::metadata("Cargo.toml").unwrap().len();
    let facts = || json(["inspect", device, "--json"]);
    let moved = |facts: &Value, name: &str| facts[name].as_u64().unwrap();
    let begun = facts();
    assert_eq!(begun["retrieved_bytes"], 0);
    // The records that keep the namespace.
    let kept = moved(&begun, "stored_bytes");
    assert!(kept <= 64, "{kept}");
    for opening in 1..=2 {
        let served = Serving::start(["--device", device, "--nvme-tcp", ":0"]);
        for number in 0..20 {
            store(&format!("key{number:02}"), &served.uri(0));
        }
        for _ in 0..3 {
            let ran = kvasir(["kv", "retrieve", "key07", "--target", &served.uri(0)]);
            assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        }
        served.stop();
        let facts = facts();
        let stored = kept + opening * 20 * (5 + value);
        assert_eq!(moved(&facts, "stored_bytes"), stored);
        assert_eq!(moved(&facts, "retrieved_bytes"), opening * 3 * value);
        let (written, read) = (moved(&facts, "written_bytes"), moved(&facts, "read_bytes"));
        assert!(written > stored && read > 0, "{facts}");
        #[expect(clippy::cast_precision_loss, reason = "less than 53 bits")]
        let ratio = written as f64 / stored as f64;
        let shown = facts["write_amplification"].as_f64().unwrap();
        assert!((shown - ratio).abs() < 0.01, "{shown} is not {ratio}");
    }
    // Looking counts nothing.
    assert_eq!(facts(), facts());
}

#[test]
fn reactors_on_threads_of_their_own_use_one_drive() {
    let (_folder, path) = formatted();
    let device = path.to_str().unwrap();
    let target = format!("file:{device}?reactors=3");
    let bench = ["bench", "mixed", "--keys", "1000", "--ops", "20000", "--queue-depth", "64"];
    let report = json(bench.into_iter().chain(["--json", "--target", &target]));
    assert_eq!((&report["ops"], &report["errors"]), (&20_000.into(), &0.into()));
    assert_eq!(json(["check", device, "--json"])["is_whole"], true);
    for count in ["0", "65", "some"] {
        let target = format!("file:{device}?reactors={count}");
        let said = refused(&["bench", "store", "--ops", "1", "--target", &target]);
        assert!(said.contains("reactors are 1 to 64"), "{said}");
    }
}

#[test]
fn reactors_on_threads_of_their_own_use_one_drive_in_memory() {
    for (target, reactors) in [("mem:64MiB", 1), ("mem:64MiB?reactors=3", 3)] {
        for workload in ["mixed", "store", "delete"] {
            let bench = ["bench", workload, "--ops", "5000", "--value-size", "64", "--json"];
            let report = json(bench.into_iter().chain(["--target", target]));
            assert_eq!((&report["ops"], &report["errors"]), (&5_000.into(), &0.into()));
            assert_eq!(report["reactors"], reactors);
        }
    }
    for (target, why) in [
        ("mem:1KiB", "SIZE is at least 8.0 MiB"),
        ("mem:64", "64 has no unit"),
        ("mem:64MiB?seed=1", "it has no option \"seed\""),
        ("mem:64MiB?reactors=2&reactors=2", "the target has the option reactors twice"),
        ("mem:64MiB?reactors=0", "reactors are 1 to 64"),
        ("mem:1024TiB", "more than the memory of this machine"),
        ("mem:8MiB", "100,000 pairs do not fit mem:8.0 MiB"),
    ] {
        let said = refused(&["bench", "retrieve", "--target", target]);
        assert!(said.contains(why), "{said}");
    }
}

/// 1,000 values of 16 KiB in extents of 8 MiB, of which each is read twice.
#[test]
fn a_server_reports_the_amplification_of_its_disk() {
    let (_folder, path) = formatted();
    let words = ["--device", shown(&path), "--nvme-tcp", ":0", "--http", ":0", "--scrub", "off"];
    let served = Serving::start(words.into_iter().chain(["--cache", "off"]));
    let factors = || {
        let sample = json(["top", served.ready["http"].as_str().unwrap(), "--once", "--json"]);
        let device = sample["devices"][0].clone();
        ["write", "read", "space"].map(|of| device[format!("{of}_amplification")].as_f64())
    };
    let [write, read, space] = factors();
    assert_eq!((write, read, space), (None, None, None), "no client has written or read");
    for (load, ops) in [("store", "1000"), ("retrieve", "2000")] {
        let size = ["--keys", "1000", "--value-size", "16384", "--ops", ops];
        let bench = ["bench", load, "--json", "--target", &served.uri(0)];
        assert_eq!(json(bench.into_iter().chain(size))["errors"], 0);
    }
    let [write, read, space] = factors().map(Option::unwrap);
    // A head of 512 bytes at least, and at most 24 KiB in blocks of 4 KiB; a little to open it.
    assert!((1.03..1.6).contains(&write), "{write}");
    assert!((1.03..1.6).contains(&read), "{read}");
    assert!((1.0..4.0).contains(&space), "{space}");
}

/// Two hosts at a time, whose keys are of different lengths.
fn bench_twice(target: &str, how_long: [&'static str; 2]) -> [Ran; 2] {
    let target = format!("{target}?queues=3");
    let hosts = ["12", "16"].map(|key_size| {
        let target = target.clone();
        thread::spawn(move || {
            let bench = ["bench", "mixed", "--keys", "1000", "--key-size", key_size, "--json"];
            let load = ["--queue-depth", "48", "--target", &target];
            kvasir(bench.into_iter().chain(how_long).chain(load))
        })
    });
    hosts.map(|host| host.join().unwrap())
}

#[test]
fn a_served_drive_is_whole_also_when_it_was_stopped_amid_the_work_of_all_reactors() {
    let (_folder, path) = formatted();
    let device = path.to_str().unwrap();
    let words = ["--device", device, "--nvme-tcp", ":0", "--cores", "3", "--checkpoint", "4MiB"];
    let served = Serving::start(words);
    for ran in bench_twice(&served.uri(0), ["--ops", "10000"]) {
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert_eq!(ran.json()["errors"], 0);
    }
    let target = served.uri(0);
    let hosts = thread::spawn(move || bench_twice(&target, ["--seconds", "60"]));
    thread::sleep(Duration::from_secs(2));
    served.stop();
    for ran in hosts.join().unwrap() {
        assert_ne!(ran.code, Some(0), "its target has gone");
    }
    assert_eq!(json(["check", device, "--json"])["is_whole"], true);
}

/// Pairs before the cut can still be read; the server stores no more pairs.
#[test]
fn a_shortened_file_ends_its_server_with_status_1() {
    let (_folder, path) = formatted();
    let device = shown(&path);
    let words = ["--device", device, "--nvme-tcp", ":0", "--cache", "off", "--scrub", "off"];
    let served = Serving::start(words);
    store("before", &served.uri(0));
    let file = fs::File::options().write(true).open(&path).unwrap();
    let size = file.metadata().unwrap().len();
    file.set_len(size / 2).unwrap();
    let said = served.error_line();
    let expected = format!("kvasir: {device}: the file was cut from 72.0 MiB to 36.0 MiB while");
    assert!(said.starts_with(&expected) && said.ends_with("restore a copy of the file"), "{said}");
    let ran = kvasir(["kv", "store", "after", "Cargo.toml", "--target", &served.uri(0)]);
    assert_ne!(ran.code, Some(0), "it is not stored");
    let ran = kvasir(["kv", "retrieve", "before", "--target", &served.uri(0)]);
    let manifest = fs::read_to_string("Cargo.toml").unwrap();
    assert_eq!((ran.code, ran.stdout), (Some(0), manifest.clone()), "{}", ran.stderr);
    let left = served.end(Signal::TERM);
    assert_eq!((left.code, left.stderr.len()), (Some(1), 1), "{:?}", left.stderr);
    let advice = format!("(truncate -s {size} {device}) and run kvasir check {device}");
    assert!(left.stderr[0].starts_with(&expected), "{:?}", left.stderr);
    assert!(left.stderr[0].ends_with(&advice), "{:?}", left.stderr);
    assert_eq!(file.metadata().unwrap().len(), size / 2, "nothing was written behind its end");
    // The advice is right.
    file.set_len(size).unwrap();
    let served = Serving::start(words);
    let ran = kvasir(["kv", "retrieve", "before", "--target", &served.uri(0)]);
    assert_eq!((ran.code, ran.stdout), (Some(0), manifest), "{}", ran.stderr);
    // It may tell of what was lost.
    assert_eq!(served.end(Signal::TERM).code, Some(0));
}

/// The loss is found at the latest when the server ends, also right after the cut.
#[test]
fn a_server_that_ends_right_after_the_cut_has_status_1() {
    let (_folder, path) = formatted();
    let served = Serving::start(["--device", shown(&path), "--nvme-tcp", ":0"]);
    store("before", &served.uri(0));
    fs::File::options().write(true).open(&path).unwrap().set_len(1 << 20).unwrap();
    let left = served.end(Signal::TERM);
    let last = left.stderr.last().unwrap();
    assert_eq!(left.code, Some(1), "{last}");
    assert!(last.contains("was cut from 72.0 MiB to 1.0 MiB while it was in use"), "{last}");
}

/// Its content is there until the server ends, which says where to copy it from.
#[test]
fn a_removed_file_ends_its_server_with_status_1() {
    let (_folder, path) = formatted();
    let device = shown(&path);
    let served = Serving::start(["--device", device, "--nvme-tcp", ":0"]);
    store("before", &served.uri(0));
    fs::remove_file(&path).unwrap();
    let said = served.error_line();
    let process = served.process().as_raw_nonzero();
    assert!(said.contains("the file was removed while it was in use"), "{said}");
    assert!(said.ends_with(&format!("copy it from /proc/{process}/fd first")), "{said}");
    store("after", &served.uri(0));
    let ran = kvasir(["kv", "retrieve", "before", "--target", &served.uri(0)]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let links = fs::read_dir(format!("/proc/{process}/fd")).unwrap().map(|it| it.unwrap().path());
    let is_it = |link: &PathBuf| {
        fs::read_link(link).is_ok_and(|to| to.to_str() == Some(&format!("{device} (deleted)")))
    };
    fs::copy(links.into_iter().find(is_it).unwrap(), &path).unwrap();
    let left = served.end(Signal::TERM);
    assert_eq!((left.code, left.stderr.len()), (Some(1), 1), "{:?}", left.stderr);
    assert!(left.stderr[0].contains("its content is gone; restore a copy"), "{:?}", left.stderr);
    let served = Serving::start(["--device", device, "--nvme-tcp", ":0"]);
    for key in ["before", "after"] {
        let ran = kvasir(["kv", "retrieve", key, "--target", &served.uri(0)]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    }
    served.stop();
}

#[test]
fn a_file_without_a_drive_is_refused_by_its_kind() {
    let (_folder, path) = formatted();
    let device = path.to_str().unwrap();
    let file = fs::File::options().read(true).write(true).open(&path).unwrap();
    for command in ["check", "inspect"] {
        assert!(refused(&[command, "/dev/null/none"]).starts_with("kvasir: cannot"));
        assert!(refused(&[command, "src/rig.rs"]).contains("it is not a Kvasir drive"));
        assert!(refused(&[command, "Cargo.toml"]).contains("less than one block"));
    }
    let size = file.metadata().unwrap().len();
    file.set_len(size / 2).unwrap();
    for command in ["check", "inspect"] {
        let sentence = refused(&[command, device]);
        assert!(sentence.contains("its end is missing; copy it again"), "{sentence}");
    }
    file.set_len(size).unwrap();
    // Of a later format, whose checksum is right in both places.
    let (mut bytes, mut places) = (vec![0; 4_096], vec![SUPERBLOCK]);
    file.read_exact_at(&mut bytes, SUPERBLOCK).unwrap();
    places.push(size / 4_096 * 4_096 - 4_096);
    bytes[8] += 1;
    bytes[12..16].fill(0);
    let crc = base::checksum::crc32c(&bytes).to_le_bytes();
    bytes[12..16].copy_from_slice(&crc);
    for place in places {
        file.write_all_at(&bytes, place).unwrap();
    }
    for command in ["check", "inspect"] {
        let sentence = refused(&[command, device]);
        assert!(sentence.contains("use a version that knows it"), "{sentence}");
    }
}

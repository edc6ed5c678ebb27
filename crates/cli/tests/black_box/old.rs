//! Drives, saved devices and archives that earlier versions wrote: `old/make.sh` says how. Every
//! version reads them.

use crate::drive::shown;
use crate::moving::moved;
use crate::program::{json, kvasir};
use crate::redis::{Client, target};
use crate::serving::{Serving, kv};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::{TempDir, tempdir};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/black_box/old/2026-11");

/// Unpacks a file of an earlier version, in a folder that is removed at the end.
fn unpacked(name: &str) -> (TempDir, PathBuf) {
    let folder = tempdir().unwrap();
    let path = folder.path().join(name);
    let packed = File::open(format!("{FOLDER}/{name}.gz")).unwrap();
    let mut gzip = Command::new("gzip");
    gzip.arg("-dc").stdin(Stdio::from(packed)).stdout(Stdio::from(File::create(&path).unwrap()));
    assert!(gzip.status().expect("the Debian package gzip").success());
    (folder, path)
}

fn serve(device: &str, more: &[&str]) -> Serving {
    let words = ["--device", device, "--clock", "none", "--nvme-tcp", ":0", "--resp", ":0"];
    Serving::start(words.iter().chain(more))
}

/// Checks what the Redis commands of `make.sh` have left in database 0.
fn check_database(client: &mut Client) {
    for (words, answer) in [
        ("get string", "value"),
        ("get empty", ""),
        ("get over", "new"),
        ("exists gone", ":0"),
        ("get counter", "42"),
        ("strlen long", ":10000"),
        ("getrange long 9998 9999", "\0x"),
        ("get expires", "later"),
        ("pexpiretime expires", ":4102444800000"),
        ("hget hash one", "1"),
        ("hlen hash", ":1"),
        ("zscore sorted a", "1"),
        ("zscore sorted b", "2.5"),
        ("zcard sorted", ":2"),
    ] {
        client.says(words, answer);
    }
}

/// Checks all that `make.sh` has stored, with so many values of 8 KiB, then changes a part of it.
fn use_content(served: Serving, bulk: u32) {
    let mut client = Client::of(&served);
    check_database(&mut client);
    for number in 1..=bulk {
        client.says(&format!("strlen bulk:{number}"), ":8202");
    }
    client.says("get bulk:7", &format!("{}x", "\0".repeat(8_201)));
    client.says("exists late", ":0");
    client.says("dbsize", &format!(":{}", 9 + bulk));
    client.says("select 1", "+OK");
    client.says("get other", "database");
    let pair = kv("retrieve pair", &served.uri(0));
    assert_eq!((pair.code, &pair.stdout[..]), (Some(0), "a pair"), "{}", pair.stderr);
    client.says("select 0", "+OK");
    client.says("set string again", "+OK");
    client.says("hset hash three 3", ":1");
    drop(client);
    served.stop();
}

fn check_changes(served: Serving) {
    let mut client = Client::of(&served);
    client.says("get string", "again");
    client.says("hlen hash", ":2");
    client.says("get over", "new");
    drop(client);
    served.stop();
}

/// Returns the format and the features of the first superblock (docs/internals/drive-format.md).
fn version(path: &Path) -> (Vec<u8>, Vec<u8>) {
    let superblock = &fs::read(path).unwrap()[4_096..8_192];
    (superblock[8..12].to_vec(), superblock[76..80].to_vec())
}

#[test]
fn old_drives_open() {
    for name in ["stopped.kv", "killed.kv"] {
        let (_folder, path) = unpacked(name);
        let (device, before) = (shown(&path), version(&path));
        assert_eq!(json(["check", device, "--json"])["is_whole"], true);
        let of_cleaner = &json(["inspect", device, "--json"])["streams"][1];
        assert_eq!(of_cleaner["stream"], "cleaner");
        assert!(of_cleaner["full_extents"].as_u64().unwrap() > 0, "{of_cleaner}");
        if name == "killed.kv" {
            let served = serve(device, &[]);
            let mut client = Client::of(&served);
            client.says("get late", "acknowledged");
            client.says("del late", ":1");
            drop(client);
            served.stop();
        }
        use_content(serve(device, &[]), 1_500);
        check_changes(serve(device, &[]));
        assert_eq!(json(["check", device, "--json"])["is_whole"], true);
        assert_eq!(version(&path), before, "a drive is not upgraded silently");
    }
}

#[test]
fn old_saved_devices_open() {
    let profile = fs::read_to_string(format!("{FOLDER}/device.toml")).unwrap();
    for index in ["hash", "cached-hash", "btree"] {
        let (folder, state) = unpacked(&format!("{index}.state"));
        let device = folder.path().join("device.toml");
        fs::write(&device, profile.replace("\"hash\"", &format!("\"{index}\""))).unwrap();
        let more = ["--state", shown(&state)];
        let served = serve(shown(&device), &more);
        assert_eq!(served.ready["devices"][0]["state"]["began"], "resumed", "{index}");
        use_content(served, 800);
        check_changes(serve(shown(&device), &more));
    }
}

#[test]
fn old_archives_are_imported() {
    let served = Serving::start(["--device", "mem:256MiB", "--clock", "none", "--resp", ":0"]);
    // The program keeps its progress beside the archive.
    let folder = tempdir().unwrap();
    let archive = folder.path().join("database.archive");
    fs::copy(format!("{FOLDER}/database.archive"), &archive).unwrap();
    let imported = moved("import", &archive, &format!("{}/0", target(&served)));
    assert_eq!(imported["keys"], 9, "{imported}");
    check_database(&mut Client::of(&served));
    served.stop();
}

#[test]
fn changed_values_of_old_drives_are_reported() {
    let (_folder, path) = unpacked("stopped.kv");
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.windows(5).position(|window| window == b"a pai").expect("the pair");
    bytes[at] ^= 3;
    fs::write(&path, bytes).unwrap();
    let checked = kvasir(["check", shown(&path)]);
    assert_eq!(checked.code, Some(1), "{}", checked.stdout);
    assert!(checked.stdout.contains("key \"pair\""), "{}", checked.stdout);
}

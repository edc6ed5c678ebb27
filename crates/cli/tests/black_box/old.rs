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

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/black_box/old");

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

/// Checks all that `make.sh` has stored, then changes a part of it.
fn use_content(served: Serving, keys: u32) {
    let mut client = Client::of(&served);
    check_database(&mut client);
    client.says("dbsize", &format!(":{keys}"));
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

fn check_drive(path: &Path, keys: u32) {
    let device = shown(path);
    assert_eq!(json(["check", device, "--json"])["is_whole"], true);
    use_content(serve(device, &[]), keys);
    check_changes(serve(device, &[]));
    assert_eq!(json(["check", device, "--json"])["is_whole"], true);
}

#[test]
fn old_drives_open() {
    let (_folder, path) = unpacked("stopped.kv");
    check_drive(&path, 9);
    let (_folder, path) = unpacked("killed.kv");
    let late = {
        let copy = path.with_extension("copy");
        fs::copy(&path, &copy).unwrap();
        let served = serve(shown(&copy), &[]);
        let late = Client::of(&served).ask(&["get", "late"]);
        served.stop();
        late
    };
    assert_eq!(late.as_deref(), Some(&b"acknowledged"[..]));
    check_drive(&path, 10);
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
        use_content(served, 9);
        check_changes(serve(shown(&device), &more));
    }
}

#[test]
fn old_archives_are_imported() {
    let served = Serving::start(["--device", "mem:256MiB", "--clock", "none", "--resp", ":0"]);
    let archive = Path::new(FOLDER).join("database.archive");
    let imported = moved("import", &archive, &format!("{}/0", target(&served)));
    assert_eq!(imported["keys"], 9, "{imported}");
    check_database(&mut Client::of(&served));
    served.stop();
}

/// The tests above must fail where a file is not read as it was written.
#[test]
fn damaged_old_drives_are_told() {
    let (_folder, path) = unpacked("stopped.kv");
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.windows(5).position(|window| window == b"a pai").expect("the pair");
    bytes[at] ^= 3;
    fs::write(&path, bytes).unwrap();
    let checked = kvasir(["check", shown(&path)]);
    assert_eq!(checked.code, Some(1), "{}", checked.stdout);
}

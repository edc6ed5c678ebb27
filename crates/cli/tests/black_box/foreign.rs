//! `bench` writes to no target that holds data of others, unless `--overwrite` says so.

use crate::drive::{formatted, shown};
use crate::program::{Ran, json, kvasir};
use crate::redis::{Client, target};
use crate::serving::{Serving, keys, store};

const LOADS: [&str; 3] = ["store", "retrieve", "ycsb-f"];

fn bench(load: &str, target: &str, more: &[&str]) -> Ran {
    let words = ["bench", load, "--ops", "20", "--keys", "20", "--json", "--target", target];
    kvasir(words.iter().chain(more))
}

/// Refused before anything is written, with `place` and with what to do.
#[track_caller]
fn assert_refused(ran: &Ran, place: &str) {
    assert_eq!((ran.code, &ran.stdout[..]), (Some(2), ""), "{}", ran.stderr);
    assert!(ran.stderr.contains(place) && ran.stderr.contains("--overwrite"), "{}", ran.stderr);
    assert_eq!(ran.stderr.lines().count(), 1);
}

#[track_caller]
fn assert_done(ran: &Ran) {
    assert_eq!((ran.code, &ran.stderr[..]), (Some(0), ""), "{}", ran.stdout);
}

#[test]
fn a_namespace_with_a_pair_of_others_is_not_written_to_unasked() {
    let served = Serving::start(["--device", "mem:64MiB", "--nvme-tcp", ":0", "--clock", "none"]);
    let uri = served.uri(0);
    // Pairs of earlier runs are bench's own, short keys too.
    for load in LOADS {
        assert_done(&bench(load, &uri, &[]));
    }
    assert_done(&bench("store", &uri, &["--key-size", "3"]));
    assert_done(&bench("store", &uri, &["--distribution", "sequential"]));
    store("greeting", &uri);
    let before = keys(&uri).len();
    for load in LOADS {
        assert_refused(&bench(load, &uri, &["--key-size", "9"]), "the key \"greeting\"");
    }
    assert_eq!(keys(&uri).len(), before);
    assert_done(&bench("store", &uri, &["--key-size", "9", "--overwrite"]));
    assert_eq!(keys(&uri).len(), before + 20);
    served.stop();
}

#[test]
fn a_database_with_a_key_of_others_is_not_written_to_unasked() {
    let served = Serving::start(["--device", "mem:64MiB", "--clock", "none", "--resp", ":0"]);
    let [own, other] = [1, 2].map(|database| format!("{}/{database}", target(&served)));
    let mut client = Client::of(&served);
    client.says("select 2", "+OK");
    client.says("hset user:1 name value", ":1");
    for load in LOADS {
        assert_done(&bench(load, &own, &[]));
        assert_refused(&bench(load, &other, &[]), "the key \"user:1\"");
    }
    client.says("dbsize", ":1");
    assert_done(&bench("retrieve", &other, &["--overwrite"]));
    client.says("dbsize", ":21");
    served.stop();
}

#[test]
fn a_drive_with_a_key_of_others_is_not_written_to_unasked() {
    let (_folder, path) = formatted();
    let uri = format!("file:{}", shown(&path));
    assert_done(&bench("mixed", &uri, &[]));
    let served = Serving::start(["--device", shown(&path), "--resp", ":0"]);
    // Longer than a key of NVMe.
    Client::of(&served).says("set a-session-of-a-user x", "+OK");
    served.stop();
    assert_refused(&bench("mixed", &uri, &[]), "the key \"a-session-of-a-user\"");
    assert_eq!(json(["check", shown(&path), "--json"])["is_whole"], true);
    assert_done(&bench("mixed", &uri, &["--overwrite"]));
}

#[test]
fn a_device_in_the_program_has_nothing_to_overwrite() {
    let ran = bench("store", "sim:ideal", &["--overwrite"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("--overwrite is for a target that can hold data"), "{ran:?}");
}

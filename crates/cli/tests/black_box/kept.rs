//! A device that `kvasir serve` keeps in a file.

use crate::program::{Ran, SMALL, kvasir};
use crate::serving::{Left, Serving, keys, kv, store};
use rustix::process::Signal;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::thread::spawn;
use tempfile::{TempDir, tempdir};

/// A place for a state, in a folder that goes when it is dropped.
fn place() -> (TempDir, PathBuf) {
    let folder = tempdir().unwrap();
    let path = folder.path().join("device.state");
    (folder, path)
}

fn words<'a>(state: &'a Path, more: &[&'a str]) -> Vec<&'a str> {
    let words = ["--device", SMALL, "--nvme-tcp", ":0", "--state", state.to_str().unwrap()];
    words.into_iter().chain(more.iter().copied()).collect()
}

fn began(served: &Serving) -> &Value {
    &served.ready["devices"][0]["state"]["began"]
}

fn serial(served: &Serving) -> String {
    served.ready["subsystems"][0]["serial"].as_str().unwrap().to_owned()
}

#[test]
fn stored_pairs_survive_a_stop() {
    // In real time on one reactor, and on reactors of their own without latencies.
    for more in [&[][..], &["--cores", "2", "--clock", "none"]] {
        let (_folder, state) = place();
        let mut expected = Vec::new();
        for round in 0..3 {
            let served = Serving::start(words(&state, more));
            assert_eq!(*began(&served), if round == 0 { "new" } else { "resumed" });
            let uri = served.uri(0);
            assert_eq!(keys(&uri), expected);
            store(&format!("key{round}"), &uri);
            expected.push(format!("key{round}"));
            let value = kv("retrieve key0", &uri).stdout;
            assert_eq!(value, fs::read_to_string("Cargo.toml").unwrap());
            served.stop();
        }
    }
}

#[test]
fn a_device_whose_server_was_killed_is_lost_and_that_is_said_once() {
    let (_folder, state) = place();
    let mut serials = BTreeSet::new();
    // A new one, and one that was saved before.
    for (start, losses) in [("new", 0), ("resumed", 1)] {
        let served = Serving::start(words(&state, &[]));
        assert_eq!(*began(&served), start);
        let uri = served.uri(0);
        assert_eq!(served.ready["devices"][0]["state"]["incarnation"], losses);
        serials.insert(serial(&served));
        store("key", &served.uri(0));
        assert_eq!(served.end(Signal::KILL).code, None);

        let bench = format!("bench retrieve --target sim:{SMALL} --state {}", state.display());
        let bench = kvasir(bench.split(' '));
        let sentence = "was in use when its server was killed, so its content is lost: remove the \
                        file\n";
        assert!(bench.code == Some(2) && bench.stderr.ends_with(sentence), "{}", bench.stderr);

        let served = Serving::start(words(&state, &[]));
        let sentence = format!(
            "the state {} was in use when its server was killed, so its content is lost: {SMALL} \
             is a new device, and its namespaces have new identifiers",
            state.display()
        );
        assert_eq!(served.error_line(), format!("kvasir: {sentence}"));
        assert_eq!(served.ready["devices"][0]["state"]["warning"], sentence);
        assert_eq!(*began(&served), "lost");
        assert_eq!(served.ready["devices"][0]["state"]["incarnation"], losses + 1);
        let name = |uri: &str| uri.rsplit('/').next().map(str::to_owned);
        assert_eq!(name(&served.uri(0)), name(&uri), "hosts connect by the same name");
        let new_serial = serial(&served);
        assert!(!serials.contains(&new_serial), "{new_serial} of {serials:?}");
        assert_eq!(keys(&served.uri(0)), Vec::<String>::new(), "not what was saved before either");
        store("other", &served.uri(0));
        served.stop();

        let served = Serving::start(words(&state, &[]));
        assert_eq!(
            (began(&served), keys(&served.uri(0))),
            (&"resumed".into(), vec!["other".into()])
        );
        assert_eq!(serial(&served), new_serial);
        served.stop();
    }
}

/// A server of a device whose file is in the folder of the configuration.
fn configuration() -> String {
    format!(
        "[server]\nnvme_tcp = [\":0\"]\n[[device]]\nname = \"kept\"\ndevice = {SMALL:?}\n\
         state = \"device.state\"\n[[subsystem]]\ndevice = \"kept\"\n"
    )
}

fn check(folder: &Path, more: &[&str]) -> Ran {
    let path = folder.join("server.toml");
    fs::write(&path, configuration()).unwrap();
    let check = ["serve", "--check", "--config", path.to_str().unwrap()];
    kvasir(check.iter().chain(more))
}

/// What `serve --check` prints of the next start: the serial number and the incarnation. It changes
/// nothing in the folder.
#[track_caller]
fn checked(folder: &Path) -> (String, Value) {
    let content = || {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let states = entries.filter(|path| !path.ends_with("server.toml"));
        states.map(|path| (fs::read(&path).unwrap(), path)).collect::<Vec<_>>()
    };
    let before = content();
    let ran = check(folder, &["--json"]);
    assert_eq!((ran.code, &ran.stderr[..]), (Some(0), ""));
    assert!(content() == before, "it changes nothing");
    let told: Value = serde_json::from_str(&ran.stdout).unwrap();
    let serial = told["subsystems"][0]["serial"].as_str().unwrap().to_owned();
    (serial, told["devices"][0]["state"]["incarnation"].clone())
}

#[test]
fn check_prints_the_serial_number_of_the_next_start() {
    let (folder, state) = place();
    let start = || Serving::with_file(folder.path(), &configuration());
    let mut serials = BTreeSet::new();
    for incarnation in 0..3 {
        let told = checked(folder.path());
        assert_eq!(told.1, incarnation);
        let served = start();
        assert_eq!(told.0, serial(&served));
        assert_eq!(checked(folder.path()), told, "while a server uses the file");
        // It says on standard error that the content was lost.
        assert_eq!(served.end(Signal::TERM).code, Some(0));
        assert_eq!(checked(folder.path()), told, "after a stop");
        serials.insert(told.0);
        assert_eq!(start().end(Signal::KILL).code, None);
    }
    assert_eq!(serials.len(), 3);
    fs::write(&state, "something else").unwrap();
    let refused = check(folder.path(), &[]);
    let sentence = format!("kvasir: the state {} is not a saved device\n", state.display());
    assert_eq!((refused.code, refused.stderr), (Some(2), sentence));
}

#[test]
fn a_start_that_fails_loses_nothing() {
    let (_folder, state) = place();
    let served = Serving::start(words(&state, &[]));
    store("key", &served.uri(0));
    // While it is there, another finds the file in use.
    let other = kvasir(["serve"].into_iter().chain(words(&state, &[])));
    let sentence = format!("kvasir: the state {} is in use by another run\n", state.display());
    assert_eq!((other.code, other.stderr), (Some(2), sentence));
    let address = served.address().to_string();
    served.stop();

    let before = fs::read(&state).unwrap();
    let _taken = std::net::TcpListener::bind(&address).unwrap();
    let words_there = ["serve", "--device", SMALL, "--nvme-tcp", &address, "--state"];
    let there = kvasir(words_there.into_iter().chain([state.to_str().unwrap()]));
    assert!(there.stderr.contains("cannot listen at"), "{}", there.stderr);
    for (more, sentence) in [
        (&["--seed", "2"][..], "is of a device with seed 1, not 2"),
        (&["--clock", "none"], "is not the same as"),
    ] {
        let other = kvasir(["serve"].into_iter().chain(words(&state, more)));
        assert!(other.code == Some(2) && other.stderr.contains(sentence), "{}", other.stderr);
    }
    assert!(fs::read(&state).unwrap() == before);
    let served = Serving::start(words(&state, &[]));
    assert_eq!(keys(&served.uri(0)), ["key"]);
    served.stop();
}

/// Hosts that are there, some without a Connect, hold nothing up.
#[test]
fn a_stop_amid_commands_is_one_that_saves() {
    for cores in ["1", "2"] {
        let (_folder, state) = place();
        let served = Serving::start(words(&state, &["--cores", cores]));
        let uri = served.uri(0);
        let _silent = TcpStream::connect(served.address()).unwrap();
        let load = format!("bench mixed --keys 500 --seconds 60 --target {uri}?queues=2");
        let load = spawn(move || kvasir(load.split(' ')));
        assert!((0..2_000).any(|_| keys(&uri).len() == 500), "the load has stored its keys");
        served.stop();
        let load = load.join().unwrap();
        assert!(load.code == Some(1) && load.stderr.contains("127.0.0.1"), "{}", load.stderr);
        let served = Serving::start(words(&state, &["--cores", cores]));
        assert_eq!((began(&served), keys(&served.uri(0)).len()), (&"resumed".into(), 500));
        served.stop();
    }
}

#[test]
fn a_server_that_cannot_save_still_reports_what_it_served() {
    for cores in ["1", "2"] {
        let (folder, state) = place();
        let served = Serving::start(words(&state, &["--cores", cores]));
        store("key", &served.uri(0));
        folder.close().unwrap();
        let Left { code, stopped, stderr, .. } = served.end(Signal::TERM);
        assert_eq!((code, stderr.len()), (Some(1), 1), "{stderr:?}");
        assert!(stopped["connections"].as_u64() > Some(0), "{stopped}");
        let sentence = format!("kvasir: the state {} cannot be written: ", state.display());
        assert!(stderr[0].starts_with(&sentence), "{stderr:?}");
    }
}

#[test]
fn a_terminal_that_ends_is_a_stop() {
    let (_folder, state) = place();
    let served = Serving::start(words(&state, &[]));
    store("key", &served.uri(0));
    assert_eq!(served.end(Signal::HUP).code, Some(0));
    let served = Serving::start(words(&state, &[]));
    assert_eq!(keys(&served.uri(0)), ["key"]);
    served.stop();
}

#[test]
fn a_drive_in_memory_has_no_state() {
    let (_folder, state) = place();
    let words = ["serve", "--device", "mem:64MiB", "--nvme-tcp", ":0", "--state"];
    let ran = kvasir(words.into_iter().chain([state.to_str().unwrap()]));
    let sentence = "kvasir: only an emulated device can have a state: serve a profile, or leave \
                    the state out\n";
    assert_eq!((ran.code, &ran.stderr[..]), (Some(2), sentence));
    assert!(!state.exists());
}

#[test]
fn devices_of_a_file_are_kept_each_in_its_own() {
    for cores in [1, 3] {
        let folder = tempdir().unwrap();
        let text = format!(
            "server = {{ cores = {cores}, clock = \"none\", nvme_tcp = [\":0\"] }}
             [[device]]
             name = \"a\"
             device = {SMALL:?}
             state = \"a.state\"
             [[device]]
             name = \"b\"
             device = {SMALL:?}
             seed = 2
             state = \"b.state\"
             [[device]]
             name = \"c\"
             device = \"mem:64MiB\"
             [[subsystem]]
             device = \"a\"
             [[subsystem]]
             device = \"b\"
             [[subsystem]]
             device = \"c\"
             "
        );
        let served = Serving::with_file(folder.path(), &text);
        for (place, key) in ["of-a", "of-b", "of-c"].iter().enumerate() {
            store(key, &served.uri(place));
        }
        served.stop();
        let served = Serving::with_file(folder.path(), &text);
        let all: Vec<_> = (0..3).map(|place| keys(&served.uri(place))).collect();
        assert_eq!(all, [vec!["of-a"], vec!["of-b"], vec![]], "on {cores} cores");
        store("more", &served.uri(1));
        served.stop();

        // One that cannot start keeps none of the others from being what it was.
        fs::write(folder.path().join("b.state"), "no device").unwrap();
        let path = folder.path().join("server.toml");
        let failed = kvasir(["serve", "--config", path.to_str().unwrap()]);
        assert!(failed.stderr.ends_with("b.state is not a saved device\n"), "{}", failed.stderr);
        fs::remove_file(folder.path().join("b.state")).unwrap();
        let served = Serving::with_file(folder.path(), &text);
        let all: Vec<_> = (0..2).map(|place| keys(&served.uri(place))).collect();
        assert_eq!(all, [vec!["of-a"], vec![]], "on {cores} cores");
        served.stop();
    }
}

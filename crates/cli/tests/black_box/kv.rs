//! Pairs of a namespace over NVMe/TCP, served by the program itself.

use crate::program::kvasir;
use base::checksum::crc32c;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::spawn;
use tempfile::tempdir;

/// A device that is served while this is there.
struct Served {
    child: Child,
    uri: String,
}

impl Served {
    fn new() -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_kvasir"))
            .args(["serve", "--device", "ideal", "--nvme-tcp", ":0", "--clock", "none"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let uri = lines.map(Result::unwrap).find(|line| line.starts_with("nvme-tcp://"));
        Self { child, uri: uri.expect("it says where it serves") }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// What a run printed.
struct Ran {
    code: Option<i32>,
    stdout: Vec<u8>,
    stderr: String,
}

impl Ran {
    #[track_caller]
    fn stdout(self) -> Vec<u8> {
        assert_eq!((self.code, self.stderr.as_str()), (Some(0), ""));
        self.stdout
    }

    #[track_caller]
    fn fails(self, code: i32, words: &str) {
        assert_eq!((self.code, self.stdout), (Some(code), Vec::new()), "{}", self.stderr);
        assert!(self.stderr.starts_with("kvasir: ") && self.stderr.contains(words), "{}", {
            &self.stderr
        });
        assert_eq!(self.stderr.lines().count(), 1);
    }
}

/// Runs `kvasir kv` with `words`, on `target`, with `input` as its standard input.
fn kv(words: &[&str], target: &str, input: &[u8]) -> Ran {
    let mut child = Command::new(env!("CARGO_BIN_EXE_kvasir"))
        .arg("kv")
        .args(words)
        .args(["--target", target])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut stdin, input) = (child.stdin.take().unwrap(), input.to_vec());
    // Who refuses its arguments reads nothing.
    let writer = spawn(move || stdin.write_all(&input).is_ok());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    Ran { code: output.status.code(), stdout: output.stdout, stderr }
}

#[test]
fn pairs_are_stored_found_listed_and_deleted() {
    let served = Served::new();
    let on = |words: &[&str], input: &[u8]| kv(words, &served.uri, input);
    let folder = tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let value: Vec<u8> = (0..2 << 20).map(|at: u32| at.to_le_bytes()[at as usize % 3]).collect();
    fs::write(file("value"), &value).unwrap();

    assert_eq!(on(&["list"], b"").stdout(), b"");
    assert_eq!(on(&["store", "greeting", "-"], b"hello\n").stdout(), b"");
    assert_eq!(on(&["retrieve", "greeting"], b"").stdout(), b"hello\n");
    assert_eq!(on(&["exist", "greeting"], b"").stdout(), b"there is a key \"greeting\"\n");
    on(&["exist", "greetings"], b"").fails(1, "there is no key \"greetings\"");
    on(&["retrieve", "greetings", "-o", &file("none")], b"").fails(1, "there is no key");
    assert!(!fs::exists(file("none")).unwrap(), "a file is written when there is a value");

    on(&["store", "greeting", "-", "--if-absent"], b"other").fails(1, "already exists");
    on(&["store", "other", "-", "--if-present"], b"other").fails(1, "there is no key \"other\"");
    on(&["store", "greeting", "-", "--if-present"], b"").stdout();
    assert_eq!(on(&["retrieve", "greeting"], b"").stdout(), b"");

    on(&["store", "00ff", &file("value"), "--hex", "--if-absent"], b"").stdout();
    on(&["retrieve", "--hex", "00FF", "-o", &file("copy")], b"").stdout();
    assert!(fs::read(file("copy")).unwrap() == value);
    assert_eq!(on(&["list", "gr"], b"").stdout(), b"greeting\n");
    let mut lines: Vec<String> = String::from_utf8(on(&["list"], b"").stdout())
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect();
    lines.sort();
    assert_eq!(lines, ["\\x00\\xff", "greeting"]);
    assert_eq!(on(&["list", "--hex", "00"], b"").stdout(), b"00ff\n");

    assert_eq!(on(&["delete", "greeting"], b"").stdout(), b"");
    on(&["exist", "greeting"], b"").fails(1, "there is no key");
    let info: Value = serde_json::from_slice(&on(&["info", "--json"], b"").stdout()).unwrap();
    assert_eq!((&info["namespace"], &info["key_bytes_max"]), (&1.into(), &16.into()));
    assert_eq!(info["value_bytes_max"], 2 << 20);
    assert_eq!(info["target"], served.uri);
    assert!(String::from_utf8(on(&["info"], b"").stdout()).unwrap().contains("longest value"));
}

#[test]
fn a_target_has_the_options_of_its_uri() {
    let served = Served::new();
    for options in
        ["?digests=header,data", "?digests=padded-data", "?queues=3&digests=data", "?ns=1"]
    {
        let target = format!("{}{options}", served.uri);
        // Of a length that is no multiple of 4: there digests differ by padding.
        let value = [options.as_bytes(), b"."].concat();
        assert!(!value.len().is_multiple_of(4));
        kv(&["store", "options", "-"], &target, &value).stdout();
        assert_eq!(kv(&["retrieve", "options"], &target, b"").stdout(), value);
    }
    let target = format!("{}?ns=2", served.uri);
    kv(&["list"], &target, b"").fails(1, "no namespace 2; the target's option ns=");
    let (address, name) = served.uri.rsplit_once('/').unwrap();
    let known = format!("has no subsystem nqn.2026-11.com.example:other; there is {name}");
    kv(&["list"], &format!("{address}/nqn.2026-11.com.example:other"), b"").fails(1, &known);
    // What is not known is neither there nor missing.
    kv(&["exist", "key"], &format!("{address}/nqn.2026-11.com.example:other"), b"")
        .fails(2, "has no subsystem");
}

/// Forwards connections to `target`. Returns its own address and what hosts have sent.
fn forward(target: String) -> (SocketAddr, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let sent = Arc::new(Mutex::new(Vec::new()));
    let recorded = sent.clone();
    spawn(move || {
        for host in listener.incoming().map(Result::unwrap) {
            let server = TcpStream::connect(&target).unwrap();
            let (mut from_host, mut to_server) =
                (host.try_clone().unwrap(), server.try_clone().unwrap());
            let recorded = recorded.clone();
            spawn(move || {
                let mut bytes = [0; 4_096];
                while let Ok(len @ 1..) = from_host.read(&mut bytes) {
                    recorded.lock().unwrap().extend(&bytes[..len]);
                    to_server.write_all(&bytes[..len]).unwrap();
                }
                let _ = to_server.shutdown(Shutdown::Write);
            });
            spawn(move || std::io::copy(&mut &server, &mut &host));
        }
    });
    (address, sent)
}

#[test]
fn data_digests_cover_the_bytes_that_the_uri_says() {
    let served = Served::new();
    let place = served.uri.trim_start_matches("nvme-tcp://").split('/').next().unwrap();
    let (address, sent) = forward(place.to_owned());
    let target = served.uri.replace(place, &address.to_string());
    let value = *b"abc";
    for (digests, covered) in
        [("data", &value[..]), ("padded-data", b"abc\0"), ("header,padded-data", b"abc\0")]
    {
        sent.lock().unwrap().clear();
        kv(&["store", "key", "-"], &format!("{target}?digests={digests}"), &value).stdout();
        let expected = [&value[..], &crc32c(covered).to_le_bytes()].concat();
        let sent = sent.lock().unwrap();
        assert!(sent.windows(expected.len()).any(|bytes| bytes == expected), "{digests}");
    }
}

#[test]
fn a_load_is_measured_over_nvme_tcp() {
    let served = Served::new();
    for (workload, options) in [
        ("retrieve", &["--keys", "500"][..]),
        ("store", &["--value-size", "uniform:1-40KiB"]),
        ("mixed", &["--keys", "300", "--queue-depth", "8"]),
        ("ycsb-f", &["--keys", "300", "--rate", "5000"]),
        ("delete", &[]),
    ] {
        let target = format!("{}?queues=2", served.uri);
        let arguments = [&["bench", workload, "--ops", "500", "--json"][..], options].concat();
        let ran = kvasir([&arguments[..], &["--target", &target]].concat());
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{workload}");
        let report = ran.json();
        assert_eq!((&report["ops"], &report["errors"]), (&500.into(), &0.into()));
        assert!(report["ops_per_wall_second"].as_f64().unwrap() > 0.0);
        assert_eq!(report["digest"].as_str().unwrap().len(), 16);
        assert_eq!(report["queues"], 2);
    }
    let table = kvasir(["bench", "exist", "--ops", "50", "--target", &served.uri]);
    assert_eq!(table.code, Some(0), "{}", table.stderr);
    assert!(table.stdout.contains("operations a second"), "{}", table.stdout);
    assert!(!table.stdout.contains("flash"), "{}", table.stdout);
}

/// Refused with status 2 and a sentence that has `words`.
#[track_caller]
fn refused(arguments: &str, words: &str) {
    let ran = kvasir(arguments.split_whitespace());
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{arguments}: {}", ran.stderr);
    let line = ran.stderr.strip_suffix('\n').unwrap_or_default();
    assert!(line.starts_with("kvasir: ") && line.contains(words), "{arguments}: {line}");
    assert!(!line.contains('\n'), "{arguments}: {line}");
}

#[test]
fn impossible_input_is_refused_before_connecting() {
    // No server listens here, so a connection attempt would fail.
    let target = "--target nvme-tcp://127.0.0.1:9/nqn.2026-11.com.example:kv";
    for (arguments, words) in [
        ("kv", "see kvasir kv --help"),
        ("kv get key", "see kvasir kv --help"),
        ("kv list", "--target"),
        ("kv list --target sim:moke", "use nvme-tcp://HOST:PORT/NQN"),
        ("kv list --target nvme-tcp://127.0.0.1:9", "one is written as nvme-tcp://HOST:PORT/NQN"),
        ("kv list --target nvme-tcp://127.0.0.1:9/kv", "is no NVMe Qualified Name"),
        (
            "kv list --target nvme-tcp://127.0.0.1:9/nqn.2026-11.com.example:kv?ns=0",
            "option ns is a whole number",
        ),
        (
            "kv list --target nvme-tcp://127.0.0.1:9/nqn.2026-11.com.example:kv?seed=1",
            "only ns, digests, queues and as",
        ),
        ("kv list --target /dev/null", "/dev/null is no NVMe namespace"),
        ("kv info --target /dev/ng99n99", "/dev/ng99n99 cannot be opened"),
    ] {
        refused(arguments, words);
    }
    for (arguments, words) in [
        ("kv retrieve 12345678901234567", "1 to 16 bytes, not 17"),
        ("kv store 12345678901234567 Cargo.toml", "1 to 16 bytes, not 17"),
        ("kv exist --hex abc", "two digits per byte"),
        ("kv delete --hex 0x", "two digits per byte"),
        ("kv list 12345678901234567", "1 to 16 bytes, not 17"),
        ("kv store key nope.txt", "nope.txt cannot be read: No such file"),
        ("kv store key /", "/ cannot be read"),
        ("kv store key /dev/zero", "/dev/zero has more than the 2.0 MiB of the longest value"),
        ("kv store key Cargo.toml --if-absent --if-present", "cannot be used with"),
        ("kv retrieve key -o /nope/file", "/nope/file cannot be written"),
        ("bench store --key-size 17", "over NVMe/TCP a key has 1 to 16 bytes, and not 17"),
        ("bench randread --keys 5", "--keys is of pairs"),
        ("bench mixed --keys 5 --span 4KiB", "--keys is of pairs"),
        ("bench mixed --block-size 8KiB", "read and written have 4.0 KiB"),
        ("bench store --cut-at 5ms", "--cut-at is for a device in this program"),
        ("bench store --state a.state", "--state is for a device in this program"),
        ("bench store --precondition 90%", "--precondition is for a device in this program"),
        ("bench store --faults a.toml", "--faults is for a device in this program"),
        ("bench store --trace a.trace", "--trace is for a device in this program"),
        ("bench replay Cargo.toml", "replay is for a device in this program"),
        ("bench store --block-size 4KiB", "--block-size is of blocks"),
    ] {
        refused(&format!("{arguments} {target}"), words);
    }
}

#[test]
fn a_target_that_is_not_there_is_an_error_that_says_so() {
    let ran =
        kvasir(["kv", "list", "--target", "nvme-tcp://127.0.0.1:1/nqn.2026-11.com.example:kv"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("cannot connect to 127.0.0.1:1"), "{}", ran.stderr);
    let ran =
        kvasir(["kv", "list", "--target", "nvme-tcp://name.invalid/nqn.2026-11.com.example:kv"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("cannot resolve name.invalid"), "{}", ran.stderr);
}

//! `kvasir kv export|import`: what one Redis server holds, to another.

use crate::program::{Ran, json, kvasir};
use crate::redis::{Client, target};
use crate::serving::Serving;
use serde_json::Value;
use std::env;
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

fn served() -> Serving {
    Serving::start(["--device", "mem:256MiB", "--clock", "none", "--resp", ":0"])
}

fn words<'a>(verb: &'a str, file: &'a Path, target: &'a str) -> [&'a str; 5] {
    ["kv", verb, file.to_str().expect("a name of ours"), "--target", target]
}

pub(crate) fn moved(verb: &str, file: &Path, target: &str) -> Value {
    json(words(verb, file, target).into_iter().chain(["--json"]))
}

/// All that two exports of the same have in common.
pub(crate) fn totals(moved: &Value) -> Value {
    let names = ["keys", "strings", "fields", "members", "expiring", "bytes", "checksum"];
    names.iter().map(|name| ((*name).to_owned(), moved[name].clone())).collect()
}

/// Kills the program when `has_come_far` is true. Returns whether it was killed before it ended.
fn killed(words: &[&str], has_come_far: impl Fn() -> bool) -> bool {
    let mut program = Command::new(env!("CARGO_BIN_EXE_kvasir"));
    let mut running = program.args(words).stdout(Stdio::null()).spawn().expect("it starts");
    let started = Instant::now();
    while !has_come_far() {
        assert!(started.elapsed() < Duration::from_mins(1), "it makes progress");
        if running.try_wait().expect("it is there").is_some() {
            return false;
        }
        sleep(Duration::from_micros(100));
    }
    running.kill().expect("it is there");
    !running.wait().expect("it was there").success()
}

fn size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |found| found.len())
}

/// Stores what there can be of every type in database 2.
fn fill(served: &Serving, uri: &str) {
    let fill = ["bench", "store", "--ops", "12000", "--value-size", "uniform:0-8KiB"];
    json(fill.into_iter().chain(["--json", "--target", uri]));
    let mut client = Client::of(served);
    client.says("select 2", "+OK");
    for number in 0..500 {
        client.says(&format!("hset great field{number} value{number}"), ":1");
        client.says(&format!("zadd scores {number}e-3 member{number}"), ":1");
        client.says(&format!("set short{number} value"), "+OK");
        client.says(&format!("pexpireat short{number} {}", 4_000_000_000_000_u64 + number), ":1");
    }
    client.says("zadd scores -inf least inf most", ":2");
    client.says("pexpireat great 4000000000999", ":1");
}

#[test]
fn a_database_is_copied_completely_even_if_export_and_import_are_killed() {
    let folder = tempfile::tempdir().expect("a folder");
    let [first, second] = ["first", "second"].map(|name| folder.path().join(name));
    let (from, to) = (served(), served());
    let [from_uri, to_uri] = [&from, &to].map(|served| format!("{}/2", target(served)));
    fill(&from, &from_uri);

    let mut kills = 0;
    for _ in 0..3 {
        let before = size(&first);
        let has_come_far = || size(&first) > before + (4 << 20);
        kills += u32::from(killed(&words("export", &first, &from_uri), has_come_far));
    }
    let exported = moved("export", &first, &from_uri);
    assert_eq!((kills > 0, &exported["is_resumed"]), (true, &true.into()), "{exported}");
    let expected = [("keys", 12_502), ("fields", 500), ("members", 502), ("expiring", 501)];
    for (name, count) in expected {
        assert_eq!(exported[name], count, "{exported}");
    }

    let journal = folder.path().join("first.progress");
    let place = || {
        fs::read(&journal).ok().and_then(|text| {
            let journal: Value = serde_json::from_slice(&text).ok()?;
            journal["place"][1].as_u64()
        })
    };
    let mut kills = 0;
    for _ in 0..3 {
        let before = place().unwrap_or(0);
        let has_come_far = || place().is_some_and(|place| place > before + (4 << 20));
        kills += u32::from(killed(&words("import", &first, &to_uri), has_come_far));
    }
    let imported = json(words("import", &first, &to_uri).into_iter().chain(["--verify", "--json"]));
    assert_eq!((kills > 0, &imported["is_resumed"]), (true, &true.into()), "{imported}");
    assert!(!journal.exists());
    let again = moved("export", &second, &to_uri);
    assert_eq!(totals(&again), totals(&exported));

    // Another database that lost what was imported begins again.
    assert!(killed(&words("import", &first, &to_uri), || place().is_some()));
    let mut client = Client::of(&to);
    client.says("select 2", "+OK");
    client.says("flushdb", "+OK");
    let imported = moved("import", &first, &to_uri);
    assert_eq!(imported["is_resumed"], false);
    client.says("dbsize", ":12502");
    from.stop();
    to.stop();
}

#[test]
fn a_file_that_is_no_archive_or_another_one_is_refused_and_stays() {
    let folder = tempfile::tempdir().expect("a folder");
    let [first, second] = ["first", "second"].map(|name| folder.path().join(name));
    let served = served();
    let [from_uri, to_uri] = [2, 3].map(|database| format!("{}/{database}", target(&served)));
    let fill = ["bench", "store", "--ops", "1000", "--json", "--target", &from_uri];
    json(fill);
    moved("export", &first, &from_uri);
    let refused = |ran: &Ran, sentence: &str| {
        assert!(ran.code != Some(0) && ran.stderr.contains(sentence), "{}", ran.stderr);
    };
    refused(&kvasir(words("export", &first, &from_uri)), "holds a complete export");
    refused(&kvasir(words("import", &folder.path().join("none"), &to_uri)), "No such file");
    fs::write(&second, "no archive").expect("it is ours");
    refused(&kvasir(words("import", &second, &to_uri)), "not an archive of kvasir kv export");
    refused(&kvasir(words("export", &second, &to_uri)), "is not empty, and it is not an archive");
    refused(&kvasir(words("export", &first, "sim:moke")), "use resp://HOST:PORT/DATABASE");
    let third = folder.path().join("third");
    refused(&kvasir(words("export", &third, "resp://127.0.0.1:1/0")), "cannot connect to");
    assert!(!third.exists(), "a file without anything in it stays");
    let bytes = fs::read(&first).expect("it is there");
    fs::write(&second, &bytes[..bytes.len() / 2]).expect("it is ours");
    refused(
        &kvasir(words("import", &second, &to_uri)),
        "run the same kvasir kv export again to complete it",
    );
    refused(&kvasir(words("export", &second, &to_uri)), "holds an export from resp://");
    assert_eq!(size(&second), bytes.len() as u64 / 2);
    served.stop();
}

/// A redis-server that ends with the test.
struct Redis(Child, u16);

impl Redis {
    /// Starts one, if the program is there.
    fn start() -> Option<Self> {
        let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let port = port.expect("there are ports").port();
        let mut command = Command::new("redis-server");
        command.args(["--port", &port.to_string(), "--save", "", "--appendonly", "no"]);
        match command.stdout(Stdio::null()).spawn() {
            Ok(child) => Some(Self(child, port)),
            Err(_) => {
                let is_required = env::var("REQUIRE_REDIS").is_ok_and(|value| value == "1");
                assert!(!is_required, "REQUIRE_REDIS=1, and there is no redis-server");
                eprintln!("skipped: no redis-server on the path");
                None
            }
        }
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn unsupported_redis_keys_are_named_and_skipped_only_with_an_option() {
    let Some(redis) = Redis::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let [file, other] = ["file", "other"].map(|name| folder.path().join(name));
    let uri = format!("redis://127.0.0.1:{}", redis.1);
    let mut client = Client::to(&format!("127.0.0.1:{}", redis.1));
    let great = "v".repeat(3 << 20);
    assert_eq!(client.ask(&["set", "great", &great]).as_deref(), Some(&b"+OK"[..]));
    client.says("hset hash field value", ":1");
    client.says("hset hash2 field value other value", ":2");
    client.says("zadd sorted 0.1 member", ":1");
    client.says("set string value px 100000", "+OK");
    client.says("rpush line one two", ":2");
    let ran = kvasir(words("export", &file, &uri));
    assert!(ran.stderr.contains("\"line\" is a list"), "{}", ran.stderr);
    let exported = json(words("export", &file, &uri).into_iter().chain(["--skip", "--json"]));
    assert_eq!((&exported["keys"], &exported["left_out"]), (&5.into(), &1.into()), "{exported}");

    let to = served();
    // What a key held before goes, whatever that was.
    let mut before = Client::of(&to);
    before.says("hset hash old value", ":1");
    before.says("set sorted value", "+OK");
    let ran = kvasir(words("import", &file, target(&to)));
    assert!(ran.stderr.contains("\"great\" cannot be stored: ERR a value has"), "{}", ran.stderr);
    let skipping = words("import", &file, target(&to)).into_iter().chain(["--skip", "--verify"]);
    let ran = kvasir(skipping);
    assert!(ran.stdout.contains("1: \"great\" (ERR a value has"), "{}", ran.stdout);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    client.says("del great line", ":2");
    let fresh = moved("export", &other, target(&to));
    let expected = folder.path().join("expected");
    assert_eq!(totals(&fresh), totals(&moved("export", &expected, &uri)));
    to.stop();
}

/// What a redis-server holds, exported into `file`; none if there is no such program.
fn exported_from_redis(file: &Path, fill: impl Fn(&mut Client)) -> Option<Redis> {
    let redis = Redis::start()?;
    let address = format!("127.0.0.1:{}", redis.1);
    fill(&mut Client::to(&address));
    moved("export", file, &format!("redis://{address}"));
    Some(redis)
}

/// Runs `kv import` with more words than it needs.
fn imported(file: &Path, target: &str, more: &[&str]) -> Ran {
    kvasir(words("import", file, target).into_iter().chain(more.iter().copied()))
}

#[test]
fn a_key_without_bytes_is_left_out_by_its_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    let redis = exported_from_redis(&file, |client| {
        for key in ["a", "", "b"] {
            assert_eq!(client.ask(&["set", key, "value"]).as_deref(), Some(&b"+OK"[..]));
        }
    });
    if redis.is_none() {
        return;
    }
    let to = served();
    let ran = imported(&file, target(&to), &["--skip"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{}", ran.stdout);
    assert!(ran.stdout.contains("1: \"\" (ERR a key has 1 to 255 bytes"), "{}", ran.stdout);
    Client::of(&to).says("dbsize", ":2");
    to.stop();
}

/// Keys that a redis-server holds and a drive does not, among others.
fn fill_with_too_much(client: &mut Client) {
    let (long, great) = ("f".repeat(256), "v".repeat(3 << 20));
    client.says("set a value", "+OK");
    client.says("hset hash field value", ":1");
    client.says(&format!("hset h {long} value"), ":1");
    for key in ["", &long] {
        assert_eq!(client.ask(&["set", key, "value"]).as_deref(), Some(&b"+OK"[..]));
    }
    client.says(&format!("set big {great}"), "+OK");
}

#[test]
fn skipped_keys_are_not_compared() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    if exported_from_redis(&file, fill_with_too_much).is_none() {
        return;
    }
    let to = served();
    let ran = imported(&file, target(&to), &["--skip", "--verify"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{}", ran.stdout);
    assert!(ran.stdout.contains("left out"), "{}", ran.stdout);
    assert!(ran.stdout.contains("all else matches the file"), "{}", ran.stdout);
    Client::of(&to).says("dbsize", ":2");
    to.stop();
}

#[test]
fn keys_that_an_earlier_run_skipped_are_not_compared() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    let redis = exported_from_redis(&file, |client| {
        for number in 0..4_000 {
            // Some have more bytes than a key of a drive.
            let len = if number % 8 == 0 { 256 } else { 8 };
            client.says(&format!("set {number:0>len$} {number:0>4000}"), "+OK");
        }
    });
    if redis.is_none() {
        return;
    }
    let to = served();
    let journal = folder.path().join("file.progress");
    let has_left_out = || {
        let kept = fs::read(&journal).ok();
        let kept = kept.and_then(|text| serde_json::from_slice::<Value>(&text).ok());
        kept.is_some_and(|kept| kept["left_out"].as_u64() > Some(0))
    };
    let skipping = words("import", &file, target(&to)).into_iter().chain(["--skip"]);
    assert!(killed(&skipping.collect::<Vec<_>>(), has_left_out));
    let verified = || {
        let ran = imported(&file, target(&to), &["--skip", "--verify", "--json"]);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{}", ran.stdout);
        ran.json()
    };
    let first = verified();
    assert_eq!((&first["is_resumed"], &first["left_out"]), (&true.into(), &500.into()));

    // The import starts again if the journal does not have the skipped keys.
    has_all_of(&file, &first, target(&to));
    let kept = fs::read_to_string(&journal).expect("it is there");
    fs::write(&journal, kept.replace("\"left_out\":0", "\"left_out\":1")).expect("it is ours");
    let again = verified();
    assert_eq!((&again["is_resumed"], &again["left_out"]), (&false.into(), &500.into()));
    to.stop();
}

#[test]
fn a_missing_key_is_reported_as_missing() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    let (from, to) = (served(), served());
    let mut client = Client::of(&from);
    client.says("hset h field value", ":1");
    client.says("zadd z 1 member", ":1");
    client.says("set s value", "+OK");
    let exported = moved("export", &file, target(&from));
    has_all_of(&file, &exported, target(&to));
    Client::of(&to).says("set s another", "+OK");
    let ran = imported(&file, target(&to), &["--verify"]);
    assert_eq!(ran.code, Some(1));
    for words in ["3 keys differ", "\"h\" is not there", "\"z\" is not", "\"s\" has another"] {
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
    }
    from.stop();
    to.stop();
}

/// Makes an import of `file` take all for stored.
fn has_all_of(file: &Path, moved: &Value, target: &str) {
    let bytes = fs::read(file).expect("it is there");
    let footer = bytes.last_chunk::<28>().expect("it has a footer");
    let [number, at] =
        [8, 16].map(|at| u64::from_le_bytes(footer[at..at + 8].try_into().expect("eight bytes")));
    let kept = serde_json::json!({
        "checksum": moved["checksum"], "target": format!("{target}/0"), "place": [number, at],
        "expired": 0, "left_out": 0, "sample": [],
    });
    let mut journal = file.as_os_str().to_owned();
    journal.push(".progress");
    fs::write(journal, kept.to_string()).expect("it is ours");
}

#[test]
fn keys_that_expire_during_the_transfer_are_absent() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    let (from, to) = (served(), served());
    let mut client = Client::of(&from);
    // It stays until it was exported, however busy the machine is.
    client.says("set a 1 px 3000", "+OK");
    client.says("set c 1", "+OK");
    let exported = moved("export", &file, target(&from));
    assert_eq!(exported["expiring"], 1, "{exported}");
    while client.ask(&["exists", "a"]).as_deref() != Some(b":0") {
        sleep(Duration::from_millis(10));
    }
    // Clocks of servers on one machine are as far apart.
    sleep(Duration::from_millis(100));
    let mut there = Client::of(&to);
    there.says("set a old", "+OK");
    let ran = imported(&file, target(&to), &["--verify"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{}", ran.stdout);
    assert!(ran.stdout.contains("expired during the transfer"), "{}", ran.stdout);
    assert_eq!(there.ask(&["get", "a"]), None);
    there.says("set a old", "+OK");
    has_all_of(&file, &exported, target(&to));
    let ran = imported(&file, target(&to), &["--verify"]);
    let differs = "1 keys differ from the file: \"a\" still exists, though it has expired";
    assert!(ran.code == Some(1) && ran.stderr.contains(differs), "{}", ran.stderr);
    from.stop();
    to.stop();
}

#[test]
fn export_and_import_name_damage_alike() {
    let folder = tempfile::tempdir().expect("a folder");
    let [whole, file] = ["whole", "file"].map(|name| folder.path().join(name));
    let served = served();
    let [from, to] = [2, 3].map(|database| format!("{}/{database}", target(&served)));
    json(["bench", "store", "--ops", "100", "--json", "--target", &from]);
    let exported = moved("export", &whole, &from);
    let bytes = fs::read(&whole).expect("it is there");
    let len = bytes.len();

    let mut flipped = bytes.clone();
    flipped[len - 20] ^= 1;
    let junk = [&bytes[..], b"junk"].concat();
    let longer = format!("it is complete up to byte {len}, but more bytes follow");
    for (bytes, why) in [
        (&flipped, format!("its end, at byte {}, is damaged", len - 28)),
        (&junk, longer.clone()),
        (&bytes.repeat(2), longer),
    ] {
        fs::write(&file, bytes).expect("it is ours");
        for (verb, target) in [("import", &to), ("export", &from)] {
            let ran = kvasir(words(verb, &file, target));
            assert!(ran.code == Some(2) && ran.stderr.contains(&why), "{}", ran.stderr);
            assert!(!ran.stderr.contains("to complete it"), "{}", ran.stderr);
        }
        assert_eq!(&fs::read(&file).expect("it is there"), bytes);
    }

    fs::write(&file, &bytes[..len - 1]).expect("it is ours");
    let ran = kvasir(words("import", &file, &to));
    assert!(
        ran.stderr.contains("run the same kvasir kv export again to complete it"),
        "{}",
        ran.stderr
    );
    assert_eq!(totals(&moved("export", &file, &from)), totals(&exported));
    assert_eq!(fs::read(&file).expect("it is there"), bytes);
    served.stop();
}

#[test]
fn a_continued_export_reports_changed_keys() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    let from = served();
    let mut client = Client::of(&from);
    client.says("mset a 1 b 2", "+OK");
    moved("export", &file, target(&from));
    let bytes = fs::read(&file).expect("it is there");
    let gone_on = |more: &[&str]| {
        // The listing is over, and the end of the file is missing.
        fs::write(&file, &bytes[..bytes.len() - 1]).expect("it is ours");
        let words = words("export", &file, target(&from)).into_iter();
        let ran = kvasir(words.chain(more.iter().copied()));
        assert!(ran.code == Some(0) && ran.stdout.contains("by an earlier run"), "{ran:?}");
        ran.stdout
    };
    assert!(!gone_on(&[]).contains("server changed"));
    client.says("set c 3", "+OK");
    let more = "the server has 3 keys now, and 2 were listed";
    assert!(gone_on(&[]).contains(more));
    // The third may be what the earlier run left out.
    assert!(!gone_on(&["--skip"]).contains("server changed"));
    client.says("del a b", ":2");
    let fewer = "the server has 1 keys now, and 2 were listed";
    assert!(gone_on(&["--skip"]).contains(fewer));
    from.stop();
}

#[test]
fn a_skipped_key_leaves_no_part() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    let redis = exported_from_redis(&file, |client| {
        let (long, value) = ("f".repeat(256), "v".repeat(500));
        client.says(&format!("hset great {long} value"), ":1");
        for number in 0..5_000 {
            client.says(&format!("hset great field{number} {value}"), ":1");
        }
        client.says("set other value", "+OK");
    });
    if redis.is_none() {
        return;
    }
    let to = served();
    let ran = imported(&file, target(&to), &["--skip", "--verify"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{}", ran.stdout);
    assert!(ran.stdout.contains("1: \"great\" (ERR "), "{}", ran.stdout);
    let mut there = Client::of(&to);
    there.says("exists great", ":0");
    there.says("dbsize", ":1");
    to.stop();
}

//! `kvasir serve --resp`: clients of the Redis protocol beside hosts of NVMe.

use crate::drive::{formatted, shown};
use crate::program::{Ran, json, kvasir};
use crate::serving::{Serving, keys, kv, store};
use rustix::process::Signal;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A client that asks one thing after the other.
pub(crate) struct Client(BufReader<TcpStream>);

/// Where a server listens for clients of Redis, as a target.
pub(crate) fn target(served: &Serving) -> &str {
    served.ready["devices"][0]["resp"].as_str().expect("it has such a door")
}

impl Client {
    pub(crate) fn of(served: &Serving) -> Self {
        Self::to(target(served).strip_prefix("resp://").expect("a URI of that protocol"))
    }

    /// A connection to a server that listens, or soon will.
    pub(crate) fn to(address: &str) -> Self {
        for _ in 0..500 {
            if let Ok(stream) = TcpStream::connect(address) {
                stream.set_read_timeout(Some(Duration::from_mins(1))).expect("it can be set");
                return Self(BufReader::new(stream));
            }
            sleep(Duration::from_millis(10));
        }
        panic!("no server listens at {address}");
    }

    /// Sends bytes without waiting for a reply.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.0.get_mut().write_all(bytes).expect("it is there");
    }

    /// The answer to a command, as it comes; of a value its bytes.
    pub(crate) fn ask(&mut self, words: &[&str]) -> Option<Vec<u8>> {
        let bulk = |word: &&str| format!("${}\r\n{word}\r\n", word.len());
        let bulks: String = words.iter().map(bulk).collect();
        let request = format!("*{}\r\n{bulks}", words.len());
        self.send(request.as_bytes());
        self.next()
    }

    /// The answer that comes next.
    pub(crate) fn next(&mut self) -> Option<Vec<u8>> {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("it answers");
        let line = line.trim_end();
        match line.strip_prefix('$') {
            None => Some(line.as_bytes().to_vec()),
            Some("-1") => None,
            Some(len) => {
                let mut value = vec![0; len.parse::<usize>().expect("a length") + 2];
                self.0.read_exact(&mut value).expect("it answers");
                value.truncate(value.len() - 2);
                Some(value)
            }
        }
    }

    #[track_caller]
    pub(crate) fn says(&mut self, words: &str, answer: &str) {
        let words: Vec<&str> = words.split(' ').collect();
        assert_eq!(self.ask(&words).as_deref(), Some(answer.as_bytes()), "{words:?}");
    }
}

/// What one of the two stores the other reads, and so it is with what is deleted.
fn assert_shared(device: &str, cores: &str) {
    let words = ["--device", device, "--clock", "none", "--cores", cores];
    let served = Serving::start(words.into_iter().chain(["--nvme-tcp", ":0", "--resp", ":0"]));
    let (uri, mut client) = (served.uri(0), Client::of(&served));
    client.says("set by-resp hello", "+OK");
    let read = kv("retrieve by-resp", &uri);
    assert_eq!((read.code, &read.stdout[..]), (Some(0), "hello"), "{}", read.stderr);
    store("by-nvme", &uri);
    let stored = std::fs::read("Cargo.toml").expect("it was stored");
    assert_eq!(client.ask(&["get", "by-nvme"]), Some(stored));
    assert_eq!(keys(&uri), ["by-nvme", "by-resp"]);
    client.says("del by-nvme", ":1");
    assert_eq!(keys(&uri), ["by-resp"]);
    assert_eq!(kv("delete by-resp", &uri).code, Some(0));
    assert_eq!(client.ask(&["get", "by-resp"]), None);
    client.says("dbsize", ":0");
    // A silent client does not delay the stop.
    served.stop();
}

#[test]
fn hosts_of_nvme_and_clients_of_redis_use_one_key_space() {
    for cores in ["1", "2", "3"] {
        assert_shared("mem:64MiB", cores);
        let (_folder, path) = formatted();
        assert_shared(shown(&path), cores);
    }
}

#[test]
fn acknowledged_redis_writes_survive_a_kill() {
    let (_folder, path) = formatted();
    let words = ["--device", shown(&path), "--resp", ":0"];
    let served = Serving::start(words);
    let mut client = Client::of(&served);
    for number in 0..200 {
        client.says(&format!("set key{number} value{number}"), "+OK");
        client.says("incr count", &format!(":{}", number + 1));
    }
    served.end(Signal::KILL);
    let served = Serving::start(words);
    let mut client = Client::of(&served);
    for number in 0..200 {
        let value = client.ask(&["get", &format!("key{number}")]);
        assert_eq!(value, Some(format!("value{number}").into_bytes()));
    }
    client.says("dbsize", ":201");
    assert_eq!(client.ask(&["get", "count"]), Some(b"200".to_vec()));
    served.stop();
    let checked = kvasir(["check", shown(&path)]);
    assert_eq!((checked.code, &checked.stderr[..]), (Some(0), ""), "{}", checked.stdout);
}

/// An expiry is a date of the machine's clock, so pairs also expire while no server runs.
#[test]
fn an_expired_pair_stays_absent_after_a_restart() {
    let (_folder, path) = formatted();
    let words = ["--device", shown(&path), "--resp", ":0"];
    let today = || SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later").as_secs();
    for signal in [Signal::TERM, Signal::KILL] {
        let served = Serving::start(words);
        let mut client = Client::of(&served);
        let date = (today() + 1_000).to_string();
        assert_eq!(client.ask(&["set", "stays", "v", "exat", &date]), Some(b"+OK".to_vec()));
        client.says("set goes v px 1", "+OK");
        client.says("set ends v px 1500", "+OK");
        client.says("hset fields a 1", ":1");
        client.says("pexpire fields 1", ":1");
        sleep(Duration::from_millis(100));
        client.says("exists goes fields", ":0");
        served.end(signal);
        sleep(Duration::from_millis(1_500));
        let served = Serving::start(words);
        let mut client = Client::of(&served);
        client.says("exists goes fields ends stays", ":1");
        // What expired before is not counted once the server has read the summaries.
        let begun = Instant::now();
        while client.ask(&["dbsize"]).as_deref() != Some(b":1") {
            assert!(begun.elapsed() < Duration::from_mins(1), "it counts what has expired");
        }
        let left = client.ask(&["ttl", "stays"]).expect("a number");
        let left = String::from_utf8_lossy(&left[1..]).parse::<u64>().expect("a number");
        assert!((900..1_000).contains(&left), "{left}");
        served.stop();
    }
}

#[test]
fn pttl_is_at_most_the_time_that_was_left() {
    let served = Serving::start(["--device", "mem:64MiB", "--resp", ":0"]);
    let mut client = Client::of(&served);
    for _ in 0..300 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later");
        let date = (since.as_millis() + 10_000).to_string();
        assert_eq!(client.ask(&["set", "k", "v", "pxat", &date]), Some(b"+OK".to_vec()));
        let left = client.ask(&["pttl", "k"]).expect("a number");
        let left = String::from_utf8_lossy(&left[1..]).parse::<u64>().expect("a number");
        assert!(left <= 10_000, "{left}");
    }
    let process = served.process().as_raw_nonzero();
    let info = String::from_utf8(client.ask(&["info"]).expect("a text")).expect("it is text");
    assert!(info.contains(&format!("process_id:{process}\r\n")), "{info}");
    for name in ["used_cpu_sys", "used_cpu_user", "used_memory_rss", "mem_fragmentation_ratio"] {
        let line = info.lines().find_map(|line| line.strip_prefix(&format!("{name}:")));
        let figure: f64 = line.expect(name).parse().expect("a number");
        assert!(figure >= 0.0, "{name}: {figure}");
    }
    served.stop();
}

/// What the stock binding of YCSB sends: a hash for each record, and a sorted set of their names.
#[test]
fn records_of_fields_outlive_a_kill_and_no_nvme_host_sees_them() {
    let (_folder, path) = formatted();
    let words = ["--device", shown(&path), "--nvme-tcp", ":0", "--resp", ":0"];
    let served = Serving::start(words);
    let mut client = Client::of(&served);
    let long = "v".repeat(400);
    for number in 0..300 {
        let record = format!("user{number}");
        client.says(&format!("hmset {record} field0 {number} field1 {long}"), "+OK");
        client.says(&format!("zadd _indices {number} {record}"), ":1");
        // More than one record of the drive holds.
        client.says(&format!("hset great field{number} {long}"), ":1");
    }
    client.says("del great", ":1");
    client.says("del user7", ":1");
    client.says("zrem _indices user7", ":1");
    served.end(Signal::KILL);
    let served = Serving::start(words);
    let mut client = Client::of(&served);
    client.says("hget user299 field0", "299");
    client.says("hget user299 field1", &long);
    client.says("hlen user7", ":0");
    client.says("zcard _indices", ":299");
    client.says("zrank _indices user8", ":7");
    client.says("zrangebyscore _indices 100 +inf limit 0 10", "*10");
    for number in 100..110 {
        let mut line = [String::new(), String::new()];
        for line in &mut line {
            client.0.read_line(line).expect("it answers");
        }
        assert_eq!(line[1].trim_end(), format!("user{number}"));
    }
    client.says("type great", "+none");
    client.says("dbsize", ":300");
    assert_eq!(keys(&served.uri(0)), [""; 0]);
    let seen = kv("exist user299", &served.uri(0));
    assert_ne!(seen.code, Some(0), "{}", seen.stdout);
    client
        .says("get user299", "-WRONGTYPE Operation against a key holding the wrong kind of value");
    served.stop();
    let checked = kvasir(["check", shown(&path)]);
    assert_eq!((checked.code, &checked.stderr[..]), (Some(0), ""), "{}", checked.stdout);
}

#[test]
fn a_door_that_cannot_be_is_refused_in_a_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str, users: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, users).expect("it can be written");
        shown(&path).to_owned()
    };
    let open = path("open", "user default on nopass ~* +@all\n");
    let wrong = path("wrong", "# Users\nuser ann +nosuch\n");
    for (device, words, sentence) in [
        ("mem:64MiB", vec!["0.0.0.0:0"], "there are no users: give --resp-users a file"),
        ("mem:64MiB", vec!["0.0.0.0:0", "--resp-users", &open], "default needs no password"),
        ("mem:64MiB", vec![":0", "--resp-users", &wrong], "line 2 has \"+nosuch\", and there is"),
        ("mem:64MiB", vec![":0", "--resp-users", "/nosuch"], "No such file"),
        ("mem:64MiB?kind=block", vec![":0"], "Redis clients need a device of keys and values"),
    ] {
        let words = ["serve", "--device", device, "--resp"].into_iter().chain(words);
        let Ran { code, stderr, .. } = kvasir(words);
        assert_eq!((code, stderr.lines().count()), (Some(2), 1), "{stderr}");
        assert!(stderr.contains(sentence), "{stderr}");
    }
}

/// The samples of a page of Prometheus, by name and labels: each of a type that was said before.
fn samples(page: &str) -> BTreeMap<String, f64> {
    let (mut typed, mut samples) = (BTreeSet::new(), BTreeMap::new());
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a name and a type");
            assert!(["counter", "gauge"].contains(&kind) && typed.insert(name), "{line}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
        } else if !line.starts_with("# HELP ") {
            let (series, value) = line.rsplit_once(' ').expect("a sample");
            let name = series.split('{').next().expect("a name");
            assert!(typed.contains(name), "{line}");
            let before = samples.insert(series.to_owned(), value.parse().expect("a number"));
            assert_eq!(before, None, "{line}");
        }
    }
    samples
}

pub(crate) fn page(url: &str, path: &str) -> String {
    let address = url.strip_prefix("http://").expect("a URL").split('/').next().expect("a host");
    let mut stream = TcpStream::connect(address).expect("it listens");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it is there");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    body.to_owned()
}

#[test]
fn a_transaction_of_many_commands_is_a_long_poll_of_its_connection() {
    let (_folder, path) = formatted();
    let served = Serving::start(["--device", shown(&path), "--resp", ":0", "--http", ":0"]);
    let mut client = Client::of(&served);
    client.says("multi", "+OK");
    for number in 0..1_000 {
        client.says(&format!("set key{number} {number}"), "+QUEUED");
    }
    client.says("exec", "*1000");
    (0..1_000).for_each(|_| assert_eq!(client.next().as_deref(), Some(&b"+OK"[..])));
    let url = served.ready["http"].as_str().expect("it has a URL").to_owned();
    // A document is up to 0.1 s old.
    sleep(Duration::from_millis(200));
    let status: serde_json::Value = serde_json::from_str(&page(&url, "/status")).expect("JSON");
    let all = status["reactors"][0]["long_polls"].as_array().expect("a list");
    let of_client = all.iter().find(|it| it["name"] == "redis connection");
    let of_client = of_client.unwrap_or_else(|| panic!("the transaction took long: {all:?}"));
    let figure = |name: &str| of_client[name].as_u64().expect("a number");
    assert!(figure("longest_ns") > 100_000 && figure("total_ns") >= figure("longest_ns"));
    assert!((1..100).contains(&figure("count")), "most commands alone take no time: {all:?}");
    // No extent was cleaned, and the client alone has been served.
    for idle in ["cleaner", "checkpoint", "nvme connection"] {
        assert!(all.iter().all(|it| it["name"] != idle), "{idle} had nothing to do: {all:?}");
    }
    let samples = samples(&page(&url, "/metrics"));
    let series = "kvasir_long_polls_total{reactor=\"0\",task=\"redis connection\"}";
    let counted = samples.iter().find(|(name, _)| name.starts_with(series)).map(|(_, it)| *it);
    assert!(counted.is_some_and(|it| it >= 1.0), "{counted:?}");
    served.stop();
}

#[test]
fn prometheus_has_the_counters_of_redis_clients() {
    let (_folder, path) = formatted();
    let words = ["--device", shown(&path), "--resp", ":0", "--http", ":0"];
    let served = Serving::start(words);
    let mut client = Client::of(&served);
    for number in 0..20 {
        client.says(&format!("set key{number} {number}"), "+OK");
        client.says(&format!("get key{number}"), &number.to_string());
    }
    let url = served.ready["http"].as_str().expect("it has a URL").to_owned();
    let samples = samples(&page(&url, "/metrics"));
    let of_device = |name: &str| {
        let mut named = samples.iter().filter(|(series, _)| series.starts_with(name));
        *named.next().unwrap_or_else(|| panic!("there is no {name}")).1
    };
    for (name, value) in [
        ("kvasir_redis_clients{", 1.0),
        ("kvasir_redis_connections_total{", 1.0),
        ("kvasir_redis_commands_total{", 40.0),
        ("kvasir_device_commands_total{", 0.0),
        ("kvasir_scrub_damaged_pages_total{", 0.0),
        ("kvasir_reactor_redis_commands_total{reactor=\"0\"}", 40.0),
        ("kvasir_reactor_commands_total{reactor=\"0\"}", 0.0),
        ("kvasir_reactor_cleaned_extents_total{reactor=\"0\"}", 0.0),
        ("kvasir_reactor_moved_records_total{reactor=\"0\"}", 0.0),
        // It is alone.
        ("kvasir_reactor_lock_waits_total{reactor=\"0\"}", 0.0),
        ("kvasir_reactor_lock_wait_seconds_total{reactor=\"0\"}", 0.0),
    ] {
        assert!((of_device(name) - value).abs() < 0.5, "{name}: {}", of_device(name));
    }
    // Keys of 4 and 5 bytes, values of 1 and 2, and what Kvasir adds to them.
    let stored = of_device("kvasir_reactor_stored_bytes_total{reactor=\"0\"}");
    assert!((10.0 * 5.0 + 10.0 * 7.0..10_000.0).contains(&stored), "{stored}");
    // Stored values are in the cache and on the disk.
    assert!(of_device("kvasir_cache_hits_total{") > 0.0);
    assert!(of_device("kvasir_flash_programmed_bytes_total{") > 4_096.0);
    let status: serde_json::Value = serde_json::from_str(&page(&url, "/status")).expect("JSON");
    let device = &status["devices"][0];
    assert_eq!((&device["redis"]["commands"], &device["bytes_written"]), (&40.into(), &0.into()));
    // Of 20 keys of 4 and 5 bytes, with values of 1 and 2.
    let number = |name: &str| device[name].as_f64().expect("it is known");
    let amplifications = [
        ("write_amplification", "flash_bytes_programmed", 120.0),
        ("read_amplification", "flash_bytes_read", 30.0),
    ];
    for (name, of_flash, of_hosts) in amplifications {
        let expected = number(of_flash) / of_hosts;
        assert!((number(name) - expected).abs() <= expected / 1e6, "{name}: {device}");
    }
    served.stop();
}

#[test]
fn clients_of_other_machines_must_log_in() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("users.acl");
    std::fs::write(&path, "user ann on >secret ~a:* +@all -@dangerous\n").expect("it is written");
    let words = ["--device", "mem:64MiB", "--resp", "0.0.0.0:0", "--resp-users", shown(&path)];
    let served = Serving::start(words);
    let mut client = Client::of(&served);
    client.says("set a:1 x", "-NOAUTH Authentication required.");
    let refused = "-WRONGPASS invalid username-password pair or user is disabled.";
    client.says("auth ann public", refused);
    client.says("auth ann secret", "+OK");
    client.says("set a:1 x", "+OK");
    client.says(
        "set b:1 x",
        "-NOPERM this user has no permissions to access one of the keys used as arguments",
    );
    served.stop();
}

#[test]
fn a_load_is_measured_over_the_redis_protocol() {
    let served = Serving::start(["--device", "mem:64MiB", "--clock", "none", "--resp", ":0"]);
    let target = format!("{}/3?connections=3", target(&served));
    let load = ["--target", &target, "--ops", "3000", "--keys", "3000", "--key-size", "40"];
    let sizes = ["--value-size", "mix:0=1,100=5,8KiB=1", "--json"];
    for workload in ["mixed", "ycsb-a", "delete", "exist"] {
        let report = json(["bench", workload].iter().chain(&load).chain(&sizes));
        assert_eq!((&report["errors"], &report["connections"]), (&0.into(), &3.into()), "{report}");
        assert!(report["device"].as_str().is_some_and(|name| name.starts_with("Kvasir ")));
        assert_eq!(report["target"], target);
    }
    // What was deleted last is not there, and the other databases never had it.
    let mut client = Client::of(&served);
    client.says("dbsize", ":0");
    client.says("select 3", "+OK");
    client.says("dbsize", ":3000");
    client.says("hset user field value", ":1");
    let refused = |words: &[&str], sentence: &str| {
        let ran = kvasir(["bench"].iter().chain(words));
        assert!(ran.code != Some(0) && ran.stderr.contains(sentence), "{}", ran.stderr);
    };
    refused(&["ycsb-e", "--target", &target], "scans keys in their order");
    let other = target.replace("/3", "/99");
    refused(&["store", "--target", &other], "the server refuses SELECT: ERR DB index");
    served.stop();
    refused(&["store", "--target", &target], "cannot connect to 127.0.0.1");
}

#[test]
fn clients_have_the_limits_of_the_command_line() {
    let words =
        ["--device", "mem:64MiB", "--resp", ":0", "--resp-clients", "2", "--resp-query", "2MiB"];
    let more = ["--resp-output", "1MiB", "--resp-timeout", "3s"];
    let served = Serving::start(words.into_iter().chain(more));
    let (mut client, mut other) = (Client::of(&served), Client::of(&served));
    other.says("ping", "+PONG");
    for (name, value) in [
        ("maxclients", "2"),
        ("client-query-buffer-limit", "2097152"),
        ("client-output-buffer-limit", "normal 1048576 0 0"),
        ("timeout", "3"),
    ] {
        client.says(&format!("config get {name}"), "*2");
        let mut lines = String::new();
        for _ in 0..4 {
            client.0.read_line(&mut lines).expect("it answers");
        }
        assert!(lines.ends_with(&format!("\r\n{value}\r\n")), "{lines}");
    }
    let mut third = Client::of(&served);
    let mut told = String::new();
    third.0.read_line(&mut told).expect("it is told");
    assert_eq!(told, "-ERR max number of clients reached\r\n");
    // Where it comes from is told, and who says nothing is gone after its time.
    let address = other.0.get_ref().local_addr().expect("it has one").to_string();
    let list = client.ask(&["client", "list"]).expect("there are some");
    assert!(String::from_utf8_lossy(&list).contains(&format!(" addr={address} laddr=127.0.0.1:")));
    for _ in 0..6 {
        sleep(Duration::from_secs(1));
        client.says("ping", "+PONG");
    }
    assert_eq!(other.0.read(&mut [0; 1]).expect("it has ended"), 0);
    client.says("config set slowlog-log-slower-than 0", "+OK");
    client.says("set a x", "+OK");
    let kill = ["client", "kill", "user", "default"];
    assert_eq!(client.ask(&kill), Some(b":0".to_vec()), "one's own is left out");
    served.stop();
}

#[test]
fn a_command_line_for_many_clients_is_for_as_many_connections() {
    let words = ["--device", "mem:64MiB", "--resp", ":0", "--resp-clients", "1100"];
    let served = Serving::start(words);
    let mut clients: Vec<Client> = (0..1_100).map(|_| Client::of(&served)).collect();
    for client in &mut clients {
        client.says("ping", "+PONG");
    }
    drop(clients);
    served.stop();
}

/// What the help of a command names is known to it.
#[test]
fn help_lists_the_subcommands() {
    let served = Serving::start(["--device", "mem:64MiB", "--resp", ":0"]);
    let mut client = Client::of(&served);
    let commands = [
        "acl", "client", "command", "config", "debug", "function", "latency", "memory", "module",
        "object", "slowlog",
    ];
    for command in commands {
        let lines = client.ask(&[command, "help"]).expect("there are some");
        let count = String::from_utf8_lossy(&lines).strip_prefix('*').map(str::parse::<usize>);
        let count = count.expect("an array").expect("a length");
        let lines = (0..count).map(|_| client.next().expect("a line"));
        let lines = lines.map(|line| String::from_utf8(line).expect("it is text"));
        let lines: Vec<String> = lines.collect();
        assert_eq!(lines[0], format!("+{} is followed by one of these:", command.to_uppercase()));
        assert_eq!(lines[count - 2..], ["+HELP", "+    Tell what there is."]);
        assert!(count > 3 && count % 2 == 1, "{lines:?}");
        for word in lines[1..].iter().step_by(2) {
            let word = word[1..].split(' ').next().expect("it is there").to_lowercase();
            // With far too many arguments, so that nothing is done.
            let words = [&[command, &word[..]], &["x"; 9][..]].concat();
            let told = client.ask(&words).expect("it is told something");
            let told = String::from_utf8_lossy(&told).into_owned();
            assert!(!told.starts_with("-ERR unknown subcommand '"), "{words:?}: {told}");
            // Those that take any number of arguments.
            if let Some(count) = told.strip_prefix('*') {
                let count: usize = count.parse().expect("a length");
                (0..count).for_each(|_| drop(client.next()));
            }
        }
    }
    served.stop();
}

/// Bytes of memory that a server has now.
fn resident_bytes(served: &Serving) -> u64 {
    let path = format!("/proc/{}/status", served.process().as_raw_nonzero());
    let status = std::fs::read_to_string(path).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it has some");
    let kilobytes = line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number");
    kilobytes << 10
}

/// Whatever they did before, and however much they sent at once.
#[test]
fn clients_that_rest_hold_a_few_kibibytes_each() {
    const CLIENTS: u64 = 600;
    // The C library returns long buffers to the system when they are freed. By default it keeps 1
    // to 3 MB of them at times, as much as all these clients.
    const ALLOCATOR: [(&str, &str); 2] =
        [("MALLOC_MMAP_THRESHOLD_", "32768"), ("MALLOC_TRIM_THRESHOLD_", "65536")];
    let folder = tempfile::tempdir().expect("there is room");
    let text = "[server]\nclock = \"none\"\n[limits]\nconnections = 900\n\
                [[device]]\nname = \"memory\"\ndevice = \"mem:64MiB\"\nresp = \":0\"\n";
    let served = Serving::with_file_and(&ALLOCATOR, folder.path(), text);
    Client::of(&served).says("set small 0123456789", "+OK");
    let worked = || {
        let mut client = Client::of(&served);
        let long = "v".repeat(100_000);
        assert_eq!(client.ask(&["echo", &long]).map(|value| value.len()), Some(100_000));
        // Many small answers, and many arguments.
        client.send("get small\r\n".repeat(4_000).as_bytes());
        for _ in 0..4_000 {
            assert_eq!(client.next().as_deref(), Some(&b"0123456789"[..]));
        }
        let keys: Vec<String> = (0..3_000).map(|number| format!("key{number}")).collect();
        let words: Vec<&str> =
            ["exists"].into_iter().chain(keys.iter().map(|it| &it[..])).collect();
        assert_eq!(client.ask(&words).as_deref(), Some(&b":0"[..]));
        client
    };
    // The first ones let it allocate what does not depend on their number.
    let first = (0..200).map(|_| worked()).collect::<Vec<_>>();
    let before = resident_bytes(&served);
    let others = (0..CLIENTS).map(|_| worked()).collect::<Vec<_>>();
    let each = resident_bytes(&served).saturating_sub(before) / CLIENTS;
    assert!(each <= 5 << 10, "{each} bytes for each client");
    // Others are served as before.
    assert_eq!(Client::of(&served).ask(&["get", "none"]), None);
    drop((first, others));
    served.stop();
}

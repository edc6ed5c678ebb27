//! `kvasir top`, and what a server says to it.

use crate::program::{Ran, json, kvasir};
use crate::redis::Client;
use crate::serving::{Serving, keys, store};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::spawn;
use std::time::{Duration, Instant};

/// Many times what the program takes for anything on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(1);

const SERVER: [&str; 7] =
    ["--device", "mem:64MiB", "--nvme-tcp", ":0", "--clock", "none", "--http=:0"];

fn http(served: &Serving) -> String {
    served.ready["http"].as_str().unwrap().to_owned()
}

#[test]
fn a_sample_has_the_rates_of_a_load() {
    let served = Serving::start(SERVER.into_iter().chain(["--cores", "2"]));
    store("key", &served.uri(0));
    // Of any two connections in turn each reactor has one: so each has a queue of the load.
    let target = format!("{}?as=nqn.2026-11.com.example:bench&queues=4", served.uri(0));
    let bench = ["bench", "retrieve", "--keys", "9", "--value-size", "1000", "--seconds", "6"];
    let bench: Vec<String> = bench
        .into_iter()
        .chain(["--overwrite", "--json", "--target", &target])
        .map(Into::into)
        .collect();
    let load = spawn(move || json(bench));
    // Its keys are there, so it has connected.
    let start = Instant::now();
    while keys(&served.uri(0)).len() < 10 {
        assert!(start.elapsed() < TIMEOUT);
    }
    let sample = json(["top", &http(&served), "--once", "--json", "--interval", "500ms"]);
    let number = |value: &Value| value.as_f64().unwrap();
    let hosts = sample["hosts"].as_array().unwrap();
    let host = hosts.iter().find(|it| it["host"] == "nqn.2026-11.com.example:bench").unwrap();
    let reads = number(&host["reads_per_second"]);
    assert!(reads > 100.0, "{host}");
    let bytes = number(&host["bytes_read_per_second"]);
    assert!((bytes / reads - 1_000.0).abs() < 0.01, "all values have 1,000 bytes: {host}");
    assert_eq!(host["writes_per_second"], 0.0);
    assert_eq!((&host["queues"], &host["subsystem"]), (&5.into(), &served.ready["nqn"]));
    assert!(host["address"].as_str().unwrap().starts_with("127.0.0.1:"));
    // This host alone reads. Its rate is the device's, sampled a moment later or earlier.
    let device = number(&sample["devices"][0]["reads_per_second"]);
    assert!((device / reads - 1.0).abs() < 0.5, "{device} and {reads}");
    assert_eq!(sample["operations_per_second"], sample["devices"][0]["operations_per_second"]);
    assert_eq!(sample["connections"], 5);
    assert!(number(&sample["interval_seconds"]) >= 0.5);
    let reactors = sample["reactors"].as_array().unwrap();
    assert_eq!(reactors.len(), 2);
    assert!(reactors.iter().all(|it| (1.0..=100.0).contains(&number(&it["busy_percent"]))));
    // Each executes commands of this host, which stores nothing.
    let executed: Vec<f64> = reactors.iter().map(|it| number(&it["commands_per_second"])).collect();
    assert!(executed.iter().all(|rate| *rate > 10.0), "{executed:?}");
    assert!((executed.iter().sum::<f64>() / reads - 1.0).abs() < 0.5, "{executed:?} and {reads}");
    for reactor in reactors {
        assert_eq!(
            (&reactor["extents_cleaned"], &reactor["records_moved"]),
            (&0.into(), &0.into())
        );
        assert_eq!(number(&reactor["bytes_stored_per_second"]).to_bits(), 0.0_f64.to_bits());
        assert!(number(&reactor["lock_wait_percent"]) <= number(&reactor["busy_percent"]));
        assert!(reactor["lock_waits"].is_u64());
        let stages = reactor["stage_percent"].as_object().unwrap();
        assert!(number(&stages["receive"]) > 0.0 && number(&stages["kv"]) > 0.0, "{reactor}");
        let sum: f64 = stages.values().map(number).sum();
        assert!((sum - number(&reactor["busy_percent"])).abs() < 1e-6, "{reactor}");
    }
    // At one instant, each command of the host is in flight in one reactor.
    let in_flight = reactors.iter().map(|it| it["in_flight"].as_u64().unwrap()).sum::<u64>();
    let of_hosts = hosts.iter().map(|it| it["in_flight"].as_u64().unwrap()).sum::<u64>();
    assert_eq!(in_flight, of_hosts, "{sample}");
    assert_eq!(load.join().unwrap()["errors"], 0);
    served.stop();
}

#[test]
fn clients_of_redis_are_shown_together_and_each() {
    let served = Serving::start(SERVER.into_iter().chain(["--resp", ":0"]));
    let mut busy = Client::of(&served);
    let mut idle = Client::of(&served);
    busy.says("client setname busy", "+OK");
    busy.says("select 3", "+OK");
    // Something is missing of this one.
    idle.send(b"*2\r\n$3\r\nget\r\n$9\r\nabc");
    let address = http(&served);
    let top = spawn(move || json(["top", &address, "--once", "--json", "--interval", "1"]));
    while !top.is_finished() {
        busy.says("set key value", "+OK");
    }
    let sample = top.join().unwrap();
    let redis = &sample["devices"][0]["redis"];
    assert_eq!(redis["clients"], 2, "{sample}");
    let rate = |value: &Value| value["commands_per_second"].as_f64().unwrap();
    assert!(rate(redis) > 10.0, "{redis}");
    let received = redis["bytes_received_per_second"].as_f64().unwrap();
    let request = "*3\r\n$3\r\nset\r\n$3\r\nkey\r\n$5\r\nvalue\r\n".len();
    let request = f64::from(u32::try_from(request).unwrap());
    assert!((received / rate(redis) / request - 1.0).abs() < 0.1, "{redis}");
    let clients = sample["redis_clients"].as_array().unwrap();
    assert_eq!((&clients[0]["name"], &clients[0]["database"]), (&"busy".into(), &3.into()));
    assert!((rate(&clients[0]) / rate(redis) - 1.0).abs() < 0.1, "{sample}");
    assert_eq!((rate(&clients[1]), &clients[1]["name"]), (0.0, &"".into()));
    assert_eq!(clients[1]["buffered_bytes"], 20);
    assert!(clients.iter().all(|it| it["address"].as_str().unwrap().starts_with("127.0.0.1:")));
    let text = kvasir(["top", &http(&served), "--once"]).stdout;
    for word in ["Redis client ", "Redis, by device", "commands/s", "buffered"] {
        assert!(text.contains(word), "{text}");
    }
    // Resetting a client's own statistics does not change the server's counters.
    busy.says("config resetstat", "+OK");
    drop((busy, idle));
    let stopped = served.stop();
    assert_eq!(stopped["redis"]["connections"], 2, "{stopped}");
    assert!(stopped["redis"]["commands"].as_u64().unwrap() > 10, "{stopped}");
}

#[test]
fn without_a_terminal_it_prints_lines_until_the_server_stops() {
    let served = Serving::start(SERVER);
    for (options, first) in [(&[][..], "kvasir "), (&["--json"][..], "{\"server\":\"127.0.0.1:")] {
        let mut top = top_of(&served, options);
        let mut lines = BufReader::new(top.stdout.take().unwrap()).lines().map_while(Result::ok);
        for _ in 0..2 {
            assert!(lines.any(|line| line.starts_with(first)), "{options:?}");
        }
        // The reader closes the pipe.
        drop(lines);
        assert_eq!(top.wait().unwrap().code(), Some(0), "{options:?}");
    }
    let top = top_of(&served, &[]);
    let text = kvasir(["top", &http(&served), "--once"]).stdout;
    for word in ["operations/s, ", "host ", "device ", "reactor ", "busy", "locks", "  mem:64MiB"] {
        assert!(text.contains(word), "{text}");
    }
    served.stop();
    let left = top.wait_with_output().unwrap();
    let sentence = String::from_utf8(left.stderr).unwrap();
    assert_eq!(left.status.code(), Some(1));
    assert!(sentence.starts_with("kvasir: no server answers at 127.0.0.1:"), "{sentence}");
    assert_eq!(sentence.lines().count(), 1);
}

fn top_of(served: &Serving, options: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_kvasir"))
        .args(["top", &http(served), "--interval", "0.2"])
        .args(options)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn a_wrong_address_gives_a_sentence() {
    let served = Serving::start(SERVER);
    let hosts = served.address().to_string();
    for (arguments, code, words) in [
        // The port for NVMe hosts does not speak HTTP.
        (["top", &hosts, "--once"], 1, "is not kvasir serve of this version"),
        (["top", "127.0.0.1:1", "--once"], 1, "start kvasir serve with --http"),
        (["top", "nowhere:x", "--once"], 2, "use HOST:PORT, HOST or :PORT"),
        (["top", "--interval", "0.1"], 2, "an interval must be at least 200.00 ms"),
    ] {
        let Ran { code: found, stdout, stderr } = kvasir(arguments);
        assert_eq!((found, &stdout[..]), (Some(code), ""), "{stderr}");
        assert!(stderr.contains(words) && stderr.lines().count() == 1, "{stderr}");
    }
    served.stop();
}

#[test]
fn a_server_opens_its_http_listener_only_when_told_to() {
    let served = Serving::start(&SERVER[..6]);
    assert_eq!(served.ready["http"], Value::Null);
    served.stop();
    let folder = tempfile::tempdir().unwrap();
    let text = "[server]\nnvme_tcp = [\":0\"]\nhttp = \"0.0.0.0:0\"\ndevice = []\n";
    let text = text.replace("device = []\n", "[[device]]\nname = \"a\"\ndevice = \"mem:64MiB\"\n");
    let text = text + "[[subsystem]]\ndevice = \"a\"\n";
    let path = folder.path().join("server.toml");
    std::fs::write(&path, &text).unwrap();
    let checked = kvasir(["serve", "--check", "--config", path.to_str().unwrap()]).stdout;
    let reached = checked.split("kvasir top ").nth(1).and_then(|rest| rest.lines().next());
    let reached = reached.expect("it names the command that shows the status");
    assert!(!reached.starts_with("0.0.0.0"), "{reached} names no machine");
    let said = format!(
        "status: kvasir top {reached}\nhttp://{reached}/status\n\
         warning: anyone who can reach the HTTP address can see the connected hosts\n"
    );
    assert!(checked.ends_with(&said), "{checked}");
    let served = Serving::with_file(folder.path(), &text);
    let port = http(&served).rsplit(':').next().unwrap().replace("/status", "");
    json(["top", &format!("127.0.0.1:{port}"), "--once", "--json"]);
    // A second server needs another port.
    let taken = ["--device", "ideal", "--nvme-tcp", ":0", "--http", &format!("127.0.0.1:{port}")];
    let refused = kvasir(["serve"].iter().chain(&taken));
    assert_eq!(refused.code, Some(2));
    let sentence = format!("kvasir: cannot listen at 127.0.0.1:{port}: ");
    assert!(refused.stderr.starts_with(&sentence), "{}", refused.stderr);
    served.stop();
}

/// A terminal with `kvasir top` on it.
struct Screen {
    terminal: File,
    keyboard: File,
    top: Child,
    shown: Receiver<Vec<u8>>,
    seen: String,
}

impl Screen {
    fn of(served: &Serving) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let path = ptsname(&master, Vec::new()).unwrap();
        let terminal = File::options().read(true).write(true).open(path.to_str().unwrap()).unwrap();
        let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&terminal, size).unwrap();
        let end = || Stdio::from(terminal.try_clone().unwrap());
        let top = Command::new(env!("CARGO_BIN_EXE_kvasir"))
            .args(["top", &http(served), "--interval", "0.2"])
            .env("TERM", "xterm")
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .unwrap();
        let keyboard = File::from(master);
        let mut screen = keyboard.try_clone().unwrap();
        let (say, shown) = channel();
        spawn(move || {
            let mut bytes = vec![0; 4_096];
            while let Ok(count) = screen.read(&mut bytes)
                && say.send(bytes[..count].to_vec()).is_ok()
            {}
        });
        Self { terminal, keyboard, top, shown, seen: String::new() }
    }

    /// Whether lines are the terminal's to edit and to echo, as programs find it.
    fn is_calm(&self) -> bool {
        let modes = tcgetattr(&self.terminal).unwrap().local_modes;
        modes.contains(LocalModes::ICANON | LocalModes::ECHO)
    }

    #[track_caller]
    fn wait_for(&mut self, words: &str) {
        let end = Instant::now() + TIMEOUT;
        while !self.seen.contains(words) {
            let left = end.saturating_duration_since(Instant::now());
            let more = self.shown.recv_timeout(left);
            let more = more.unwrap_or_else(|_| panic!("{words:?} is not in {:?}", self.seen));
            self.seen += &String::from_utf8_lossy(&more);
        }
    }

    /// It has ended well, and the terminal is as it was: the other screen is left, and the cursor
    /// there.
    #[track_caller]
    fn check_left(mut self, how: &str) {
        self.wait_for("\u{1b}[?1049l");
        self.wait_for("\u{1b}[?25h");
        assert_eq!(self.top.wait().unwrap().code(), Some(0), "{how}");
        assert!(self.is_calm(), "{how}");
    }
}

#[test]
fn a_terminal_is_restored_after_a_key_and_after_a_signal() {
    let served = Serving::start(SERVER);
    for how in ["q", "Ctrl-C", "SIGTERM"] {
        let mut screen = Screen::of(&served);
        screen.wait_for("operations/s");
        assert!(!screen.is_calm(), "keys come at once");
        match how {
            "q" => screen.keyboard.write_all(b"q").unwrap(),
            "Ctrl-C" => screen.keyboard.write_all(&[3]).unwrap(),
            _ => kill_process(Pid::from_child(&screen.top), Signal::TERM).unwrap(),
        }
        screen.check_left(how);
    }
    let mut screen = Screen::of(&served);
    screen.wait_for("operations/s");
    served.stop();
    screen.wait_for("no server answers at");
    screen.keyboard.write_all(b"q").unwrap();
    screen.check_left("without a server");
}

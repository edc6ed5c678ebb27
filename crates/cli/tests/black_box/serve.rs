//! `kvasir serve` of a file, and of what the command line names.

use crate::drive::formatted;
use crate::program::{Ran, SMALL, json, kvasir};
use crate::serving::{Serving, keys, kv, store};
use rustix::process::{Pid, Signal};
use serde_json::{Value, json as value};
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::thread::spawn;
use std::time::Duration;
use tempfile::tempdir;

const HOST: &str = "nqn.2026-11.com.example:host";

/// Two devices, and a subsystem more than that.
fn file(cores: u16) -> String {
    format!(
        "[server]
cores = {cores}
clock = \"none\"
nvme_tcp = [\":0\", \"[::1]:0\"]

[[device]]
name = \"fast\"
device = \"mem:64MiB\"

[[device]]
name = \"small\"
device = {SMALL:?}
seed = 3

[[subsystem]]
nqn = \"nqn.2026-11.com.example:fast\"
device = \"fast\"

[[subsystem]]
nqn = \"nqn.2026-11.com.example:small\"
device = \"small\"

[[subsystem]]
nqn = \"nqn.2026-11.com.example:one\"
device = \"small\"
serial = \"ONE\"
hosts = [\"{HOST}\"]

[[referral]]
address = \"192.0.2.4\"
"
    )
}

/// Tries for as long as any of this takes on a busy machine.
#[track_caller]
fn wait_until(is_so: impl Fn() -> bool) {
    assert!((0..2_000).any(|_| is_so()), "that never comes");
}

#[test]
fn devices_of_a_file_are_served_side_by_side_on_any_number_of_cores() {
    // One reactor; one of devices; one for each device; more than one of connections.
    for cores in [1, 2, 3, 5] {
        let folder = tempdir().unwrap();
        let served = Serving::with_file(folder.path(), &file(cores));
        let (fast, small, one) = (served.uri(0), served.uri(1), served.uri(2));
        let one = format!("{one}?as={HOST}");
        for round in 0..3 {
            store(&format!("fast{round}"), &fast);
            store(&format!("small{round}"), &format!("{small}?queues=2"));
            store(&format!("one{round}"), &one);
        }
        assert_eq!(keys(&fast), ["fast0", "fast1", "fast2"], "on {cores} cores");
        // Both subsystems are of one device.
        let of_small = ["one0", "one1", "one2", "small0", "small1", "small2"];
        assert_eq!(
            (keys(&small), keys(&one)),
            (of_small.map(str::to_owned).to_vec(), keys(&small))
        );
        let by_6 = served.ready["subsystems"][0]["uris"][1].as_str().unwrap();
        assert!(by_6.starts_with("nvme-tcp://[::1]:"));
        assert_eq!(keys(by_6), keys(&fast));
        let stopped = served.stop();
        assert_eq!(stopped["connections_refused"], 0);
        assert!(stopped["connections"].as_u64().unwrap() > 20);
    }
}

#[test]
fn a_host_that_is_not_in_the_list_is_refused_and_told_of_the_others_alone() {
    for cores in [1, 3] {
        let folder = tempdir().unwrap();
        let served = Serving::with_file(folder.path(), &file(cores));
        let name = "nqn.2026-11.com.example:stranger";
        let refused = kv("list", &format!("{}?as={name}", served.uri(2)));
        let words = format!("the subsystem does not take this host, whose name is {name}\n");
        assert_eq!(refused.code, Some(1));
        assert!(refused.stderr.ends_with(&words), "{}", refused.stderr);
        let others = "nqn.2026-11.com.example:fast, nqn.2026-11.com.example:small";
        for (host, seen) in
            [(name, others.to_owned()), (HOST, format!("{others}, nqn.2026-11.com.example:one"))]
        {
            let none = kv("list", &format!("{}x?as={host}", served.uri(0)));
            let (_, told) = none.stderr.trim_end().split_once("; there is ").unwrap();
            let sorted = |names: &str| {
                let mut names: Vec<_> = names.split(", ").map(str::to_owned).collect();
                names.sort();
                names
            };
            assert_eq!(sorted(told), sorted(&seen), "on {cores} cores");
        }
        served.stop();
    }
}

/// True if this machine reaches others over IPv4, so that it has an address that they can use.
fn has_route() -> bool {
    // The first line is a title; routes of loopback are not in the file.
    std::fs::read_to_string("/proc/net/route").is_ok_and(|text| text.lines().count() > 1)
}

#[test]
fn server_of_every_address_names_one_that_hosts_can_use() {
    for any in ["0.0.0.0", "::"] {
        let bound = if any == "::" { "[::]:0" } else { "0.0.0.0:0" };
        let served =
            Serving::start(["--device", "mem:64MiB", "--clock", "none", "--nvme-tcp", bound]);
        assert_eq!(served.ready["listeners"][0]["address"], any);
        let uri = served.uri(0);
        let address = served.ready["address"].as_str().unwrap().parse::<IpAddr>().unwrap();
        let place = SocketAddr::new(address, served.address().port());
        assert!(!address.is_unspecified() && uri.starts_with(&format!("nvme-tcp://{place}/nqn.")));
        assert!(!(address.is_loopback() && has_route()), "other machines cannot use {address}");
        store("key", &uri);
        // Other addresses of this machine are as good.
        let local = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), place.port());
        assert_eq!(keys(&uri.replace(&place.to_string(), &local.to_string())), ["key"]);
        served.stop();
        let folder = tempdir().unwrap();
        let path = folder.path().join("server.toml");
        std::fs::write(&path, file(1).replacen(":0", bound, 1)).unwrap();
        let text = kvasir(["serve", "--check", "--config", path.to_str().unwrap()]).stdout;
        assert!(text.contains(&format!("nvme connect -t tcp -a {address} -s ")), "{text}");
        let note = format!("{any} is every address of this machine; {address} is one of them");
        assert!(text.contains(&note), "{text}");
    }
}

#[test]
fn connections_beyond_the_limit_are_closed_and_counted() {
    let folder = tempdir().unwrap();
    let text = format!("{}\n[limits]\nconnections = 2\n", file(2));
    let served = Serving::with_file(folder.path(), &text);
    let connect = || {
        let stream = TcpStream::connect(served.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream
    };
    let (first, second) = (connect(), connect());
    let mut third = connect();
    assert!(matches!(third.read(&mut [0]), Ok(0) | Err(_)), "it is closed");
    drop(first);
    // Until the server has seen that: a host needs two.
    let mut refused = 1;
    while kv("exist x", &served.uri(0)).stderr.contains("there is no key") {
        refused += 1;
        assert!(refused < 1_000);
    }
    drop(second);
    wait_until(|| kv("exist x", &served.uri(0)).stderr.contains("there is no key"));
    assert!(served.stop()["connections_refused"].as_u64().unwrap() >= refused);
}

#[test]
fn a_file_is_checked_without_being_served() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("server.toml");
    let path = path.to_str().unwrap();
    std::fs::write(path, file(3)).unwrap();
    let Ran { code, stdout, stderr } = kvasir(["serve", "--config", path, "--check"]);
    assert_eq!((code, &stderr[..]), (Some(0), ""));
    let first = format!(
        "{path} is right: 3 cores, at most 1024 connections with 16.0 MiB in flight each, 256 \
         associations of a subsystem, 64 I/O queues of 1024 entries, values of 2.0 MiB\n\
         serving fast: keys and values in memory, as fast as memory, lost when the server stops\n\
         nvme-tcp://127.0.0.1:0/nqn.2026-11.com.example:fast\n"
    );
    assert!(stdout.starts_with(&first), "{stdout}");
    assert!(stdout.contains("A device of 32 MB, no latencies, for 1 host\n"), "{stdout}");
    assert!(stdout.ends_with("refers to 192.0.2.4, port 8009\n"), "{stdout}");
    let summary = json(["serve", "--config", path, "--check", "--json"]);
    assert_eq!(summary["devices"][1]["seed"], 3);
    assert_eq!(summary["subsystems"][2]["hosts"], value!([HOST]));
    assert_eq!(summary["subsystems"][0]["hosts"], Value::Null);
    let limits = value!({
        "connections": 1_024, "connection_memory_bytes": 16 << 20, "associations": 256,
        "io_queues": 64, "queue_entries": 1_024, "value_bytes": 2 << 20
    });
    assert_eq!(summary["limits"], limits);
    std::fs::write(path, file(3).replace("cores", "core")).unwrap();
    for check in [&["--check"][..], &[]] {
        let wrong = kvasir(["serve", "--config", path].iter().chain(check));
        let sentence = format!(
            "kvasir: {path} line 2: unknown key \"core\" in [server]; did you mean \"cores\"?\n"
        );
        assert_eq!((wrong.code, wrong.stderr, &wrong.stdout[..]), (Some(2), sentence, ""));
    }
}

#[test]
fn a_file_says_all_that_the_command_line_would() {
    for other in [
        &["--device", "moke"][..],
        &["--nvme-tcp", ":0"],
        &["--http", ":0"],
        &["--cores", "2"],
        &["--clock", "none"],
        &["--nqn", "nqn.2026-11.com.example:x"],
        &["--seed", "2"],
        &["--state", "s.state"],
    ] {
        let ran = kvasir(["serve", "--config", "s.toml"].iter().chain(other));
        let words = format!("'{}", other[0]);
        assert_eq!(ran.code, Some(2));
        assert!(
            ran.stderr.contains("cannot be used with") && ran.stderr.contains(&words),
            "{ran:?}"
        );
    }
    let check = kvasir(["serve", "--device", "moke", "--nvme-tcp", ":0", "--check"]);
    assert_eq!(check.code, Some(2));
    assert!(check.stderr.contains("cannot be used with"), "{}", check.stderr);
    let alone = kvasir(["serve", "--check"]);
    assert_eq!(alone.code, Some(2));
    assert!(alone.stderr.contains("--config <FILE>"), "{}", alone.stderr);
}

/// What a host has noted of a device is so after a restart, wherever it listens.
#[test]
fn names_are_the_same_each_time() {
    let identity = |served: &Serving| {
        let subsystem = &served.ready["subsystems"][0];
        (subsystem["nqn"].clone(), subsystem["serial"].clone())
    };
    let once = |cores: &str| {
        let words = ["--device", "ideal", "--nvme-tcp", ":0", "--clock", "none", "--cores", cores];
        let served = Serving::start(words);
        assert_eq!(served.ready["nqn"], served.ready["subsystems"][0]["nqn"]);
        let identity = identity(&served);
        served.stop();
        identity
    };
    assert_eq!(once("1"), once("2"));
    let folder = tempdir().unwrap();
    let text = "server.nvme_tcp = [\":0\"]\ndevice = [{ name = \"a\", device = \"ideal\" }]\n\
                subsystem = [{ device = \"a\" }]\n";
    let served = Serving::with_file(folder.path(), text);
    assert_eq!(identity(&served), once("1"));
    served.stop();
}

/// Reads the file again, and returns what is said of that.
fn read_again(served: &Serving) -> String {
    served.signal(Signal::HUP);
    served.error_line()
}

#[test]
fn a_reload_changes_the_allowed_hosts_and_ends_no_connection() {
    for cores in [1, 3] {
        let folder = tempdir().unwrap();
        let served = Serving::with_file(folder.path(), &file(cores));
        let path = folder.path().join("server.toml");
        let said = format!("kvasir: reloaded {}", path.display());
        let one = format!("{}?as={HOST}", served.uri(2));
        let bench = ["bench", "retrieve", "--keys", "9", "--seconds", "3", "--json", "--target"];
        let bench = [&bench[..], &[&one]].concat().join(" ");
        let load = spawn(move || json(bench.split(' ')));
        // Its keys are there, so it has connected.
        wait_until(|| keys(&served.uri(1)).len() == 9);

        let other = "nqn.2026-11.com.example:other";
        std::fs::write(&path, file(cores).replace(HOST, other)).unwrap();
        assert_eq!(read_again(&served), said);
        // The reactors read the notice soon, and not before it is said.
        wait_until(|| kv("list", &one).code != Some(0));
        assert!(kv("list", &one).stderr.contains("does not take this host"));
        assert_eq!(keys(&format!("{}?as={other}", served.uri(2))).len(), 9);
        assert_eq!(load.join().unwrap()["errors"], 0, "its connections stay");

        std::fs::write(&path, file(cores) + "[limits]\nconnections = 1\n").unwrap();
        assert_eq!(read_again(&served), said);
        let refused = kv("list", &served.uri(1));
        assert_eq!(refused.code, Some(1), "a host has two connections: {}", refused.stdout);
        assert!(served.stop()["connections_refused"].as_u64().unwrap() > 0);
    }
}

#[test]
fn a_value_is_as_long_as_the_file_that_was_read_last_lets_it_be() {
    let folder = tempdir().unwrap();
    let limited = |size| format!("{}\n[limits]\nvalue_size = {size:?}\n", file(2));
    let served = Serving::with_file(folder.path(), &limited("1KiB"));
    let fast = served.uri(0);
    let longest = || kv("info --json", &fast).json()["value_bytes_max"].clone();
    assert_eq!(longest(), 1_024);
    // This program's manifest is longer.
    let refused = kv("store key Cargo.toml", &fast);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("1.0 KiB"), "{}", refused.stderr);
    std::fs::write(folder.path().join("server.toml"), limited("1MiB")).unwrap();
    assert!(read_again(&served).starts_with("kvasir: reloaded "));
    wait_until(|| longest() == 1 << 20);
    store("key", &fast);
    served.stop();
}

#[test]
fn a_file_that_is_wrong_or_another_changes_nothing() {
    let folder = tempdir().unwrap();
    let served = Serving::with_file(folder.path(), &file(1));
    let path = folder.path().join("server.toml");
    let shown = path.display();
    let one = format!("{}?as={HOST}", served.uri(2));
    let only = "but only hosts, limits, referrals, certificates, the settings of [balance], and \
                the weights and limits of a [[tenant]] can change without a restart";
    for (from, to, sentence) in [
        (
            "cores",
            "core",
            format!(
                "{shown} line 2: unknown key \"core\" in [server]; did you \
          mean \"cores\"?"
            ),
        ),
        ("cores = 1", "cores = 2", format!("{shown}: [server] has changed, {only}")),
        ("seed = 3", "seed = 4", format!("{shown}: a [[device]] has changed, {only}")),
    ] {
        // Of a file that is refused not even the hosts count.
        let wrong = file(1).replace(from, to).replace(HOST, "nqn.2026-11.com.example:other");
        std::fs::write(&path, wrong).unwrap();
        assert_eq!(read_again(&served), format!("kvasir: {sentence}; nothing was reloaded"));
        assert_eq!(keys(&one).len(), 0, "it may connect");
    }
    std::fs::write(&path, file(1)).unwrap();
    assert!(read_again(&served).starts_with("kvasir: reloaded "));
    served.stop();
}

/// Each object of `--json` is a line, so that a program reads the two line by line.
#[test]
fn each_object_of_json_is_on_a_line() {
    let served = Serving::start(["--device", "mem:64MiB", "--nvme-tcp", ":0"]);
    let left = served.end(Signal::TERM);
    assert_eq!((left.code, left.stdout.lines().count()), (Some(0), 1), "{}", left.stdout);
    assert!(left.stopped["connections"].is_u64(), "{}", left.stopped);
    let folder = tempdir().unwrap();
    let path = folder.path().join("server.toml");
    std::fs::write(&path, file(2)).unwrap();
    let checked = kvasir(["serve", "--config", path.to_str().unwrap(), "--check", "--json"]);
    assert_eq!(checked.stdout.lines().count(), 1, "{}", checked.stdout);
}

/// Only an emulated device has latencies to keep, and so events that may be late.
#[test]
fn a_disk_and_memory_have_no_latencies_and_no_late_events() {
    let (_folder, path) = formatted();
    let folder = tempdir().unwrap();
    let text = format!(
        "[server]\nnvme_tcp = [\":0\"]\n[[device]]\nname = \"disk\"\ndevice = {path:?}\n\
         durability = \"everysec\"\n[[device]]\nname = \"memory\"\ndevice = \"mem:64MiB\"\n\
         [[device]]\nname = \"flash\"\ndevice = \"ideal\"\n[[subsystem]]\ndevice = \"disk\"\n\
         [[subsystem]]\ndevice = \"memory\"\n[[subsystem]]\ndevice = \"flash\"\n"
    );
    let config = folder.path().join("server.toml");
    std::fs::write(&config, text).unwrap();
    let said = kvasir(["serve", "--config", config.to_str().unwrap(), "--check"]).stdout;
    for line in [
        "serving disk: keys and values on a disk, as fast as the disk, durability everysec\n",
        "serving memory: keys and values in memory, as fast as memory, lost when the server \
         stops\n",
        ", latencies in real time\n",
    ] {
        assert!(said.contains(line), "{said}");
    }
    for (device, is_emulated) in
        [(path.to_str().unwrap(), false), ("mem:64MiB", false), ("ideal", true)]
    {
        let served = Serving::start(["--device", device, "--nvme-tcp", ":0"]);
        store("key", &served.uri(0));
        let stopped = served.stop();
        assert_eq!(stopped["late_events"].is_u64(), is_emulated, "{stopped}");
    }
}

/// Returns the processors that a task of a program may use, as the system lists them.
fn processors(program: Pid, task: &str) -> String {
    let path = format!("/proc/{program}/task/{task}/status");
    let status = std::fs::read_to_string(path).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    line.unwrap().trim().to_owned()
}

#[test]
fn each_thread_runs_on_its_processor() {
    let own = rustix::process::getpid();
    let allowed = processors(own, &own.to_string());
    let one = allowed.split([',', '-']).next().unwrap();
    let list = format!("{one}-{one}");
    let served = Serving::start(["--device", "mem:64MiB", "--nvme-tcp", ":0", "--cores", &list]);
    let number: u16 = one.parse().unwrap();
    assert_eq!(served.ready["cores"], value!(1));
    assert_eq!(served.ready["processors"], value!([number]));
    let program = served.process();
    let tasks = std::fs::read_dir(format!("/proc/{program}/task")).unwrap();
    let tasks = tasks.map(|task| task.unwrap().file_name().into_string().unwrap());
    let name = |task: &String| {
        std::fs::read_to_string(format!("/proc/{program}/task/{task}/comm")).unwrap()
    };
    let reactors: Vec<_> = tasks.filter(|task| name(task) == "kvasir-0\n").collect();
    let on: Vec<_> = reactors.iter().map(|task| processors(program, task)).collect();
    assert_eq!(on, [one]);
    served.stop();
}

#[test]
fn a_processor_that_the_server_may_not_use_is_named() {
    let ran =
        kvasir(["serve", "--device", "mem:64MiB", "--nvme-tcp", ":0", "--cores", "1023-1023"]);
    let start = "kvasir: this server cannot run on processor 1023, only on ";
    assert!(ran.stderr.starts_with(start), "{}", ran.stderr);
    assert_eq!(ran.code, Some(2));
}

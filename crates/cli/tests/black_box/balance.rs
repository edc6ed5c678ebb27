//! `kvasir serve --balance`: busy cores send commands to others.

use crate::drive::{formatted, shown};
use crate::program::{SMALL, json, kvasir};
use crate::redis::page;
use crate::serving::Serving;
use rustix::process::Signal;
use serde_json::{Value, from_str, json as value};
use std::path::Path;
use std::thread::spawn;
use std::time::{Duration, Instant};
use tempfile::tempdir;

/// Many times what the program takes for anything on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Two cores that differ as soon as one has a command.
pub(crate) fn file(policy: &str) -> String {
    format!(
        "[server]
cores = 2
clock = \"none\"
nvme_tcp = [\":0\"]
http = \":0\"

[balance]
policy = \"{policy}\"
overload = 0.0
spread = 0.0
movable = 1.0
window_ms = 5
memory = false

[[device]]
name = \"fast\"
device = \"mem:64MiB\"

[[subsystem]]
device = \"fast\"
"
    )
}

/// Has the server read its file again, which is now `text`.
pub(crate) fn reload(served: &Serving, folder: &Path, text: &str) {
    std::fs::write(folder.join("server.toml"), text).unwrap();
    served.signal(Signal::HUP);
    assert!(served.error_line().starts_with("kvasir: reloaded "));
}

/// Stores and retrieves pairs by one queue, and checks what it reads.
fn load(served: &Serving) {
    for kind in ["store", "retrieve"] {
        let target = served.uri(0);
        let bench = ["bench", kind, "--keys", "500", "--ops", "5000", "--value-size", "3000"];
        let more = ["--queue-depth", "32", "--overwrite", "--json", "--target", &target];
        let report = json(bench.iter().chain(&more));
        assert_eq!(report["errors"], 0, "{report}");
    }
}

/// Returns the commands that each core had others execute.
fn diverted(served: &Serving) -> Vec<u64> {
    let status: Value = from_str(&page(served.ready["http"].as_str().unwrap(), "/status")).unwrap();
    let reactors = status["reactors"].as_array().unwrap();
    reactors.iter().map(|reactor| reactor["commands_diverted"].as_u64().unwrap()).collect()
}

#[test]
fn a_policy_that_a_reload_sets_moves_commands_and_no_reply_changes() {
    let folder = tempdir().unwrap();
    let served = Serving::with_file(folder.path(), &file("none"));
    assert_eq!(served.ready["balance"]["policy"], "none");
    load(&served);
    assert_eq!(diverted(&served), [0, 0]);
    // First `auto`: it follows no policy whose routes could move commands in its place.
    for policy in ["auto", "ps", "rr"] {
        reload(&served, folder.path(), &file(policy));
        let (begin, before) = (Instant::now(), diverted(&served).iter().sum::<u64>());
        while diverted(&served).iter().sum::<u64>() < before + 100 {
            assert!(begin.elapsed() < TIMEOUT, "{policy} moves nothing");
            load(&served);
        }
    }
    let metrics = page(served.ready["http"].as_str().unwrap(), "/metrics");
    for count in ["diverted_commands", "moved_connections"] {
        let series = format!("\nkvasir_reactor_{count}_total{{reactor=\"0\"}} ");
        assert!(metrics.contains(&series), "{series}");
    }
    for stage in ["receive", "kv", "submit", "complete", "background"] {
        let series =
            format!("kvasir_reactor_stage_seconds_total{{reactor=\"0\",stage=\"{stage}\"}}");
        assert!(metrics.contains(&format!("\n{series} ")), "{series}");
    }
    served.stop();
}

/// With `conn`, each core executes all commands of the connections that it gets.
#[test]
fn a_policy_that_places_connections_moves_no_command() {
    let folder = tempdir().unwrap();
    let served = Serving::with_file(folder.path(), &file("conn"));
    assert_eq!(served.ready["balance"]["policy"], "conn");
    (0..3).for_each(|_| load(&served));
    assert_eq!(diverted(&served), [0, 0]);
    served.stop();
}

/// The load ends with the connection, at any instant: commands of one core are in the log of
/// another.
#[test]
fn a_stop_under_load_keeps_the_drive_whole() {
    let (folder, drive) = formatted();
    let text = file("ps").replace("mem:64MiB", shown(&drive));
    for round in 0..6 {
        let served = Serving::with_file(folder.path(), &text);
        let target = served.uri(0);
        let bench = ["bench", "store", "--keys", "500", "--seconds", "60", "--value-size", "3000"];
        let more = ["--queue-depth", "64", "--overwrite", "--target", &target];
        let words: Vec<String> = bench.iter().chain(&more).map(ToString::to_string).collect();
        let load = spawn(move || kvasir(words));
        let begin = Instant::now();
        while diverted(&served).iter().sum::<u64>() < 100 * (1 + round) {
            assert!(begin.elapsed() < TIMEOUT, "nothing moves");
        }
        served.stop();
        assert_eq!(load.join().unwrap().code, Some(1), "its connection has ended");
    }
    let checked = kvasir(["check", shown(&drive)]);
    assert_eq!(checked.code, Some(0), "{}", checked.stdout);
}

#[test]
fn a_check_prints_the_bounds_of_a_balancer() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("server.toml");
    std::fs::write(&path, file("ps")).unwrap();
    let path = path.to_str().unwrap();
    let bounds = "balance: policy ps, overload 0, spread 0, movable 1, window_ms 5, memory false";
    let checked = kvasir(["serve", "--config", path, "--check"]).stdout;
    assert!(checked.lines().any(|line| line == bounds), "{checked}");
    let expected = value!({
        "policy": "ps", "overload": 0.0, "spread": 0.0, "movable": 1.0, "window_ms": 5,
        "memory": false
    });
    assert_eq!(json(["serve", "--config", path, "--check", "--json"])["balance"], expected);
}

#[test]
fn commands_of_an_emulated_device_and_one_core_cannot_be_balanced() {
    let emulated = "kvasir: commands on an emulated device stay on its core, so they cannot be \
                    balanced: serve a drive on a disk or in memory, or place connections with \
                    conn\n";
    let alone = "kvasir: one core cannot be balanced: set cores to 2 or more\n";
    let one = "kvasir: 1 of 2 cores has devices, so one core is left for connections and cannot be \
               balanced: set cores to 3 or more\n";
    for (device, cores, policy, sentence) in [
        (SMALL, "2", "rr", emulated),
        ("mem:64MiB", "1", "ps", alone),
        ("mem:64MiB", "1", "conn", alone),
        (SMALL, "2", "conn", one),
    ] {
        let words = ["serve", "--device", device, "--nvme-tcp", ":0", "--cores", cores];
        let refused = kvasir(words.iter().chain(&["--balance", policy]));
        assert_eq!((refused.code, &refused.stderr[..]), (Some(2), sentence));
    }
}

#[test]
fn a_policy_of_the_command_line_serves_by_the_usual_bounds() {
    let served = Serving::start([
        "--device",
        "mem:64MiB",
        "--nvme-tcp",
        ":0",
        "--clock",
        "none",
        "--cores",
        "2",
        "--balance",
        "ps",
    ]);
    let expected = value!({
        "policy": "ps", "overload": 0.4, "spread": 0.1, "movable": 0.2, "window_ms": 100,
        "memory": true, "release": 0.05
    });
    assert_eq!(served.ready["balance"], expected);
    load(&served);
    served.stop();
}

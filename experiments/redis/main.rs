//! Measures a drive's rate for Redis clients against redis-server with the same durability.
//!
//! After `cargo build --profile dist`:
//! `cargo run --profile dist -p experiments --bin redis -- [ROUNDS [FOLDER]]`, on an idle machine
//! with the Debian package redis-server. The folder is on the disk in question.
//!
//! With `idle [CLIENTS]`: the cost of idle clients. With `keys [PAIRS [FOLDER]]`: KEYS and SCAN
//! over many keys. With `cold [ROUNDS [FOLDER]]`: GETs that must read the disk, against fio.

mod cold;
mod idle;
mod keys;
mod servers;

use crate::servers::{Mode, Server};
use experiments::median;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const ROUNDS: usize = 3;

/// Requests of one measurement without pipelining.
const REQUESTS: u32 = 100_000;

/// The parameters of redis-benchmark for one measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Load {
    mode: Mode,
    pipeline: u32,
    value_bytes: u32,
    /// The number of keys; 1 is always the same key.
    keys: u32,
}

/// Operations a second of each round, by load, command and server.
type Rates = BTreeMap<(Load, &'static str, bool), Vec<f64>>;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).peekable();
    let what = arguments.next_if(|word| word == "idle" || word == "cold");
    if what.as_deref() == Some("idle") {
        return ended(in_a_folder(&std::env::temp_dir(), |folder| idle::run(arguments, folder)));
    }
    if arguments.next_if_eq("keys").is_some() {
        let pairs = arguments.next();
        let folder = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from);
        return ended(in_a_folder(&folder, |folder| keys::run(pairs, folder)));
    }
    let rounds = arguments.next().map_or(Ok(ROUNDS), |text| text.parse());
    let folder = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let Ok(rounds @ 1..) = rounds else {
        eprintln!("redis: ROUNDS is a whole number above 0, as in `redis 3 /mnt/disk`");
        return ExitCode::from(2);
    };
    ended(in_a_folder(&folder, |folder| match what {
        Some(_) => cold::run(rounds, folder),
        None => measure(rounds, folder).map(|rates| report(&rates, rounds)),
    }))
}

fn ended(done: Result<(), String>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("redis: {problem}");
            ExitCode::FAILURE
        }
    }
}

/// Runs `what` with a new folder inside `parent`, and removes the folder.
fn in_a_folder(
    parent: &Path,
    what: impl FnOnce(&Path) -> Result<(), String>,
) -> Result<(), String> {
    let folder = parent.join(format!("kvasir-redis-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let done = what(&folder);
    let _ = std::fs::remove_dir_all(&folder);
    done
}

fn measure(rounds: usize, folder: &Path) -> Result<Rates, String> {
    let mut rates = Rates::new();
    for round in 1..=rounds {
        for mode in Mode::ALL {
            for is_ours in [false, true] {
                eprintln!("round {round} of {rounds}, {mode:?}, {}", name(is_ours));
                let server = Server::start(mode, is_ours, folder)?;
                for load in loads(mode) {
                    for (command, rate) in benchmark(&server, load)? {
                        rates.entry((load, command, is_ours)).or_default().push(rate);
                    }
                }
            }
        }
    }
    Ok(rates)
}

fn loads(mode: Mode) -> impl Iterator<Item = Load> {
    let sizes = [1, 16].into_iter().flat_map(|pipeline| [64, 8_192].map(|bytes| (pipeline, bytes)));
    sizes.flat_map(move |(pipeline, value_bytes)| {
        [1, 10_000].map(|keys| Load { mode, pipeline, value_bytes, keys })
    })
}

/// Returns the rates of SET and of GET.
fn benchmark(server: &Server, load: Load) -> Result<Vec<(&'static str, f64)>, String> {
    let requests = if load.pipeline > 1 { 4 * REQUESTS } else { REQUESTS };
    let mut command = Command::new("redis-benchmark");
    command.args(["-c", "50", "-t", "set,get", "--csv"]);
    command.args(["-p", &server.port.to_string(), "-P", &load.pipeline.to_string()]);
    command.args(["-d", &load.value_bytes.to_string(), "-n", &requests.to_string()]);
    if load.keys > 1 {
        command.args(["-r", &load.keys.to_string()]);
    }
    let ran = command.output().map_err(|error| format!("redis-benchmark: {error}"))?;
    let text = String::from_utf8_lossy(&ran.stdout);
    let rate = |name: &'static str| {
        let line = text.lines().find(|line| line.starts_with(&format!("\"{name}\"")));
        let rate = line.and_then(|line| line.split('"').nth(3)?.parse().ok());
        rate.map(|rate| (name, rate)).ok_or_else(|| format!("redis-benchmark said {text}"))
    };
    Ok(vec![rate("SET")?, rate("GET")?])
}

const fn name(is_ours: bool) -> &'static str {
    if is_ours { "kvasir" } else { "redis-server" }
}

fn report(rates: &Rates, rounds: usize) {
    println!("thousands of operations a second, 50 connections; medians of {rounds}:");
    println!(
        "{:<10} {:>8} {:>7} {:>7} {:<4} {:>13} {:>8} {:>6}  bar",
        "", "pipeline", "value", "keys", "", "redis-server", "kvasir", "ratio"
    );
    for ((load, command, _), ours) in rates.iter().filter(|((_, _, is_ours), _)| *is_ours) {
        let theirs = &rates[&(*load, *command, false)];
        let mut ratios: Vec<_> =
            ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect();
        let bar = if load.pipeline > 1 { 0.9 } else { 1.0 };
        println!(
            "{:<10} {:>8} {:>7} {:>7} {:<4} {:>13.1} {:>8.1} {:>6.2}  {bar}",
            format!("{:?}", load.mode),
            load.pipeline,
            load.value_bytes,
            load.keys,
            command,
            median(&mut theirs.clone()) / 1_000.0,
            median(&mut ours.clone()) / 1_000.0,
            median(&mut ratios),
        );
    }
}

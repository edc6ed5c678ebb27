//! GETs that must read the disk, against fio with the same read size and depth, and against the
//! same drive without a protocol.

use crate::servers::{Server, format};
use experiments::fio::Job;
use experiments::median;
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Pairs of 8 KiB: 2.4 GB, none of it cached in memory.
const KEYS: &str = "300000";
const OPS: &str = "600000";

/// Clients, and outstanding operations on the disk.
const DEPTH: u32 = 50;

/// The time of each fio run.
const TIME: Duration = Duration::from_secs(8);

/// Reads a second in one round, and the bytes of each disk read.
struct Round {
    by_redis: f64,
    in_process: f64,
    by_fio: f64,
    bytes: u32,
}

/// Measures `rounds` times with a drive in `folder`, and prints the medians.
pub(crate) fn run(rounds: usize, folder: &Path) -> Result<(), String> {
    let drive = format(folder)?;
    let mut found = Vec::new();
    for number in 1..=rounds {
        eprintln!("round {number} of {rounds}");
        found.push(round(&drive)?);
    }
    let median = |of: fn(&Round) -> f64| median(&mut found.iter().map(of).collect::<Vec<_>>());
    println!("GETs a second of values of 8 KiB on the disk, {DEPTH} clients; medians of {rounds}:");
    println!("  fio, reads of {} bytes   {:>8.0}", found[0].bytes, median(|it| it.by_fio));
    println!("  the drive in a process    {:>8.0}", median(|it| it.in_process));
    println!("  Redis clients             {:>8.0}", median(|it| it.by_redis));
    println!("  of fio's                  {:>8.2}  bar 0.9", median(|it| it.by_redis / it.by_fio));
    Ok(())
}

fn round(drive: &Path) -> Result<Round, String> {
    let server = Server::of_cold(drive)?;
    let target = format!("resp://127.0.0.1:{}/0?connections={DEPTH}", server.port);
    let by_redis = rate(&retrieve(&target)?);
    drop(server);
    let target = format!("file:{}?durability=capacitor", drive.display());
    let report = retrieve(&target)?;
    let of = |name: &str| report[name].as_f64().unwrap_or(f64::NAN);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole blocks")]
    let bytes = (of("disk_read_bytes") / of("disk_reads")).round() as u32;
    let job = Job { file: drive, mode: "randread", bytes, depth: DEPTH, time: TIME, more: vec![] };
    Ok(Round { by_redis, in_process: rate(&report), by_fio: job.run()?.rate, bytes })
}

/// Returns the report of `bench retrieve`, which stores the pairs first.
fn retrieve(target: &str) -> Result<Value, String> {
    let output = Command::new(Server::program()?)
        .args(["bench", "retrieve", "--json", "--target", target, "--value-size", "8KiB"])
        .args(["--keys", KEYS, "--ops", OPS, "--queue-depth", &DEPTH.to_string()])
        .output()
        .map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())
}

fn rate(report: &Value) -> f64 {
    report["ops_per_wall_second"].as_f64().unwrap_or(f64::NAN)
}

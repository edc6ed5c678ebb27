//! fio, for what a disk gives at best.

use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// A fio job on a file, without the page cache.
#[derive(Clone, Debug)]
pub struct Job<'a> {
    /// The file.
    pub file: &'a Path,
    /// fio's `rw`, as `randread`.
    pub mode: &'static str,
    /// Bytes of each operation.
    pub bytes: u32,
    /// Operations outstanding at a time.
    pub depth: u32,
    /// The run time, unless the file's size ends the job before.
    pub time: Duration,
    /// Further options, such as `--fdatasync=1`.
    pub more: Vec<String>,
}

/// The result of a job.
#[derive(Clone, Copy, Debug)]
pub struct Figures {
    /// Operations a second.
    pub rate: f64,
    /// Mean microseconds from the start of the submitting call to completion: the latency includes
    /// the time of the call itself.
    pub mean: f64,
    /// The 99.9th percentile of the same.
    pub p999: f64,
    /// Processor time of each operation, in microseconds.
    pub processor: f64,
}

impl Job<'_> {
    /// Runs the job on its own.
    pub fn run(&self) -> Result<Figures, String> {
        let output = Command::new("fio")
            .args(["--name=disk", "--ioengine=io_uring", "--direct=1", "--time_based"])
            .args(["--norandommap", "--randrepeat=0", "--output-format=json"])
            .arg("--lat_percentiles=1")
            .arg(format!("--filename={}", self.file.display()))
            .arg(format!("--rw={}", self.mode))
            .arg(format!("--bs={}", self.bytes))
            .arg(format!("--iodepth={}", self.depth))
            .arg(format!("--runtime={}", self.time.as_secs()))
            .args(&self.more)
            .output()
            .map_err(|error| format!("fio is needed to compare with, and does not run: {error}"))?;
        if !output.status.success() {
            return Err(format!("fio failed: {}", String::from_utf8_lossy(&output.stderr)));
        }
        let direction = if self.mode.ends_with("read") { "read" } else { "write" };
        figures(&output.stdout, direction).ok_or_else(|| "fio's report is not understood".into())
    }
}

fn figures(report: &[u8], direction: &str) -> Option<Figures> {
    let report: Value = serde_json::from_slice(report).ok()?;
    let job = report.get("jobs")?.get(0)?;
    let of = job.get(direction)?;
    let rate = of.get("iops")?.as_f64()?;
    let latency = of.get("lat_ns")?;
    let p999 = latency.get("percentile")?.get("99.900000")?.as_f64()?;
    // Shares of the run in percent.
    let share = job.get("usr_cpu")?.as_f64()? + job.get("sys_cpu")?.as_f64()?;
    Some(Figures {
        rate,
        mean: latency.get("mean")?.as_f64()? / 1e3,
        p999: p999 / 1e3,
        processor: share / 100.0 * 1e6 / rate,
    })
}

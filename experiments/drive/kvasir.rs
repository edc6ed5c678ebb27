//! The drive under test, by the program's own commands.

use serde_json::Value;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A drive in a file, and the program that runs it.
pub(crate) struct Kvasir {
    program: PathBuf,
    file: PathBuf,
}

/// A load on the drive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) workload: &'static str,
    pub(crate) durability: &'static str,
    pub(crate) keys: u64,
    pub(crate) ops: u64,
    pub(crate) depth: u32,
    pub(crate) more: &'static [&'static str],
    /// Operations due in a second, for a load at a rate.
    pub(crate) rate: Option<u64>,
}

/// The report of a load.
#[derive(Clone, Debug)]
pub(crate) struct Figures(Value);

impl Kvasir {
    /// Returns a drive that [`Self::format`] creates in `file`. The program is in this one's
    /// folder.
    pub(crate) fn new(file: PathBuf) -> Result<Self, String> {
        let here = std::env::current_exe().map_err(|error| error.to_string())?;
        let program = here.with_file_name("kvasir");
        if !program.exists() {
            return Err("build the program first: cargo build --profile dist -p kvasir-cli".into());
        }
        Ok(Self { program, file })
    }

    /// Creates an empty drive of `bytes` bytes.
    pub(crate) fn format(&self, bytes: u64) -> Result<(), String> {
        let (file, size) = (self.file.display().to_string(), bytes.to_string());
        let made = !self.file.exists();
        let size = if made { vec!["--size", &size, "--fill"] } else { vec!["--force"] };
        self.run(&[&["format", &file][..], &size].concat()).map(drop)
    }

    /// Returns the output of `inspect`.
    pub(crate) fn inspect(&self) -> Result<Value, String> {
        let file = self.file.display().to_string();
        let printed = self.run(&["inspect", &file, "--json"])?;
        serde_json::from_slice(&printed).map_err(|error| error.to_string())
    }

    pub(crate) fn bench(&self, load: &Load) -> Result<Figures, String> {
        let printed = self.run(&self.words(load))?;
        serde_json::from_slice(&printed).map(Figures).map_err(|error| error.to_string())
    }

    fn words(&self, load: &Load) -> Vec<String> {
        let (file, durability) = (self.file.display(), load.durability);
        let target = format!("file:{file}?durability={durability}");
        let (keys, ops) = (load.keys.to_string(), load.ops.to_string());
        let (depth, rate) = (load.depth.to_string(), load.rate.map(|rate| rate.to_string()));
        let mut words = vec!["bench", load.workload, "--json", "--target", &target];
        words.extend(["--value-size", "8KiB", "--key-size", "16", "--keys", &keys, "--ops", &ops]);
        words.extend(["--queue-depth", &depth]);
        words.extend(rate.iter().flat_map(|rate| ["--rate", rate]));
        words.extend(load.more);
        words.into_iter().map(str::to_owned).collect()
    }

    /// Returns the seconds to open the drive. Then writes a new checkpoint.
    pub(crate) fn open(&self) -> Result<f64, String> {
        let (workload, durability) = ("exist", "capacitor");
        let (keys, ops, depth, more, rate) = (1, 1, 1, &[], None);
        let load = Load { workload, durability, keys, ops, depth, more, rate };
        Ok(self.bench(&load)?.of("opened_ns") / 1e9)
    }

    /// Kills the program during `load`.
    pub(crate) fn die(&self, load: &Load, after: Duration) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("kvasir cannot be killed: {error}");
        let mut running = Command::new(&self.program)
            .args(self.words(load))
            .stdout(Stdio::null())
            .spawn()
            .map_err(failed)?;
        std::thread::sleep(after);
        running.kill().map_err(failed)?;
        running.wait().map(drop).map_err(failed)
    }

    fn run(&self, words: &[impl AsRef<OsStr>]) -> Result<Vec<u8>, String> {
        let output = Command::new(&self.program).args(words).output();
        let output = output.map_err(|error| format!("kvasir does not run: {error}"))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let words: Vec<_> = words.iter().map(|word| word.as_ref().to_string_lossy()).collect();
            return Err(format!("kvasir {}: {said}", words.join(" ")));
        }
        Ok(output.stdout)
    }
}

impl Figures {
    /// Returns a figure of the report by name.
    pub(crate) fn of(&self, name: &str) -> f64 {
        self.0[name].as_f64().unwrap_or(f64::NAN)
    }

    /// Returns the operations a second.
    pub(crate) fn rate(&self) -> f64 {
        self.of("ops_per_wall_second")
    }

    /// Returns a latency of one kind of operation, in microseconds.
    pub(crate) fn latency(&self, kind: &str, name: &str) -> f64 {
        self.0["latency_ns"][kind][name].as_f64().unwrap_or(f64::NAN) / 1e3
    }
}

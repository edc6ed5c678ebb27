//! Compares a drive with `RocksDB` on the same disk, and with fio as the disk's limit: pairs of 16
//! B and 8 KiB, five times as many bytes as `RocksDB` has memory.
//!
//! `cargo run --profile dist -p experiments --bin drive -- FOLDER [ROUNDS]`, on an idle machine
//! with fio and `db_bench`. Creates and removes the folder, which needs some 20 GiB.

mod kvasir;
mod rocksdb;
mod row;

use experiments::fio;
use kvasir::{Figures, Kvasir, Load};
use rocksdb::RocksDb;
use row::{Bar, Row, print_medians};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

const ROUNDS: usize = 3;

/// Bytes of the drive.
const BYTES: u64 = 8 << 30;

/// The share of the drive's capacity that the pairs take.
const FILL: f64 = 0.7;

const VALUE_BYTES: f64 = 8_192.0;
const PAIR_BYTES: f64 = 16.0 + VALUE_BYTES;

/// The time of each fio run.
const TIME: Duration = Duration::from_secs(8);

/// The time after which the program is killed.
const UNTIL_KILLED: Duration = Duration::from_secs(30);

/// Clients of `group`, and outstanding operations unless a line varies them.
const DEPTH: u32 = 64;

/// Outstanding operations at which the disk alone decides the rate, not its latency.
const DEEP: u32 = 256;

/// The folder, the drive, and the number of pairs.
struct Bench {
    plain: PathBuf,
    kvasir: Kvasir,
    rocksdb: RocksDb,
    keys: u64,
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next();
    let rounds = arguments.next().map_or(Ok(ROUNDS), |text| text.parse());
    let (Some(folder), Ok(rounds @ 1..)) = (folder, rounds) else {
        eprintln!("drive: name a folder to be made, as in `drive /var/tmp/drive 3`");
        return ExitCode::from(2);
    };
    let folder = Path::new(&folder);
    if let Err(error) = fs::create_dir(folder) {
        eprintln!("drive: {} cannot be made: {error}", folder.display());
        return ExitCode::FAILURE;
    }
    let result = Bench::new(folder).and_then(|bench| bench.measure(rounds));
    // This program created the folder, so it removes it, even after a failure.
    let removed = fs::remove_dir_all(folder).map_err(|error| error.to_string());
    match result.and(removed) {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("drive: {sentence}");
            ExitCode::FAILURE
        }
    }
}

impl Bench {
    fn new(folder: &Path) -> Result<Self, String> {
        let kvasir = Kvasir::new(folder.join("drive"))?;
        // The size of a pair depends on the disk's blocks.
        kvasir.format(BYTES)?;
        kvasir.bench(&Load { ops: 10_000, keys: 10_000, ..store("capacitor") })?;
        let seen = kvasir.inspect()?;
        let of = |name: &str| seen[name].as_f64().ok_or(format!("inspect does not say {name}"));
        let pair = of("live_bytes")? / of("pairs")?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
        let keys = (of("capacity_bytes")? * FILL / pair) as u64;
        let rocksdb = RocksDb { folder: folder.join("rocksdb"), keys };
        println!("{keys} pairs, each {pair:.0} bytes on a drive of units of {}", of("unit_bytes")?);
        println!("RocksDB: {}", rocksdb::OPTIONS.join(" "));
        Ok(Self { plain: folder.join("plain"), kvasir, rocksdb, keys })
    }

    fn measure(&self, rounds: usize) -> Result<(), String> {
        let mut found = Vec::new();
        for round in 1..=rounds {
            let mut rows = Vec::new();
            for part in
                [Self::loads, Self::overwrites, Self::starts, Self::gets, Self::mix, Self::group]
            {
                let figures = part(self)?;
                for row in &figures {
                    eprintln!("round {round} of {rounds}: {}", row.line());
                }
                rows.extend(figures);
            }
            found.push(rows);
        }
        println!("\nmedians of {rounds} rounds:");
        print_medians(&found);
        Ok(())
    }

    fn all(&self, load: Load) -> Load {
        Load { keys: self.keys, ops: self.keys, ..load }
    }

    fn loads(&self) -> Result<Vec<Row>, String> {
        let sequential = Load { more: &["--distribution", "sequential"], ..store("capacitor") };
        self.kvasir.format(BYTES)?;
        let in_order = self.kvasir.bench(&self.all(sequential))?.rate();
        self.kvasir.format(BYTES)?;
        let random = self.kvasir.bench(&self.all(store("capacitor")))?.rate();
        let theirs = self.rocksdb("fillrandom", self.keys, 1, &[])?;
        Ok(vec![
            row("random load", random, in_order, "sequential load", Bar::AtLeast(0.9)),
            row("random load", random, theirs, "RocksDB", Bar::AtLeast(1.0)),
        ])
    }

    /// Overwrites each key four times.
    fn overwrites(&self) -> Result<Vec<Row>, String> {
        let more = &["--read-percent", "0"];
        let load = Load { workload: "mixed", depth: DEPTH, more, ..store("capacitor") };
        let steady = self.kvasir.bench(&Load { ops: 4 * self.keys, ..self.all(load) })?;
        let theirs = self.rocksdb("overwrite", 4 * self.keys, 1, &[])?;
        let limit = self.write_bytes()? / steady.of("disk_write_amplification") / PAIR_BYTES;
        let rate = steady.rate();
        let index = steady.of("index_bytes_per_pair");
        let mut rows = vec![
            row("random overwrite", rate, theirs, "RocksDB", Bar::AtLeast(5.0)),
            row("random overwrite", rate, limit, "bandwidth by amplification", Bar::AtLeast(0.7)),
            row("index, bytes a pair", index, 1.0, "one", Bar::AtMost(16.0)),
        ];
        rows.push(self.open_loop(rate)?);
        Ok(rows)
    }

    /// Overwrites at a rate of four fifths of `most`.
    fn open_loop(&self, most: f64) -> Result<Row, String> {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
        let rate = (most * 0.8) as u64;
        let more = &["--read-percent", "0"];
        let load = Load { workload: "mixed", more, rate: Some(rate), ..store("capacitor") };
        let load = Load { ops: 3 * self.keys, ..self.all(load) };
        let ours = self.kvasir.bench(&load)?.latency("store", "p999");
        let theirs = self.fio("randwrite", 8 << 10, DEPTH, &[&format!("--rate_iops={rate}")])?;
        let of = "fio's writes of 8 KiB at that rate, us";
        Ok(row("p99.9 of a store at 0.8 of that, us", ours, theirs.p999, of, Bar::AtMost(3.0)))
    }

    /// Measures starts after a stop and after a crash with an old checkpoint.
    fn starts(&self) -> Result<Vec<Row>, String> {
        let seen = self.kvasir.inspect()?;
        let streams = seen["streams"].as_array().into_iter().flatten();
        let index = streams.filter(|of| of["stream"] == "index");
        let checkpoint: f64 = index.filter_map(|of| of["used_bytes"].as_f64()).sum();
        let part = 1 << 20;
        let bandwidth = self.fio("read", part, 8, &[])?.rate * f64::from(part);
        let most = 1.0 + 1.5 * checkpoint / bandwidth;
        let stopped = self.kvasir.open()?;
        let more = &["--read-percent", "0"];
        let load = Load { workload: "mixed", more, ..store("capacitor") };
        self.kvasir.die(&Load { ops: 99 * self.keys, ..self.all(load) }, UNTIL_KILLED)?;
        let seen = self.kvasir.inspect()?;
        let of = |name: &str| seen[name].as_f64().ok_or(format!("inspect does not say {name}"));
        let log = of("log_extents")? * of("extent_bytes")?;
        let crashed = self.kvasir.open()?;
        let (stop, crash) = ("open after a stop, s", "open after a crash, s");
        Ok(vec![
            row(stop, stopped, most, "1 s and 1.5 fio's of the checkpoint", Bar::AtMost(1.0)),
            row(crash, crashed, log / 1e10, "1 s for 10 GB of log", Bar::AtMost(1.0)),
        ])
    }

    fn gets(&self) -> Result<Vec<Row>, String> {
        let deep = Load { workload: "retrieve", depth: DEPTH, ..self.all(store("capacitor")) };
        let alone = Load { depth: 1, ops: self.keys / 10, ..deep };
        let theirs = self.rocksdb("readrandom", self.keys / 32, 32, &[])?;
        // A shared disk's rate varies, so the drive is measured before and after fio.
        let first = self.kvasir.bench(&deep)?;
        let bytes = first.of("disk_read_bytes") / first.of("disk_reads");
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole blocks")]
        let bytes = bytes.round() as u32;
        let reads = |depth, bytes| self.fio("randread", bytes, depth, &[]);
        let (same, value) = (reads(DEPTH, bytes)?, reads(DEPTH, 8 << 10)?);
        let rate = f64::midpoint(first.rate(), self.kvasir.bench(&deep)?.rate());
        let mean = || Ok::<_, String>(self.kvasir.bench(&alone)?.latency("retrieve", "mean"));
        let before = mean()?;
        let (same_alone, value_alone) = (reads(1, bytes)?, reads(1, 8 << 10)?);
        let mean = f64::midpoint(before, mean()?);
        let each = |figures: &Figures, name| figures.of(name) / figures.of("ops");
        let what = "random get, 64 at a time";
        Ok(vec![
            row(what, rate, same.rate, "fio, the same bytes", Bar::AtLeast(0.9)),
            row(what, rate, value.rate, "fio, 8 KiB", Bar::AtLeast(0.9)),
            row(what, rate, theirs, "RocksDB, 32 threads", Bar::AtLeast(1.0)),
            row("get alone, us", mean, same_alone.mean, "fio, the same bytes", Bar::AtMost(1.15)),
            row("get alone, us", mean, value_alone.mean, "fio, 8 KiB", Bar::AtMost(1.15)),
            row("reads of the disk", each(&first, "disk_reads"), 1.0, "a get", Bar::AtMost(1.05)),
            row(
                "bytes read",
                each(&first, "disk_read_bytes"),
                VALUE_BYTES,
                "bytes got",
                Bar::AtMost(1.55),
            ),
        ])
    }

    /// Runs nine gets to a store.
    fn mix(&self) -> Result<Vec<Row>, String> {
        let more = &["--read-percent", "90"];
        let load = Load { workload: "mixed", depth: 32, more, ..store("capacitor") };
        let ours = self.kvasir.bench(&self.all(load))?.rate();
        let share = &["--readwritepercent=90"];
        let theirs = self.rocksdb("readrandomwriterandom", self.keys / 32, 32, share)?;
        Ok(vec![row(
            "nine gets to a store, 32 at a time",
            ours,
            theirs,
            "RocksDB",
            Bar::AtLeast(1.5),
        )])
    }

    fn group(&self) -> Result<Vec<Row>, String> {
        let load = Load { depth: DEPTH, ops: self.keys / 2, keys: self.keys, ..store("group") };
        let ours = self.kvasir.bench(&load)?;
        let theirs = self.fio("write", 8 << 10, 1, &["--fdatasync=1"])?;
        let of = "fio, a flush for each";
        Ok(vec![row("group, 64 clients", ours.rate(), theirs.rate, of, Bar::AtLeast(20.0))])
    }

    fn rocksdb(
        &self,
        benchmark: &'static str,
        ops: u64,
        threads: u32,
        more: &'static [&'static str],
    ) -> Result<f64, String> {
        self.rocksdb.bench(&rocksdb::Load { benchmark, ops, threads, more })
    }

    /// Runs fio on a file of the drive's size that is fully written.
    fn fio(
        &self,
        mode: &'static str,
        bytes: u32,
        depth: u32,
        more: &[&str],
    ) -> Result<fio::Figures, String> {
        if !self.plain.exists() {
            self.fill_plain()?;
        }
        let more = more.iter().map(|option| (*option).to_owned()).collect();
        fio::Job { file: &self.plain, mode, bytes, depth, time: TIME, more }.run()
    }

    /// Fills the file with fio, because a file system's first writes cost more.
    fn fill_plain(&self) -> Result<(), String> {
        let more = ["--time_based=0", "--runtime=600"].map(str::to_owned);
        let more = more.into_iter().chain([format!("--size={BYTES}")]).collect();
        let (file, mode, bytes, depth, time) = (&self.plain, "write", 1 << 20, 8, TIME);
        fio::Job { file, mode, bytes, depth, time, more }.run().map(drop)
    }

    /// Returns the bytes a second of sequential writes of 1 MiB.
    fn write_bytes(&self) -> Result<f64, String> {
        let bytes = 1 << 20;
        Ok(self.fio("write", bytes, 8, &[])?.rate * f64::from(bytes))
    }
}

fn store(durability: &'static str) -> Load {
    let workload = "store";
    Load { workload, durability, keys: 0, ops: 0, depth: DEEP, more: &[], rate: None }
}

fn row(what: &'static str, ours: f64, other: f64, of: &'static str, bar: Bar) -> Row {
    Row { what, ours, other, of, bar }
}

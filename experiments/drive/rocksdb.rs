//! `RocksDB`, by its own `db_bench`.

use std::path::PathBuf;
use std::process::Command;

/// Options of all runs: no log, direct I/O, bloom filters of 10 bits a key, two background jobs.
/// Memory is a fifth of the data, most of it for blocks.
pub(crate) const OPTIONS: [&str; 13] = [
    "--key_size=16",
    "--value_size=8192",
    "--compression_type=none",
    "--disable_wal=1",
    "--use_direct_reads=1",
    "--use_direct_io_for_flush_and_compaction=1",
    "--bloom_bits=10",
    "--max_background_jobs=2",
    "--cache_size=536870912",
    "--cache_index_and_filter_blocks=1",
    "--write_buffer_size=67108864",
    "--max_write_buffer_number=4",
    "--statistics=0",
];

/// A database in a folder.
pub(crate) struct RocksDb {
    pub(crate) folder: PathBuf,
    pub(crate) keys: u64,
}

/// A load on the database.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Its name in `db_bench`.
    pub(crate) benchmark: &'static str,
    /// Operations of each thread.
    pub(crate) ops: u64,
    pub(crate) threads: u32,
    pub(crate) more: &'static [&'static str],
}

impl RocksDb {
    /// Returns the operations a second by `db_bench`. A load of `fill...` recreates the database.
    pub(crate) fn bench(&self, load: &Load) -> Result<f64, String> {
        let exists = !load.benchmark.starts_with("fill");
        let output = Command::new("db_bench")
            .args(OPTIONS)
            .arg(format!("--db={}", self.folder.display()))
            .arg(format!("--benchmarks={},waitforcompaction", load.benchmark))
            .arg(format!("--use_existing_db={}", u8::from(exists)))
            .arg(format!("--num={}", self.keys))
            .arg(format!("--reads={}", load.ops))
            .arg(format!("--writes={}", load.ops))
            .arg(format!("--threads={}", load.threads))
            .args(load.more)
            .output()
            .map_err(|error| {
                format!("db_bench of rocksdb-tools is needed, and does not run: {error}")
            })?;
        let printed = String::from_utf8_lossy(&output.stdout);
        rate(&printed, load.benchmark).ok_or_else(|| {
            let said = String::from_utf8_lossy(&output.stderr);
            format!("db_bench does not say how fast {} was: {printed}{said}", load.benchmark)
        })
    }
}

/// Parses a line such as `overwrite    :      36.982 micros/op 27039 ops/sec ...`.
fn rate(printed: &str, benchmark: &str) -> Option<f64> {
    let line = printed.lines().find(|line| line.starts_with(benchmark))?;
    let before = line.split("ops/sec").next()?;
    before.split_whitespace().last()?.parse().ok()
}

//! `kvasir bench` on a key-value drive on a file or block device, opened in this process.

use super::foreign;
use super::long_polls;
use super::outside::{self, Asked, More};
use super::plan::{self, Place};
use super::spread::{self, Crew};
use crate::args::BenchArgs;
use crate::drive;
use crate::number::{grouped, seconds};
use crate::output::{Failure, Output};
use crate::path::shown;
use crate::target::name_and_options;
use base::{Nanos, human_bytes};
use disk::{Counters, File};
use engine::{Counts, How};
use node::server::LongPollStatus;
use node::{DiskDrive, DiskOptions, cache_size};
use serde::Serialize;
use std::cell::Cell;
use std::path::PathBuf;
use workload::{DeviceFigures, Kind, Outcome, Payload, Plan, Space, Tally};

/// Prefix of a target on a file.
const SCHEME: &str = "file:";

const NSID: u32 = 1;

/// A drive on a file, as a target's URI names it.
struct Target {
    path: PathBuf,
    options: DiskOptions,
    reactors: u8,
}

/// True if `uri` names a drive on a file.
pub(super) fn is_meant(uri: &str) -> bool {
    uri.starts_with(SCHEME)
}

impl Target {
    fn parse(uri: &str) -> Result<Self, Failure> {
        let rest = uri.strip_prefix(SCHEME).expect("it is of this scheme");
        let (path, options) = name_and_options(rest)?;
        if path.is_empty() {
            return Err(Failure::refused("a target on a file is file:PATH, as file:drive.kv"));
        }
        let mut target = Self { path: path.into(), options: DiskOptions::default(), reactors: 1 };
        for (key, value) in options {
            match key {
                "durability" => target.options.durability = drive::durability(value)?,
                "reactors" => target.reactors = spread::reactors(value)?,
                "cache" => {
                    let size = cache_size(value).map_err(Failure::Refused)?;
                    target.options.cache_bytes = size;
                }
                _ => {
                    return Err(Failure::Refused(format!(
                        "a target on a file has no option {key:?}, only durability, reactors and \
                         cache"
                    )));
                }
            }
        }
        Ok(target)
    }
}

/// Measures what `args` ask for.
pub(super) fn run(args: &BenchArgs) -> Result<Output, Failure> {
    let Target { path, options, reactors } = Target::parse(&args.measure.target)?;
    outside::check(args, "on a file or a block device")?;
    let operation = plan::operation(args)?;
    let place = Place { nsid: NSID, space: Space::Pairs, keys: None };
    let plan = plan::of(args, operation, place, Payload::Full)?;
    spread::check_keys(&plan)?;
    let file = drive::open(&path)?;
    let (measured, device, figures, unclosed) =
        drive::serve_among(reactors, async |remotes, others| {
            let said = |error| drive::failure(&path, &file, &error);
            clock::name_task("open");
            let options = DiskOptions { reactors: reactors.into(), ..options };
            let crew = Crew::start(others)?;
            let opened = DiskDrive::open_among(crew.pool(), file.clone(), options).await;
            let opened = opened.map_err(said)?;
            clock::name_task("load");
            check_room(&plan, &opened)?;
            if !args.overwrite {
                let checked = foreign::check_drive(&args.measure.target, opened.store()).await;
                if let Err(failure) = checked {
                    opened.close().await.map_err(said)?;
                    return Err(failure);
                }
            }
            let before = Cell::new(None);
            let begin = || before.set(Some(Usage::of(&file, &opened)));
            let measured = spread::measure(args, &plan, opened.controller(), &crew, begin).await?;
            let before = before.take().expect("it has begun");
            let mut figures = Figures::new(options, &before, &Usage::of(&file, &opened), &opened);
            figures.long_polls = long_polls::of(remotes);
            clock::name_task("close");
            // What was measured is reported even if the drive cannot be closed.
            let closed = opened.close().await.map_err(said);
            let unclosed = closed.and(crew.end()).err();
            Ok((measured, describe(&path, &opened), figures, unclosed))
        })?;
    let asked = Asked { args, plan: &plan, target: &args.measure.target, device };
    let output = outside::report(asked, &measured, &figures.of_report(&measured.outcome), figures);
    Ok(output.with_errors(unclosed.map(|failure| failure.to_string())))
}

/// Refuses pairs for which the drive has no room.
fn check_room(plan: &Plan, drive: &DiskDrive) -> Result<(), Failure> {
    let (stored, size) = (plan::stored(plan, None), drive.store().capacity_bytes());
    if stored.items <= stored.items_in(size) {
        return Ok(());
    }
    Err(Failure::Refused(format!(
        "{} pairs do not fit the drive, which takes {}: fewer are --keys or --ops",
        grouped(stored.items),
        human_bytes(size)
    )))
}

fn describe(path: &std::path::Path, drive: &DiskDrive) -> String {
    format!("{}, {}", shown(path), human_bytes(drive.info().size_bytes))
}

/// Counters of the disk and the store at one instant.
#[derive(Clone, Copy)]
struct Usage {
    disk: Counters,
    store: Counts,
}

impl Usage {
    fn of(file: &File, drive: &DiskDrive) -> Self {
        Self { disk: file.counters(), store: drive.store().counters() }
    }
}

/// Disk traffic of a load.
#[derive(Debug, Serialize)]
struct Figures {
    durability: &'static str,
    /// Bytes written to the disk for each byte of keys and values.
    disk_write_amplification: Option<f64>,
    /// Bytes of the log's extents in use for each byte of live records.
    space_amplification: Option<f64>,
    disk_reads: u64,
    disk_read_bytes: u64,
    disk_written_bytes: u64,
    disk_flushes: u64,
    /// Bytes that were copied because of their alignment in memory.
    disk_copied_bytes: u64,
    records_moved: u64,
    index_bytes_per_pair: Option<f64>,
    /// How the drive was opened, and the time and the log records that it took.
    opened_by: &'static str,
    opened_ns: Nanos,
    /// Polls that took more than 100 us of CPU time since the drive was opened.
    long_polls: Vec<LongPollStatus>,
    #[serde(skip)]
    retrieve_reads: u64,
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "a ratio of what was counted")]
    (whole > 0).then(|| part as f64 / whole as f64)
}

impl Figures {
    fn new(options: DiskOptions, before: &Usage, after: &Usage, drive: &DiskDrive) -> Self {
        let (disk, was) = (after.disk, before.disk);
        let host_bytes = after.store.host_bytes - before.store.host_bytes;
        let written = disk.written_bytes - was.written_bytes;
        let (usage, info) = (drive.store().usage(), drive.info());
        let used = u64::from(info.extents - usage.extents_free) * info.extent_bytes;
        Self {
            durability: drive::durability_name(options.durability),
            disk_write_amplification: ratio(written, host_bytes),
            space_amplification: ratio(used, usage.values.bytes),
            disk_reads: disk.reads - was.reads,
            disk_read_bytes: disk.read_bytes - was.read_bytes,
            disk_written_bytes: written,
            disk_flushes: disk.flushes - was.flushes,
            disk_copied_bytes: disk.copied_bytes - was.copied_bytes,
            records_moved: after.store.records_moved - before.store.records_moved,
            index_bytes_per_pair: ratio(usage.index_bytes, usage.values.records),
            opened_by: match drive.recovery().how {
                How::Scan => "scan",
                How::Checkpoint => "checkpoint",
            },
            opened_ns: drive.recovery().time,
            long_polls: Vec::new(),
            retrieve_reads: after.store.retrieve_page_reads - before.store.retrieve_page_reads,
        }
    }

    fn of_report(&self, outcome: &Outcome) -> DeviceFigures {
        let retrieves = outcome.tally(Kind::Retrieve).map_or(0, Tally::count);
        DeviceFigures {
            write_amplification: self.disk_write_amplification,
            flash_reads_per_retrieve: ratio(self.retrieve_reads, retrieves),
            counters: Vec::new(),
        }
    }
}

impl More for Figures {
    const TELLS_STAGES: bool = true;
    const IS_SHARED: bool = false;

    fn facts(&self) -> Vec<(&'static str, String)> {
        let mut facts = vec![
            ("durability", self.durability.to_owned()),
            (
                "opened",
                format!("by {} in {}", self.opened_by, seconds(self.opened_ns.as_secs_f64())),
            ),
            (
                "disk",
                format!(
                    "{} read in {} reads, {} written, {} flushes",
                    human_bytes(self.disk_read_bytes),
                    grouped(self.disk_reads),
                    human_bytes(self.disk_written_bytes),
                    grouped(self.disk_flushes)
                ),
            ),
        ];
        let amplification = |name, value: Option<f64>| Some((name, format!("{:.2}", value?)));
        facts.extend(amplification("write amplif.", self.disk_write_amplification));
        facts.extend(amplification("space amplif.", self.space_amplification));
        facts.extend(amplification("index, bytes a pair", self.index_bytes_per_pair));
        facts.extend(long_polls::facts(&self.long_polls));
        facts
    }
}

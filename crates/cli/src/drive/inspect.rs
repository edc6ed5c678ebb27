use super::content::Content;
use super::failure;
use super::look::look;
use super::report::DriveReport;
use super::shares::{Shares, name};
use crate::args::InspectArgs;
use crate::number::{counted, grouped, quotient, ratio};
use crate::output::{Failure, Output};
use crate::path::shown;
use crate::table;
use base::human_bytes;
use drive::DriveInfo;
use engine::{ExtentFacts, How, Recovery};
use media::ExtentId;
use node::DiskLook;
use serde::Serialize;
use std::path::Path;

/// A drive and its contents.
#[derive(Debug, Serialize)]
struct Report {
    #[serde(flatten)]
    drive: DriveReport,
    /// How the drive would be opened now: from a checkpoint, or by a scan of its whole log.
    opens_by: &'static str,
    /// Extents of the log that opening reads, and the records in them.
    log_extents: u64,
    log_records: u64,
    /// Keys of hosts and Redis clients.
    pairs: u64,
    /// Live records that hosts and clients cannot name: those of the namespaces, notes of the
    /// server, and the nodes of hashes and sorted sets.
    internal_records: u64,
    /// Bytes of live pairs, headers and padding included.
    live_bytes: u64,
    tombstones: u64,
    /// Bytes of keys and values that hosts stored and retrieved since the format, and bytes that
    /// the disk wrote and read in that time. From the last checkpoint; none without one.
    stored_bytes: Option<u64>,
    written_bytes: Option<u64>,
    write_amplification: Option<f64>,
    retrieved_bytes: Option<u64>,
    read_bytes: Option<u64>,
    read_amplification: Option<f64>,
    /// Bytes of extents in use for each byte of live pairs.
    space_amplification: Option<f64>,
    index_bytes_per_pair: Option<f64>,
    #[serde(flatten)]
    shares: Shares,
    in_use: Vec<Extent>,
}

/// An extent in use.
#[derive(Debug, Serialize)]
struct Extent {
    #[serde(rename = "extent")]
    number: u32,
    stream: &'static str,
    has_summary: bool,
    used_bytes: u64,
    live_records: u64,
    live_bytes: u64,
    tombstones: u64,
    /// False if the whole extent is about to be erased.
    is_needed: bool,
}

/// Shows the extents and records of the drive that `args` name.
pub(crate) fn run(args: &InspectArgs) -> Result<Output, Failure> {
    let path = &args.path;
    look(path, async |file, drive| match args.extent {
        None => {
            let report = Report::new(path, &drive);
            Ok(if args.json { Output::json(&report) } else { Output::new(report.text()) })
        }
        Some(number) => {
            let facts = extent(path, &drive, number)?;
            let content = drive.store().extent_content(facts.id).await;
            let pages = content.map_err(|error| failure(path, &file, &error))?;
            let content = Content::new(&drive, &facts, &pages);
            Ok(if args.json { Output::json(&content) } else { Output::new(content.text()) })
        }
    })
}

/// Returns the facts of the extent `number`, if it is in use.
fn extent(path: &Path, drive: &DiskLook, number: u32) -> Result<ExtentFacts, Failure> {
    let extents = drive.info().extents;
    if number >= extents {
        return Err(Failure::Refused(format!(
            "{} has extents 0 to {}, not {number}",
            shown(path),
            extents - 1
        )));
    }
    let found = drive.store().extent_facts();
    let found = found.into_iter().find(|facts| facts.id == ExtentId(number));
    found.ok_or_else(|| Failure::Refused(format!("extent {number} of {} is free", shown(path))))
}

impl Report {
    fn new(path: &Path, drive: &DiskLook) -> Self {
        let (usage, info) = (drive.store().usage(), drive.info());
        let Recovery { how, replayed_extents, records, .. } = drive.recovery();
        let extents = drive.store().extent_facts();
        let shares = Shares::new(&info, &extents);
        let lifetime = drive.store().lifetime_before();
        let (hosts, disk) = (lifetime.map(|it| it.hosts), lifetime.map(|it| it.medium));
        let (stored, written) = (hosts.map(|it| it.written_bytes), disk.map(|it| it.written_bytes));
        let (retrieved, read) = (hosts.map(|it| it.read_bytes), disk.map(|it| it.read_bytes));
        let amplified = |all: Option<u64>, of: Option<u64>| quotient(all?, of?);
        let (pairs, live) = (drive.pairs(), drive.store().live_pairs());
        Self {
            drive: DriveReport::new(path, &info),
            opens_by: match how {
                How::Checkpoint => "checkpoint",
                How::Scan => "scan",
            },
            log_extents: replayed_extents,
            log_records: records,
            pairs,
            internal_records: usage.values.records - pairs,
            live_bytes: live.bytes,
            tombstones: usage.tombstones.records,
            stored_bytes: stored,
            written_bytes: written,
            write_amplification: amplified(written, stored),
            retrieved_bytes: retrieved,
            read_bytes: read,
            read_amplification: amplified(read, retrieved),
            space_amplification: quotient(extents.len() as u64 * info.extent_bytes, live.bytes),
            index_bytes_per_pair: quotient(usage.index_bytes, live.records),
            shares,
            in_use: extents.iter().map(|facts| Extent::new(&info, facts)).collect(),
        }
    }

    /// Formats an amplification and its base, if they are known. Below the bytes of one extent the
    /// ratio is left out: the drive's own records would dominate it.
    fn amplif(&self, amplification: Option<f64>, of: Option<u64>, what: &str) -> String {
        let Some(bytes) = of else { return "not known without a checkpoint".to_owned() };
        let telling = amplification.filter(|_| bytes >= self.drive.extent_bytes());
        format!("{}, for {} {what}", ratio(telling), human_bytes(bytes))
    }

    fn text(&self) -> String {
        let log = format!(
            "{} in {}",
            counted(self.log_records, "record"),
            counted(self.log_extents, "extent")
        );
        let opens = match self.opens_by {
            "checkpoint" => format!("by a checkpoint and {log} written since"),
            _ => format!("by all of its log: {log}"),
        };
        let holds = table::facts(&[
            ("opens", opens),
            ("pairs", grouped(self.pairs)),
            ("internal records", grouped(self.internal_records)),
            ("live bytes", human_bytes(self.live_bytes)),
            ("tombstones", grouped(self.tombstones)),
            ("write amplif.", self.amplif(self.write_amplification, self.stored_bytes, "stored")),
            ("read amplif.", self.amplif(self.read_amplification, self.retrieved_bytes, "read")),
            ("space amplif.", self.amplif(self.space_amplification, Some(self.live_bytes), "live")),
            ("index, bytes a pair", ratio(self.index_bytes_per_pair)),
        ]);
        format!("{}\n{holds}\n{}", self.drive.described(), self.shares.text())
    }
}

impl Extent {
    fn new(info: &DriveInfo, facts: &ExtentFacts) -> Self {
        Self {
            number: facts.id.0,
            stream: name(facts.label.stream),
            has_summary: facts.has_summary,
            used_bytes: u64::from(facts.pages) * u64::from(info.unit_bytes),
            live_records: facts.values.records,
            live_bytes: facts.values.bytes,
            tombstones: facts.tombstones.records,
            is_needed: facts.is_needed,
        }
    }
}

use super::failure;
use super::look::{hex, look, readable};
use crate::args::CheckArgs;
use crate::number::{counted, grouped, seconds};
use crate::output::{Failure, Output};
use crate::path::shown;
use crate::progress::{Progress, Unit};
use crate::table;
use base::{Nanos, human_bytes};
use drive::Damage;
use engine::{Finding, Verified};
use media::PageId;
use node::DiskLook;
use serde::Serialize;
use std::cell::RefCell;
use std::fmt::Write;
use std::path::Path;
use std::time::Instant;

/// Most findings to print.
const PRINTED: usize = 100;

/// The result of a check.
#[derive(Debug, Serialize)]
struct Report {
    path: String,
    is_whole: bool,
    extents: u64,
    pages: u64,
    records: u64,
    values: u64,
    /// Bytes of keys and values of all records.
    bytes: u64,
    time_ns: Nanos,
    /// Listed errors.
    findings: Vec<Place>,
    /// Number of all errors.
    found: u64,
    /// Damage in data that is no longer needed: the list, and the number of all.
    harmless: Vec<Place>,
    found_harmless: u64,
}

/// An error and its place.
#[derive(Debug, Serialize)]
struct Place {
    #[serde(skip_serializing_if = "Option::is_none")]
    extent: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<u32>,
    /// Offset on the disk or in the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    byte: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    /// In hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    key_hex: Option<String>,
    wrong: String,
}

/// Checks the drive that `args` name.
pub(crate) fn run(args: &CheckArgs) -> Result<Output, Failure> {
    let path = &args.path;
    let bar = RefCell::new(Progress::new(args.json).bar("checking", Unit::Bytes));
    let start = Instant::now();
    let mut report = look(path, async |file, drive| {
        let said = |error| failure(path, &file, &error);
        let damage = drive.damage().await.map_err(said)?;
        let progress = move |done, total| bar.borrow_mut().set(done, total);
        let verified = drive.store().verify(progress).await;
        let verified = verified.map_err(|error| said(error.into()))?;
        Ok(Report::new(path, &drive, &damage, &verified))
    })?;
    report.time_ns = Nanos(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX));
    let wrong = (!report.is_whole)
        .then(|| format!("{}: found {}", report.path, counted(report.found, "error")));
    let output = if args.json { Output::json(&report) } else { Output::new(report.text()) };
    Ok(output.with_errors(wrong))
}

impl Report {
    fn new(path: &Path, drive: &DiskLook, damage: &[Damage], verified: &Verified) -> Self {
        let place = |finding: &Finding| Place::of(drive, finding);
        let mut findings: Vec<Place> = damage.iter().map(Place::of_damage).collect();
        findings.extend(verified.findings.iter().map(place));
        let harmless: Vec<Place> = verified.harmless.iter().map(place).collect();
        Self {
            path: shown(path),
            is_whole: findings.is_empty(),
            extents: verified.extents,
            pages: verified.pages,
            records: verified.records,
            values: verified.values,
            bytes: verified.bytes,
            time_ns: Nanos::ZERO,
            found: findings.len() as u64 + verified.more,
            findings,
            found_harmless: harmless.len() as u64 + verified.more_harmless,
            harmless,
        }
    }

    fn text(&self) -> String {
        let mut text = match (self.found, self.found_harmless) {
            (0, 0) => format!("{} is whole\n", self.path),
            (0, _) => {
                format!("{} is whole; only data that is no longer needed is damaged\n", self.path)
            }
            _ => format!("{} is damaged\n", self.path),
        };
        list(&mut text, "wrong", &self.findings, self.found);
        list(&mut text, "damaged, no longer needed", &self.harmless, self.found_harmless);
        let checked = format!(
            "{} with {}, {} of keys and values",
            counted(self.records, "record"),
            counted(self.values, "value"),
            human_bytes(self.bytes)
        );
        let extents =
            format!("{} with {}", counted(self.extents, "extent"), counted(self.pages, "page"));
        text.push('\n');
        text += &table::facts(&[
            ("checked", checked),
            ("on", extents),
            ("in", seconds(self.time_ns.as_secs_f64())),
        ]);
        text
    }
}

fn list(text: &mut String, title: &str, places: &[Place], all: u64) {
    if places.is_empty() {
        return;
    }
    writeln!(text, "\n{title}").expect("a string takes any text");
    for place in places.iter().take(PRINTED) {
        writeln!(text, "  {place}").expect("a string takes any text");
    }
    let more = all.saturating_sub(PRINTED as u64);
    if more > 0 {
        writeln!(text, "  and {} more", grouped(more)).expect("a string takes any text");
    }
}

impl Place {
    fn of(drive: &DiskLook, finding: &Finding) -> Self {
        let at = finding.extent.map(|extent| PageId { extent, page: finding.page.unwrap_or(0) });
        Self {
            extent: finding.extent.map(|extent| extent.0),
            page: finding.page,
            byte: at.map(|at| drive.byte_of(at)),
            key: finding.key.as_ref().map(readable),
            key_hex: finding.key.as_ref().map(|key| hex(key.as_bytes())),
            wrong: finding.wrong.to_string(),
        }
    }

    fn of_damage(damage: &Damage) -> Self {
        Self {
            extent: None,
            page: None,
            byte: Some(damage.byte),
            key: None,
            key_hex: None,
            wrong: damage.part.to_string(),
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let number = |name: &str, number: u64| format!("{name} {}", grouped(number));
        let parts = [
            self.extent.map(|extent| number("extent", extent.into())),
            self.page.map(|page| number("page", page.into())),
            self.byte.map(|byte| number("byte", byte)),
            self.key.as_ref().map(|key| format!("key {key}")),
        ];
        let place: Vec<String> = parts.into_iter().flatten().collect();
        if place.is_empty() {
            return f.write_str(&self.wrong);
        }
        write!(f, "{}: {}", place.join(", "), self.wrong)
    }
}

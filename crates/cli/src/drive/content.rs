use super::look::{hex, readable};
use super::shares::name;
use crate::number::{counted, grouped};
use crate::table;
use base::human_bytes;
use engine::{ExtentFacts, PageContent, PageFacts, RecordFacts, RecordKind};
use media::{PageId, Stream};
use node::DiskLook;
use serde::Serialize;
use std::fmt::Write;

/// Contents of an extent.
#[derive(Debug, Serialize)]
pub(super) struct Content {
    extent: u32,
    /// Offset of the first page on the disk or in the file.
    byte: u64,
    stream: &'static str,
    has_summary: bool,
    live_records: u64,
    live_bytes: u64,
    tombstones: u64,
    pages: Vec<Page>,
}

#[derive(Debug, Serialize)]
struct Page {
    #[serde(rename = "page")]
    number: u32,
    /// Offset on the disk or in the file.
    byte: u64,
    /// `records`, `summary`, or `unreadable`.
    content: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    records: Vec<Record>,
}

#[derive(Debug, Serialize)]
struct Record {
    key: String,
    /// In hexadecimal.
    key_hex: String,
    /// The namespace; 0 holds the drive's own records.
    space: u16,
    kind: &'static str,
    /// Number of the mount, and of the record within it.
    sequence: (u64, u64),
    value_bytes: u32,
    /// Offset of the value on the disk or in the file.
    value_byte: Option<u64>,
    /// Milliseconds since the beginning of 1970, UTC.
    expires_ms: Option<u64>,
    is_live: bool,
}

impl Content {
    pub(super) fn new(drive: &DiskLook, facts: &ExtentFacts, pages: &[PageFacts]) -> Self {
        let byte = |page| drive.byte_of(PageId { extent: facts.id, page });
        let pages = pages.iter().map(|page| Page::new(page, byte(page.number)));
        Self {
            extent: facts.id.0,
            byte: byte(0),
            stream: name(facts.label.stream),
            has_summary: facts.has_summary,
            live_records: facts.values.records,
            live_bytes: facts.values.bytes,
            tombstones: facts.tombstones.records,
            pages: pages.collect(),
        }
    }

    pub(super) fn text(&self) -> String {
        let mut text = format!("extent {}, from byte {}\n\n", self.extent, grouped(self.byte));
        let live =
            format!("{} of {}", counted(self.live_records, "record"), human_bytes(self.live_bytes));
        let mut facts = vec![("filled by", self.stream.to_owned())];
        if self.stream != name(Stream::Index) {
            facts.extend([("live", live), ("tombstones", grouped(self.tombstones))]);
        }
        text += &table::facts(&facts);
        let rows = self.pages.iter().flat_map(Page::rows);
        let header = ["page", "byte", "number", "what", "bytes", "", "key"];
        write!(text, "\n{}", table::list(&header, rows)).expect("a string takes any text");
        text
    }
}

impl Page {
    fn new(facts: &PageFacts, byte: u64) -> Self {
        let (content, records) = match &facts.content {
            PageContent::Unreadable => ("unreadable", &[][..]),
            PageContent::Summary => ("summary", &[][..]),
            PageContent::Records(records) => ("records", &records[..]),
        };
        let records = records.iter().map(|record| Record::new(record, byte)).collect();
        Self { number: facts.number, byte, content, records }
    }

    fn rows(&self) -> Vec<Vec<String>> {
        let place = || [self.number.to_string(), self.byte.to_string()];
        if self.content != "records" {
            let row = place().into_iter().chain(["", self.content].map(str::to_owned));
            return vec![row.chain(["", "", ""].map(str::to_owned)).collect()];
        }
        let row = |record: &Record| {
            let (mount, number) = record.sequence;
            let rest = [
                format!("{mount}.{number}"),
                record.kind.to_owned(),
                record.value_bytes.to_string(),
                if record.is_live { "live" } else { "" }.to_owned(),
                record.key.clone(),
            ];
            place().into_iter().chain(rest).collect()
        };
        self.records.iter().map(row).collect()
    }
}

impl Record {
    fn new(facts: &RecordFacts, page: u64) -> Self {
        Self {
            key: readable(&facts.key),
            key_hex: hex(facts.key.as_bytes()),
            space: facts.space.0,
            kind: match facts.kind {
                RecordKind::Value => "value",
                RecordKind::Tombstone => "tombstone",
                RecordKind::Lost => "lost",
                RecordKind::Table => "table",
            },
            sequence: (facts.mount, facts.number),
            value_bytes: facts.value_len,
            value_byte: facts.value_at.map(|at| page + u64::from(at)),
            expires_ms: facts.expires.map(|date| date.0),
            is_live: facts.is_live,
        }
    }
}

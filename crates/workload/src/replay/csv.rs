use super::format::{Format, Record};
use super::number::{seconds, whole};
use super::problem::{Problem, Text};
use crate::kind::Kind;
use csv_core::{ReadRecordResult, Reader, ReaderBuilder, Terminator};

/// Parses lines of time, operation, key and size.
///
/// It gets one line at a time and not the file. An unclosed quote thus spoils one line only, and
/// skipped lines do not shift the numbers of the others.
#[derive(Debug)]
pub(super) struct Csv {
    reader: Reader,
    /// The fields of a line, concatenated.
    bytes: Vec<u8>,
    /// The end of each field.
    ends: Vec<usize>,
    count: usize,
}

impl Csv {
    pub(super) fn new() -> Self {
        let reader = ReaderBuilder::new().terminator(Terminator::Any(b'\n')).build();
        Self { reader, bytes: Vec::new(), ends: Vec::new(), count: 0 }
    }

    /// Finds the fields of `line`, a non-empty line with its line feed. Returns their number.
    pub(super) fn split(&mut self, line: &[u8]) -> Result<usize, Problem> {
        // The fields have at most the line's length, and at most as many of them exist as bytes.
        if self.bytes.len() < line.len() {
            self.bytes.resize(line.len(), 0);
            self.ends.resize(line.len(), 0);
        }
        self.reader.reset();
        let (result, _, _, count) = self.reader.read_record(line, &mut self.bytes, &mut self.ends);
        if result != ReadRecordResult::Record {
            return Err(Problem::Quote);
        }
        self.count = count;
        Ok(count)
    }

    fn fields(&self) -> impl Iterator<Item = &[u8]> {
        let ends = &self.ends[..self.count];
        let starts = std::iter::once(&0).chain(ends);
        starts.zip(ends).map(|(&start, &end)| &self.bytes[start..end])
    }

    /// True for a line that names the columns.
    pub(super) fn is_header(&mut self, line: &[u8]) -> bool {
        let names = Format::Csv.columns().as_bytes().split(|&byte| byte == b',');
        self.split(line).is_ok()
            && self.fields().map(|field| field.trim_ascii().to_ascii_lowercase()).eq(names)
    }

    /// Returns the record in `line`.
    pub(super) fn record(&mut self, line: &[u8]) -> Result<Record<'_>, Problem> {
        let count = self.split(line)?;
        let mut fields = self.fields();
        let (Some(time), Some(operation), Some(key), Some(size), None) =
            (fields.next(), fields.next(), fields.next(), fields.next(), fields.next())
        else {
            return Err(Problem::ColumnsOf(Format::Csv, count));
        };
        let (time, operation) = (time.trim_ascii(), operation.trim_ascii());
        let kind =
            kind(operation).ok_or_else(|| Problem::Operation(Format::Csv, Text::new(operation)))?;
        Ok(Record {
            time: seconds(time).ok_or_else(|| Problem::Time(Text::new(time)))?,
            kind,
            key,
            size: bytes(size.trim_ascii(), kind)?,
        })
    }
}

fn kind(operation: &[u8]) -> Option<Kind> {
    match &operation.to_ascii_lowercase()[..] {
        b"store" | b"put" | b"set" => Some(Kind::Store),
        b"retrieve" | b"get" => Some(Kind::Retrieve),
        b"delete" | b"del" => Some(Kind::Delete),
        b"exist" => Some(Kind::Exist),
        _ => None,
    }
}

fn bytes(size: &[u8], kind: Kind) -> Result<u64, Problem> {
    match size {
        b"" if kind == Kind::Store => Err(Problem::NoSize),
        b"" => Ok(0),
        _ => whole(size).ok_or_else(|| Problem::Size("size", Text::new(size))),
    }
}

use super::csv::Csv;
use super::format::{Format, Record};
use super::lines::Lines;
use super::problem::{Problem, TraceError};
use super::trace::{Builder, Trace};
use super::twitter;
use std::io::BufRead;

impl Trace {
    /// Reads a trace from `source`; its format is found out from its first line if none is given.
    /// Errors begin with `file` as it is.
    ///
    /// `progress` is told how many bytes have been read, every few megabytes and at the end.
    pub fn parse(
        file: &str,
        source: impl BufRead,
        format: Option<Format>,
        progress: impl FnMut(u64),
    ) -> Result<Self, TraceError> {
        let mut lines = Lines::new(source, progress);
        let trace = parse(&mut lines, format);
        trace.map_err(|problem| TraceError::new(file, lines.number(), problem))
    }
}

fn parse<R: BufRead, P: FnMut(u64)>(
    lines: &mut Lines<R, P>,
    format: Option<Format>,
) -> Result<Trace, Problem> {
    let mut csv = Csv::new();
    let first = lines.next()?.ok_or(Problem::NoOperations)?;
    let format = match format {
        Some(format) => format,
        None => find_format(&mut csv, first)?,
    };
    let mut builder = Builder::new(format);
    if format != Format::Csv || !csv.is_header(first) {
        builder.push(&record(format, &mut csv, first)?)?;
    }
    while let Some(line) = lines.next()? {
        builder.push(&record(format, &mut csv, line)?)?;
    }
    builder.finish()
}

/// The format of a trace whose first line is `line`.
fn find_format(csv: &mut Csv, line: &[u8]) -> Result<Format, Problem> {
    match csv.split(line) {
        Ok(4) => Ok(Format::Csv),
        _ if twitter::has_columns(line) => Ok(Format::Twitter),
        Ok(columns) => Err(Problem::Columns(columns)),
        Err(problem) => Err(problem),
    }
}

fn record<'a>(format: Format, csv: &'a mut Csv, line: &'a [u8]) -> Result<Record<'a>, Problem> {
    match format {
        Format::Csv => csv.record(line),
        Format::Twitter => twitter::record(line),
    }
}

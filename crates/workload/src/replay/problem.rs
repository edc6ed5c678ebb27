use super::format::Format;
use super::number::Seconds;
use super::trace::{DURATION_MAX, OPERATIONS_MAX};
use base::limits::KEY_BYTES_MAX;
use std::fmt;

/// Why a trace cannot be read, in one sentence, after the file and, if one is to blame, the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    file: String,
    line: Option<u64>,
    problem: Problem,
}

/// What is wrong, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Problem {
    /// Of the file.
    Read(String),
    /// By the program of this name.
    Compressed(&'static str),
    NoOperations,
    /// Of a line.
    LineBytes,
    Quote,
    /// How many there are, where the format is not known yet.
    Columns(usize),
    /// The same where it is.
    ColumnsOf(Format, usize),
    Time(Text),
    Timestamp(Text),
    Backwards {
        time: Seconds,
        last: Seconds,
    },
    Duration {
        time: Seconds,
        first: Seconds,
    },
    Operation(Format, Text),
    NoKey,
    Size(&'static str, Text),
    NoSize,
    Operations,
}

/// As much of a field as a sentence can quote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Text(String);

const TEXT_BYTES_MAX: usize = 40;

impl Text {
    pub(super) fn new(field: &[u8]) -> Self {
        let shown = field[..field.len().min(TEXT_BYTES_MAX)].escape_ascii();
        let rest = if field.len() > TEXT_BYTES_MAX { "..." } else { "" };
        Self(format!("{shown}{rest}"))
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0)
    }
}

impl TraceError {
    /// Found in `file` when line number `line` was the last that was read.
    pub(super) fn new(file: &str, line: u64, problem: Problem) -> Self {
        let of_file =
            matches!(problem, Problem::Read(_) | Problem::Compressed(_) | Problem::NoOperations);
        Self { file: file.to_owned(), line: (!of_file).then_some(line), problem }
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.file)?;
        if let Some(line) = self.line {
            write!(f, "{line}:")?;
        }
        write!(f, " {}", self.problem)
    }
}

impl std::error::Error for TraceError {}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(reason) => write!(f, "the trace cannot be read: {reason}"),
            Self::Compressed(program) => {
                write!(f, "the trace is compressed; decompress it first, with {program} -d")
            }
            Self::NoOperations => f.write_str("there is no operation in the trace"),
            Self::LineBytes => f.write_str("the line has more than 64 KiB; an operation has less"),
            Self::Quote => f.write_str(
                "a quote is not closed; a key in quotes ends on its line, with each quote in it \
                 doubled",
            ),
            Self::Columns(count) => write!(
                f,
                "{count} columns are no format of traces; csv has 4 ({}), twitter 7 ({})",
                Format::Csv.columns(),
                Format::Twitter.columns()
            ),
            Self::ColumnsOf(format, count) => {
                let columns = format.columns();
                write!(f, "{count} columns where the format {format} has {columns}")
            }
            Self::Time(text) => {
                write!(f, "the time {text} is not seconds such as 12.5, below 18446744073")
            }
            Self::Timestamp(text) => write!(
                f,
                "the timestamp {text} is not a whole number of seconds, below 18446744073"
            ),
            Self::Backwards { time, last } => write!(
                f,
                "the time {time} is before {last}, that of the line before; sort the trace by time"
            ),
            Self::Duration { time, first } => write!(
                f,
                "the time {time} is more than {} days after {first}, the first; times are in \
                 seconds",
                DURATION_MAX.0 / 86_400_000_000_000
            ),
            Self::Operation(format, text) => {
                write!(f, "the operation {text} is none of {}", format.operations())
            }
            Self::NoKey => write!(f, "the key is empty; a key has 1 to {KEY_BYTES_MAX} bytes"),
            Self::Size(column, text) => {
                write!(f, "the {column} {text} is not a whole number of bytes")
            }
            Self::NoSize => f.write_str("the size is missing; a store has that of its value"),
            Self::Operations => {
                write!(f, "a trace has at most {OPERATIONS_MAX} operations; cut it here")
            }
        }
    }
}

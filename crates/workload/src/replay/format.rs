use crate::kind::Kind;
use std::fmt;
use std::str::FromStr;

/// How a trace is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Time, operation, key and size of each operation, as RFC 4180 separates them.
    Csv,
    /// The cache traces of Twitter (Yang et al., OSDI 2020; github.com/twitter/cache-trace).
    Twitter,
}

/// A text that names no format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormatError;

/// What a line says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record<'a> {
    /// Nanoseconds from the trace's own origin.
    pub(super) time: u64,
    pub(super) kind: Kind,
    pub(super) key: &'a [u8],
    /// Bytes of the value; 0 where it is not known, except of a store.
    pub(super) size: u64,
}

impl Format {
    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Twitter => "twitter",
        }
    }

    /// The columns, as they are named to a user.
    pub(super) const fn columns(self) -> &'static str {
        match self {
            Self::Csv => "time,operation,key,size",
            Self::Twitter => "timestamp,key,key size,value size,client,operation,TTL",
        }
    }

    /// The operations, as they are named to a user.
    pub(super) const fn operations(self) -> &'static str {
        match self {
            Self::Csv => "store, retrieve, delete and exist",
            Self::Twitter => {
                "get, gets, set, add, replace, cas, append, prepend, delete, incr and decr"
            }
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the format of a trace is csv or twitter")
    }
}

impl std::error::Error for FormatError {}

impl FromStr for Format {
    type Err = FormatError;

    fn from_str(text: &str) -> Result<Self, FormatError> {
        [Self::Csv, Self::Twitter]
            .into_iter()
            .find(|format| format.name() == text)
            .ok_or(FormatError)
    }
}

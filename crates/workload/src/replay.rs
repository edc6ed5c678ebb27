//! Traces of key-value stores, and doing again what they recorded.

mod csv;
mod format;
mod key_table;
mod lines;
mod number;
mod pace;
mod parser;
mod problem;
mod trace;
mod twitter;

pub use format::{Format, FormatError};
pub use pace::{Pace, PaceError, Speed};
pub use problem::TraceError;
pub use trace::Trace;

use crate::kind::Kind;
use base::{Key, Nanos};
use std::sync::Arc;

/// A trace being done again: hands out its operations in order.
#[derive(Clone, Debug)]
pub struct Replay {
    trace: Arc<Trace>,
    pace: Pace,
    next: usize,
}

/// One operation of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) kind: Kind,
    pub(crate) key: u32,
    /// From the start of the replay; `None` when it is due as soon as it can be submitted.
    pub(crate) due: Option<Nanos>,
}

impl Replay {
    /// The operations of `trace` from the first on, at `pace`.
    pub fn new(trace: Arc<Trace>, pace: Pace) -> Self {
        Self { trace, pace, next: 0 }
    }

    /// The next operation, in the order of the trace; `None` after the last.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Step> {
        let (time, kind, key) = self.trace.operation(self.next)?;
        self.next += 1;
        Some(Step { kind, key, due: self.pace.due(time) })
    }

    /// The key of a number below [`keys`](Self::keys).
    #[inline]
    pub(crate) fn key(&self, number: u32) -> Key {
        self.trace.key(number)
    }

    /// How many keys the trace names.
    pub(crate) fn keys(&self) -> u32 {
        self.trace.keys()
    }

    /// How many operations there are in all.
    pub(crate) fn operations(&self) -> u64 {
        self.trace.operations()
    }

    /// The size of the value of `version` of `key`: see [`Trace::value_bytes`].
    #[inline]
    pub(crate) fn value_bytes(&self, key: u32, version: u32) -> Option<u32> {
        self.trace.value_bytes(key, version)
    }
}

#[cfg(test)]
mod tests;

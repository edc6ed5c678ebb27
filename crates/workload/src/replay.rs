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

/// A trace being replayed: returns its operations in order.
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
    /// The time from the start of the replay; `None` when it is due at once.
    pub(crate) due: Option<Nanos>,
}

impl Replay {
    /// Returns the operations of `trace`, at `pace`.
    pub fn new(trace: Arc<Trace>, pace: Pace) -> Self {
        Self { trace, pace, next: 0 }
    }

    /// Returns the next operation, in the order of the trace; `None` after the last.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Step> {
        let (time, kind, key) = self.trace.operation(self.next)?;
        self.next += 1;
        Some(Step { kind, key, due: self.pace.due(time) })
    }

    /// Returns the key of a number below [`keys`](Self::keys).
    #[inline]
    pub(crate) fn key(&self, number: u32) -> Key {
        self.trace.key(number)
    }

    /// Returns the number of keys in the trace.
    pub(crate) fn keys(&self) -> u32 {
        self.trace.keys()
    }

    /// Returns the number of operations.
    pub(crate) fn operations(&self) -> u64 {
        self.trace.operations()
    }

    /// Returns the size of the value of `version` of `key`: see [`Trace::value_bytes`].
    #[inline]
    pub(crate) fn value_bytes(&self, key: u32, version: u32) -> Option<u32> {
        self.trace.value_bytes(key, version)
    }
}

#[cfg(test)]
mod tests;

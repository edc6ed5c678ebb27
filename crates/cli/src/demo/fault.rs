use super::pair::Pair;
use crate::path::shown;
use serde::Serialize;
use std::path::Path;

/// A missing or wrong pair.
#[derive(Debug, Serialize)]
pub(super) struct Fault {
    path: String,
    /// Index of the chunk in a long file.
    chunk: Option<u32>,
    problem: String,
}

/// Most faults in the list; all are counted.
const LISTED_MAX: usize = 100;

/// Faults of pairs.
#[derive(Debug, Default)]
pub(super) struct Faults {
    pub(super) count: u64,
    pub(super) listed: Vec<Fault>,
}

impl Faults {
    /// Adds the fault of `pair`, of the file at `path`.
    pub(super) fn add(&mut self, path: &Path, pair: &Pair, problem: String) {
        self.count += 1;
        if self.listed.len() < LISTED_MAX {
            self.listed.push(Fault { path: shown(path), chunk: pair.chunk, problem });
        }
    }
}

impl Fault {
    /// Returns the fault in one line.
    pub(super) fn line(&self) -> String {
        let Self { path, chunk, problem } = self;
        let chunk = chunk.map_or_else(String::new, |chunk| format!(" chunk {chunk}"));
        format!("{path}{chunk}: {problem}")
    }
}

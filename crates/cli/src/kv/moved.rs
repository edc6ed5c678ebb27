//! Counts of an export or an import.

use super::archive::Totals;
use super::key::shown;
use crate::number::grouped;
use crate::output::Output;
use crate::table;
use serde::{Serialize, Serializer};

/// Skipped keys.
#[derive(Debug, Default)]
pub(super) struct LeftOut {
    pub(super) count: u64,
    /// Some of the keys, and the reasons.
    names: Vec<String>,
    /// Hash of the last added key: it may be added again.
    last: Option<Vec<u8>>,
}

/// Most skipped keys that are listed.
const NAMES_MAX: usize = 5;

impl LeftOut {
    /// Adds a key. Repeated calls with the same key count once.
    pub(super) fn add(&mut self, key: &[u8], why: &str) {
        if self.last.as_deref() == Some(key) {
            return;
        }
        self.last = Some(key.to_vec());
        self.count += 1;
        if self.names.len() < NAMES_MAX {
            self.names.push(format!("\"{}\" {why}", shown(key)));
        }
    }

    /// Returns the count and the list, for a table.
    pub(super) fn fact(&self) -> Option<(&'static str, String)> {
        let fact = ("left out", format!("{}: {}", grouped(self.count), self.listed()));
        (self.count > 0).then_some(fact)
    }

    /// Returns the listed keys.
    pub(super) fn listed(&self) -> String {
        let more = if self.count > self.names.len() as u64 { ", ..." } else { "" };
        self.names.join(", ") + more
    }
}

/// Counts of moved and skipped pairs.
#[derive(Debug, Serialize)]
pub(super) struct Moved {
    pub(super) target: String,
    pub(super) file: String,
    #[serde(serialize_with = "as_numbers", flatten)]
    pub(super) totals: Totals,
    /// Keys that the server refused.
    pub(super) left_out: u64,
    /// Keys that expired during the transfer.
    pub(super) expired: u64,
    /// Whether this run continued an earlier one.
    pub(super) is_resumed: bool,
}

/// The same with the checksum as text, since a JSON number cannot hold it.
fn as_numbers<S: Serializer>(totals: &Totals, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Numbers {
        keys: u64,
        strings: u64,
        hashes: u64,
        fields: u64,
        sorted_sets: u64,
        members: u64,
        expiring: u64,
        bytes: u64,
        checksum: String,
    }
    let Totals { strings, hashes, fields, sorted_sets, members, expiring, bytes, checksum } =
        *totals;
    let checksum = format!("{checksum:032x}");
    let keys = totals.keys();
    Numbers { keys, strings, hashes, fields, sorted_sets, members, expiring, bytes, checksum }
        .serialize(serializer)
}

impl Moved {
    /// Returns the output, under a title that contains the verb `done`.
    pub(super) fn output(
        &self,
        done: &str,
        is_json: bool,
        more: Vec<(&'static str, String)>,
    ) -> Output {
        if is_json {
            return Output::json(self);
        }
        let mut facts = vec![("file", self.file.clone())];
        facts.extend(self.totals.facts());
        if self.expired > 0 {
            facts.push(("expired during the transfer", grouped(self.expired)));
        }
        if self.is_resumed {
            facts.push(("begun", "by an earlier run, which this one continued".to_owned()));
        }
        facts.extend(more);
        Output::new(format!("{done} {}\n\n{}", self.target, table::facts(&facts)))
    }
}

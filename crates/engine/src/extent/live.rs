//! Counts of live records.

use super::Change;
use base::limits::KEY_BYTES_INLINE;
use serde::{Deserialize, Serialize};
use std::iter::Sum;

/// Records and the bytes that they stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Live {
    /// How many.
    pub records: u64,
    /// Their footprints: headers, padding and summary entries included.
    pub bytes: u64,
    /// Of values, those whose keys have more than the 16 bytes that fit a command.
    pub long_keys: u64,
}

impl Live {
    pub(crate) fn add(&mut self, bytes: u64) {
        self.records += 1;
        self.bytes += bytes;
    }

    /// A value that has a key of this length.
    pub(crate) fn add_value(&mut self, key_len: usize, bytes: u64) {
        self.add(bytes);
        self.long_keys += u64::from(key_len > KEY_BYTES_INLINE);
    }

    pub(crate) fn add_all(&mut self, other: Self) {
        self.records += other.records;
        self.bytes += other.bytes;
        self.long_keys += other.long_keys;
    }

    pub(crate) fn remove(&mut self, bytes: u64) {
        assert!(self.records > 0 && self.bytes >= bytes, "a record that is taken off was counted");
        self.records -= 1;
        self.bytes -= bytes;
    }

    /// The value of a key of this length.
    pub(crate) fn remove_value(&mut self, key_len: usize, bytes: u64) {
        self.remove(bytes);
        let long = u64::from(key_len > KEY_BYTES_INLINE);
        assert!(self.long_keys >= long, "a long key that is taken off was counted");
        self.long_keys -= long;
        assert!(self.long_keys <= self.records, "long keys are some of those that were counted");
    }

    /// Adds what a writer has counted.
    pub(crate) fn change(&mut self, change: Change) {
        let records = self.records.checked_add_signed(change.records);
        let bytes = self.bytes.checked_add_signed(change.bytes);
        assert!(
            records.is_some() && bytes.is_some(),
            "no more records are taken off than there are"
        );
        let long_keys = self.long_keys.checked_add_signed(change.long_keys);
        let are_some = long_keys.is_some() && long_keys <= records;
        assert!(are_some, "no more long keys are counted than records");
        self.records = records.unwrap_or_default();
        self.bytes = bytes.unwrap_or_default();
        self.long_keys = long_keys.unwrap_or_default();
    }

    pub(crate) fn remove_all(&mut self, other: Self) {
        let is_part = self.records >= other.records && self.bytes >= other.bytes;
        assert!(is_part, "counts that are taken off are a part of the whole");
        assert!(self.long_keys >= other.long_keys, "their long keys are a part of the whole");
        self.records -= other.records;
        self.bytes -= other.bytes;
        self.long_keys -= other.long_keys;
    }
}

impl Sum for Live {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |mut sum, live| {
            sum.add_all(live);
            sum
        })
    }
}

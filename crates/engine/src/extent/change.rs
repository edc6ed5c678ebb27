//! Changes of an extent's counts, until they are added to them.

use crate::key_space::TableId;
use base::limits::KEY_BYTES_INLINE;
use clock::UnixMillis;

/// A change of the counts of an extent.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    pub(crate) is_changed: bool,
    pub(crate) in_flight: i32,
    /// Values of the table that was counted first: most extents have those of one table alone.
    first: Option<(TableId, Change)>,
    /// Those of other tables.
    others: Vec<(TableId, Change)>,
    pub(crate) tombstones: Change,
    /// When the first of the values that were added expires.
    pub(crate) expires_first: Option<UnixMillis>,
}

/// A change of a count of live records.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Change {
    pub(crate) records: i64,
    pub(crate) bytes: i64,
    pub(crate) long_keys: i64,
}

impl Change {
    fn add_all(&mut self, other: Self) {
        self.records += other.records;
        self.bytes += other.bytes;
        self.long_keys += other.long_keys;
    }

    /// Adds `sign` times a value of `bytes`, whose key has `key_len` bytes.
    #[inline]
    pub(crate) fn add(&mut self, sign: i64, key_len: usize, bytes: u64) {
        self.records += sign;
        self.bytes += sign * bytes.cast_signed();
        self.long_keys += sign * i64::from(key_len > KEY_BYTES_INLINE);
    }
}

impl Counted {
    /// Adds another change.
    pub(crate) fn add(&mut self, other: &Self) {
        self.in_flight += other.in_flight;
        for (table, change) in other.values() {
            self.values_of(*table).add_all(*change);
        }
        self.tombstones.add_all(other.tombstones);
        let dates = [self.expires_first, other.expires_first].into_iter().flatten();
        self.expires_first = dates.min();
    }

    /// Returns the changes of live values, by their tables.
    pub(crate) fn values(&self) -> impl Iterator<Item = &(TableId, Change)> {
        self.first.iter().chain(&self.others)
    }

    /// Returns the change of the live values of `table`.
    #[inline]
    pub(crate) fn values_of(&mut self, table: TableId) -> &mut Change {
        match &self.first {
            Some((first, _)) if *first != table => self.values_of_other(table),
            _ => &mut self.first.get_or_insert((table, Change::default())).1,
        }
    }

    fn values_of_other(&mut self, table: TableId) -> &mut Change {
        let at = self.others.iter().position(|(id, _)| *id == table).unwrap_or_else(|| {
            self.others.push((table, Change::default()));
            self.others.len() - 1
        });
        &mut self.others[at].1
    }
}

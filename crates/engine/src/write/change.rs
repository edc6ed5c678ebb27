//! The changes of keys that a write requests, which happen together or not at all.

use crate::format::record::{Header, InBatch, Kind, Sequence, header_len};
use crate::hashed_key::HashedKey;
use crate::key_space::{KeySpaceId, TableId};
use crate::write::condition::{Condition, Write};
use base::{Buf, Key};
use clock::UnixMillis;

/// The change of one key, if its condition is met.
#[derive(Clone, Copy)]
pub(crate) struct Change<'a> {
    pub(crate) space: KeySpaceId,
    pub(crate) key: HashedKey<'a>,
    pub(crate) condition: Condition,
    pub(crate) effect: Effect<'a>,
}

/// The effect of a change.
#[derive(Clone, Copy)]
pub(crate) enum Effect<'a> {
    /// The key gets a value.
    Put { value: &'a Buf, expires: Option<UnixMillis> },
    /// The key is removed. One that does not exist needs no record.
    Delete,
    /// The key stays as it is: only the condition counts.
    Keep,
}

impl<'a> Change<'a> {
    /// Stores `value`.
    pub(crate) fn put(space: KeySpaceId, key: HashedKey<'a>, value: &'a Buf, write: Write) -> Self {
        let Write { condition, expires } = write;
        Self { space, key, condition, effect: Effect::Put { value, expires } }
    }

    /// Removes a key.
    pub(crate) fn delete(space: KeySpaceId, key: &'a Key, condition: Condition) -> Self {
        Self { space, key: HashedKey::new(key), condition, effect: Effect::Delete }
    }

    /// Returns the kind of record that it leaves.
    pub(crate) fn kind(&self) -> Kind {
        if matches!(self.effect, Effect::Put { .. }) { Kind::Value } else { Kind::Tombstone }
    }

    pub(crate) fn expires(&self) -> Option<UnixMillis> {
        if let Effect::Put { expires, .. } = self.effect { expires } else { None }
    }

    pub(crate) fn value(&self) -> Option<&'a Buf> {
        if let Effect::Put { value, .. } = self.effect { Some(value) } else { None }
    }

    pub(crate) fn value_len(&self) -> u32 {
        self.value().map_or(0, Buf::len)
    }

    pub(crate) fn key_len(&self) -> usize {
        self.key.key.as_bytes().len()
    }

    /// Returns the bytes of the record's header, padding included.
    pub(crate) fn header_len(&self) -> usize {
        header_len(self.key_len(), self.expires())
    }

    /// Returns whether it leaves a record where the key `exists`, or does not.
    pub(crate) fn has_record(&self, exists: bool) -> bool {
        match self.effect {
            Effect::Put { .. } => true,
            Effect::Delete => exists,
            Effect::Keep => false,
        }
    }

    /// Returns the header of its record, as far as the change alone determines it.
    pub(crate) fn header(&self) -> Header<'a> {
        Header {
            sequence: Sequence::default(),
            kind: self.kind(),
            table: TableId::STORE,
            value_len: self.value_len(),
            value_crc: 0,
            value_offset: 0,
            expires: self.expires(),
            batch: InBatch::default(),
            key: self.key.key.as_bytes(),
        }
    }
}

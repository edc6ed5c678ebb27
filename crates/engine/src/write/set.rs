//! The changes of one write, which happen together or not at all.

use crate::format::record::Kind;
use crate::write::change::{Change, Effect};
use crate::write::size::Size;

/// The changes of one write, and the space that they take.
#[derive(Clone, Copy)]
pub(crate) struct WriteSet<'a> {
    pub(crate) changes: &'a [Change<'a>],
    /// The kind of record that must leave the most space free.
    pub(crate) kind: Kind,
    /// Bytes that the write takes of the protected buffer.
    pub(crate) bytes: u32,
    /// `None` for a single change, which may begin on any page of any extent.
    pub(crate) size: Option<Size>,
}

impl<'a> WriteSet<'a> {
    /// Returns a write of a single key.
    pub(crate) fn one(change: &'a Change<'a>) -> Self {
        let (kind, bytes) = (change.kind(), change.value_len());
        Self { changes: std::slice::from_ref(change), kind, bytes, size: None }
    }

    /// Returns a write of several keys, no two of them equal.
    pub(crate) fn together(changes: &'a [Change<'a>], size: Size) -> Self {
        let bytes = u32::try_from(size.bytes()).expect("a batch fits an extent");
        Self { changes, kind: size.kind, bytes, size: Some(size) }
    }

    /// Returns false if the write appends no record, whatever the keys hold.
    pub(crate) fn may_write(&self) -> bool {
        self.changes.iter().any(|change| !matches!(change.effect, Effect::Keep))
    }
}

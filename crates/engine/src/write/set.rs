//! The changes of one write, which happen together or not at all.

use crate::format::record::Kind;
use crate::key_space::TableId;
use crate::read::look_up::{Found, Known};
use crate::write::change::{Change, Effect};
use crate::write::landing::Kept;
use crate::write::size::Size;

/// The members of one write, and the space that they take. A write of a single key `IS_ONE`: the
/// compiler knows that there is one member, and makes code without loops for it.
pub(crate) struct WriteSet<'m, 'k, const IS_ONE: bool> {
    members: &'m mut [Member<'k>],
    /// The kind of record that must leave the most space free.
    pub(crate) kind: Kind,
    /// Bytes that the write takes of the protected buffer.
    pub(crate) bytes: u32,
    /// `None` for a single change, which may begin on any page of any extent.
    pub(crate) size: Option<Size>,
}

/// A change, and how far it is.
pub(crate) struct Member<'k> {
    pub(crate) change: Change<'k>,
    /// The table of the key, once there is room.
    pub(crate) table: TableId,
    /// The record of the key, once it is known.
    pub(crate) found: Known<Found>,
    /// That record is a value that has not expired: noted as the conditions are checked.
    pub(crate) exists: bool,
    /// Bytes of the new record, and of the value that it replaces.
    pub(crate) bytes: u64,
    pub(crate) bytes_replaced: u64,
    /// The new record, once it is in the log, if the write waits for it.
    pub(crate) kept: Option<Kept>,
}

impl<'m, 'k> WriteSet<'m, 'k, true> {
    /// Returns a write of a single key.
    pub(crate) fn one(member: &'m mut Member<'k>) -> Self {
        let (kind, bytes) = (member.change.kind(), member.change.value_len());
        Self { members: std::slice::from_mut(member), kind, bytes, size: None }
    }
}

impl<'m, 'k> WriteSet<'m, 'k, false> {
    /// Returns a write of several keys, no two of them equal.
    pub(crate) fn together(members: &'m mut [Member<'k>], size: Size) -> Self {
        let bytes = u32::try_from(size.bytes()).expect("a batch fits an extent");
        Self { members, kind: size.kind, bytes, size: Some(size) }
    }
}

impl<'k, const IS_ONE: bool> WriteSet<'_, 'k, IS_ONE> {
    #[inline]
    pub(crate) fn members(&self) -> &[Member<'k>] {
        if IS_ONE { std::slice::from_ref(&self.members[0]) } else { self.members }
    }

    #[inline]
    pub(crate) fn members_mut(&mut self) -> &mut [Member<'k>] {
        if IS_ONE { std::slice::from_mut(&mut self.members[0]) } else { self.members }
    }

    /// Returns false if the write appends no record, whatever the keys hold.
    pub(crate) fn may_write(&self) -> bool {
        self.members().iter().any(|it| !matches!(it.change.effect, Effect::Keep))
    }
}

impl<'k> From<Change<'k>> for Member<'k> {
    fn from(change: Change<'k>) -> Self {
        Self {
            change,
            table: TableId::STORE,
            found: Known::From(0),
            exists: false,
            bytes: 0,
            bytes_replaced: 0,
            kept: None,
        }
    }
}

impl Member<'_> {
    pub(crate) fn record(&self) -> Option<&Found> {
        match &self.found {
            Known::Is(found) => found.as_ref(),
            Known::From(_) => None,
        }
    }

    /// Takes the record out, which is unknown afterwards.
    pub(crate) fn take_record(&mut self) -> Option<Found> {
        match std::mem::replace(&mut self.found, Known::From(0)) {
            Known::Is(found) => found,
            Known::From(_) => None,
        }
    }

    pub(crate) fn is_known(&self) -> bool {
        matches!(self.found, Known::Is(_))
    }

    /// Returns whether the write leaves a record of the key, which is known.
    pub(crate) fn has_record(&self) -> bool {
        self.change.has_record(self.exists)
    }
}

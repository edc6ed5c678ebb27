//! How many extents each stream must leave free.

use crate::format::record::Kind;
use media::Stream;

/// The stream would need an extent that is kept for garbage collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoRoom;

/// Extents that stores must leave. Each time cleaning moves at most an extent's worth of records,
/// which fill the cleaner's open extent and, where they pack worse than before, up to two more; the
/// third is for tombstones, which take little and make room.
pub(crate) const RESERVED_EXTENTS: u32 = 3;

/// Returns the number of extents that must stay free, beside those kept for an index, when `stream`
/// opens one for a record of `kind`. Table pages beyond what is kept for them leave hosts one.
pub(crate) const fn reserve(stream: Stream, kind: Kind) -> u32 {
    match (stream, kind) {
        (Stream::Host, Kind::Tombstone) => RESERVED_EXTENTS - 1,
        (Stream::Host, _) => RESERVED_EXTENTS,
        (Stream::Gc, _) => 0,
        (Stream::Index, _) => RESERVED_EXTENTS + 1,
    }
}

/// Extents beside those that the capacity fills: the reserve, the open extents of both streams, and
/// one for hosts to write to while the cleaner works.
pub const SPARE_EXTENTS_MIN: u32 = RESERVED_EXTENTS + 3;

/// The resource that a store has to wait for before it can be appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shortage {
    /// An extent.
    Extent,
    /// Room in the protected buffer.
    Buffer,
}

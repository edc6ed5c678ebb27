//! Key spaces that no NVMe host can name: namespaces have less numbers.

use engine::{KeySpaceId, Store};

const FIRST: u16 = 0x8000;

/// What the server keeps for itself, of all databases.
pub(crate) const NOTES: KeySpaceId = KeySpaceId(u16::MAX);

/// Databases that there can be.
pub(crate) const DATABASES_MAX: u16 = (u16::MAX - FIRST) / 2 - 1;

/// Where the roots of hashes and sorted sets are, by their keys, of the database whose strings are
/// in `strings`.
pub(crate) const fn roots(strings: KeySpaceId) -> KeySpaceId {
    KeySpaceId(FIRST + 2 * strings.0)
}

/// Where the nodes below those roots are, by their numbers.
pub(crate) const fn nodes(strings: KeySpaceId) -> KeySpaceId {
    KeySpaceId(FIRST + 2 * strings.0 + 1)
}

/// Whether `space` holds records that no client names: notes of the server, and the nodes below
/// the roots of hashes and sorted sets.
pub const fn is_internal(space: KeySpaceId) -> bool {
    space.0 >= FIRST && !is_of_roots(space)
}

/// Whether it is a key space of roots.
pub(crate) const fn is_of_roots(space: KeySpaceId) -> bool {
    is_of_collections(space) && space.0.is_multiple_of(2)
}

/// Whether it is a key space of roots or nodes.
pub(crate) const fn is_of_collections(space: KeySpaceId) -> bool {
    space.0 >= FIRST && space.0 < NOTES.0
}

/// Whether the database whose strings are in `strings` has hashes or sorted sets.
pub(crate) fn has_collections(store: &Store, strings: KeySpaceId) -> bool {
    store.has_key_space(roots(strings))
}

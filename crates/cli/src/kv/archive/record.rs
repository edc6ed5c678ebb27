use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

use super::totals::Totals;

/// A record of an archive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::kv) enum Record<'a> {
    /// The source of the pairs: the first record.
    Source {
        /// The server and its database, as a target.
        #[serde(borrow)]
        target: &'a str,
        /// The server's run id, if its cursors are valid for this run only.
        #[serde(borrow)]
        run: &'a str,
    },
    /// The value of a key, or a part of it.
    #[serde(borrow)]
    Entry(Entry<'a>),
    /// All keys that the listing returned before this cursor precede this record.
    Cursor(u64),
    /// The totals: the last record.
    End(Totals),
}

impl<'a> Record<'a> {
    /// Returns the entry, if the record is one.
    pub(in crate::kv) fn entry(&self) -> Option<&Entry<'a>> {
        match self {
            Self::Entry(entry) => Some(entry),
            _ => None,
        }
    }
}

/// The value of a key, or a part of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::kv) struct Entry<'a> {
    #[serde(borrow)]
    pub(in crate::kv) key: Bytes<'a>,
    /// Expiry of the key, in milliseconds since 1970.
    pub(in crate::kv) expires: Option<u64>,
    /// Whether this is the first part of the key.
    pub(in crate::kv) is_first: bool,
    /// Whether this is the last part of the key.
    pub(in crate::kv) is_last: bool,
    #[serde(borrow)]
    pub(in crate::kv) content: Content<'a>,
}

/// The value of a key, by its type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::kv) enum Content<'a> {
    #[serde(borrow)]
    String(Bytes<'a>),
    /// Fields and their values.
    #[serde(borrow)]
    Hash(Vec<(Bytes<'a>, Bytes<'a>)>),
    /// Members and their scores.
    #[serde(borrow)]
    SortedSet(Vec<(Bytes<'a>, f64)>),
}

/// Bytes that are borrowed from the block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::kv) struct Bytes<'a>(pub(in crate::kv) &'a [u8]);

impl Serialize for Bytes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Bytes<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Borrowed;

        impl<'de> Visitor<'de> for Borrowed {
            type Value = Bytes<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bytes")
            }

            fn visit_borrowed_bytes<E: Error>(self, bytes: &'de [u8]) -> Result<Bytes<'de>, E> {
                Ok(Bytes(bytes))
            }
        }

        deserializer.deserialize_bytes(Borrowed)
    }
}

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

use super::totals::Totals;

/// What an archive is made of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::kv) enum Record<'a> {
    /// Where the pairs are from: the first record.
    Source {
        /// The server and its database, as a target.
        #[serde(borrow)]
        target: &'a str,
        /// What names this run of the server, if its cursors mean nothing to the next one.
        #[serde(borrow)]
        run: &'a str,
    },
    /// What a key holds, or some of it.
    #[serde(borrow)]
    Entry(Entry<'a>),
    /// All that a listing returned up to this cursor stands before.
    Cursor(u64),
    /// The sum of it all: the last record.
    End(Totals),
}

impl<'a> Record<'a> {
    /// What a key holds, if it is that.
    pub(in crate::kv) fn entry(&self) -> Option<&Entry<'a>> {
        match self {
            Self::Entry(entry) => Some(entry),
            _ => None,
        }
    }
}

/// What a key holds, or some of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::kv) struct Entry<'a> {
    #[serde(borrow)]
    pub(in crate::kv) key: Bytes<'a>,
    /// Milliseconds since 1970 at which the key expires.
    pub(in crate::kv) expires: Option<u64>,
    /// Whether nothing of the key stands before.
    pub(in crate::kv) is_first: bool,
    /// Whether nothing of the key follows.
    pub(in crate::kv) is_last: bool,
    #[serde(borrow)]
    pub(in crate::kv) content: Content<'a>,
}

/// What a key holds, by its type.
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

/// Bytes that are taken from where they lie.
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

//! Buffers and keys in a saved state.

use crate::buf::Buf;
use crate::key::Key;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;

/// What a buffer holds, wherever it holds it.
#[derive(Serialize, Deserialize)]
enum Content<'a> {
    Phantom {
        len: u32,
        tag: u64,
    },
    #[serde(borrow)]
    Bytes(Cow<'a, [u8]>),
}

impl Serialize for Buf {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let content = match self.bytes() {
            None => Content::Phantom { len: self.len(), tag: self.checksum() },
            Some(bytes) => Content::Bytes(bytes.into()),
        };
        content.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Buf {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Content::deserialize(deserializer)? {
            Content::Phantom { len, tag } => Self::phantom(len, tag),
            Content::Bytes(bytes) => Self::copy_from(&bytes),
        })
    }
}

impl Serialize for Key {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.as_bytes().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = Cow::<[u8]>::deserialize(deserializer)?;
        Self::new(&bytes).map_err(D::Error::custom)
    }
}

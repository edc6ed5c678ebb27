//! Graves: the nodes of collections whose roots are gone, which no client can reach.
//!
//! A command that removes the root of a collection with nodes below it writes a grave in the same
//! step: the list of the nodes right below the root. A root with a date has a grave from the start,
//! with that date. Graves outlive a restart, so `upkeep` removes all nodes eventually.

use super::node::{Reader, bytes};
use base::{Buf, BufMut, Key};
use clock::UnixMillis;
use engine::KeySpaceId;

/// A grave: the date (8 bytes), the database's key space (2), the key's length (1), the key, and of
/// each node its height (1) and number (8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Grave {
    /// When the root expires; 0 when it is gone.
    pub(crate) date: UnixMillis,
    pub(crate) strings: KeySpaceId,
    pub(crate) key: Key,
    pub(crate) nodes: Vec<(u8, u64)>,
}

impl Grave {
    pub(crate) fn value(&self) -> Buf {
        let key = self.key.as_bytes();
        let len = u8::try_from(key.len()).expect("a key has at most 255 bytes");
        let mut all = self.date.0.to_le_bytes().to_vec();
        all.extend(self.strings.0.to_le_bytes());
        all.push(len);
        all.extend(key);
        for (height, id) in &self.nodes {
            all.push(*height);
            all.extend(id.to_le_bytes());
        }
        let mut value = BufMut::unpooled(all.len());
        value.as_mut().copy_from_slice(&all);
        value.freeze()
    }

    /// Reads what [`Self::value`] wrote; `None` when it is no such thing.
    pub(crate) fn read(value: &Buf) -> Option<Self> {
        let mut from = Reader::new(value);
        let date = UnixMillis(from.number()?);
        let strings = KeySpaceId(u16::from_le_bytes(from.array()?));
        let [len] = from.array()?;
        let key = Key::new(bytes(&from.part(len.into())?)).ok()?;
        let mut nodes = Vec::new();
        while let Some([height]) = from.array() {
            nodes.push((height, from.number()?));
        }
        Some(Self { date, strings, key, nodes })
    }
}

use crate::error::Error;
use crate::store::Store;
use crate::write::change::{Change, WriteSet};
use crate::write::condition::Write;
use base::{Buf, Key};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// A key space: an isolated set of keys. 0 is the store's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct KeySpaceId(pub u16);

impl KeySpaceId {
    /// Where the store keeps its own records.
    pub(crate) const STORE: Self = Self(0);
}

/// One life of a key space. Deleting a key space ends the life of all its records at once: the next
/// one has another generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TableId {
    /// The key space.
    pub space: KeySpaceId,
    /// How often it was deleted before.
    pub generation: u32,
}

impl TableId {
    pub(crate) const STORE: Self = Self { space: KeySpaceId::STORE, generation: 0 };
}

/// Records that keep a key space, so that damage to one does not lose all its keys.
const COPIES: u8 = 2;

/// A key space that was never created, or was deleted.
const ABSENT: u32 = 0;
/// One that is being created: not durable yet.
const CREATING: u32 = 1;
const PRESENT: u32 = 2;
const PRESENCE_BITS: u32 = 2;

/// All key spaces: for each id a word with its generation and its presence, since every command
/// asks.
#[derive(Debug)]
pub(crate) struct KeySpaces(Box<[AtomicU32]>);

impl Default for KeySpaces {
    fn default() -> Self {
        Self((0..=u16::MAX).map(|_| AtomicU32::new(ABSENT)).collect())
    }
}

impl KeySpaces {
    #[inline]
    fn word(&self, space: KeySpaceId) -> &AtomicU32 {
        &self.0[usize::from(space.0)]
    }

    /// The table that holds the keys of `space` now.
    #[inline]
    pub(crate) fn table(&self, space: KeySpaceId) -> Result<TableId, Error> {
        if space == KeySpaceId::STORE {
            return Ok(TableId::STORE);
        }
        let word = self.word(space).load(Ordering::Relaxed);
        if word % (1 << PRESENCE_BITS) == PRESENT {
            Ok(TableId { space, generation: word >> PRESENCE_BITS })
        } else {
            Err(Error::NoKeySpace)
        }
    }

    /// Begins to create `space`, unless it exists or somebody else creates it.
    fn begin(&self, space: KeySpaceId) -> Result<TableId, Error> {
        if space == KeySpaceId::STORE {
            return Err(Error::KeySpaceReserved);
        }
        let create = |word| (word % (1 << PRESENCE_BITS) == ABSENT).then_some(word | CREATING);
        let word = self.word(space).fetch_update(Ordering::Relaxed, Ordering::Relaxed, create);
        let word = word.map_err(|_| Error::KeySpaceExists)?;
        Ok(TableId { space, generation: word >> PRESENCE_BITS })
    }

    pub(crate) fn set(&self, table: TableId, exists: bool) {
        assert!(table.generation < 1 << 30, "a key space can be deleted 2^30 times");
        let presence = if exists { PRESENT } else { ABSENT };
        let word = (table.generation << PRESENCE_BITS) | presence;
        self.word(table.space).store(word, Ordering::Relaxed);
    }

    /// What is known of each that was ever created, for a saved state.
    pub(crate) fn save(&self) -> Vec<(KeySpaceId, u32)> {
        let word = |space: KeySpaceId| (space, self.word(space).load(Ordering::Relaxed));
        self.known().into_iter().map(word).collect()
    }

    /// Takes what [`Self::save`] returned.
    pub(crate) fn restore(&self, words: &[(KeySpaceId, u32)]) {
        for (space, word) in words {
            self.word(*space).store(*word, Ordering::Relaxed);
        }
    }

    /// Those that exist, are being created, or were deleted.
    pub(crate) fn known(&self) -> Vec<KeySpaceId> {
        let spaces = (1..=u16::MAX).map(KeySpaceId);
        spaces.filter(|space| self.word(*space).load(Ordering::Relaxed) != ABSENT).collect()
    }

    fn existing(&self) -> Vec<KeySpaceId> {
        let spaces = (1..=u16::MAX).map(KeySpaceId);
        spaces.filter(|space| self.table(*space).is_ok()).collect()
    }

    /// The key and value of one of the records that keep `table` across a restart.
    fn encode(table: TableId, exists: bool, copy: u8) -> ([u8; 3], [u8; 5]) {
        let mut value = [0; 5];
        value[..4].copy_from_slice(&table.generation.to_le_bytes());
        value[4] = u8::from(exists);
        let [low, high] = table.space.0.to_le_bytes();
        ([low, high, copy], value)
    }

    /// The keys of the records that keep `space`.
    pub(crate) fn keys(space: KeySpaceId) -> impl Iterator<Item = Key> {
        let [low, high] = space.0.to_le_bytes();
        (0..COPIES).map(move |copy| Key::new(&[low, high, copy]).expect("three bytes are a key"))
    }

    /// Reads such a record; `None` when it is not one.
    pub(crate) fn decode(key: &[u8], value: &[u8]) -> Option<(TableId, bool)> {
        let [low, high, _copy] = *key.first_chunk()?;
        let space = KeySpaceId(u16::from_le_bytes([low, high]));
        let (generation, exists) = value.split_first_chunk()?;
        let exists = match exists {
            [0] => false,
            [1] => true,
            _ => return None,
        };
        Some((TableId { space, generation: u32::from_le_bytes(*generation) }, exists))
    }
}

impl Store {
    /// Creates an empty key space.
    ///
    /// Durable on return, in the mode that [`Ack`](crate::Ack) names, as is
    /// [`Self::delete_key_space`].
    pub async fn create_key_space(self: &Arc<Self>, space: KeySpaceId) -> Result<(), Error> {
        let table = self.spaces.begin(space)?;
        let kept = self.keep(table, true).await;
        if kept.is_err() {
            // One of its records may be there.
            let _ = self.keep(table, false).await;
        }
        self.spaces.set(table, kept.is_ok());
        kept
    }

    /// Deletes a key space and every key in it, at once.
    pub async fn delete_key_space(self: &Arc<Self>, space: KeySpaceId) -> Result<(), Error> {
        let table = self.table(space)?;
        let next = TableId { space, generation: table.generation + 1 };
        self.spaces.set(next, false);
        let kept = self.keep(next, false).await;
        if kept.is_err() {
            // One of the next life's records may be there, and would win.
            let _ = self.keep(table, true).await;
            self.spaces.set(table, true);
            return kept;
        }
        self.index.drop_table(table);
        self.log.values.forget_table(table);
        self.log.windows.forget_table(table);
        self.log.state().uncount_table(table);
        self.wake_cleaner_when_low();
        Ok(())
    }

    /// The key spaces that exist, in the order of their ids.
    pub fn key_spaces(&self) -> Vec<KeySpaceId> {
        self.spaces.existing()
    }

    /// Whether this key space exists.
    pub fn has_key_space(&self, space: KeySpaceId) -> bool {
        self.table(space).is_ok()
    }

    async fn keep(self: &Arc<Self>, table: TableId, exists: bool) -> Result<(), Error> {
        for copy in 0..COPIES {
            let (key, value) = KeySpaces::encode(table, exists, copy);
            let key = Key::new(&key).expect("three bytes are a key");
            let value = Buf::copy_from(&value);
            let announced = self.announce();
            let change = Change::put(KeySpaceId::STORE, &key, &value, Write::default());
            self.write(WriteSet::one(&change), announced).await?;
        }
        Ok(())
    }
}

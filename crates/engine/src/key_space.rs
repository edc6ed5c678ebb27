use crate::error::Error;
use base::Key;
use clock::{Stage, User, Users};
use serde::{Deserialize, Serialize};
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
pub(crate) const COPIES: u8 = 2;

/// A key space that was never created, or was deleted.
const ABSENT: u32 = 0;
/// A key space that is being created or deleted: that is not durable yet.
const CHANGING: u32 = 1;
const PRESENT: u32 = 2;
const PRESENCE_BITS: u32 = 2;

/// All key spaces: for each id a word with its generation and its presence, since every command
/// asks.
#[derive(Debug)]
pub(crate) struct KeySpaces {
    words: Box<[AtomicU32]>,
    /// Tasks that create or delete one.
    changing: Users,
}

impl Default for KeySpaces {
    fn default() -> Self {
        let words = (0..=u16::MAX).map(|_| AtomicU32::new(ABSENT)).collect();
        Self { words, changing: Users::default() }
    }
}

impl KeySpaces {
    #[inline]
    fn word(&self, space: KeySpaceId) -> &AtomicU32 {
        &self.words[usize::from(space.0)]
    }

    /// Returns the table that holds the keys of `space` now.
    #[inline]
    pub(crate) fn table(&self, space: KeySpaceId) -> Result<TableId, Error> {
        if space == KeySpaceId::STORE {
            return Ok(TableId::STORE);
        }
        // In one order with what else tells that a key space is there, or assumes that it is not.
        let word = self.word(space).load(Ordering::SeqCst);
        if word % (1 << PRESENCE_BITS) == PRESENT {
            Ok(TableId { space, generation: word >> PRESENCE_BITS })
        } else {
            Err(Error::NoKeySpace)
        }
    }

    /// Begins to create `space`, unless it exists or another task creates or deletes it. The
    /// creation ends by [`Self::set`] before the returned guard drops.
    pub(crate) fn begin_to_create(&self, space: KeySpaceId) -> Result<(TableId, User), Error> {
        if space == KeySpaceId::STORE {
            return Err(Error::KeySpaceReserved);
        }
        let create = |word| (word % (1 << PRESENCE_BITS) == ABSENT).then_some(word | CHANGING);
        let word = self.word(space).fetch_update(Ordering::Relaxed, Ordering::Relaxed, create);
        let word = word.map_err(|_| Error::KeySpaceExists)?;
        let table = TableId { space, generation: word >> PRESENCE_BITS };
        Ok((table, self.changing.add()))
    }

    /// Begins to delete `space`, which has no keys from now on. Returns its table, the table of its
    /// next life and a guard. The deletion ends by [`Self::set`] of one of the tables before the
    /// guard drops; until then no task creates the key space.
    pub(crate) fn begin_to_delete(
        &self,
        space: KeySpaceId,
    ) -> Result<(TableId, TableId, User), Error> {
        if space == KeySpaceId::STORE {
            return Err(Error::KeySpaceReserved);
        }
        let table = self.table(space)?;
        let next = TableId { space, generation: table.generation + 1 };
        let [before, after] = [(table, PRESENT), (next, CHANGING)]
            .map(|(table, presence)| (table.generation << PRESENCE_BITS) | presence);
        let word = self.word(space);
        let begun = word.compare_exchange(before, after, Ordering::Relaxed, Ordering::Relaxed);
        begun.map_err(|_| Error::NoKeySpace)?;
        Ok((table, next, self.changing.add()))
    }

    /// Returns whether a task creates or deletes `space`.
    pub(crate) fn is_changing(&self, space: KeySpaceId) -> bool {
        self.word(space).load(Ordering::Relaxed) % (1 << PRESENCE_BITS) == CHANGING
    }

    /// Waits until no task creates or deletes a key space.
    pub(crate) async fn settled(&self) {
        self.changing.end(Stage::Latch).await;
    }

    pub(crate) fn set(&self, table: TableId, exists: bool) {
        assert!(table.generation < 1 << 30, "a key space can be deleted 2^30 times");
        let presence = if exists { PRESENT } else { ABSENT };
        let word = (table.generation << PRESENCE_BITS) | presence;
        self.word(table.space).store(word, Ordering::SeqCst);
    }

    /// Returns the words of all key spaces that were ever created, for a saved state.
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

    /// Returns the key spaces that exist, are being created, or were deleted.
    pub(crate) fn known(&self) -> Vec<KeySpaceId> {
        let spaces = (1..=u16::MAX).map(KeySpaceId);
        spaces.filter(|space| self.word(*space).load(Ordering::Relaxed) != ABSENT).collect()
    }

    pub(crate) fn existing(&self) -> Vec<KeySpaceId> {
        let spaces = (1..=u16::MAX).map(KeySpaceId);
        spaces.filter(|space| self.table(*space).is_ok()).collect()
    }

    /// Returns the key and value of one of the records that keep `table` across a restart.
    pub(crate) fn encode(table: TableId, exists: bool, copy: u8) -> ([u8; 3], [u8; 5]) {
        let mut value = [0; 5];
        value[..4].copy_from_slice(&table.generation.to_le_bytes());
        value[4] = u8::from(exists);
        let [low, high] = table.space.0.to_le_bytes();
        ([low, high, copy], value)
    }

    /// Returns the keys of the records that keep `space`.
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

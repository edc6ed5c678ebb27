//! Creating and deleting key spaces.

use crate::error::Error;
use crate::key_space::{COPIES, KeySpaceId, KeySpaces, TableId};
use crate::store::Store;
use crate::write::change::Change;
use crate::write::condition::Write;
use crate::write::set::WriteSet;
use base::{Buf, Key};
use std::sync::Arc;

impl Store {
    /// Creates an empty key space.
    ///
    /// Durable on return, in the mode that [`Ack`](crate::Ack) names, as is
    /// [`Self::delete_key_space`].
    pub async fn create_key_space(self: &Arc<Self>, space: KeySpaceId) -> Result<(), Error> {
        let (table, _creating) = self.spaces.begin_to_create(space)?;
        let kept = self.keep(table, true).await;
        if kept.is_err() {
            // One of its records may have landed.
            let _ = self.keep(table, false).await;
        }
        self.spaces.set(table, kept.is_ok());
        kept
    }

    /// Creates a key space unless it exists. Waits while another task creates or deletes it.
    pub async fn ensure_key_space(self: &Arc<Self>, space: KeySpaceId) -> Result<(), Error> {
        while !self.has_key_space(space) {
            match self.create_key_space(space).await {
                Err(Error::KeySpaceExists) => self.spaces.settled().await,
                created => return created,
            }
        }
        Ok(())
    }

    /// Deletes a key space and every key in it, at once. Waits while another task creates or
    /// deletes it. It can be created again once this returns.
    pub async fn delete_key_space(self: &Arc<Self>, space: KeySpaceId) -> Result<(), Error> {
        while self.spaces.is_changing(space) {
            self.spaces.settled().await;
        }
        let (table, next, _deleting) = self.spaces.begin_to_delete(space)?;
        let kept = self.keep(next, false).await;
        if kept.is_err() {
            // One of the next life's records may have landed, and would win on opening.
            let _ = self.keep(table, true).await;
            self.spaces.set(table, true);
            return kept;
        }
        self.index.drop_table(table);
        self.lanes.each(|lane| {
            if let Some(values) = &mut lane.values {
                values.forget_table(table);
            }
        });
        self.log.windows.forget_table(table);
        self.log.whole().uncount_table(table);
        self.spaces.set(next, false);
        self.wake_cleaner_when_low();
        Ok(())
    }

    /// Returns the key spaces that exist, in the order of their ids.
    pub fn key_spaces(&self) -> Vec<KeySpaceId> {
        self.spaces.existing()
    }

    /// Returns whether this key space exists.
    pub fn has_key_space(&self, space: KeySpaceId) -> bool {
        self.table(space).is_ok()
    }

    async fn keep(self: &Arc<Self>, table: TableId, exists: bool) -> Result<(), Error> {
        for copy in 0..COPIES {
            let (key, value) = KeySpaces::encode(table, exists, copy);
            let key = Key::new(&key).expect("three bytes are a key");
            let value = Buf::copy_from(&value);
            let announced = self.announce();
            let (key, always) = ((&key).into(), Write::default());
            let mut put = Change::put(KeySpaceId::STORE, key, &value, always).into();
            self.write(WriteSet::one(&mut put), announced).await?;
        }
        Ok(())
    }
}

use crate::accepted::value_record;
use crate::address::Address;
use crate::announced::Announced;
use crate::cleaner::Turn;
use crate::error::Error;
use crate::index::HashedKey;
use crate::key_space::{KeySpaceId, TableId};
use crate::log::{Appended, NewRecord, NoRoom, Shortage};
use crate::pending::durable;
use crate::record::{InBatch, Kind, header_len};
use crate::store::{Ack, Found, Store};
use crate::undo::{Failed, Revocable};
use crate::write::{Condition, Stored, Write};
use base::{Buf, Key};
use media::Stream;
use std::sync::Arc;

/// What is said of a key that is to be deleted and does not exist.
fn missing(condition: Condition) -> Error {
    condition.check(None).err().unwrap_or(Error::KeyNotFound)
}

impl Store {
    /// Stores `value` under `key`, and says whether that took the place of another.
    ///
    /// Durable on return, in the mode that [`Ack`] names. An error has changed nothing.
    pub async fn put(
        self: &Arc<Self>,
        space: KeySpaceId,
        key: &Key,
        value: &Buf,
        write: Write,
        announced: Announced,
    ) -> Result<Stored, Error> {
        let max = self.value_bytes_max();
        if value.len() > max {
            return Err(Error::ValueTooLong { max });
        }
        self.table(space)?;
        self.put_in(space, key, value, &write, announced).await
    }

    pub(crate) async fn put_in(
        self: &Arc<Self>,
        space: KeySpaceId,
        key: &Key,
        value: &Buf,
        write: &Write,
        mut announced: Announced,
    ) -> Result<Stored, Error> {
        let key = HashedKey::new(key);
        let value_crc = self.log.value_crc(value);
        let mut is_undone = false;
        let accepted = loop {
            let _turn = self.wait_for_room(&mut announced, Kind::Value, value.len()).await?;
            let table = self.spaces.table(space)?;
            let entry = self.enter(table, key).await;
            let found = match self.find(table, key).await {
                Ok(found) => found,
                Err(error) => {
                    drop(entry);
                    announced.pause();
                    is_undone = Box::pin(self.look_again(table, key, error, is_undone)).await?;
                    continue;
                }
            };
            if let Err(refused) = write.condition.check(found.as_ref().and_then(Found::version)) {
                drop((entry, announced));
                return Box::pin(self.refuse(found, refused)).await;
            }
            let record = value_record(table, key, value, value_crc, write.expires);
            match self.supersede(key, found, &record) {
                Ok(Ok(accepted)) => break accepted,
                Ok(Err(NoRoom)) => {}
                Err(Error::CapacityExceeded) => {
                    drop(entry);
                    Box::pin(self.expired_make_room(&mut announced)).await?;
                }
                Err(error) => return Err(error),
            }
        };
        drop(announced);
        self.wake_cleaner_when_low();
        self.put_landed(accepted).await
    }

    /// Returns after a while where the record of a key could not be read for `error` since it did
    /// not land and is to be taken back: then it is looked at again, and once more after that, when
    /// this is true. Otherwise that error.
    async fn look_again(
        self: &Arc<Self>,
        table: TableId,
        key: HashedKey<'_>,
        error: Error,
        is_undone: bool,
    ) -> Result<bool, Error> {
        if error == Error::Unrecovered && !is_undone && self.undoes() {
            return Ok(self.is_undone(table, key).await);
        }
        Err(error)
    }

    /// False when the index cannot hold another key. The store's own records are few.
    pub(crate) fn index_has_room(&self, table: TableId, key: HashedKey<'_>) -> bool {
        table == TableId::STORE || self.index.has_room(table, key)
    }

    /// A key space may be deleted while one of its keys is being looked up.
    pub(crate) fn still_there(&self, table: TableId) -> Result<(), Error> {
        if self.spaces.table(table.space)? == table { Ok(()) } else { Err(Error::NoKeySpace) }
    }

    /// Waits until the log takes a value of `value_len` bytes, behind those that wait already; a
    /// tombstone waits for no value. Cleaning makes room, or finds that there is none to make. An
    /// error also when the medium takes nothing any more.
    pub(crate) async fn wait_for_room(
        self: &Arc<Self>,
        announced: &mut Announced,
        kind: Kind,
        value_len: u32,
    ) -> Result<Turn<'_>, Error> {
        self.log.media.writable()?;
        let mut is_behind = kind.is_value() && !announced.has_waited && self.is_room_awaited();
        loop {
            let short = || self.log.shortage(self.config.ack, kind, value_len);
            let shortage = if is_behind { Some(Shortage::Extent) } else { short() };
            let Some(shortage) = shortage else { break };
            announced.pause();
            match shortage {
                Shortage::Extent => {
                    let was_there = std::mem::replace(&mut announced.has_waited, true);
                    self.cleaner_makes_room(kind, was_there).await?;
                }
                Shortage::Buffer => self.log.landing().await,
            }
            is_behind = false;
        }
        announced.resume();
        Ok(self.turn())
    }

    /// Live values take all of the capacity: waits until the cleaner has looked after those of them
    /// that have expired. An error when there are none.
    pub(crate) async fn expired_make_room(&self, announced: &mut Announced) -> Result<(), Error> {
        announced.pause();
        self.cleaner_drops_expired().await
    }

    /// Removes `key`. [`Error::KeyNotFound`] when it does not exist.
    ///
    /// Durable on return, in the mode that [`Ack`] names.
    pub fn delete(
        self: &Arc<Self>,
        space: KeySpaceId,
        key: &Key,
        announced: Announced,
    ) -> impl Future<Output = Result<(), Error>> {
        self.delete_if(space, key, Condition::MustExist, announced)
    }

    /// As [`Self::delete`], under a condition: a key that has to be unchanged and does not exist
    /// any more has changed.
    pub async fn delete_if(
        self: &Arc<Self>,
        space: KeySpaceId,
        key: &Key,
        condition: Condition,
        mut announced: Announced,
    ) -> Result<(), Error> {
        self.table(space)?;
        let key = HashedKey::new(key);
        let mut is_undone = false;
        let (table, found, appended, _revocable) = loop {
            let _turn = match self.wait_for_room(&mut announced, Kind::Tombstone, 0).await {
                Ok(turn) => turn,
                // A key that is not there needs no room to be deleted.
                Err(full) => {
                    let exists = Box::pin(self.exist(space, key.key)).await?;
                    return Err(if exists { full } else { missing(condition) });
                }
            };
            let table = self.spaces.table(space)?;
            let entry = self.enter(table, key).await;
            let found = match self.find(table, key).await {
                Ok(found) => found,
                Err(error) => {
                    drop(entry);
                    announced.pause();
                    is_undone = Box::pin(self.look_again(table, key, error, is_undone)).await?;
                    continue;
                }
            };
            let version = found.as_ref().and_then(Found::version);
            let refused = condition.check(version).err();
            if let Some(refused) = refused.or(version.is_none().then(|| missing(condition))) {
                drop((entry, announced));
                return Box::pin(self.refuse(found, refused)).await;
            }
            if let Ok((appended, revocable)) = self.append_tombstone(table, key, found.as_ref())? {
                self.point(table, key, found.as_ref(), &appended);
                break (table, found, appended, revocable);
            }
        };
        drop(announced);
        self.wake_cleaner_when_low();
        if self.config.ack == Ack::Program
            && let Err(error) = durable(&appended.pages).await
        {
            let failed = Failed { table, key, at: appended.address, value: None };
            Box::pin(self.undo(failed, found.as_ref())).await;
            return Err(error.into());
        }
        self.forget_tombstone(table, key, appended.address).await;
        Ok(())
    }

    /// Takes a tombstone that is durable out of the index. Gone already when a later store has
    /// taken its place, or cleaning has seen it.
    pub(crate) async fn forget_tombstone(&self, table: TableId, key: HashedKey<'_>, at: Address) {
        let _entry = self.enter(table, key).await;
        self.remove_tombstone(table, key, at).await;
    }

    /// Waits until whoever is told of what was found may be: others may still be writing it.
    pub(crate) async fn settle(&self, found: Option<&Found>) -> Result<(), Error> {
        match found {
            Some(found) => found.settled(&self.log, self.config.ack).await,
            None => Ok(()),
        }
    }

    /// Says why nothing was written, once what was found is what others are told of.
    async fn refuse<T>(&self, found: Option<Found>, refused: Error) -> Result<T, Error> {
        self.settle(found.as_ref()).await?;
        Err(refused)
    }

    fn append_tombstone(
        &self,
        table: TableId,
        key: HashedKey<'_>,
        found: Option<&Found>,
    ) -> Result<Result<(Appended, Option<Revocable>), NoRoom>, Error> {
        self.still_there(table)?;
        let record = NewRecord {
            sequence: None,
            kind: Kind::Tombstone,
            table,
            key: key.key.as_bytes(),
            value: &Buf::phantom(0, 0),
            value_crc: 0,
            expires: None,
            batch: InBatch::default(),
        };
        let mut state = self.log.state();
        if state.buffer_shortage(self.config.ack, self.log.shape.page_bytes, 0).is_some() {
            return Ok(Err(NoRoom));
        }
        let Ok(appended) = self.log.append(&mut state, Stream::Host, &record) else {
            return Ok(Err(NoRoom));
        };
        let bytes = self.log.layout.footprint(header_len(record.key.len(), None), 0);
        state.count_tombstone(self.log.page_id(appended.address).extent, bytes);
        let revocable = self.revocable(&mut state, &appended, found);
        Ok(Ok((appended, revocable)))
    }
}

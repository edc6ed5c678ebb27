use crate::address::Address;
use crate::cleaner::Turn;
use crate::error::Error;
use crate::index::HashedKey;
use crate::key_space::{KeySpaceId, TableId};
use crate::log::{Appended, NewRecord, NoRoom, Pin, Shortage};
use crate::pending::durable;
use crate::record::{InBatch, Kind, header_len};
use crate::sabotage::Sabotage;
use crate::store::{Ack, Found, Store};
use crate::undo::{Failed, FailedValue};
use crate::write::{Condition, Stored, Write};
use base::{Buf, Key};
use media::Stream;
use std::sync::Arc;

/// A store or delete that has been accepted and is on its way to the log. Pages that others wait in
/// stay open for it until it has joined one or this drops.
#[must_use = "pages stay open for it until it drops"]
pub struct Announced {
    store: Arc<Store>,
    counted: bool,
    /// It has waited for space, and had its turn.
    has_waited: bool,
}

impl Announced {
    /// While this one waits for space the others do not wait for it.
    pub(crate) fn pause(&mut self) {
        if std::mem::take(&mut self.counted) {
            self.store.log.retract(self.store.config.ack == Ack::Program);
        }
    }

    fn resume(&mut self) {
        if !std::mem::replace(&mut self.counted, true) {
            self.store.log.announce();
        }
    }
}

impl Drop for Announced {
    fn drop(&mut self) {
        if clock::is_installed() {
            self.pause();
        }
    }
}

impl std::fmt::Debug for Announced {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Announced({})", self.counted)
    }
}

/// What a store writes.
fn value_record<'a>(
    table: TableId,
    key: HashedKey<'a>,
    value: &'a Buf,
    value_crc: u32,
    expires: Option<clock::UnixMillis>,
) -> NewRecord<'a> {
    let (sequence, kind, batch) = (None, Kind::Value, InBatch::default());
    NewRecord { sequence, kind, table, key: key.key.as_bytes(), value, value_crc, expires, batch }
}

/// What is said of a key that is to be deleted and does not exist.
fn missing(condition: Condition) -> Error {
    condition.check(None).err().unwrap_or(Error::KeyNotFound)
}

impl Store {
    /// Announces a store or delete: call it when the command is accepted, before any other wait.
    pub fn announce(self: &Arc<Self>) -> Announced {
        self.log.announce();
        Announced { store: self.clone(), counted: true, has_waited: false }
    }

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
        let (table, found, appended, _kept) = loop {
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
            let exists = found.as_ref().is_some_and(Found::exists);
            if let Err(refused) = write.condition.check(found.as_ref().and_then(Found::version)) {
                drop((entry, announced));
                return Box::pin(self.refuse(found, refused)).await;
            }
            let record = value_record(table, key, value, value_crc, write.expires);
            let appended = match found {
                None if !self.index_has_room(table, key) => Err(Error::CapacityExceeded),
                _ => self.append_value(&record, found.as_ref()),
            };
            match appended {
                Ok(Ok((appended, kept))) => {
                    self.point(table, key, found.as_ref(), &appended).await;
                    break (table, found.map(|found| (found, exists)), appended, kept);
                }
                Ok(Err(NoRoom)) => {}
                Err(Error::CapacityExceeded) => {
                    drop(entry);
                    Box::pin(self.expired_make_room(&mut announced)).await?;
                }
                Err(error) => return Err(error),
            }
        };
        self.counters.count_host_bytes(key.key.as_bytes().len() as u64 + u64::from(value.len()));
        drop(announced);
        self.wake_cleaner_when_low();
        let existed = found.as_ref().is_some_and(|(_, exists)| *exists);
        if self.config.ack == Ack::Program
            && !Sabotage::AnswerBeforeData.is_on()
            && let Err(error) = durable(&appended.pages).await
        {
            let value = Some(FailedValue { len: value.len(), expires: write.expires });
            let failed = Failed { table, key, at: appended.address, value };
            Box::pin(self.undo(failed, found.as_ref().map(|(found, _)| found))).await;
            return Err(error.into());
        }
        Ok(if existed { Stored::Overwrote } else { Stored::Anew })
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

    /// Appends a value if it fits the capacity, counts it in, and keeps its predecessor.
    fn append_value(
        &self,
        record: &NewRecord<'_>,
        found: Option<&Found>,
    ) -> Result<Result<(Appended, Option<Pin<'_>>), NoRoom>, Error> {
        let layout = self.log.layout;
        let header_len = header_len(record.key.len(), record.expires);
        let bytes = layout.footprint(header_len, record.value.len());
        let old = found.filter(|found| found.is_value()).map(|found| {
            let header = &found.header;
            layout.footprint(header.len(), header.value_len)
        });
        self.still_there(record.table)?;
        let mut state = self.log.state();
        let full = state.values.bytes + bytes > self.config.capacity_bytes + old.unwrap_or(0);
        // The store's own records are few, and deleting a key space makes room.
        if full && record.table != TableId::STORE {
            return Err(Error::CapacityExceeded);
        }
        let (ack, page) = (self.config.ack, self.log.shape.page_bytes);
        if state.buffer_shortage(ack, page, record.value.len()).is_some() {
            return Ok(Err(NoRoom));
        }
        let Ok(appended) = self.log.append(&mut state, Stream::Host, record) else {
            return Ok(Err(NoRoom));
        };
        let extent = self.log.page_id(appended.address).extent;
        state.count_value(extent, record.table, record.key.len(), bytes);
        let kept = self.keep_replaced(&mut state, found);
        Ok(Ok((appended, kept)))
    }

    /// False when the index cannot hold another key. The store's own records are few.
    pub(crate) fn index_has_room(&self, table: TableId, key: HashedKey<'_>) -> bool {
        table == TableId::STORE || self.index.has_room(table, key)
    }

    /// A key space may be deleted while one of its keys is being looked up.
    pub(crate) fn still_there(&self, table: TableId) -> Result<(), Error> {
        if self.spaces.table(table.space)? == table { Ok(()) } else { Err(Error::NoKeySpace) }
    }

    /// Points the key's entry from what was found, wherever cleaning has moved that since, to what
    /// was appended. The key's latch is held, which cleaning takes too.
    pub(crate) async fn point(
        &self,
        table: TableId,
        key: HashedKey<'_>,
        found: Option<&Found>,
        appended: &Appended,
    ) {
        match found {
            None => self.index.insert(table, key, appended.address).await,
            Some(found) => {
                let replaced =
                    self.index.replace(table, key, found.address, appended.address).await;
                assert!(replaced, "a latched key's entry stays where it was found");
                self.log.headers.forget(found.address);
                self.log.values.forget(found.address);
                if found.is_value() {
                    let (key_len, value_len) = (key.key.as_bytes().len(), found.header.value_len);
                    let extent = self.log.page_id(found.address).extent;
                    let bytes = self.log.layout.footprint(found.header.len(), value_len);
                    self.log.state().uncount_value(extent, table, key_len, bytes);
                    self.counters.count_dropped_bytes(key_len as u64 + u64::from(value_len));
                }
            }
        }
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
        let (table, found, appended, _kept) = loop {
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
            if let Ok((appended, kept)) = self.append_tombstone(table, key, found.as_ref())? {
                self.point(table, key, found.as_ref(), &appended).await;
                break (table, found, appended, kept);
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
    ) -> Result<Result<(Appended, Option<Pin<'_>>), NoRoom>, Error> {
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
        let kept = self.keep_replaced(&mut state, found);
        Ok(Ok((appended, kept)))
    }
}

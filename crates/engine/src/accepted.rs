use crate::error::Error;
use crate::expiring::Expiring;
use crate::index::HashedKey;
use crate::key_space::TableId;
use crate::log::{Appended, NewRecord, NoRoom};
use crate::pending::durable;
use crate::record::{InBatch, Kind, header_len};
use crate::sabotage::Sabotage;
use crate::store::{Ack, Found, Store};
use crate::undo::{Failed, FailedValue, Revocable};
use crate::write::Stored;
use base::{Buf, Key};
use media::Stream;
use std::sync::Arc;

/// A store that is in the log and in the index: [`Store::put_landed`] waits until it is durable, or
/// takes it back.
#[must_use = "nobody is told of it before it has landed"]
pub struct Accepted {
    table: TableId,
    key: Key,
    hash: u64,
    value: FailedValue,
    appended: Appended,
    /// What it took the place of, and whether that made the key exist.
    found: Option<Found>,
    existed: bool,
    /// That it may have to be taken back, until it has landed.
    _revocable: Option<Revocable>,
}

/// What a store writes.
pub(crate) fn value_record<'a>(
    table: TableId,
    key: HashedKey<'a>,
    value: &'a Buf,
    value_crc: u32,
    expires: Option<clock::UnixMillis>,
) -> NewRecord<'a> {
    let (sequence, kind, batch) = (None, Kind::Value, InBatch::default());
    NewRecord { sequence, kind, table, key: key.key.as_bytes(), value, value_crc, expires, batch }
}

impl Accepted {
    fn stored(&self) -> Stored {
        if self.existed { Stored::Overwrote } else { Stored::Anew }
    }
}

impl Store {
    /// Appends a store, if there is room, and points its key's entry to it. The key's latch is
    /// held, and `found` is what it found there.
    pub(crate) fn supersede(
        &self,
        key: HashedKey<'_>,
        found: Option<Found>,
        record: &NewRecord<'_>,
    ) -> Result<Result<Accepted, NoRoom>, Error> {
        let table = record.table;
        if found.is_none() && !self.index_has_room(table, key) {
            return Err(Error::CapacityExceeded);
        }
        let existed = found.as_ref().is_some_and(Found::exists);
        let (appended, revocable) = match self.append_value(record, found.as_ref())? {
            Ok(appended) => appended,
            Err(NoRoom) => return Ok(Err(NoRoom)),
        };
        self.point(table, key, found.as_ref(), &appended);
        let value = FailedValue { len: record.value.len(), expires: record.expires };
        self.counters.count_host_bytes(record.key.len() as u64 + u64::from(value.len));
        let accepted = Accepted {
            table,
            key: key.key.clone(),
            hash: key.hash,
            value,
            appended,
            found,
            existed,
            _revocable: revocable,
        };
        Ok(Ok(accepted))
    }

    /// Whether [`Self::put_landed`] has nothing to wait for.
    pub fn answers_from_memory(&self) -> bool {
        self.config.ack != Ack::Program
    }

    /// Waits until a store is durable, in the mode that [`Ack`] names, and says whether it took the
    /// place of another. An error has changed nothing, once those that were stored later are waited
    /// for: whoever has several begins with the last.
    pub async fn put_landed(self: &Arc<Self>, accepted: Accepted) -> Result<Stored, Error> {
        if self.config.ack == Ack::Program
            && !Sabotage::AnswerBeforeData.is_on()
            && let Err(error) = durable(&accepted.appended.pages).await
        {
            let Accepted { table, hash, key, value, appended, found, .. } = &accepted;
            let key = HashedKey { hash: *hash, key };
            let failed = Failed { table: *table, key, at: appended.address, value: Some(*value) };
            Box::pin(self.undo(failed, found.as_ref())).await;
            return Err(error.into());
        }
        Ok(accepted.stored())
    }

    /// Appends a value if it fits the capacity, and counts it in.
    fn append_value(
        &self,
        record: &NewRecord<'_>,
        found: Option<&Found>,
    ) -> Result<Result<(Appended, Option<Revocable>), NoRoom>, Error> {
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
        state.count_expiring(
            Expiring::add,
            (extent, appended.address),
            record.table,
            record.expires,
        );
        let revocable = self.revocable(&mut state, &appended, found);
        Ok(Ok((appended, revocable)))
    }

    /// Points the key's entry from what was found, wherever cleaning has moved that since, to what
    /// was appended. The key's latch is held, which cleaning takes too.
    pub(crate) fn point(
        &self,
        table: TableId,
        key: HashedKey<'_>,
        found: Option<&Found>,
        appended: &Appended,
    ) {
        match found {
            None => self.index.insert(table, key, appended.address).when_loaded(),
            Some(found) => {
                let replaced = self.index.replace(table, key, found.address, appended.address);
                assert!(replaced.when_loaded(), "a latched key's entry stays where it was found");
                self.log.headers.forget(found.address);
                if found.is_value() {
                    let (key_len, value_len) = (key.key.as_bytes().len(), found.header.value_len);
                    let extent = self.log.page_id(found.address).extent;
                    let bytes = self.log.layout.footprint(found.header.len(), value_len);
                    let mut state = self.log.state();
                    state.uncount_value(extent, table, key_len, bytes);
                    state.count_expiring(
                        Expiring::remove,
                        (extent, found.address),
                        table,
                        found.header.expires,
                    );
                    if self.config.ack != Ack::Program && self.config.saves_buffer {
                        self.log.release(&mut state, found);
                    }
                    drop(state);
                    self.counters.count_dropped_bytes(key_len as u64 + u64::from(value_len));
                }
            }
        }
    }
}

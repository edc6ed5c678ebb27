//! From the log to the medium: a write is answered when it is durable, or taken back.

use crate::error::Error;
use crate::index::HashedKey;
use crate::key_space::TableId;
use crate::log::Appended;
use crate::look_up::Found;
use crate::pending::{Pending, durable};
use crate::sabotage::Sabotage;
use crate::store::{Ack, Store};
use crate::write::condition::Stored;
use crate::write::undo::{Failed, FailedValue, Revocable};
use base::Key;
use smallvec::SmallVec;
use std::sync::Arc;

/// A write that is in the log and in the index: [`Store::landed`] waits until it is durable, or
/// takes it back.
#[must_use = "no host is told of it before it has landed"]
pub struct Landing {
    stored: Stored,
    pub(crate) records: SmallVec<[Record; 1]>,
    /// What was found of keys that got no record: the host is told of that too.
    pub(crate) unchanged: SmallVec<[Found; 1]>,
}

/// A record of a write.
pub(crate) struct Record {
    pub(crate) table: TableId,
    pub(crate) key: Key,
    pub(crate) hash: u64,
    /// `None` for a tombstone.
    pub(crate) value: Option<FailedValue>,
    pub(crate) appended: Appended,
    /// What it took the place of.
    pub(crate) found: Option<Found>,
    /// That it may have to be taken back, until it has landed.
    #[expect(dead_code, reason = "it counts until it drops")]
    pub(crate) revocable: Option<Revocable>,
}

impl Record {
    fn hashed(&self) -> HashedKey<'_> {
        HashedKey { hash: self.hash, key: &self.key }
    }
}

impl Landing {
    pub(crate) fn new(stored: Stored) -> Self {
        Self { stored, records: SmallVec::new(), unchanged: SmallVec::new() }
    }
}

/// The pages of all records, each once.
pub(crate) fn pages_of<'a>(appended: impl Iterator<Item = &'a Appended>) -> Arc<[Arc<Pending>]> {
    let mut pages: Vec<Arc<Pending>> = Vec::new();
    for page in appended.flat_map(|appended| &appended.pages) {
        if pages.last().is_none_or(|last| !Arc::ptr_eq(last, page)) {
            pages.push(page.clone());
        }
    }
    pages.into()
}

impl Store {
    /// Waits until a write is durable, in the mode that [`Ack`] names, and says whether it took the
    /// place of a value. An error has changed nothing, once the writes that came later are waited
    /// for: a caller that has several begins with the last.
    pub async fn landed(self: &Arc<Self>, landing: Landing) -> Result<Stored, Error> {
        if self.config.ack == Ack::Program {
            self.durable(&landing.records).await?;
            for found in &landing.unchanged {
                found.settled(&self.log, self.config.ack).await?;
            }
        }
        // Takes the deleted keys out of the index, unless later stores have taken their places.
        for record in landing.records.iter().filter(|record| record.value.is_none()) {
            let (table, at) = (record.table, record.appended.address);
            let _entry = self.enter(table, record.hashed()).await;
            self.remove_tombstone(table, record.hashed(), at).await;
        }
        Ok(landing.stored)
    }

    /// Waits until all records are durable, or takes them back.
    async fn durable(self: &Arc<Self>, records: &[Record]) -> Result<(), Error> {
        let landed = match records {
            _ if Sabotage::AnswerBeforeData.is_on() => Ok(()),
            [record] => durable(&record.appended.pages).await,
            records => durable(&pages_of(records.iter().map(|record| &record.appended))).await,
        };
        if landed.is_err() {
            Box::pin(self.undo_all(records)).await;
        }
        if let [first, _, ..] = records {
            let first = first.appended.address;
            self.log.state().batches.retain(|batch| batch.first != first);
        }
        Ok(landed?)
    }

    async fn undo_all(self: &Arc<Self>, records: &[Record]) {
        for record in records {
            let Record { table, value, appended, .. } = record;
            let (key, at) = (record.hashed(), appended.address);
            let failed = Failed { table: *table, key, at, value: *value };
            self.undo(failed, record.found.as_ref()).await;
        }
    }
}

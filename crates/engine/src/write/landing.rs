//! From the log to the medium: a write is answered when it is durable, or undone.

use crate::ack::Ack;
use crate::error::Error;
use crate::hashed_key::HashedKey;
use crate::key_space::TableId;
use crate::log::Appended;
use crate::read::look_up::Found;
use crate::sabotage::Sabotage;
use crate::store::Store;
use crate::write::condition::Stored;
use crate::write::pending::{Pending, durable, outcome};
use crate::write::undo::{Failed, FailedValue, Revocable};
use base::{Key, Nanos};
use clock::{Stage, Stages};
use media::ExtentId;
use smallvec::SmallVec;
use std::sync::Arc;

/// A write that is in the log and in the index: [`Store::landed`] waits until it is durable, or
/// takes it back.
#[must_use = "no host is told of it before it has landed"]
pub struct Landing {
    pub(crate) stored: Stored,
    pub(crate) members: SmallVec<[Landed; 1]>,
}

/// A change of a write that is in the log.
pub(crate) struct Landed {
    pub(crate) table: TableId,
    pub(crate) key: Key,
    /// `None` unless it stores a value.
    pub(crate) value: Option<FailedValue>,
    /// The record that the key had before.
    pub(crate) found: Option<Found>,
    /// Its record, if it has one.
    pub(crate) kept: Option<Kept>,
}

/// A record in the log, which may have to be undone until it has landed.
pub(crate) struct Kept {
    pub(crate) at: Appended,
    pub(crate) revocable: Option<Revocable>,
}

impl Landed {
    fn hashed(&self) -> HashedKey<'_> {
        HashedKey::new(&self.key)
    }
}

impl Landing {
    /// Returns the extent of its last record, if that may have to be undone. Records of one extent
    /// land in the order of their writes.
    pub fn extent(&self) -> Option<ExtentId> {
        let last = self.members.iter().rev().find_map(|member| member.kept.as_ref());
        last?.revocable.as_ref().map(|revocable| revocable.extent)
    }

    /// Waits until the log has written all its pages, or has failed to: then [`Store::landed`]
    /// waits for no page. The time is not accounted.
    pub async fn is_over(&self) {
        for page in self.kept().flat_map(|(_, at)| &at.pages) {
            page.wait().await;
        }
    }

    /// Returns the changes that have a record.
    fn kept(&self) -> impl Iterator<Item = (&Landed, &Appended)> {
        self.members.iter().filter_map(|member| Some((member, &member.kept.as_ref()?.at)))
    }
}

/// Returns the pages of all records, each once.
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
    /// Returns the end of a write of one value if that has landed. If it has not, or is another
    /// write, [`Self::landed`] waits, or undoes it. The caller has waited since `arrival`: if
    /// the write has landed, `spent` is the stages of that time.
    pub fn try_landed(
        &self,
        landing: &Landing,
        arrival: Nanos,
        spent: &mut Stages,
    ) -> Option<Stored> {
        let [Landed { kept: Some(kept), value: Some(_), .. }] = &landing.members[..] else {
            return None;
        };
        let result = match outcome(&kept.at.pages, arrival, spent) {
            None if Sabotage::AnswerBeforeData.is_on() => {
                *spent = Stages::default();
                spent.add(Stage::Batch, clock::now() - arrival);
                Ok(())
            }
            outcome => outcome?,
        };
        result.is_ok().then_some(landing.stored)
    }

    /// Waits until a write is durable, in the mode that [`Ack`] names, and says whether it took the
    /// place of a value. An error has changed nothing once later writes of the key have landed too:
    /// a caller that has several waits for the last one first.
    pub async fn landed(self: &Arc<Self>, landing: Landing) -> Result<Stored, Error> {
        self.land(&landing).await
    }

    /// As [`Self::landed`]; a record may be taken back until `landing` drops.
    pub(crate) async fn land(self: &Arc<Self>, landing: &Landing) -> Result<Stored, Error> {
        if self.config.ack == Ack::Program {
            self.durable(landing).await?;
            if landing.members.iter().any(|member| member.kept.is_none()) {
                Box::pin(self.settle_unchanged(landing)).await?;
            }
        }
        if landing.kept().any(|(member, _)| member.value.is_none()) {
            Box::pin(self.forget_deleted(landing)).await;
        }
        Ok(landing.stored)
    }

    /// Waits until the records that were found of unchanged keys are durable: the host's answer
    /// tells of them too.
    async fn settle_unchanged(&self, landing: &Landing) -> Result<(), Error> {
        for member in landing.members.iter().filter(|member| member.kept.is_none()) {
            if let Some(found) = &member.found {
                found.settled(&self.log, self.config.ack).await?;
            }
        }
        Ok(())
    }

    /// Takes the deleted keys out of the index, unless later stores have replaced their entries.
    async fn forget_deleted(&self, landing: &Landing) {
        for (member, at) in landing.kept().filter(|(member, _)| member.value.is_none()) {
            let _entry = self.enter(member.table, member.hashed()).await;
            self.remove_tombstone(member.table, member.hashed(), at.address);
        }
    }

    /// Waits until all records are durable, or takes them back.
    async fn durable(self: &Arc<Self>, landing: &Landing) -> Result<(), Error> {
        let landed = match &landing.members[..] {
            _ if Sabotage::AnswerBeforeData.is_on() => Ok(()),
            [Landed { kept: Some(kept), .. }] => durable(&kept.at.pages).await,
            _ => durable(&pages_of(landing.kept().map(|(_, at)| at))).await,
        };
        if landed.is_err() {
            Box::pin(self.undo_all(landing)).await;
        }
        if landing.members.len() > 1
            && let Some((_, first)) = landing.kept().next()
        {
            self.log.end_batch(first.address);
        }
        Ok(landed?)
    }

    async fn undo_all(self: &Arc<Self>, landing: &Landing) {
        for (member, at) in landing.kept() {
            let Landed { table, value, found, .. } = member;
            let (key, at) = (member.hashed(), at.address);
            let failed = Failed { table: *table, key, at, value: *value };
            self.undo(failed, found.as_ref()).await;
        }
    }
}

//! Writes. A store, a delete, a conditional store and a batch are one thing: a set of changes that
//! happen together or not at all.
//!
//! 1. [`Store::begin`] makes an [`attempt`] and does all of it that needs no wait.
//! 2. [`Store::write`] is the same for a caller that can wait: it awaits what the attempt needs,
//!    and then continues it.
//! 3. The write is then in the log and in the index. Its [`landing`] waits until its pages are
//!    durable, or undoes it ([`undo`]).

pub(crate) mod announced;
pub(crate) mod append;
pub(crate) mod attempt;
pub(crate) mod batch;
pub(crate) mod change;
pub(crate) mod condition;
pub(crate) mod entry;
pub(crate) mod key_spaces;
pub(crate) mod landing;
pub(crate) mod latch;
pub(crate) mod pending;
pub(crate) mod permit;
pub(crate) mod release;
pub(crate) mod room;
pub(crate) mod set;
pub(crate) mod size;
pub(crate) mod undo;

use crate::ack::Ack;
use crate::error::Error;
use crate::hashed_key::HashedKey;
use crate::key_space::{KeySpaceId, TableId};
use crate::read::look_up::Found;
use crate::store::Store;
use announced::Announced;
use attempt::{Attempt, Need, Step};
use base::{Buf, Key};
use change::{Change, Effect};
use condition::{Condition, Stored, Write};
use landing::Landing;
use set::{Member, WriteSet};
use std::sync::Arc;

/// The state of a write that [`Store::begin_put`] began.
pub enum Begun {
    /// The write is done, and durable in the mode that [`Ack`] names. An error has changed nothing.
    Done(Result<Stored, Error>),
    /// The record is in the log: [`Store::landed`] waits until it is durable.
    Landing(Landing),
    /// The write has to wait, and nothing has changed: call [`Store::put`] to do it.
    Wait(Announced),
}

impl Store {
    /// Stores `value` under `key`, and returns whether that replaced a value.
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
        self.check_put(space, value)?;
        let mut put = Change::put(space, key.into(), value, write).into();
        self.write(WriteSet::one(&mut put), announced).await
    }

    /// Does as much of [`Self::put`] as needs no wait. It needs none if the log has room, no other
    /// task changes the key, and the header of the key's record is in memory.
    pub fn begin_put<'a>(
        self: &Arc<Self>,
        space: KeySpaceId,
        key: impl Into<HashedKey<'a>>,
        value: &Buf,
        write: Write,
        announced: Announced,
    ) -> Begun {
        if let Err(error) = self.check_put(space, value) {
            return Begun::Done(Err(error));
        }
        let mut put = Change::put(space, key.into(), value, write).into();
        self.begin(WriteSet::one(&mut put), announced)
    }

    /// Whether hosts are answered before what they store has landed ([`Ack::Buffer`]).
    pub fn answers_early(&self) -> bool {
        self.config.ack != Ack::Program
    }

    fn check_put(&self, space: KeySpaceId, value: &Buf) -> Result<TableId, Error> {
        let max = self.value_bytes_max();
        if value.len() > max {
            return Err(Error::ValueTooLong { max });
        }
        self.table(space)
    }

    /// Removes `key`. [`Error::KeyNotFound`] when it does not exist.
    ///
    /// Durable on return, in the mode that [`Ack`] names.
    pub async fn delete(
        self: &Arc<Self>,
        space: KeySpaceId,
        key: &Key,
        announced: Announced,
    ) -> Result<(), Error> {
        self.table(space)?;
        let mut delete = Change::delete(space, key, Condition::MustExist).into();
        self.write(WriteSet::one(&mut delete), announced).await.map(drop)
    }

    fn begin(self: &Arc<Self>, set: WriteSet<'_, '_, true>, announced: Announced) -> Begun {
        let mut attempt = Attempt::new(self, set, announced);
        match attempt.advance() {
            Ok(Step::Written) => match attempt.finish() {
                (_, Some(landing)) => Begun::Landing(landing),
                (stored, None) => Begun::Done(Ok(stored)),
            },
            Ok(Step::Refused(refused, at))
                if self.config.ack != Ack::Program || attempt.refusing(at).is_none() =>
            {
                Begun::Done(Err(refused))
            }
            Ok(Step::Refused(..) | Step::Full(_) | Step::Wait(_)) => Begun::Wait(attempt.give_up()),
            Err(error) => Begun::Done(Err(error)),
        }
    }

    /// Does a write, durable on return in the mode that [`Ack`] names. An error has changed
    /// nothing.
    pub(crate) async fn write<const IS_ONE: bool>(
        self: &Arc<Self>,
        set: WriteSet<'_, '_, IS_ONE>,
        announced: Announced,
    ) -> Result<Stored, Error> {
        let begun = {
            let mut attempt = Attempt::new(self, set, announced);
            match attempt.advance()? {
                Step::Written => match attempt.finish() {
                    (_, Some(landing)) => Ok(landing),
                    (stored, None) => return Ok(stored),
                },
                step => Err((attempt, step)),
            }
        };
        match begun {
            Ok(landing) => self.land(&landing).await,
            // Boxed: the future of each command is moved, and where headers are in memory few of
            // them wait here.
            Err((attempt, step)) => Box::pin(self.write_with_waits(attempt, step)).await,
        }
    }

    /// Continues an attempt that has returned `step`.
    async fn write_with_waits<const IS_ONE: bool>(
        self: &Arc<Self>,
        mut attempt: Attempt<'_, '_, IS_ONE>,
        mut step: Step,
    ) -> Result<Stored, Error> {
        let full = loop {
            match step {
                Step::Written => {
                    let finished = attempt.finish();
                    drop(attempt);
                    return match finished {
                        (_, Some(landing)) => self.landed(landing).await,
                        (stored, None) => Ok(stored),
                    };
                }
                Step::Refused(refused, at) => {
                    let found = attempt.refusing(at);
                    drop(attempt);
                    Box::pin(self.settle(found.as_ref())).await?;
                    return Err(refused);
                }
                Step::Full(error) => break error,
                Step::Wait(need @ Need::Room(_)) => {
                    if let Err(full) = attempt.wait(need).await {
                        break full;
                    }
                }
                Step::Wait(need) => attempt.wait(need).await?,
            }
            step = attempt.advance()?;
        };
        Box::pin(self.without_room(attempt.into_set(), full)).await
    }

    /// Finishes a write for which the log has no room: deleting a key that does not exist needs
    /// none.
    async fn without_room<const IS_ONE: bool>(
        self: &Arc<Self>,
        set: WriteSet<'_, '_, IS_ONE>,
        full: Error,
    ) -> Result<Stored, Error> {
        let [Member { change, .. }] = set.members() else { return Err(full) };
        let Change { space, key, condition, effect: Effect::Delete } = change else {
            return Err(full);
        };
        if self.exist(*space, key.key).await? {
            return Err(full);
        }
        condition.check(None)?;
        Ok(Stored::Anew)
    }

    /// Waits until the record that was found is durable: only then may a host learn of it.
    async fn settle(&self, found: Option<&Found>) -> Result<(), Error> {
        match found {
            Some(found) => found.settled(&self.log, self.config.ack).await,
            None => Ok(()),
        }
    }

    /// Returns false when the index cannot hold another key. The store's own records are few.
    pub(crate) fn index_has_room(&self, table: TableId, key: HashedKey<'_>) -> bool {
        table == TableId::STORE || self.index.has_room(table, key)
    }

    /// Returns an error if the key space was deleted while one of its keys was looked up.
    pub(crate) fn still_there(&self, table: TableId) -> Result<(), Error> {
        if self.spaces.table(table.space)? == table { Ok(()) } else { Err(Error::NoKeySpace) }
    }
}

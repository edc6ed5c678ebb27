//! Stores and Retrieves that are executed without a task, as far as nothing has to be waited for.
//!
//! Only for drives without an [`Emulation`](crate::Emulation): an emulated command always waits.

use crate::commit_queue::done;
use crate::completion::{Executed, Outcome};
use crate::status::status_of;
use crate::{kv, kv_key};
use base::limits::{KEY_BYTES_INLINE, VALUE_BYTES_MAX};
use base::{Buf, Key};
use engine::{Announced, Begun, Condition, Error, HashedKey, KeySpaceId, Landing, Store};
use spec::{Command, Opcode, RetrieveOptions, Status, StoreOptions};
use std::sync::Arc;

/// A Store without a condition, or a Retrieve; its key is in the command.
pub(crate) struct Quick {
    space: KeySpaceId,
    key: Key,
    hash: u64,
    action: Action,
}

enum Action {
    /// Store this value.
    Store(Buf),
    /// Retrieve at most this many bytes.
    Retrieve(u32),
}

/// What became of a [`Quick`] that was tried.
pub(crate) enum Tried {
    Done(Outcome),
    /// It is in the log, and not durable.
    Landing(Landing),
    /// It may have to wait. A Store is announced.
    Waits(Quick, Option<Announced>),
}

impl Quick {
    /// Decodes a command and takes its `data`. Returns `None` and takes nothing if it is another
    /// command, or one that must be refused.
    #[inline]
    pub(crate) fn decode(command: &Command, data: &mut Buf) -> Option<Self> {
        if command.is_fused() {
            return None;
        }
        let (space, key) = space_and_key(command)?;
        let action = match command.opcode() {
            Opcode::STORE if is_plain_store(command, data.len()) => {
                Action::Store(std::mem::replace(data, Buf::phantom(0, 0)))
            }
            Opcode::RETRIEVE if RetrieveOptions::from_bits(command.options()).is_some() => {
                Action::Retrieve(command.size())
            }
            _ => return None,
        };
        Some(Self { space, hash: key.hash(), key, action })
    }

    #[inline]
    fn hashed(&self) -> HashedKey<'_> {
        HashedKey { hash: self.hash, key: &self.key }
    }

    pub(crate) fn is_store(&self) -> bool {
        matches!(self.action, Action::Store(_))
    }

    /// Prefetches the index entry of its key.
    #[inline]
    pub(crate) fn expect(&self, store: &Store) {
        store.expect(self.space, self.hashed());
    }

    /// Executes it as far as that takes no wait; a Store was announced. Callers are inside the
    /// monitor.
    #[inline]
    pub(crate) fn attempt(self, store: &Arc<Store>, announced: Option<Announced>) -> Tried {
        match &self.action {
            Action::Retrieve(room) => match store.begin_get(self.space, self.hashed()) {
                Some(got) => Tried::Done(delivered(got.map(|found| found.value), *room).into()),
                None => Tried::Waits(self, None),
            },
            Action::Store(value) => {
                let announced = announced.expect("a Store is announced");
                let write = Condition::Always.into();
                match store.begin_put(self.space, self.hashed(), value, write, announced) {
                    Begun::Done(stored) => Tried::Done(done(stored).into()),
                    Begun::Landing(landing) => Tried::Landing(landing),
                    Begun::Wait(announced) => Tried::Waits(self, Some(announced)),
                }
            }
        }
    }

    /// Executes it where it may wait. `announced` is from [`Tried::Waits`].
    pub(crate) async fn execute(
        self,
        store: &Arc<Store>,
        announced: Option<Announced>,
    ) -> Executed {
        match self.action {
            Action::Retrieve(room) => delivered(store.get(self.space, &self.key).await, room),
            Action::Store(value) => {
                let announced = announced.expect("a Store that waits is announced");
                let always = Condition::Always.into();
                done(store.put(self.space, &self.key, &value, always, announced).await)
            }
        }
    }
}

#[inline]
fn delivered(got: Result<Buf, Error>, room: u32) -> Executed {
    Ok(kv::delivered(got.map_err(status_of)?, room))
}

#[inline]
fn space_and_key(command: &Command) -> Option<(KeySpaceId, Key)> {
    let len = usize::from(command.key_length());
    if !(1..=KEY_BYTES_INLINE).contains(&len) {
        return None;
    }
    let space = kv_key::key_space(command).ok()?;
    Some((space, kv_key::key(command, None, Status::INVALID_FIELD).ok()?))
}

#[inline]
fn is_plain_store(command: &Command, len: u32) -> bool {
    let is_condition = StoreOptions::MUST_EXIST.bits() | StoreOptions::MUST_NOT_EXIST.bits();
    StoreOptions::from_bits(command.options()).is_some()
        && command.options() & is_condition == 0
        && command.size() == len
        && len <= VALUE_BYTES_MAX
}

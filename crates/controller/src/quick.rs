//! Stores and Retrieves that are executed without a task, as far as nothing has to be waited for.
//!
//! Only for drives without an [`Emulation`](crate::Emulation): an emulated command always waits.

use crate::commit_queue::done;
use crate::completion::Outcome;
use crate::io_command::{Begun, Counted};
use crate::status::status_of;
use crate::{kv, kv_key};
use base::limits::{KEY_BYTES_INLINE, VALUE_BYTES_MAX};
use base::{Buf, Key};
use engine::{Announced, Condition, HashedKey, KeySpaceId, Landing, Store};
use spec::{Command, Opcode, RetrieveOptions, StoreOptions};
use std::sync::Arc;

/// A Store without a condition, or a Retrieve; its key is in the command.
pub(crate) struct Quick {
    space: KeySpaceId,
    key: Key,
    hash: u64,
    action: Action,
}

enum Action {
    /// Store this value. It is announced until the engine has the announcement.
    Store(Buf, Option<Announced>),
    /// Retrieve at most this many bytes.
    Retrieve(u32),
}

/// What became of a [`Quick`] that was tried.
pub(crate) enum Tried {
    Done(Outcome),
    /// It is in the log, and not durable.
    Landing(Landing),
    /// It may have to wait: call [`Quick::execute`].
    Waits,
}

impl Quick {
    /// Decodes a command for `store`, takes its `data` and announces a Store. Returns `None` and
    /// takes nothing if it is another command, or one that must be refused.
    #[expect(clippy::inline_always, reason = "it is then made in its place, not copied there")]
    #[inline(always)]
    pub(crate) fn decode(store: &Arc<Store>, command: &Command, data: &mut Buf) -> Option<Self> {
        let len = usize::from(command.key_length());
        if command.is_fused() || !(1..=KEY_BYTES_INLINE).contains(&len) {
            return None;
        }
        let space = kv_key::key_space(command).ok()?;
        let options = command.options();
        // No value is compressed.
        let has_condition = options & !StoreOptions::NO_COMPRESS.bits() != 0;
        let action = match command.opcode() {
            Opcode::STORE
                if !has_condition
                    && command.size() == data.len()
                    && data.len() <= VALUE_BYTES_MAX =>
            {
                let value = std::mem::replace(data, Buf::phantom(0, 0));
                Action::Store(value, Some(store.announce()))
            }
            Opcode::RETRIEVE if RetrieveOptions::from_bits(options).is_some() => {
                Action::Retrieve(command.size())
            }
            _ => return None,
        };
        let key = Key::new(&command.inline_key()[..len]).expect("it has 1 to 16 bytes");
        Some(Self { space, hash: key.hash(), key, action })
    }

    /// Prefetches its index entry.
    pub(crate) fn prefetch(&self, store: &Store) {
        let key = HashedKey { hash: self.hash, key: &self.key };
        match self.action {
            Action::Store(..) => store.expect_write(self.space, key),
            Action::Retrieve(_) => store.expect(self.space, key),
        }
    }

    /// Takes out what is left to execute, after [`Tried::Waits`] or before an attempt.
    pub(crate) fn take(&mut self) -> Self {
        let action = std::mem::replace(&mut self.action, Action::Retrieve(0));
        Self { space: self.space, key: self.key.clone(), hash: self.hash, action }
    }

    /// Announces a Store, which is not, to the reactor that executes it.
    pub(crate) fn announce(&mut self, store: &Arc<Store>) {
        if let Action::Store(_, announced) = &mut self.action {
            *announced = Some(store.announce());
        }
    }

    /// Ends the announcement of a Store: another reactor executes it.
    pub(crate) fn retract(&mut self) {
        if let Action::Store(_, announced) = &mut self.action {
            *announced = None;
        }
    }

    /// Returns what is counted for it. `room` is the length of the host's buffer.
    #[inline]
    pub(crate) fn begun(&self, room: u32) -> Begun {
        match &self.action {
            Action::Store(value, _) => {
                Begun { counted: Counted::Write, bytes: value.len().into(), room: 0 }
            }
            Action::Retrieve(_) => Begun { counted: Counted::Read, bytes: 0, room },
        }
    }

    #[inline]
    pub(crate) fn is_store(&self) -> bool {
        matches!(self.action, Action::Store(..))
    }

    /// Executes it as far as that takes no wait.
    #[inline]
    pub(crate) fn attempt(&mut self, store: &Arc<Store>) -> Tried {
        let key = HashedKey { hash: self.hash, key: &self.key };
        match &mut self.action {
            Action::Retrieve(room) => {
                let mut outcome = Outcome::done();
                let got = store.begin_get(self.space, key, |value| {
                    outcome = kv::delivered(value.into_buf(), *room);
                });
                match got {
                    Some(Ok(())) => Tried::Done(outcome),
                    Some(Err(error)) => Tried::Done(Outcome::of(status_of(error))),
                    None => Tried::Waits,
                }
            }
            Action::Store(value, announced) => {
                let accepted = announced.take().expect("a Store is announced");
                let write = Condition::Always.into();
                match store.begin_put(self.space, key, value, write, accepted) {
                    engine::Begun::Done(stored) => Tried::Done(done(stored)),
                    engine::Begun::Landing(landing) => Tried::Landing(landing),
                    engine::Begun::Wait(accepted) => {
                        *announced = Some(accepted);
                        Tried::Waits
                    }
                }
            }
        }
    }

    /// Executes it where it may wait.
    pub(crate) async fn execute(&mut self, store: &Arc<Store>) -> Outcome {
        match &mut self.action {
            Action::Retrieve(room) => match store.retrieve(self.space, &self.key).await {
                Ok(found) => kv::delivered(found.value, *room),
                Err(error) => Outcome::of(status_of(error)),
            },
            Action::Store(value, announced) => {
                let announced = announced.take().expect("a Store that waits is announced");
                let always = Condition::Always.into();
                // Boxed: a Retrieve waits more often, and its task has no room for a Store.
                let put = store.put(self.space, &self.key, value, always, announced);
                done(Box::pin(put).await)
            }
        }
    }
}

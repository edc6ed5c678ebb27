//! SET without options outside a transaction: it replaces whatever the key holds.

use crate::door::Door;
use crate::failure::Outcome;
use crate::hidden::{self, has_collections};
use crate::reply::Reply;
use crate::request::Value;
use crate::staged_values::StagedValues;
use crate::transaction::Transaction;
use crate::values;
use base::{Buf, Key};
use engine::{Announced, Begun, Error, HashedKey, KeySpaceId, Landing, Store, Stored, Write};
use std::ops::Range;
use std::sync::Arc;

/// A SET, until it is durable.
#[derive(Debug)]
pub(crate) struct PlainSet {
    value: Value,
    /// Announced as soon as it arrives, so that pages stay open for it. Taken when it is stored.
    announced: Option<Announced>,
}

/// What the first try of a GET or a SET did.
pub(crate) enum Tried {
    /// All: a SET is as durable as the store's mode asks.
    Done(Reply),
    /// A GET found a value, and its reply is queued or kept in the step.
    Found,
    /// A SET is in the log: [`PlainSet::stored`] takes what became of it.
    Landing(Landing),
    /// Not all: it may have to wait.
    MustWait,
}

impl PlainSet {
    /// A SET of `value`.
    pub(crate) fn new(store: &Arc<Store>, value: Value) -> Self {
        Self { value, announced: Some(store.announce()) }
    }

    /// Replaces the value by that of a later SET of the same key: no client could have observed
    /// this one.
    pub(crate) fn replace(&mut self, value: Value) {
        self.value = value;
    }

    /// Where the value is in staging, unless it has a buffer of its own.
    pub(crate) fn staged(&self) -> Option<Range<usize>> {
        match &self.value {
            Value::Staged(range) => Some(range.clone()),
            Value::Own(_) => None,
        }
    }

    /// The bytes of the value.
    pub(crate) fn bytes<'a>(&'a self, staged: &StagedValues<'a>) -> &'a [u8] {
        match &self.value {
            Value::Staged(range) => staged.bytes(range.clone()),
            Value::Own(value) => value.bytes().unwrap_or_default(),
        }
    }

    fn value(&self) -> &Buf {
        match &self.value {
            Value::Own(value) => value,
            Value::Staged(_) => panic!("a SET that waits has a copy of its value"),
        }
    }

    /// Stores the value if the store can without waiting. Otherwise copies it out of `staged`,
    /// which the next read overwrites. In a database with collections, only a wait tells whether
    /// the key is one.
    #[inline]
    pub(crate) fn try_put(
        &mut self,
        door: &Door,
        space: KeySpaceId,
        key: HashedKey<'_>,
        staged: &StagedValues<'_>,
    ) -> Tried {
        let store = door.store();
        let value = match &self.value {
            Value::Staged(range) => staged.value(range.clone(), door.pool()),
            Value::Own(value) => value.clone(),
        };
        let mut tried = Tried::MustWait;
        if !has_collections(store, space) {
            let announced = self.announced.take().expect("a SET is stored once");
            match store.begin_put(space, key, &value, Write::default(), announced) {
                // `put` looks whether a collection was created at the same time.
                Begun::Done(Ok(_)) if has_collections(store, space) => {}
                Begun::Done(Ok(_)) => return Tried::Done(Reply::Ok),
                Begun::Landing(landing) => tried = Tried::Landing(landing),
                // `put` creates a database, and says what else is wrong.
                Begun::Done(Err(_)) => self.announced = Some(store.announce()),
                Begun::Wait(announced) => self.announced = Some(announced),
            }
        }
        self.value = Value::Own(value);
        tried
    }

    /// Stores the value, unless [`Self::try_put`] has, and waits until it is durable.
    pub(crate) async fn put(&mut self, door: &Door, space: KeySpaceId, key: &Key) -> Outcome {
        let store = door.store();
        let Some(mut announced) = self.announced.take() else {
            return self.stored(door, space, key, Ok(Stored::Anew)).await;
        };
        if has_collections(store, space) {
            // The look-up below may wait for writers that wait for announced ones.
            drop(announced);
            if is_collection(store, space, key).await? {
                return self.replace_collection(door, space, key).await;
            }
            announced = store.announce();
        }
        let put = loop {
            match store.put(space, key, self.value(), Write::default(), announced).await {
                Err(Error::NoKeySpace) => store.ensure_key_space(space).await?,
                put => break put,
            }
            announced = store.announce();
        };
        self.stored(door, space, key, put).await
    }

    /// Returns the reply to a value that [`Tried::Landing`] stored and that `landed` like this.
    ///
    /// A collection that was created while the string was stored is removed: none is created once
    /// there is a string.
    pub(crate) async fn stored(
        &self,
        door: &Door,
        space: KeySpaceId,
        key: &Key,
        landed: Result<Stored, Error>,
    ) -> Outcome {
        landed?;
        if is_collection(door.store(), space, key).await? {
            return self.replace_collection(door, space, key).await;
        }
        Ok(Reply::Ok)
    }

    /// Stores the string and removes the collection of the key in the same step.
    async fn replace_collection(&self, door: &Door, space: KeySpaceId, key: &Key) -> Outcome {
        Box::pin(door.one_step(async |transaction: &mut Transaction| {
            values::put(transaction, space, key, self.value().clone(), None).await?;
            Ok(Reply::Ok)
        }))
        .await
    }
}

async fn is_collection(store: &Arc<Store>, space: KeySpaceId, key: &Key) -> Result<bool, Error> {
    Ok(has_collections(store, space) && store.exist(hidden::roots(space), key).await?)
}

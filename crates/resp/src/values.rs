//! What a key holds: a string, or a collection. Each kind has key spaces of its own, and whatever
//! stores one kind sees to it that the key has none of the other.
//!
//! An NVMe host knows nothing of collections. If it stores a string by the key of one, commands of
//! strings see the string, and those of collections the collection, until one is removed: then
//! both are.

use crate::call::Call;
use crate::collection::{Collection, Kind};
use crate::command::READ;
use crate::failure::Failure;
use crate::hidden;
use crate::transaction::{Facts, Held, Transaction};
use base::{Buf, Key};
use clock::UnixMillis;
use engine::KeySpaceId;

/// What a key holds.
#[derive(Debug)]
pub(crate) enum Value {
    String(Held),
    Collection(Box<Collection>),
}

impl Call<'_> {
    /// The string that `key` holds.
    pub(crate) async fn string(&mut self, key: &Key) -> Result<Option<Held>, Failure> {
        string(self.transaction, self.session.space(), key).await
    }

    /// Length and date of the string that `key` holds.
    pub(crate) async fn string_facts(&mut self, key: &Key) -> Result<Option<Facts>, Failure> {
        let space = self.space();
        let found = match self.transaction.look(space, key).await? {
            None => refuse_collection(self.transaction, space, key).await.map(|()| None),
            facts => Ok(facts),
        };
        self.count_lookup(!matches!(found, Ok(None)));
        found
    }

    /// Stores a string, whatever `key` holds.
    pub(crate) async fn put(
        &mut self,
        key: &Key,
        value: Buf,
        expires: Option<UnixMillis>,
    ) -> Result<(), Failure> {
        put(self.transaction, self.session.space(), key, value, expires).await
    }

    /// The collection of this kind that `key` holds.
    pub(crate) async fn collection(
        &mut self,
        kind: Kind,
        key: &Key,
    ) -> Result<Option<Collection>, Failure> {
        let space = self.space();
        let found = match Collection::open(self.transaction, space, key).await? {
            Some(found) if found.kind == kind => Ok(Some(found)),
            Some(_) => Err(Failure::WRONG_TYPE),
            None if self.transaction.look(space, key).await?.is_some() => Err(Failure::WRONG_TYPE),
            None => Ok(None),
        };
        self.count_lookup(!matches!(found, Ok(None)));
        found
    }

    /// Counts whether a command that reads has found its key.
    fn count_lookup(&mut self, is_found: bool) {
        if self.command.is(READ) {
            self.transaction.count_lookup(is_found);
        }
    }

    /// When what `key` holds expires, if it holds anything.
    pub(crate) async fn date(&mut self, key: &Key) -> Result<Option<Option<UnixMillis>>, Failure> {
        let space = self.space();
        let found = date(self.transaction, space, key).await?;
        self.count_lookup(found.is_some());
        Ok(found)
    }
}

/// The string that `key` holds in the database of `space`.
pub(crate) async fn string(
    transaction: &mut Transaction,
    space: KeySpaceId,
    key: &Key,
) -> Result<Option<Held>, Failure> {
    if let Some(held) = transaction.get(space, key).await? {
        return Ok(Some(held));
    }
    refuse_collection(transaction, space, key).await.map(|()| None)
}

async fn refuse_collection(
    transaction: &mut Transaction,
    space: KeySpaceId,
    key: &Key,
) -> Result<(), Failure> {
    let roots = hidden::roots(space);
    if transaction.has(roots) && transaction.look(roots, key).await?.is_some() {
        return Err(Failure::WRONG_TYPE);
    }
    Ok(())
}

/// Stores a string, whatever `key` holds.
pub(crate) async fn put(
    transaction: &mut Transaction,
    space: KeySpaceId,
    key: &Key,
    value: Buf,
    expires: Option<UnixMillis>,
) -> Result<(), Failure> {
    discard(transaction, space, key).await?;
    transaction.put(space, key, value, expires);
    Ok(())
}

/// Removes the collection that `key` holds, if it holds one.
async fn discard(
    transaction: &mut Transaction,
    space: KeySpaceId,
    key: &Key,
) -> Result<bool, Failure> {
    let roots = hidden::roots(space);
    if !transaction.has(roots) || transaction.look(roots, key).await?.is_none() {
        return Ok(false);
    }
    match Collection::open(transaction, space, key).await? {
        Some(collection) => collection.discard(transaction, space, key).await?,
        None => return Err(Failure::Overtaken),
    }
    Ok(true)
}

/// Whether `key` holds anything in the database of `space`, and then when that expires.
pub(crate) async fn date(
    transaction: &mut Transaction,
    space: KeySpaceId,
    key: &Key,
) -> Result<Option<Option<UnixMillis>>, Failure> {
    if let Some(facts) = transaction.look(space, key).await? {
        return Ok(Some(facts.expires));
    }
    let roots = hidden::roots(space);
    if !transaction.has(roots) {
        return Ok(None);
    }
    Ok(transaction.look(roots, key).await?.map(|facts| facts.expires))
}

/// What `key` holds in the database of `space`.
pub(crate) async fn value(
    transaction: &mut Transaction,
    space: KeySpaceId,
    key: &Key,
) -> Result<Option<Value>, Failure> {
    if let Some(held) = transaction.get(space, key).await? {
        return Ok(Some(Value::String(held)));
    }
    if !transaction.has(hidden::roots(space)) {
        return Ok(None);
    }
    let found = Collection::open(transaction, space, key).await?;
    Ok(found.map(|collection| Value::Collection(Box::new(collection))))
}

/// Removes what `key` holds; false: nothing.
pub(crate) async fn remove(
    transaction: &mut Transaction,
    space: KeySpaceId,
    key: &Key,
) -> Result<bool, Failure> {
    let was_collection = discard(transaction, space, key).await?;
    let was_string = transaction.look(space, key).await?.is_some();
    if was_string {
        transaction.delete(space, key);
    }
    Ok(was_collection || was_string)
}

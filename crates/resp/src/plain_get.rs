//! GET outside a transaction: it needs no version of what it reads.

use crate::door::Door;
use crate::failure::Outcome;
use crate::hidden::has_collections;
use crate::plain_set::Tried;
use crate::reply::Reply;
use crate::transaction::Transaction;
use crate::values;
use base::Key;
use engine::{Error, HashedKey, KeySpaceId, Store};

/// Returns the reply if the store knows it without a wait. Otherwise [`get`] tells.
#[inline]
pub(crate) fn try_get(store: &Store, space: KeySpaceId, key: HashedKey<'_>) -> Tried {
    match store.begin_get(space, key) {
        Some(Ok(found)) => Tried::Done(Reply::Bulk(found.value)),
        Some(Err(Error::KeyNotFound | Error::NoKeySpace)) if !has_collections(store, space) => {
            Tried::Done(Reply::Null)
        }
        _ => Tried::MustWait,
    }
}

/// Returns the reply as soon as the store has read the value.
pub(crate) async fn get(door: &Door, space: KeySpaceId, key: &Key) -> Outcome {
    match door.store().get(space, key).await {
        Ok(value) => Ok(Reply::Bulk(value)),
        Err(Error::KeyNotFound | Error::NoKeySpace) if has_collections(door.store(), space) => {
            Box::pin(door.one_step(async |transaction: &mut Transaction| {
                let held = values::string(transaction, space, key).await?;
                Ok(Reply::optional(held.map(|held| held.value)))
            }))
            .await
        }
        Err(Error::KeyNotFound | Error::NoKeySpace) => Ok(Reply::Null),
        Err(error) => Err(error.into()),
    }
}

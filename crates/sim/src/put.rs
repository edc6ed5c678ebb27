use base::{Buf, Key};
use engine::{Condition, Error, KeySpaceId, Store, Stored, Write};
use std::sync::Arc;

/// Stores a value, without waiting if the store can ([`Store::put_at_hand`]). The second result is
/// true if it did not wait.
pub async fn put(
    store: &Arc<Store>,
    space: KeySpaceId,
    key: &Key,
    value: &Buf,
    write: Write,
) -> (Result<Stored, Error>, bool) {
    let mut announced = store.announce();
    if write.condition == Condition::Always && write.expires.is_none() {
        match store.put_at_hand(space, key, value, announced) {
            Ok(accepted) => return (store.put_landed(accepted).await, true),
            Err(again) => announced = again,
        }
    }
    (store.put(space, key, value, write, announced).await, false)
}

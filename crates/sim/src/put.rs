use base::{Buf, Key};
use engine::{Begun, Error, KeySpaceId, Store, Stored, Write};
use std::sync::Arc;

/// Stores a value, by [`Store::begin_put`] if that takes no wait until it is in the log. The second
/// result is true if it took none.
pub async fn put(
    store: &Arc<Store>,
    space: KeySpaceId,
    key: &Key,
    value: &Buf,
    write: Write,
) -> (Result<Stored, Error>, bool) {
    match store.begin_put(space, key, value, write, store.announce()) {
        Begun::Done(done) => (done, true),
        Begun::Landing(landing) => (store.landed(landing).await, true),
        Begun::Wait(announced) => (store.put(space, key, value, write, announced).await, false),
    }
}

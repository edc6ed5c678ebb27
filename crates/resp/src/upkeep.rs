//! What all transactions of a door share for hashes and sorted sets: numbers for nodes, graves that
//! are due some day, and when a database is emptied.

use crate::failure::Failure;
use crate::hidden::NOTES;
use crate::transaction::Transaction;
use base::{Buf, Key};
use clock::{Stage, UnixMillis, User, Users};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Numbers that are taken at once: those left are lost when the server ends.
const IDS: u64 = 1 << 16;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Upkeep {
    ids: Mutex<Range<u64>>,
    due: Mutex<BTreeSet<(UnixMillis, u64)>>,
    /// Transactions that rely on there being no collections.
    assuming: Users,
    /// Transactions that are writing collections.
    writing: Users,
    /// Tasks that empty a database, so that none may begin to write.
    emptying: Users,
}

impl Upkeep {
    /// A number that was never given, also before the store was opened.
    pub(crate) async fn new_id(self: &Arc<Self>, door: &Transaction) -> Result<u64, Failure> {
        loop {
            if let Some(id) = lock(&self.ids).next() {
                return Ok(id);
            }
            match self.reserve(door.another()).await {
                Ok(ids) => *lock(&self.ids) = ids,
                Err(Failure::Overtaken) => {}
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Takes the next numbers: durable before one is used.
    async fn reserve(&self, mut transaction: Transaction) -> Result<Range<u64>, Failure> {
        let key = Key::new(b"n").expect("a byte is a key");
        let held = transaction.get(NOTES, &key).await?;
        let bytes = held.as_ref().and_then(|held| held.value.bytes());
        let next = match bytes.map(<[u8; 8]>::try_from) {
            None => 1,
            Some(Ok(bytes)) => u64::from_le_bytes(bytes),
            Some(Err(_)) => {
                return Err(Failure::told("ERR I/O: what numbers parts of hashes is lost"));
            }
        };
        let end = next + IDS;
        transaction.put(NOTES, &key, Buf::copy_from(&end.to_le_bytes()), None);
        Box::pin(transaction.commit()).await?;
        Ok(next..end)
    }

    /// Adds graves, each with the date from which on it is to be emptied.
    pub(crate) fn add(&self, due: impl IntoIterator<Item = (UnixMillis, u64)>) {
        lock(&self.due).extend(due);
    }

    /// A grave whose date is past.
    pub(crate) fn next_due(&self) -> Option<u64> {
        let mut due = lock(&self.due);
        let first = *due.first().filter(|(date, _)| *date <= clock::unix_now())?;
        due.remove(&first);
        Some(first.1)
    }

    /// A transaction holds this as long as it relies on there being no collections where there were
    /// none.
    pub(crate) fn assume(&self) -> User {
        self.assuming.add()
    }

    /// Waits until no transaction does so.
    pub(crate) async fn assumptions_end(&self) {
        self.assuming.end(Stage::Latch).await;
    }

    /// Keeps databases from being emptied until the returned guard is dropped; `None` while one is
    /// being emptied. A holder of the guard or of an assumption waits for the store alone: emptying
    /// waits for both.
    pub(crate) fn begin_writing(&self) -> Option<User> {
        let writing = self.writing.add();
        self.emptying.are_none().then_some(writing)
    }

    /// Waits until no database is being emptied.
    pub(crate) async fn emptying_ends(&self) {
        self.emptying.end(Stage::Latch).await;
    }

    /// Waits until no transaction writes collections. None does while the returned guard exists.
    pub(crate) async fn begin_emptying(&self) -> User {
        let emptying = self.emptying.add();
        self.writing.end(Stage::Latch).await;
        emptying
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The key of the grave of this number.
pub(crate) fn grave(id: u64) -> Key {
    let key = [&b"g"[..], &id.to_be_bytes()].concat();
    Key::new(&key).expect("nine bytes are a key")
}

/// The number of the grave that has this key.
pub(crate) fn grave_id(key: &Key) -> Option<u64> {
    let id = key.as_bytes().strip_prefix(b"g")?;
    Some(u64::from_be_bytes(id.try_into().ok()?))
}

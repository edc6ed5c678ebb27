#[cfg(test)]
mod tests;

use crate::door::Door;
use crate::failure::Failure;
use base::{Buf, BufMut, Key, Nanos};
use clock::{Stage, UnixMillis};
use engine::{BatchOp, BatchWrite, Condition, Error, KeySpaceId, Store, Version, Write};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How long it is waited for a key space that somebody else creates or purges.
const CREATING: Nanos = Nanos::from_micros(50);

/// What is told to who asks for too many values at once.
const READS_TOO_MUCH: &str = "ERR what is read at once has more bytes than the server allows";

/// A value with its date.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) value: Buf,
    pub(crate) expires: Option<UnixMillis>,
}

/// The length of a value, and its date.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub(crate) len: u32,
    pub(crate) expires: Option<UnixMillis>,
}

/// What the store has said of a key.
#[derive(Clone, Debug)]
enum Seen {
    Absent,
    Present { version: Version, facts: Facts, value: Option<Buf> },
}

impl Seen {
    /// What must still be true when others are written.
    fn condition(&self) -> Condition {
        match self {
            Self::Absent => Condition::MustNotExist,
            Self::Present { version, .. } => Condition::Unchanged(*version),
        }
    }
}

/// What becomes of a key.
#[derive(Clone, Debug)]
enum Change {
    Put(Held),
    Delete,
}

#[derive(Clone, Debug, Default)]
struct Touched {
    /// What must be true of it, if somebody has said that.
    expected: Option<Condition>,
    seen: Option<Seen>,
    change: Option<Change>,
}

impl Touched {
    /// Takes what the store says now, which is no other than what it has said before.
    fn note(&mut self, seen: Seen) -> Result<(), Failure> {
        let now = seen.condition();
        if self.condition().is_some_and(|before| before != now) {
            return Err(Failure::Overtaken);
        }
        self.seen = Some(seen);
        Ok(())
    }

    /// What must still be true of the key when the whole is done.
    fn condition(&self) -> Option<Condition> {
        self.seen.as_ref().map(Seen::condition).or(self.expected)
    }
}

/// What one command, or those of one EXEC, read and write, as one step: reads are remembered,
/// writes are kept until [`Self::commit`], which goes through only if all that was read is still
/// true. Otherwise the whole is done again. Reads see the writes before them.
#[derive(Debug)]
pub(crate) struct Transaction {
    store: Arc<Store>,
    touched: BTreeMap<(KeySpaceId, Key), Touched>,
    /// Bytes of values that it may still read.
    readable: usize,
}

impl Transaction {
    pub(crate) fn new(door: &Door) -> Self {
        let (store, readable) = (door.store().clone(), door.settings().read_bytes_max);
        Self { store, touched: BTreeMap::new(), readable }
    }

    fn touched(&mut self, space: KeySpaceId, key: &Key) -> &mut Touched {
        self.touched.entry((space, key.clone())).or_default()
    }

    /// The version of `key`, for somebody who watches it.
    pub(crate) async fn version(
        &mut self,
        space: KeySpaceId,
        key: &Key,
    ) -> Result<Option<Version>, Failure> {
        let facts = absent(self.store.examine(space, key).await, || None)?;
        Ok(facts.map(|facts| facts.version))
    }

    /// Length and date of `key`, if it exists. Its value is not read.
    pub(crate) async fn look(
        &mut self,
        space: KeySpaceId,
        key: &Key,
    ) -> Result<Option<Facts>, Failure> {
        let store = self.store.clone();
        let touched = self.touched(space, key);
        match &touched.change {
            Some(Change::Put(held)) => return Ok(alive(held).map(Held::facts)),
            Some(Change::Delete) => return Ok(None),
            None => {}
        }
        if touched.seen.is_none() {
            let seen = match absent(store.examine(space, key).await, || None)? {
                None => Seen::Absent,
                Some(found) => Seen::Present {
                    version: found.version,
                    facts: Facts { len: found.value_len, expires: found.expires },
                    value: None,
                },
            };
            touched.note(seen)?;
        }
        Ok(match touched.seen {
            Some(Seen::Present { facts, .. }) => Some(facts),
            _ => None,
        })
    }

    /// What `key` holds, if it exists.
    pub(crate) async fn get(
        &mut self,
        space: KeySpaceId,
        key: &Key,
    ) -> Result<Option<Held>, Failure> {
        let store = self.store.clone();
        let touched = self.touched(space, key);
        match &touched.change {
            Some(Change::Put(held)) => return Ok(alive(held).cloned()),
            Some(Change::Delete) => return Ok(None),
            None => {}
        }
        match &touched.seen {
            Some(Seen::Absent) => return Ok(None),
            Some(Seen::Present { facts, value: Some(value), .. }) => {
                return Ok(Some(Held { value: value.clone(), expires: facts.expires }));
            }
            _ => {}
        }
        let found = match store.retrieve(space, key).await {
            Err(Error::KeyNotFound | Error::NoKeySpace) => None,
            found => {
                let mut found = found?;
                found.value = solid(found.value);
                Some(found)
            }
        };
        let seen = found.as_ref().map_or(Seen::Absent, |found| Seen::Present {
            version: found.version,
            facts: Facts { len: found.value.len(), expires: found.expires },
            value: Some(found.value.clone()),
        });
        touched.note(seen)?;
        let len = found.as_ref().map_or(0, |found| found.value.len() as usize);
        let left = self.readable.checked_sub(len);
        self.readable = left.ok_or_else(|| Failure::told(READS_TOO_MUCH))?;
        Ok(found.map(|found| Held { value: found.value, expires: found.expires }))
    }

    /// Stores a value, whatever there is. One that is past its date is not there.
    pub(crate) fn put(
        &mut self,
        space: KeySpaceId,
        key: &Key,
        value: Buf,
        expires: Option<UnixMillis>,
    ) {
        let is_over = expires.is_some_and(|date| date <= clock::unix_now());
        let put = Change::Put(Held { value, expires });
        self.touched(space, key).change = Some(if is_over { Change::Delete } else { put });
    }

    /// Removes a key, if it is there.
    pub(crate) fn delete(&mut self, space: KeySpaceId, key: &Key) {
        self.touched(space, key).change = Some(Change::Delete);
    }

    /// Sees to it that the whole goes through only if `key` is still what it was.
    pub(crate) fn expect(&mut self, space: KeySpaceId, key: &Key, version: Option<Version>) {
        let expected = version.map_or(Condition::MustNotExist, Condition::Unchanged);
        self.touched(space, key).expected = Some(expected);
    }

    /// Does all that was written, if all that was read is still true: [`Failure::Overtaken`] if
    /// not. Keys that are only read, or only removed, may be any number, and are then not one step.
    pub(crate) async fn commit(self) -> Result<(), Failure> {
        let Self { store, touched, .. } = self;
        let changes = touched.values().any(|touched| touched.change.is_some());
        if !changes && touched.len() <= 1 {
            return Ok(());
        }
        let mut writes: Vec<_> = touched.into_iter().filter_map(member).collect();
        loop {
            match store.write_batch(writes.clone(), store.announce()).await {
                Ok(()) => return Ok(()),
                Err(Error::KeyChanged | Error::KeyExists | Error::KeyNotFound) => {
                    return Err(Failure::Overtaken);
                }
                Err(Error::NoKeySpace) => prepare(&store, &mut writes).await?,
                Err(Error::BatchTooLong { max_records, .. }) if writes.iter().all(is_light) => {
                    let max = max_records as usize;
                    let rest = writes.split_off(max.min(writes.len()));
                    match store.write_batch(writes, store.announce()).await {
                        Ok(()) => writes = rest,
                        Err(Error::KeyChanged | Error::KeyExists) => {
                            return Err(Failure::Overtaken);
                        }
                        Err(error) => return Err(error.into()),
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Held {
    fn facts(&self) -> Facts {
        Facts { len: self.value.len(), expires: self.expires }
    }
}

/// What a transaction has put, unless it was past its date already.
fn alive(held: &Held) -> Option<&Held> {
    let is_over = held.expires.is_some_and(|date| date <= clock::unix_now());
    (!is_over).then_some(held)
}

/// The bytes that a phantom stands for are zeros to clients.
fn solid(value: Buf) -> Buf {
    match value.bytes() {
        Some(_) => value,
        None => BufMut::unpooled(value.len() as usize).freeze(),
    }
}

/// A key space that was never written to holds nothing.
fn absent<T>(found: Result<T, Error>, nothing: impl FnOnce() -> T) -> Result<T, Failure> {
    match found {
        Err(Error::NoKeySpace) => Ok(nothing()),
        found => Ok(found?),
    }
}

/// What the store is to do with a key.
fn member(((space, key), touched): ((KeySpaceId, Key), Touched)) -> Option<BatchWrite> {
    let condition = touched.condition();
    let is_absent = condition == Some(Condition::MustNotExist);
    let op = match touched.change {
        Some(Change::Put(Held { value, expires })) => {
            let condition = condition.unwrap_or_default();
            BatchOp::Put { value, write: Write { condition, expires } }
        }
        Some(Change::Delete) if !is_absent => {
            BatchOp::Delete { condition: condition.unwrap_or_default() }
        }
        _ => BatchOp::Keep { condition: condition? },
    };
    Some(BatchWrite { space, key, op })
}

/// Of which any number may be done one part after the other.
fn is_light(write: &BatchWrite) -> bool {
    !matches!(write.op, BatchOp::Put { .. })
}

/// Creates the key spaces that are written to. What nobody has written to holds nothing, which is
/// all that is asked of it.
async fn prepare(store: &Arc<Store>, writes: &mut Vec<BatchWrite>) -> Result<(), Error> {
    let mut missing = Vec::new();
    for write in writes.iter() {
        let is_missing = store.examine(write.space, &write.key).await == Err(Error::NoKeySpace);
        if is_missing && !missing.contains(&write.space) {
            missing.push(write.space);
        }
    }
    for space in missing {
        let of_space = |write: &&BatchWrite| write.space == space;
        let mut ops = writes.iter().filter(of_space).map(|write| &write.op);
        if ops.any(|op| matches!(op, BatchOp::Put { .. })) {
            create(store, space).await?;
        } else {
            writes.retain(|write| {
                let is_present = matches!(
                    write.op,
                    BatchOp::Keep { condition: Condition::Unchanged(_) }
                        | BatchOp::Delete { condition: Condition::Unchanged(_) }
                );
                write.space != space || is_present
            });
            if writes.iter().any(|write| write.space == space) {
                return Err(Error::KeyChanged);
            }
        }
    }
    Ok(())
}

/// Creates a key space, unless it is there.
pub(crate) async fn create(store: &Arc<Store>, space: KeySpaceId) -> Result<(), Error> {
    match store.create_key_space(space).await {
        Err(Error::KeySpaceExists) => {
            // It may be on its way, by somebody else.
            clock::sleep(CREATING, Stage::Latch).await;
            Ok(())
        }
        created => created,
    }
}

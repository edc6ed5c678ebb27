#[cfg(test)]
pub(crate) mod tests;

use crate::collection::grave::Grave;
use crate::failure::Failure;
use crate::hidden;
use crate::lookups::Lookups;
use crate::upkeep::{self, Upkeep};
use base::{Buf, BufMut, Key};
use clock::{UnixMillis, User};
use engine::{BatchOp, BatchWrite, Condition, Error, KeySpaceId, Store, Version, Write};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The reply to a command that reads too many values at once.
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

/// Bytes that the store counts for a member of a batch besides key and value, at most.
const AROUND_MEMBER: u64 = 48;

impl Change {
    fn bytes(&self, key: &Key) -> u64 {
        let value = if let Self::Put(held) = self { u64::from(held.value.len()) } else { 0 };
        AROUND_MEMBER + key.as_bytes().len() as u64 + value
    }
}

#[derive(Clone, Debug, Default)]
struct Touched {
    /// What must be true of it, if a WATCH asked for that.
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
    upkeep: Arc<Upkeep>,
    touched: BTreeMap<(KeySpaceId, Key), Touched>,
    /// Bytes of values that one step may read, and what is left of them.
    readable_max: usize,
    readable: usize,
    /// Held once it relies on there being no such key space as it has asked for.
    assumption: Option<User>,
    /// Graves that it digs: when they are due, and their numbers.
    buried: Vec<(UnixMillis, u64)>,
    /// Bytes of what it writes, as the store counts those of a batch or more.
    bytes: u64,
    step: Step,
    /// Those of the commands that execute.
    lookups: Lookups,
}

/// What undoes the writes of the step that executes.
#[derive(Debug, Default)]
struct Step {
    /// What each write replaced, in their order.
    replaced: Vec<((KeySpaceId, Key), Option<Change>)>,
    /// Graves before it.
    buried: usize,
}

impl Transaction {
    /// One that has touched nothing, and may read values of `readable_max` bytes together.
    pub(crate) fn new(store: Arc<Store>, upkeep: Arc<Upkeep>, readable_max: usize) -> Self {
        Self {
            store,
            upkeep,
            touched: BTreeMap::new(),
            readable_max,
            readable: readable_max,
            assumption: None,
            buried: Vec::new(),
            bytes: 0,
            step: Step::default(),
            lookups: Lookups::default(),
        }
    }

    /// One that has touched nothing, and may read what is left to this one.
    pub(crate) fn another(&self) -> Self {
        Self::new(self.store.clone(), self.upkeep.clone(), self.readable)
    }

    /// Counts whether a command that reads has found its key.
    pub(crate) fn count_lookup(&mut self, is_found: bool) {
        self.lookups.add(is_found);
    }

    /// Takes the lookups since it was called before.
    pub(crate) fn take_lookups(&mut self) -> Lookups {
        std::mem::take(&mut self.lookups)
    }

    /// What is written next can be undone alone.
    pub(crate) fn begin_step(&mut self) {
        self.step.replaced.clear();
        self.step.buried = self.buried.len();
        self.renew_reads();
    }

    /// What is read next may have as many bytes as one command reads.
    pub(crate) fn renew_reads(&mut self) {
        self.readable = self.readable_max;
    }

    /// Undoes what was written since the step began.
    pub(crate) fn undo_step(&mut self) {
        while let Some(((space, key), change)) = self.step.replaced.pop() {
            self.replace(space, &key, change);
        }
        self.buried.truncate(self.step.buried);
    }

    /// Whether the store takes all of it as one batch.
    pub(crate) fn fits_batch(&self) -> bool {
        self.touched.len() <= self.store.batch_records_max() as usize
            && self.bytes <= self.store.batch_bytes_max()
    }

    /// Bytes of a value of the store at most.
    pub(crate) fn value_bytes_max(&self) -> u32 {
        self.store.value_bytes_max()
    }

    /// Whether something may be in `space`. If not, nothing is until this transaction is over.
    pub(crate) fn has(&mut self, space: KeySpaceId) -> bool {
        if self.store.has_key_space(space) {
            return true;
        }
        if self.assumption.is_none() {
            self.assumption = Some(self.upkeep.assume());
        }
        // Another reactor may have created it before it could see the assumption.
        self.store.has_key_space(space)
    }

    /// A number for a node or a grave, which nothing else has had.
    pub(crate) async fn new_id(&self) -> Result<u64, Failure> {
        self.upkeep.new_id(self).await
    }

    fn touched(&mut self, space: KeySpaceId, key: &Key) -> &mut Touched {
        self.touched.entry((space, key.clone())).or_default()
    }

    /// The version of `key`, for WATCH.
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
        self.count_read(found.as_ref().map_or(0, |found| found.value.len()))?;
        Ok(found.map(|found| Held { value: found.value, expires: found.expires }))
    }

    /// What `key` holds. No other writer changes it without changing a key that this one checks.
    pub(crate) async fn fetch(
        &mut self,
        space: KeySpaceId,
        key: &Key,
    ) -> Result<Option<Buf>, Failure> {
        let touched = self.touched.get(&(space, key.clone()));
        match touched.and_then(|touched| touched.change.as_ref()) {
            Some(Change::Put(held)) => return Ok(Some(held.value.clone())),
            Some(Change::Delete) => return Ok(None),
            None => {}
        }
        match self.store.get(space, key).await {
            Err(Error::KeyNotFound | Error::NoKeySpace) => Ok(None),
            value => {
                let value = solid(value?);
                self.count_read(value.len())?;
                Ok(Some(value))
            }
        }
    }

    /// Whether `key`, which was read, is not what it was.
    pub(crate) async fn is_overtaken(
        &mut self,
        space: KeySpaceId,
        key: &Key,
    ) -> Result<bool, Failure> {
        let seen = self.touched(space, key).condition();
        let now = self.version(space, key).await?;
        let now = now.map_or(Condition::MustNotExist, Condition::Unchanged);
        Ok(seen.is_some_and(|seen| seen != now))
    }

    fn count_read(&mut self, len: u32) -> Result<(), Failure> {
        let left = self.readable.checked_sub(len as usize);
        self.readable = left.ok_or_else(|| Failure::told(READS_TOO_MUCH))?;
        Ok(())
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
        self.write(space, key, if is_over { Change::Delete } else { put });
    }

    /// Removes a key, if it is there.
    pub(crate) fn delete(&mut self, space: KeySpaceId, key: &Key) {
        self.write(space, key, Change::Delete);
    }

    fn write(&mut self, space: KeySpaceId, key: &Key, change: Change) {
        let before = self.replace(space, key, Some(change));
        self.step.replaced.push(((space, key.clone()), before));
    }

    /// Replaces the change of a key, and returns the one before.
    fn replace(&mut self, space: KeySpaceId, key: &Key, change: Option<Change>) -> Option<Change> {
        let bytes = |change: &Option<Change>| change.as_ref().map_or(0, |change| change.bytes(key));
        let new = bytes(&change);
        let before = std::mem::replace(&mut self.touched(space, key).change, change);
        self.bytes = self.bytes + new - bytes(&before);
        before
    }

    /// Makes `upkeep` remove nodes once no client can reach them.
    pub(crate) fn bury(&mut self, id: u64, grave: &Grave) {
        self.put(hidden::NOTES, &upkeep::grave(id), grave.value(), None);
        self.buried.push((grave.date, id));
    }

    /// Nothing is left for this grave, or will be.
    pub(crate) fn forget_grave(&mut self, id: u64) {
        self.delete(hidden::NOTES, &upkeep::grave(id));
    }

    /// Sees to it that the whole goes through only if `key` is still what it was.
    pub(crate) fn expect(&mut self, space: KeySpaceId, key: &Key, version: Option<Version>) {
        if version.is_none() && !self.has(space) {
            return;
        }
        let expected = version.map_or(Condition::MustNotExist, Condition::Unchanged);
        self.touched(space, key).expected = Some(expected);
    }

    /// Does all that was written, if all that was read is still true: [`Failure::Overtaken`] if
    /// not. Keys that are only read, or only removed, may be any number, and are then not one step.
    pub(crate) async fn commit(self) -> Result<(), Failure> {
        let Self { store, upkeep, touched, assumption, buried, .. } = self;
        let changes = touched.values().any(|touched| touched.change.is_some());
        if !changes && touched.len() <= 1 {
            return Ok(());
        }
        let changes_collection = |((space, _), touched): (&(KeySpaceId, Key), &Touched)| {
            hidden::is_of_collections(*space) && touched.change.is_some()
        };
        let mut writing = None;
        if touched.iter().any(changes_collection) {
            writing = upkeep.begin_writing();
            if writing.is_none() {
                drop(assumption);
                upkeep.emptying_ends().await;
                return Err(Failure::Overtaken);
            }
        }
        let writes = touched.into_iter().filter_map(member).collect();
        if write(&store, writes).await? == Written::Nothing {
            // Transactions that assume there are none commit first, and this one executes again.
            drop((assumption, writing));
            upkeep.assumptions_end().await;
            return Err(Failure::Overtaken);
        }
        upkeep.add(buried);
        Ok(())
    }
}

/// What was done of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Written {
    All,
    /// Nothing, but a key space of roots was created for it.
    Nothing,
}

/// Does all of `writes` as one step, if what they ask for is true.
async fn write(store: &Arc<Store>, mut writes: Vec<BatchWrite>) -> Result<Written, Failure> {
    loop {
        match store.write_batch(writes.clone(), store.announce()).await {
            Ok(()) => return Ok(Written::All),
            Err(Error::KeyChanged | Error::KeyExists | Error::KeyNotFound) => {
                return Err(Failure::Overtaken);
            }
            Err(Error::NoKeySpace) => {
                let created = prepare(store, &mut writes).await?;
                if created.into_iter().any(hidden::is_of_roots) {
                    return Ok(Written::Nothing);
                }
            }
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

/// Creates the key spaces of what is stored and of what is asked for with that, and returns those.
/// If nothing is stored it creates nothing: a key space without a write is empty.
async fn prepare(
    store: &Arc<Store>,
    writes: &mut Vec<BatchWrite>,
) -> Result<Vec<KeySpaceId>, Error> {
    let stores = !writes.iter().all(is_light);
    let mut missing = Vec::new();
    for write in writes.iter() {
        let is_missing = store.examine(write.space, &write.key).await == Err(Error::NoKeySpace);
        if is_missing && !missing.contains(&write.space) {
            missing.push(write.space);
        }
    }
    for &space in &missing {
        if stores {
            store.ensure_key_space(space).await?;
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
    Ok(if stores { missing } else { Vec::new() })
}

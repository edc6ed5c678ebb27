//! One way for every write: store, delete, conditional store and batch.
//!
//! [`Attempt::advance`] does all that needs no wait, in one stretch: room, latches, the records
//! that the keys have, conditions, the append, the index. Where it needs a wait it names it, the
//! caller awaits [`Attempt::wait`] and calls it again.

use crate::cleaner::Turn;
use crate::error::Error;
use crate::expiring::Expiring;
use crate::index::HashedKey;
use crate::key_space::TableId;
use crate::log::{Appended, NewRecord, NoRoom, Shortage, State};
use crate::look_up::{Found, Known};
use crate::record::{InBatch, Kind, header_len};
use crate::store::{Ack, Store};
use crate::write::announced::Announced;
use crate::write::batch::Unlanded;
use crate::write::change::WriteSet;
use crate::write::condition::Stored;
use crate::write::entry::Entry;
use crate::write::landing::{Landing, Record, pages_of};
use crate::write::undo::{FailedValue, Revocable};
use base::Buf;
use media::Stream;
use smallvec::SmallVec;
use std::iter::zip;
use std::mem::take;
use std::sync::Arc;

/// A write that has not reached the log.
pub(crate) struct Attempt<'a> {
    // What it holds, in the order in which it gives that back.
    entry: Option<Entry<'a>>,
    turn: Option<Turn<'a>>,
    announced: Announced,
    store: &'a Arc<Store>,
    set: WriteSet<'a>,
    /// One for each change, once there is room.
    members: SmallVec<[Member; 1]>,
    /// Records that did not land have been waited for.
    is_undone: bool,
}

/// What is known of the key of a change.
struct Member {
    table: TableId,
    /// Its record.
    found: Known<Found>,
}

/// How far an attempt came.
#[expect(clippy::large_enum_variant, reason = "it is moved once, and lives on the stack")]
pub(crate) enum Step {
    /// The write is in the log and in the index, or needs no record.
    Written(Written),
    /// Its condition is not met by this record: the host is told once that has settled.
    Refused(Error, Option<Found>),
    /// The medium is full, or takes nothing any more.
    Full(Error),
    /// It needs this first.
    Wait(Need),
}

/// A write that is in the log.
pub(crate) struct Written {
    pub(crate) stored: Stored,
    /// `None` if there is nothing to wait for.
    pub(crate) landing: Option<Landing>,
}

/// What an attempt has to wait for.
#[derive(Debug)]
pub(crate) enum Need {
    /// Space in the log.
    Room(Shortage),
    /// The right to change the keys.
    Entry,
    /// Headers of records.
    Records,
    /// Values that have expired take the capacity.
    Expired,
}

impl Member {
    fn record(&self) -> Option<&Found> {
        match &self.found {
            Known::Is(found) => found.as_ref(),
            Known::From(_) => None,
        }
    }

    fn into_record(self) -> Option<Found> {
        match self.found {
            Known::Is(found) => found,
            Known::From(_) => None,
        }
    }

    fn is_known(&self) -> bool {
        matches!(self.found, Known::Is(_))
    }

    fn exists(&self) -> bool {
        self.record().is_some_and(Found::exists)
    }
}

impl<'a> Attempt<'a> {
    pub(crate) fn new(store: &'a Arc<Store>, set: WriteSet<'a>, announced: Announced) -> Self {
        let members = SmallVec::new();
        Self { entry: None, turn: None, announced, store, set, members, is_undone: false }
    }

    /// Gives up where nothing was awaited, and returns what was announced.
    pub(crate) fn give_up(self) -> Announced {
        let Self { entry, turn, announced, .. } = self;
        drop((entry, turn));
        announced
    }

    /// Goes on as far as it can without a wait. An error has changed nothing.
    pub(crate) fn advance(&mut self) -> Result<Step, Error> {
        loop {
            if self.members.is_empty() {
                if self.turn.is_none() && self.set.may_write() {
                    if let Err(error) = self.store.log.media.writable() {
                        return Ok(Step::Full(error.into()));
                    }
                    if let Some(shortage) = self.first_shortage() {
                        return Ok(Step::Wait(Need::Room(shortage)));
                    }
                    self.turn = Some(self.store.turn());
                }
                self.announced.resume();
                for change in self.set.changes {
                    let table = self.store.spaces.table(change.space)?;
                    self.members.push(Member { table, found: Known::From(0) });
                }
            }
            if self.entry.is_none() {
                self.entry = self.store.try_enter(keys(self.set, &self.members));
            }
            if self.entry.is_none() {
                return Ok(Step::Wait(Need::Entry));
            }
            if !self.find() {
                return Ok(Step::Wait(Need::Records));
            }
            if let Some((refused, found)) = self.refused() {
                self.release();
                return Ok(Step::Refused(refused, found));
            }
            match self.append() {
                Ok(Ok(written)) => return Ok(Step::Written(written)),
                Ok(Err(NoRoom)) => self.start_over(),
                Err(Error::CapacityExceeded) => return Ok(Step::Wait(Need::Expired)),
                Err(error) => return Err(error),
            }
        }
    }

    /// Waits for what [`Self::advance`] needs.
    pub(crate) async fn wait(&mut self, need: Need) -> Result<(), Error> {
        if let Some(entry) = &mut self.entry {
            entry.hold(&self.store.latches, self.set.changes.iter().map(|it| it.key.hash));
        }
        match need {
            Need::Room(shortage) => Box::pin(self.wait_for_room(shortage)).await,
            Need::Entry => {
                self.entry = Some(self.store.enter_keys(keys(self.set, &self.members)).await);
                Ok(())
            }
            Need::Records => match self.read_records().await {
                Err(Error::Unrecovered) if !self.is_undone && self.store.undoes() => {
                    Box::pin(self.wait_for_undone()).await
                }
                read => read,
            },
            Need::Expired => {
                self.entry = None;
                self.announced.pause();
                Box::pin(self.store.cleaner_drops_expired()).await?;
                self.start_over();
                Ok(())
            }
        }
    }

    /// Begins again from the start: what is there may have changed.
    fn start_over(&mut self) {
        self.members.clear();
        (self.entry, self.turn) = (None, None);
    }

    /// Lets the next ones at the keys, at the space and at the page.
    fn release(&mut self) {
        (self.entry, self.turn) = (None, None);
        self.announced.pause();
    }

    /// As [`Self::shortage`], for one that comes: others that wait for space come first. A
    /// tombstone waits for no value.
    fn first_shortage(&self) -> Option<Shortage> {
        let store = self.store;
        let waits = self.set.kind.is_value() && !self.announced.has_waited;
        if waits && store.is_room_awaited() { Some(Shortage::Extent) } else { self.shortage() }
    }

    fn shortage(&self) -> Option<Shortage> {
        self.store.log.shortage(self.store.config.ack, self.set.kind, self.set.bytes)
    }

    /// Cleaning makes room, or finds that there is none to make.
    async fn wait_for_room(&mut self, first: Shortage) -> Result<(), Error> {
        let mut shortage = Some(first);
        self.announced.pause();
        while let Some(short) = shortage {
            match short {
                Shortage::Extent => {
                    let was_there = std::mem::replace(&mut self.announced.has_waited, true);
                    self.store.cleaner_makes_room(self.set.kind, was_there).await?;
                }
                Shortage::Buffer => self.store.log.landing().await,
            }
            shortage = self.shortage();
        }
        self.turn = Some(self.store.turn());
        Ok(())
    }

    /// Looks for the records that the keys have. False if one takes a wait.
    fn find(&mut self) -> bool {
        for (change, member) in zip(self.set.changes, &mut self.members) {
            if !member.is_known() {
                member.found = self.store.find_now(member.table, change.key);
            }
            if !member.is_known() {
                return false;
            }
        }
        true
    }

    /// Reads headers of records that are not in memory, side by side.
    async fn read_records(&mut self) -> Result<(), Error> {
        let unknown = zip(self.set.changes, &mut self.members);
        let mut unknown: Vec<_> = unknown.filter(|(_, member)| !member.is_known()).collect();
        if let [(change, member)] = &mut unknown[..] {
            member.found = Known::Is(self.store.find(member.table, change.key).await?);
            return Ok(());
        }
        let mut finds = Vec::new();
        for (change, member) in &unknown {
            let (store, table, key) = (self.store.clone(), member.table, change.key.key.clone());
            finds.push(async move { store.find(table, HashedKey::new(&key)).await });
        }
        for ((_, member), found) in zip(unknown, clock::join_all(finds).await) {
            member.found = Known::Is(found?);
        }
        Ok(())
    }

    /// A record that could not be read did not land and is to be taken back: then it is looked at
    /// again, and once more after that.
    async fn wait_for_undone(&mut self) -> Result<(), Error> {
        self.entry = None;
        self.announced.pause();
        self.is_undone = true;
        for change in self.set.changes {
            let table = self.store.spaces.table(change.space)?;
            if !self.store.is_undone(table, change.key).await {
                self.is_undone = false;
                break;
            }
        }
        self.start_over();
        Ok(())
    }

    /// The first condition that is not met, and by which record.
    fn refused(&mut self) -> Option<(Error, Option<Found>)> {
        let mut versions = zip(self.set.changes, &self.members).map(|(change, member)| {
            change.condition.check(member.record().and_then(Found::version)).err()
        });
        let (at, refused) = versions.by_ref().enumerate().find_map(|(at, it)| Some((at, it?)))?;
        Some((refused, self.members.swap_remove(at).into_record()))
    }

    /// Appends the records if they fit the capacity, counts them, and points the index to them.
    fn append(&mut self) -> Result<Result<Written, NoRoom>, Error> {
        let (new, old) = self.bytes()?;
        let nothing = Buf::phantom(0, 0);
        let records = self.records(&nothing);
        let log = &self.store.log;
        let mut state = log.state();
        if new > 0 && state.values.bytes + new > self.store.config.capacity_bytes + old {
            return Err(Error::CapacityExceeded);
        }
        let (ack, page) = (self.store.config.ack, log.shape.page_bytes);
        if state.buffer_shortage(ack, page, self.set.bytes).is_some() {
            return Ok(Err(NoRoom));
        }
        let appended = match (self.set.size, &records[..]) {
            (Some(size), records) => log.append_batch(&mut state, records, size),
            (None, []) => Ok(SmallVec::new()),
            (None, [record]) => {
                log.append(&mut state, Stream::Host, record).map(|it| SmallVec::from_buf([it]))
            }
            (None, _) => panic!("a write without a size is of one key"),
        };
        let Ok(appended) = appended else { return Ok(Err(NoRoom)) };
        for (record, appended) in zip(&records, &appended) {
            count_in(self.store, &mut state, record, appended);
        }
        let revocables = self.count_out(&mut state, &appended);
        let due = self.store.background_work(&mut state);
        drop(state);
        self.point(&appended);
        let written = self.finish(appended, revocables);
        self.store.wake_background(due);
        Ok(Ok(written))
    }

    /// Bytes that the values take of the capacity, and those that they replace.
    fn bytes(&self) -> Result<(u64, u64), Error> {
        let (store, layout) = (self.store, self.store.log.layout);
        let (mut new, mut old) = (0, 0);
        for (change, member) in zip(self.set.changes, &self.members) {
            store.still_there(member.table)?;
            if !change.has_record(member.exists()) {
                continue;
            }
            if member.record().is_none() && !store.index_has_room(member.table, change.key) {
                return Err(Error::CapacityExceeded);
            }
            // The store's own records are few, and deleting a key space makes room.
            if change.kind() == Kind::Value && member.table != TableId::STORE {
                new += layout.footprint(change.header_len(), change.value_len());
            }
            if let Some(found) = member.record().filter(|found| found.is_value()) {
                old += layout.footprint(found.header.len(), found.header.value_len);
            }
        }
        Ok((new, old))
    }

    fn records<'r>(&self, nothing: &'r Buf) -> SmallVec<[NewRecord<'r>; 1]>
    where
        'a: 'r,
    {
        let members = zip(self.set.changes, &self.members);
        let with_record = members.filter(|(change, member)| change.has_record(member.exists()));
        let mut records: SmallVec<[NewRecord<'r>; 1]> = with_record
            .map(|(change, member)| {
                let value = change.value().unwrap_or(nothing);
                let value_crc = self.store.log.value_crc(value);
                change.record(member.table, value, value_crc, InBatch::default())
            })
            .collect();
        let last = records.len().saturating_sub(1);
        for (at, record) in records.iter_mut().enumerate() {
            record.batch = InBatch { has_before: at > 0, has_after: at < last };
        }
        records
    }

    /// The members that get a record.
    fn with_record(&self) -> impl Iterator<Item = (HashedKey<'a>, &Member)> {
        let members = zip(self.set.changes, &self.members);
        let with_record = members.filter(|(change, member)| change.has_record(member.exists()));
        with_record.map(|(change, member)| (change.key, member))
    }

    /// Counts what the records replace as dead, and keeps it where it may have to come back.
    fn count_out(
        &self,
        state: &mut State,
        appended: &[Appended],
    ) -> SmallVec<[Option<Revocable>; 1]> {
        let (store, log) = (self.store, &self.store.log);
        if store.config.ack == Ack::Program
            && let [first, .., last] = appended
        {
            let (first, last) = (first.address, last.address);
            state.batches.push(Unlanded { first, last, pages: pages_of(appended.iter()) });
        }
        let mut revocables = SmallVec::new();
        for ((key, member), appended) in zip(self.with_record(), appended) {
            let found = member.record();
            revocables.push(store.revocable(state, appended, found));
            let Some(found) = found.filter(|found| found.is_value()) else { continue };
            let (key_len, value_len) = (key.key.as_bytes().len(), found.header.value_len);
            let extent = log.page_id(found.address).extent;
            let bytes = log.layout.footprint(found.header.len(), value_len);
            state.uncount_value(extent, member.table, key_len, bytes);
            let at = (extent, found.address);
            state.count_expiring(Expiring::remove, at, member.table, found.header.expires);
            if store.config.ack != Ack::Program && store.config.saves_buffer {
                log.release(state, found);
            }
            store.counters.count_dropped_bytes(key_len as u64 + u64::from(value_len));
        }
        revocables
    }

    /// Points each key's entry from what was found, wherever cleaning has moved that since, to its
    /// record. The keys' latches are held, which cleaning takes too.
    fn point(&self, appended: &[Appended]) {
        let index = &self.store.index;
        for ((key, member), appended) in zip(self.with_record(), appended) {
            let (table, new) = (member.table, appended.address);
            match member.record() {
                None => index.insert(table, key, new).when_loaded(),
                Some(found) => {
                    let replaced = index.replace(table, key, found.address, new);
                    assert!(replaced.when_loaded(), "a latched key's entry stays where it was");
                    self.store.log.headers.forget(found.address);
                }
            }
        }
    }

    /// The write is done but for its landing.
    fn finish(
        &mut self,
        appended: SmallVec<[Appended; 1]>,
        revocables: SmallVec<[Option<Revocable>; 1]>,
    ) -> Written {
        let store = self.store;
        let overwrote = self.members.iter().any(Member::exists);
        let stored = if overwrote { Stored::Overwrote } else { Stored::Anew };
        let is_early = store.config.ack != Ack::Program;
        for change in self.set.changes.iter().filter(|change| change.kind() == Kind::Value) {
            store
                .counters
                .count_host_bytes(change.key_len() as u64 + u64::from(change.value_len()));
        }
        let members = take(&mut self.members);
        let leaves_tombstone = zip(self.set.changes, &members).any(|(change, member)| {
            change.kind() == Kind::Tombstone && change.has_record(member.exists())
        });
        self.release();
        if is_early && !leaves_tombstone {
            return Written { stored, landing: None };
        }
        let mut landing = Landing::new(stored);
        let mut appended = zip(appended, revocables);
        for (change, member) in zip(self.set.changes, members) {
            let (table, has_record) = (member.table, change.has_record(member.exists()));
            let found = member.into_record();
            if !has_record {
                landing.unchanged.extend(found);
                continue;
            }
            let (appended, revocable) = appended.next().expect("each record was appended");
            let value = change.value();
            landing.records.push(Record {
                table,
                key: change.key.key.clone(),
                hash: change.key.hash,
                value: value.map(|it| FailedValue { len: it.len(), expires: change.expires() }),
                appended,
                found,
                revocable,
            });
        }
        Written { stored, landing: Some(landing) }
    }
}

/// The keys of all changes, in their tables.
fn keys<'k>(
    set: WriteSet<'k>,
    members: &[Member],
) -> impl ExactSizeIterator<Item = (TableId, HashedKey<'k>)> + Clone {
    zip(set.changes, members).map(|(change, member)| (member.table, change.key))
}

/// Counts a record that was just appended.
fn count_in(store: &Store, state: &mut State, record: &NewRecord<'_>, appended: &Appended) {
    let extent = store.log.page_id(appended.address).extent;
    let header_len = header_len(record.key.len(), record.expires);
    let bytes = store.log.layout.footprint(header_len, record.value.len());
    if record.kind == Kind::Tombstone {
        return state.count_tombstone(extent, bytes);
    }
    state.count_value(extent, record.table, record.key.len(), bytes);
    let at = (extent, appended.address);
    state.count_expiring(Expiring::add, at, record.table, record.expires);
}

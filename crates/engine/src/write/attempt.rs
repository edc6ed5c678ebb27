//! The steps of every write: store, delete, conditional store and batch.
//!
//! [`Attempt::advance`] does all that needs no wait, without an await: room, latches, the records
//! that the keys have, conditions, the append, the index. If it needs a wait it returns the
//! [`Need`]. The caller awaits [`Attempt::wait`] and calls it again.

use crate::ack::Ack;
use crate::error::Error;
use crate::format::address::Address;
use crate::format::record::{Header, InBatch, Kind};
use crate::hashed_key::HashedKey;
use crate::key_space::TableId;
use crate::lane::{Lane, Locked};
use crate::log::{CountedValue, NoRoom, NotLocked, Part, Reach, Shortage, Tally, Writing};
use crate::read::look_up::{Found, Known};
use crate::sabotage::Sabotage;
use crate::store::Store;
use crate::write::announced::Announced;
use crate::write::condition::Stored;
use crate::write::entry::Entry;
use crate::write::landing::{Kept, Landed, Landing, pages_of};
use crate::write::pending::UnlandedBatch;
use crate::write::room::Turn;
use crate::write::set::{Member, WriteSet};
use crate::write::undo::{FailedValue, Revocable};
use base::Buf;
use clock::{Rank, Stage};
use media::Stream;
use smallvec::SmallVec;
use std::sync::Arc;

/// The value of a record that has none.
static NO_VALUE: Buf = Buf::phantom(0, 0);

/// A write that has not reached the log.
pub(crate) struct Attempt<'a, 'k, const IS_ONE: bool> {
    // The fields drop in this order, so the attempt releases what it holds in this order.
    entry: Option<Entry<'a>>,
    turn: Option<Turn<'a>>,
    announced: Announced,
    store: &'a Arc<Store>,
    set: WriteSet<'a, 'k, IS_ONE>,
    /// There was room, and the members' tables are known.
    has_begun: bool,
    /// It has waited, so key spaces may have been deleted since it began.
    has_waited: bool,
    /// Records that did not land have been waited for.
    is_undone: bool,
    /// How often the append has found the capacity full.
    refusals: u32,
    /// It locks all writers once that of its reactor has not had all that it needs.
    reach: Reach,
}

/// The result of a step of an attempt.
pub(crate) enum Step {
    /// The write is in the log and in the index, or needs no record: see [`Attempt::finish`].
    Written,
    /// The record of a member, by its place in the set, does not meet the condition: the host is
    /// told once the record is durable.
    Refused(Error, usize),
    /// The medium is full, or accepts no more writes.
    Full(Error),
    /// The attempt has to wait for this.
    Wait(Need),
}

/// A wait that an attempt needs.
#[derive(Debug)]
pub(crate) enum Need {
    /// Space in the log.
    Room(Shortage),
    /// The right to change the keys.
    Entry,
    /// Headers of records.
    Records,
    /// Expired values fill the capacity, and have to be cleaned away.
    Expired,
    /// All writers of the log have to be locked.
    Writers,
    /// Room once more: other writes have taken it.
    NewRoom,
}

impl<'a, 'k, const IS_ONE: bool> Attempt<'a, 'k, IS_ONE> {
    pub(crate) fn new(
        store: &'a Arc<Store>,
        set: WriteSet<'a, 'k, IS_ONE>,
        announced: Announced,
    ) -> Self {
        Self {
            entry: None,
            turn: None,
            announced,
            store,
            set,
            has_begun: false,
            has_waited: false,
            is_undone: false,
            refusals: 0,
            reach: Reach::Own,
        }
    }

    /// Ends an attempt that has not waited, and returns its announcement.
    pub(crate) fn give_up(self) -> Announced {
        let Self { entry, turn, announced, .. } = self;
        drop((entry, turn));
        announced
    }

    /// Ends an attempt, and returns its write.
    pub(crate) fn into_set(self) -> WriteSet<'a, 'k, IS_ONE> {
        let Self { entry, turn, announced, set, .. } = self;
        drop((entry, turn, announced));
        set
    }

    /// Does all that needs no wait. An error has changed nothing.
    pub(crate) fn advance(&mut self) -> Result<Step, Error> {
        let store = self.store;
        if Sabotage::AppendsLate.is_on() {
            self.find_early()?;
        }
        loop {
            let mut lanes = store.lanes.lock_all(hashes(self.set.members()));
            let mut writing = store.log.writing_in(self.reach);
            let step = self.step(&mut lanes, &mut writing);
            let mut due = None;
            if let Ok(Step::Written | Step::Refused(..)) = step {
                let mut part = writing.part();
                self.announced.pause_in(&mut part);
                due = Some(store.background_work(&mut part));
            }
            drop(writing);
            drop(lanes);
            if let Some(due) = due {
                (self.entry, self.turn) = (None, None);
                store.wake_background(due);
            }
            match step {
                Ok(Step::Wait(Need::Writers)) => self.reach = Reach::All,
                Ok(Step::Wait(Need::NewRoom)) => {}
                _ => return step,
            }
            self.start_over();
        }
    }

    /// See [`Sabotage::AppendsLate`].
    fn find_early(&mut self) -> Result<(), Error> {
        let mut lanes = self.store.lanes.lock_all(hashes(self.set.members()));
        let mut writing = self.store.log.writing_in(Reach::All);
        if !self.has_begun && self.begin(&mut writing)?.is_none() {
            let _ = find(self.store, &mut lanes, &writing, self.set.members_mut());
        }
        Ok(())
    }

    /// Does all that needs no wait, of keys whose lanes are locked.
    fn step(&mut self, lanes: &mut Locked<'_>, writing: &mut Writing<'_>) -> Result<Step, Error> {
        let has_checked_room = !self.has_begun && self.turn.is_none();
        if !self.has_begun
            && let Some(step) = self.begin(writing)?
        {
            return Ok(step);
        }
        if self.entry.is_none() {
            let entered = self.store.try_enter(lanes, keys(self.set.members()));
            let Ok(entry) = entered else { return Ok(Step::Wait(Need::Entry)) };
            self.entry = entry;
        }
        match find(self.store, lanes, writing, self.set.members_mut()) {
            Err(NotLocked) => return Ok(Step::Wait(Need::Writers)),
            Ok(true) => {}
            Ok(false) => {
                // Over the wait the keys stay as they are.
                let entry = self.entry.get_or_insert_default();
                entry.hold(&self.store.lanes, lanes, hashes(self.set.members()));
                return Ok(Step::Wait(Need::Records));
            }
        }
        if let Some((at, refused)) = self.refused() {
            return Ok(Step::Refused(refused, at));
        }
        match self.append(lanes, writing, has_checked_room) {
            Err(Error::CapacityExceeded) if !writing.is_whole() => Ok(Step::Wait(Need::Writers)),
            Ok(Ok(())) => Ok(Step::Written),
            Ok(Err(NoRoom)) => Ok(Step::Wait(Need::NewRoom)),
            Err(Error::CapacityExceeded) => Ok(Step::Wait(Need::Expired)),
            Err(error) => Err(error),
        }
    }

    /// Checks that there is room, and looks up the tables of the keys. Returns a step if the
    /// attempt cannot go on.
    fn begin(&mut self, writing: &mut Writing<'_>) -> Result<Option<Step>, Error> {
        if self.turn.is_none() && self.set.may_write() {
            if let Err(error) = self.store.log.media.writable() {
                return Ok(Some(Step::Full(error.into())));
            }
            if let Some(shortage) = self.first_shortage(writing) {
                return Ok(Some(Step::Wait(Need::Room(shortage))));
            }
            self.turn = Some(self.store.turn());
        }
        self.announced.resume_in(writing);
        for member in self.set.members_mut() {
            member.table = self.store.spaces.table(member.change.space)?;
            member.found = Known::From(0);
        }
        self.has_begun = true;
        Ok(None)
    }

    /// Waits for what [`Self::advance`] needs.
    pub(crate) async fn wait(&mut self, need: Need) -> Result<(), Error> {
        self.has_waited = true;
        match need {
            Need::Room(shortage) => self.wait_for_room(shortage).await,
            Need::Entry => {
                self.entry = Some(self.store.enter_keys(keys(self.set.members())).await);
                Ok(())
            }
            Need::Records => match self.read_records().await {
                Err(Error::Unrecovered) if !self.is_undone && self.store.undoes() => {
                    self.wait_for_undone().await
                }
                read => read,
            },
            Need::Expired => {
                self.entry = None;
                self.announced.pause();
                let dropped = self.store.cleaner_drops_expired().await;
                // The cleaner may have dropped some since the append found no room.
                self.refusals += 1;
                if self.refusals > 1 {
                    dropped?;
                }
                self.start_over();
                Ok(())
            }
            Need::Writers | Need::NewRoom => unreachable!("the attempt starts over by itself"),
        }
    }

    /// Starts over: the keys' records may have changed during the wait.
    fn start_over(&mut self) {
        self.has_begun = false;
        (self.entry, self.turn) = (None, None);
    }

    /// As [`Self::shortage`], for a write that has not waited: writes that wait for space go first.
    /// A tombstone does not wait behind values.
    fn first_shortage(&self, writing: &mut Writing<'_>) -> Option<Shortage> {
        let waits = self.set.kind.is_value() && self.announced.place.is_none();
        if waits && self.store.is_room_awaited() {
            return Some(Shortage::Extent);
        }
        self.shortage(writing)
    }

    fn shortage(&self, writing: &mut Writing<'_>) -> Option<Shortage> {
        self.store.log.shortage(writing, self.store.config.ack, self.set.kind, self.set.bytes)
    }

    /// Returns true if other writes have taken the room. One that locks all writers chooses one of
    /// them each time.
    fn is_short(&self, writing: &mut Writing<'_>) -> bool {
        if writing.is_whole() {
            return self.shortage(writing).is_some();
        }
        let (log, ack) = (&self.store.log, self.store.config.ack);
        log.buffer_shortage(writing.writer(), ack, self.set.bytes).is_some()
    }

    /// Waits until cleaning makes room, or finds that it cannot.
    async fn wait_for_room(&mut self, first: Shortage) -> Result<(), Error> {
        let mut shortage = Some(first);
        self.announced.pause();
        while let Some(short) = shortage {
            match short {
                Shortage::Extent => {
                    let place = &mut self.announced.place;
                    self.reach = self.store.cleaner_makes_room(self.set.kind, place).await?;
                }
                Shortage::Buffer => self.wait_for_landing().await,
            }
            shortage = self.shortage(&mut self.store.log.writing_in(self.reach));
        }
        self.turn = Some(self.store.turn());
        Ok(())
    }

    /// Waits until a page of the buffer that is full has landed.
    async fn wait_for_landing(&self) {
        {
            let mut writing = self.store.log.writing_in(self.reach);
            if self.shortage(&mut writing) != Some(Shortage::Buffer) {
                return;
            }
            writing.writer().buffer.await_page();
        }
        clock::park(Rank::Credit, Stage::Queue).await;
    }

    /// Reads headers of records that are not in memory, side by side.
    async fn read_records(&mut self) -> Result<(), Error> {
        let unknown = self.set.members_mut().iter_mut().filter(|member| !member.is_known());
        let mut unknown: SmallVec<[&mut Member<'_>; 1]> = unknown.collect();
        if let [member] = &mut unknown[..] {
            let found = self.store.find(member.table, member.change.key).await?;
            member.found = Known::Is(found);
            return Ok(());
        }
        let finds = unknown.iter().map(|member| {
            let (store, table) = (self.store.clone(), member.table);
            let key = member.change.key.key.clone();
            async move { store.find(table, HashedKey::new(&key)).await }
        });
        let found = clock::join_all(finds.collect()).await;
        for (member, found) in unknown.into_iter().zip(found) {
            member.found = Known::Is(found?);
        }
        Ok(())
    }

    /// Waits for the undo of a record that could not be read because it did not land. The attempt
    /// looks the key up again after each wait, and once more when nothing is left to undo.
    async fn wait_for_undone(&mut self) -> Result<(), Error> {
        self.entry = None;
        self.announced.pause();
        self.is_undone = true;
        for Member { change, .. } in self.set.members() {
            let table = self.store.spaces.table(change.space)?;
            if !self.store.is_undone(table, change.key).await {
                self.is_undone = false;
                break;
            }
        }
        self.start_over();
        Ok(())
    }

    /// Notes which keys exist. Returns the place of the first member whose condition is not met.
    fn refused(&mut self) -> Option<(usize, Error)> {
        self.set.members_mut().iter_mut().enumerate().find_map(|(at, member)| {
            let version = member.record().and_then(Found::version);
            member.exists = version.is_some();
            Some((at, member.change.condition.check(version).err()?))
        })
    }

    /// Appends the records if they fit the capacity, counts them, and points the index to them.
    /// The room may have been checked in this stretch.
    fn append(
        &mut self,
        lanes: &mut Locked<'_>,
        writing: &mut Writing<'_>,
        has_checked_room: bool,
    ) -> Result<Result<(), NoRoom>, Error> {
        let store = self.store;
        let (new, old, records) = self.measure(&mut writing.writer().tally)?;
        if new > 0 && new > writing.credit() + old {
            return Err(Error::CapacityExceeded);
        }
        // A write without a record needs no room, and has not waited for any.
        if records > 0 && !has_checked_room && self.is_short(writing) {
            return Ok(Err(NoRoom));
        }
        let mut part = writing.part();
        if let Some(size) = self.set.size.filter(|_| records > 0)
            && store.log.make_room_for(&mut part, size).is_err()
        {
            return Ok(Err(NoRoom));
        }
        for member in self.set.members() {
            let lane = lanes.of(member.change.key.hash);
            part.writer.clock = part.writer.clock.max(lane.clock);
        }
        let (before, mut done) = (part.writer.clock.0, 0);
        for member in self.set.members_mut().iter_mut().filter(|member| member.has_record()) {
            let batch = InBatch { has_before: done > 0, has_after: done + 1 < records };
            let lane = lanes.of(member.change.key.hash);
            if member.append(store, lane, &mut part, batch).is_err() {
                assert!(done == 0, "room was made for all records of a batch");
                return Ok(Err(NoRoom));
            }
            done += 1;
        }
        if self.set.size.is_some() {
            assert_eq!(part.writer.clock.0, before + done, "a batch has consecutive numbers");
            if store.config.ack == Ack::Program && records > 1 {
                self.note_batch(&mut part);
            }
        }
        part.writer.credit = (part.writer.credit + old).saturating_sub(new);
        Ok(Ok(()))
    }

    /// Returns the bytes that the values take of the capacity, those that they replace, and the
    /// number of records. Notes the bytes of each.
    fn measure(&mut self, tally: &mut Tally) -> Result<(u64, u64, u64), Error> {
        let (store, has_waited, layout) = (self.store, self.has_waited, &self.store.log.layout);
        let (mut new, mut old, mut records) = (0, 0, 0);
        for member in self.set.members_mut() {
            if has_waited {
                store.still_there(member.table)?;
            }
            if !member.has_record() {
                continue;
            }
            records += 1;
            let (found, change) = (member.record(), &member.change);
            if found.is_none() && !store.index_has_room(member.table, change.key) {
                return Err(Error::CapacityExceeded);
            }
            let replaced = found.filter(|found| found.is_value());
            let replaced = replaced.map(|found| (found.header.len, found.header.value_len));
            let size = (change.header_len(), change.value_len());
            member.bytes = tally.footprint(layout, size);
            member.bytes_replaced = replaced.map_or(0, |size| tally.footprint(layout, size));
            // The store's own records are few, and deleting a key space makes room.
            if member.table == TableId::STORE {
                continue;
            }
            old += member.bytes_replaced;
            if member.change.kind() == Kind::Value {
                new += member.bytes;
            }
        }
        Ok((new, old, records))
    }

    /// Readers of a member wait for the pages of all.
    fn note_batch(&self, part: &mut Part<'_, '_>) {
        let appended = || self.set.members().iter().filter_map(|it| Some(&it.kept.as_ref()?.at));
        let (first, last) = (appended().next(), appended().next_back());
        let (first, last) = first.zip(last).expect("a batch has records");
        let (first, last) = (first.address, last.address);
        part.writer.unlanded.add_batch(UnlandedBatch { first, last, pages: pages_of(appended()) });
    }

    /// Returns whether the write, which is in the log, has replaced a value, and what is left of
    /// it: it has to land. `None` if there is nothing to wait for.
    pub(crate) fn finish(&mut self) -> (Stored, Option<Landing>) {
        let members = self.set.members_mut();
        let overwrote = members.iter().any(|member| member.exists);
        let stored = if overwrote { Stored::Overwrote } else { Stored::Anew };
        let lands = self.store.config.ack == Ack::Program;
        if !lands && members.iter().all(|member| member.kept.is_none()) {
            return (stored, None);
        }
        let members = match members {
            [member] => SmallVec::from_buf([member.landed()]),
            members => members.iter_mut().map(Member::landed).collect(),
        };
        (stored, Some(Landing { stored, members }))
    }

    /// Returns the record that has refused the write: that of the member at this place.
    pub(crate) fn refusing(&mut self, at: usize) -> Option<Found> {
        self.set.members_mut()[at].take_record()
    }
}

impl Member<'_> {
    /// Appends the change's record, points the key's entry to it, and counts it as live and the
    /// replaced record as dead. Keeps the replaced record in case the write has to be undone.
    fn append(
        &mut self,
        store: &Store,
        lane: &mut Lane,
        part: &mut Part<'_, '_>,
        batch: InBatch,
    ) -> Result<(), NoRoom> {
        let (log, change) = (&store.log, &self.change);
        let value = change.value().unwrap_or(&NO_VALUE);
        let (table, value_crc) = (self.table, log.value_crc(value));
        let mut header = Header { table, value_crc, batch, ..change.header() };
        let at = log.append(part, Stream::Host, &mut header, value)?;
        lane.clock = header.sequence;
        self.point(store, lane, at.address, &header);
        if let Some(values) = &mut lane.values {
            let is_whole = log.layout.fits_page(header.len(), header.value_len);
            let value = change.value().filter(|_| is_whole);
            values.note(change.key, at.address, &header, value);
        }
        let extent = at.extent;
        let key_len = change.key_len();
        if header.kind == Kind::Tombstone {
            part.writer.tally.add_tombstone(extent, self.bytes);
        } else {
            let (at, bytes, expires) = (at.address, self.bytes, header.expires);
            part.count_value(CountedValue { extent, at, table, key_len, bytes, expires });
            store.counters.count_host_bytes(key_len as u64 + u64::from(header.value_len));
        }
        let may_be_undone = store.config.ack == Ack::Program;
        if may_be_undone || header.kind == Kind::Tombstone {
            let revocable = may_be_undone.then(|| {
                let replaced = self.record().map(|found| found.extent);
                Revocable::new(part.writer.log.reference(log), extent, replaced)
            });
            self.kept = Some(Kept { at, revocable });
        }
        let Some(found) = self.record().filter(|found| found.is_value()) else { return Ok(()) };
        let Found { extent, address: at, .. } = *found;
        let (bytes, expires) = (self.bytes_replaced, found.header.expires);
        part.uncount_value(CountedValue { extent, at, table, key_len, bytes, expires });
        if store.config.ack != Ack::Program && store.config.saves_buffer {
            log.release(part, found);
        }
        let dropped = key_len as u64 + u64::from(found.header.value_len);
        store.counters.count_dropped_bytes(part.writer.number, dropped);
        Ok(())
    }

    /// Points the key's entry from the record that was found to the new one at `new`. Cleaning may
    /// have moved the former; it cannot now, because it takes the same latches and lanes.
    fn point(&self, store: &Store, lane: &mut Lane, new: Address, header: &Header<'_>) {
        let (index, key) = (&store.index, self.change.key);
        let old = self.record().map(|found| found.address);
        match old {
            None => index.insert(lane, self.table, key, new),
            Some(old) => {
                let replaced = index.replace(lane, self.table, key, old, new);
                assert!(replaced, "a latched key's entry stays where it was");
            }
        }
        lane.headers.note(key.hash, old, new, header);
    }

    /// Moves out what waits until the record has landed.
    fn landed(&mut self) -> Landed {
        let found = self.take_record();
        let change = &self.change;
        let value = change.value();
        Landed {
            table: self.table,
            key: change.key.key.clone(),
            value: value.map(|it| FailedValue { len: it.len(), expires: change.expires() }),
            found,
            kept: self.kept.take(),
        }
    }
}

/// Looks up the records of the keys. False if one of them needs a wait; an error if one may be on
/// a page of a writer that is not locked.
#[inline]
fn find(
    store: &Store,
    lanes: &mut Locked<'_>,
    writing: &Writing<'_>,
    members: &mut [Member<'_>],
) -> Result<bool, NotLocked> {
    for member in members.iter_mut().filter(|member| !member.is_known()) {
        let key = member.change.key;
        let lane = lanes.of(key.hash);
        if !store.find_now(lane, writing, (member.table, key), &mut member.found)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns the hashes of the keys of all members.
fn hashes(members: &[Member<'_>]) -> impl ExactSizeIterator<Item = u64> {
    members.iter().map(|member| member.change.key.hash)
}

/// Returns the keys of all members, in their tables.
fn keys<'k>(
    members: &[Member<'k>],
) -> impl ExactSizeIterator<Item = (TableId, HashedKey<'k>)> + Clone {
    members.iter().map(|member| (member.table, member.change.key))
}

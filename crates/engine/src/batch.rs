//! Batches: several writes, in any key spaces, that happen together or not at all.
//!
//! 1. The latches of all keys are taken in one order, and all conditions are checked.
//! 2. The records are appended in one step, side by side in one extent, with consecutive numbers.
//!    Each says which of its neighbours are of its batch. The index points to all of them at once.
//! 3. The batch is answered when all its pages have landed. Whoever meets a member before that
//!    waits for all of them, not just for the member's own.
//! 4. Opening takes a batch of which a record is missing as never written: see `torn`.
//!
//! Copies by the cleaner are records on their own. It cleans extents whose pages have all landed,
//! and a batch lies in one extent: so the batch is whole by then, and stays so. After a loss of
//! power it passes over the records that opening has passed over.

mod torn;

use crate::address::Address;
use crate::announced::Announced;
use crate::error::Error;
use crate::expiring::Expiring;
use crate::index::HashedKey;
use crate::key_space::{KeySpaceId, TableId};
use crate::layout::Layout;
use crate::log::{Appended, Log, NewRecord, NoRoom, State, reserve};
use crate::page_builder::PageBuilder;
use crate::pending::{Pending, durable};
use crate::permit::Permit;
use crate::record::{Header, InBatch, Kind, Sequence, header_len};
use crate::store::{Ack, Found, Store};
use crate::summary::{SUMMARY_ENTRY_BYTES, Summary, summary_numbers};
use crate::undo::{Failed, FailedValue, Revocable};
use crate::write::{Condition, Version, Write};
use base::{Buf, Key};
use media::Stream;
use std::sync::Arc;

/// The most members of a batch, if the index takes as many.
const RECORDS_MAX: u32 = 1_024;

/// A member of a batch.
#[derive(Clone, Debug)]
pub struct BatchWrite {
    /// The key space.
    pub space: KeySpaceId,
    /// The key. A batch names each only once.
    pub key: Key,
    /// What happens to it.
    pub op: BatchOp,
}

/// What a member of a batch does.
#[derive(Clone, Debug)]
pub enum BatchOp {
    /// Stores a value.
    Put {
        /// The value.
        value: Buf,
        /// Under which condition, and for how long. One condition that is not met refuses the
        /// batch.
        write: Write,
    },
    /// Removes the key. One that does not exist needs nothing.
    Delete {
        /// Under which condition.
        condition: Condition,
    },
    /// Leaves the key as it is: others are written only if this is true of it.
    Keep {
        /// What must be true of it.
        condition: Condition,
    },
}

impl BatchOp {
    /// Removes the key, whatever it holds.
    pub const DELETE: Self = Self::Delete { condition: Condition::Always };
}

impl BatchWrite {
    fn kind(&self) -> Kind {
        if matches!(self.op, BatchOp::Put { .. }) { Kind::Value } else { Kind::Tombstone }
    }

    fn is_kept(&self) -> bool {
        matches!(self.op, BatchOp::Keep { .. })
    }

    fn value(&self) -> Buf {
        match &self.op {
            BatchOp::Put { value, .. } => value.clone(),
            BatchOp::Delete { .. } | BatchOp::Keep { .. } => Buf::phantom(0, 0),
        }
    }

    fn write(&self) -> Write {
        match self.op {
            BatchOp::Put { write, .. } => write,
            BatchOp::Delete { condition } | BatchOp::Keep { condition } => condition.into(),
        }
    }

    fn header_len(&self) -> usize {
        header_len(self.key.as_bytes().len(), self.write().expires)
    }

    fn value_len(&self) -> u32 {
        if let BatchOp::Put { value, .. } = &self.op { value.len() } else { 0 }
    }
}

/// What a batch takes, at most.
#[derive(Clone, Copy, Debug)]
struct Size {
    /// That of the member which is kept away from more space than the others.
    kind: Kind,
    headers: usize,
    values: u64,
    /// Of these the longest.
    longest: u32,
    /// Page numbers after the page that is open.
    pages: u32,
}

impl Size {
    fn new(layout: Layout, writes: &[BatchWrite]) -> Self {
        // Those already in the open page may take all of it, so the batch begins on the next.
        let mut size = Self { kind: Kind::Tombstone, headers: 0, values: 0, longest: 0, pages: 0 };
        let mut page = PageBuilder::new(layout);
        // What joins the open page leaves others together than here, and so longer pages, where
        // pages are frames: each may be as long as those that records share.
        let shared = layout.frames.map_or(0, |_| layout.shared_numbers());
        let most = |page: &PageBuilder| layout.aligned(page.numbers().max(shared));
        for write in writes {
            let (header_len, value_len) = (write.header_len(), write.value_len());
            size.headers += header_len;
            size.values += u64::from(value_len);
            size.longest = size.longest.max(value_len);
            if write.kind() == Kind::Value {
                size.kind = Kind::Value;
            }
            let on_one_page = layout.fits_page(header_len, value_len);
            let least = if on_one_page { value_len } else { 1 };
            if page.room(header_len).is_none_or(|room| room < least) {
                size.pages += most(&page);
                page = PageBuilder::new(layout);
            }
            let room = page.room(header_len).expect("an empty page has room for a header");
            let mut done = room.min(value_len);
            page.push(write.header(), Buf::phantom(done, 0));
            while done < value_len {
                size.pages += most(&page);
                let part = layout.bare_room().min(value_len - done);
                done += part;
                page = PageBuilder::continuing(layout, Buf::phantom(part, 0));
            }
        }
        size.pages += most(&page);
        size
    }

    fn bytes(&self) -> u64 {
        self.headers as u64 + self.values
    }
}

impl BatchWrite {
    /// A header of the right length.
    fn header(&self) -> Header<'_> {
        Header {
            sequence: Sequence::default(),
            kind: self.kind(),
            table: TableId::STORE,
            value_len: self.value_len(),
            value_crc: 0,
            value_offset: 0,
            expires: self.write().expires,
            batch: InBatch::default(),
            key: self.key.as_bytes(),
        }
    }
}

/// A write with what was found of its key.
struct Member<'a> {
    of: &'a BatchWrite,
    key: HashedKey<'a>,
    table: TableId,
    value: Buf,
    value_crc: u32,
    found: Option<Found>,
}

impl Member<'_> {
    /// False for a delete of what is not there, and for what only has to be true.
    fn has_record(&self) -> bool {
        match self.of.op {
            BatchOp::Put { .. } => true,
            BatchOp::Delete { .. } => self.version().is_some(),
            BatchOp::Keep { .. } => false,
        }
    }

    fn version(&self) -> Option<Version> {
        self.found.as_ref().and_then(Found::version)
    }

    fn record(&self, batch: InBatch) -> NewRecord<'_> {
        NewRecord {
            sequence: None,
            kind: self.of.kind(),
            table: self.table,
            key: self.key.key.as_bytes(),
            value: &self.value,
            value_crc: self.value_crc,
            expires: self.of.write().expires,
            batch,
        }
    }
}

/// Where records went, and that they may have to be taken back.
type AppendedRevocably = (Vec<Appended>, Vec<Revocable>);

/// A batch of which some page has not landed.
pub(crate) struct Unlanded {
    first: Address,
    last: Address,
    pages: Arc<[Arc<Pending>]>,
}

impl State {
    /// All pages of the batch that has a record at `address`, unless all have landed.
    #[inline]
    pub(crate) fn batch_of(&self, address: Address) -> Option<Arc<[Arc<Pending>]>> {
        let is_in = |batch: &&Unlanded| (batch.first..=batch.last).contains(&address);
        self.batches.iter().find(is_in).map(|batch| batch.pages.clone())
    }
}

impl Store {
    /// The most bytes of any batch: those of its values, and for each member 32 bytes and the key,
    /// and 8 if it expires, rounded up to 8. One of no more fits any empty extent, whatever the
    /// sizes of its members. The longest value of a batch need not be counted, if the batch fits
    /// an empty extent with it: see [`Self::takes_batch`].
    pub fn batch_bytes_max(&self) -> u64 {
        // Pages may stay half empty, so the records take at most half of the extent, and their
        // headers a quarter of it once more in its summary.
        let extent = match self.log.shape.frames {
            // A frame's headers take a unit at least, and two values that do not fit one frame fill
            // more than half of what they could.
            Some(_) => self.log.shape.extent_bytes() / 8,
            None => {
                let pages = u64::from(self.log.shape.pages_per_extent).saturating_sub(12);
                pages * u64::from(self.log.layout.bare_room()) / 4
            }
        };
        match self.config.ack {
            Ack::Program => extent,
            Ack::Buffer { bytes } => extent.min(bytes),
        }
    }

    /// Whether a batch is not too long.
    pub fn takes_batch(&self, writes: &[BatchWrite]) -> bool {
        self.takes(writes.len(), Size::new(self.log.layout, writes))
    }

    fn takes(&self, members: usize, size: Size) -> bool {
        let (bytes, max) = (size.bytes(), self.batch_bytes_max());
        let is_short = bytes <= max
            || bytes - u64::from(size.longest) <= max && self.log.fits_empty_extent(size);
        is_short && members <= self.batch_records_max() as usize
    }

    /// The most members of a batch.
    pub fn batch_records_max(&self) -> u32 {
        RECORDS_MAX.min(self.index.permit_max())
    }

    /// Does all of `writes`, or none of them: each may be in another key space. A batch of one is a
    /// [`Self::put`] or a [`Self::delete_if`], except that nothing need be there to delete. One
    /// that writes nothing tells whether all its conditions are met at one instant.
    ///
    /// Durable on return, in the mode that [`Ack`] names, and all at once. [`Error::BatchTooLong`]
    /// and [`Error::BatchRepeatsKey`] refuse a batch as such; of conditions that are not met the
    /// first in the order of `writes` is told. An error has changed nothing.
    pub async fn write_batch(
        self: &Arc<Self>,
        writes: Vec<BatchWrite>,
        announced: Announced,
    ) -> Result<(), Error> {
        match <[BatchWrite; 1]>::try_from(writes) {
            Ok([write]) => self.write_alone(write, announced).await,
            Err(writes) if writes.is_empty() => Ok(()),
            Err(writes) => {
                let size = self.check_batch(&writes)?;
                self.write_together(&writes, size, announced).await
            }
        }
    }

    async fn write_alone(
        self: &Arc<Self>,
        BatchWrite { space, key, op }: BatchWrite,
        announced: Announced,
    ) -> Result<(), Error> {
        match op {
            BatchOp::Put { value, write } => {
                self.put(space, &key, &value, write, announced).await.map(drop)
            }
            BatchOp::Delete { condition } => {
                match self.delete_if(space, &key, condition, announced).await {
                    Err(Error::KeyNotFound) if condition != Condition::MustExist => Ok(()),
                    deleted => deleted,
                }
            }
            BatchOp::Keep { condition } => {
                drop(announced);
                let facts = self.examine(space, &key).await?;
                condition.check(facts.map(|facts| facts.version))
            }
        }
    }

    fn check_batch(&self, writes: &[BatchWrite]) -> Result<Size, Error> {
        let max = self.value_bytes_max();
        if writes.iter().any(|write| write.value_len() > max) {
            return Err(Error::ValueTooLong { max });
        }
        let size = Size::new(self.log.layout, writes);
        if !self.takes(writes.len(), size) {
            let (max_bytes, max_records) = (self.batch_bytes_max(), self.batch_records_max());
            return Err(Error::BatchTooLong { max_bytes, max_records });
        }
        let mut names: Vec<_> = writes.iter().map(|write| (write.space, &write.key)).collect();
        names.sort_unstable();
        if names.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(Error::BatchRepeatsKey);
        }
        for write in writes {
            self.table(write.space)?;
        }
        Ok(size)
    }

    async fn write_together(
        self: &Arc<Self>,
        writes: &[BatchWrite],
        size: Size,
        mut announced: Announced,
    ) -> Result<(), Error> {
        let room = u32::try_from(size.bytes()).expect("a batch fits an extent");
        let entries = u32::try_from(writes.len()).expect("a batch is short");
        let mut are_undone = false;
        let (members, appended, _revocable) = loop {
            let mut _turn = None;
            if !writes.iter().all(BatchWrite::is_kept) {
                _turn = Some(self.wait_for_room(&mut announced, size.kind, room).await?);
            }
            let permit = self.index.admit(entries).await;
            let hashes = writes.iter().map(|write| write.key.hash()).collect();
            let latches = self.latches.latch_all(hashes).await;
            let members = match self.members(writes, &permit).await {
                Err(Error::Unrecovered) if !are_undone && self.undoes() => {
                    drop((latches, permit));
                    announced.pause();
                    are_undone = self.are_undone(writes).await?;
                    continue;
                }
                members => members?,
            };
            let refused = members.iter().find_map(|member| {
                let refused = member.of.write().condition.check(member.version()).err()?;
                Some((refused, member))
            });
            if let Some((refused, member)) = refused {
                drop((latches, permit, announced));
                self.settle(member.found.as_ref()).await?;
                return Err(refused);
            }
            match self.append_members(&members, size) {
                Ok(Ok((appended, revocable))) => {
                    self.point_all(&members, &appended);
                    break (members, appended, revocable);
                }
                Ok(Err(NoRoom)) => {}
                Err(Error::CapacityExceeded) => {
                    drop((latches, permit));
                    self.expired_make_room(&mut announced).await?;
                }
                Err(error) => return Err(error),
            }
        };
        drop(announced);
        self.wake_cleaner_when_low();
        self.land(&members, &appended).await?;
        self.forget_deleted(&members, &appended).await;
        Ok(())
    }

    /// As [`Self::is_undone`], of all keys of a batch.
    async fn are_undone(&self, writes: &[BatchWrite]) -> Result<bool, Error> {
        for write in writes {
            let (table, key) = (self.spaces.table(write.space)?, HashedKey::new(&write.key));
            if !self.is_undone(table, key).await {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What there is of each key. Latches of all are held.
    async fn members<'a>(
        self: &Arc<Self>,
        writes: &'a [BatchWrite],
        permit: &Permit<'_>,
    ) -> Result<Vec<Member<'a>>, Error> {
        let mut finds = Vec::new();
        for write in writes {
            let (table, key) = (self.spaces.table(write.space)?, write.key.clone());
            self.index.load(table, HashedKey::new(&key), permit).await;
            let store = self.clone();
            finds.push(async move { store.find(table, HashedKey::new(&key)).await });
        }
        let mut members = Vec::new();
        for (of, found) in writes.iter().zip(clock::join_all(finds).await) {
            let value = of.value();
            members.push(Member {
                of,
                key: HashedKey::new(&of.key),
                table: self.spaces.table(of.space)?,
                value_crc: self.log.value_crc(&value),
                value,
                found: found?,
            });
        }
        Ok(members)
    }

    /// Appends the records of all members, if they fit the capacity, counts them in, and keeps
    /// what they replace.
    fn append_members(
        &self,
        members: &[Member<'_>],
        size: Size,
    ) -> Result<Result<AppendedRevocably, NoRoom>, Error> {
        let layout = self.log.layout;
        let (mut new, mut old) = (0, 0);
        for member in members {
            self.still_there(member.table)?;
            let is_new = member.found.is_none() && member.has_record();
            if is_new && !self.index_has_room(member.table, member.key) {
                return Err(Error::CapacityExceeded);
            }
            if member.of.kind() == Kind::Value {
                new += layout.footprint(member.of.header_len(), member.of.value_len());
            }
            let replaced = member.found.as_ref().filter(|_| member.has_record());
            if let Some(found) = replaced.filter(|found| found.is_value()) {
                old += layout.footprint(found.header.len(), found.header.value_len);
            }
        }
        let with_record: Vec<_> = members.iter().filter(|member| member.has_record()).collect();
        let mut state = self.log.state();
        if new > 0 && state.values.bytes + new > self.config.capacity_bytes + old {
            return Err(Error::CapacityExceeded);
        }
        let page_bytes = self.log.shape.page_bytes;
        let bytes = u32::try_from(size.bytes()).expect("a batch fits an extent");
        if state.buffer_shortage(self.config.ack, page_bytes, bytes).is_some() {
            return Ok(Err(NoRoom));
        }
        let last = with_record.len().saturating_sub(1);
        let records: Vec<_> = with_record
            .iter()
            .enumerate()
            .map(|(at, member)| member.record(InBatch { has_before: at > 0, has_after: at < last }))
            .collect();
        let Ok(appended) = self.log.append_batch(&mut state, &records, size) else {
            return Ok(Err(NoRoom));
        };
        for (record, appended) in records.iter().zip(&appended) {
            let extent = self.log.page_id(appended.address).extent;
            let header_len = header_len(record.key.len(), record.expires);
            let bytes = layout.footprint(header_len, record.value.len());
            if record.kind == Kind::Value {
                state.count_value(extent, record.table, record.key.len(), bytes);
                state.count_expiring(
                    Expiring::add,
                    (extent, appended.address),
                    record.table,
                    record.expires,
                );
            } else {
                state.count_tombstone(extent, bytes);
            }
        }
        if self.config.ack == Ack::Program
            && let [first, .., last] = &appended[..]
        {
            let (first, last) = (first.address, last.address);
            state.batches.push(Unlanded { first, last, pages: pages_of(&appended) });
        }
        let revocable = with_record.iter().zip(&appended).filter_map(|(member, appended)| {
            self.revocable(&mut state, appended, member.found.as_ref())
        });
        let revocable = revocable.collect();
        Ok(Ok((appended, revocable)))
    }

    fn point_all(&self, members: &[Member<'_>], appended: &[Appended]) {
        let with_record = members.iter().filter(|member| member.has_record());
        for (member, appended) in with_record.zip(appended) {
            self.point(member.table, member.key, member.found.as_ref(), appended);
            if member.of.kind() == Kind::Value {
                let key_len = member.key.key.as_bytes().len() as u64;
                self.counters.count_host_bytes(key_len + u64::from(member.value.len()));
            }
        }
    }

    /// Waits until the batch is durable, and what it found absent is so for good.
    async fn land(
        self: &Arc<Self>,
        members: &[Member<'_>],
        appended: &[Appended],
    ) -> Result<(), Error> {
        if self.config.ack != Ack::Program {
            return Ok(());
        }
        let landed = durable(&pages_of(appended)).await;
        if landed.is_err() {
            self.undo_all(members, appended).await;
        }
        if let Some(first) = appended.first() {
            let mut state = self.log.state();
            state.batches.retain(|batch| batch.first != first.address);
        }
        landed?;
        for member in members.iter().filter(|member| !member.has_record()) {
            self.settle(member.found.as_ref()).await?;
        }
        Ok(())
    }

    /// Of a batch that did not land nobody is told meanwhile.
    async fn undo_all(self: &Arc<Self>, members: &[Member<'_>], appended: &[Appended]) {
        let with_record = members.iter().filter(|member| member.has_record());
        for (member, appended) in with_record.zip(appended) {
            let expires = member.of.write().expires;
            let value = FailedValue { len: member.value.len(), expires };
            let value = (member.of.kind() == Kind::Value).then_some(value);
            let Member { table, key, .. } = *member;
            let failed = Failed { table, key, at: appended.address, value };
            self.undo(failed, member.found.as_ref()).await;
        }
    }

    /// Takes the deleted keys out of the index, unless later stores have taken their places.
    async fn forget_deleted(&self, members: &[Member<'_>], appended: &[Appended]) {
        let with_record = members.iter().filter(|member| member.has_record());
        for (member, appended) in with_record.zip(appended) {
            if member.of.kind() == Kind::Tombstone {
                self.forget_tombstone(member.table, member.key, appended.address).await;
            }
        }
    }
}

/// The pages of all records, each once.
fn pages_of(appended: &[Appended]) -> Arc<[Arc<Pending>]> {
    let mut pages: Vec<Arc<Pending>> = Vec::new();
    for page in appended.iter().flat_map(|appended| &appended.pages) {
        if pages.last().is_none_or(|last| !Arc::ptr_eq(last, page)) {
            pages.push(page.clone());
        }
    }
    pages.into()
}

impl Log {
    /// Appends records of hosts in one extent and with consecutive numbers. The caller has them
    /// indexed before it awaits anything.
    fn append_batch(
        self: &Arc<Self>,
        state: &mut State,
        records: &[NewRecord<'_>],
        size: Size,
    ) -> Result<Vec<Appended>, NoRoom> {
        if records.is_empty() {
            return Ok(Vec::new());
        }
        if state.frontiers[Stream::Host as usize].is_some() && !self.has_room_for(state, size) {
            self.seal(state, Stream::Host);
        }
        if state.frontiers[Stream::Host as usize].is_none() {
            self.open_extent(state, Stream::Host, reserve(Stream::Host, size.kind))?;
        }
        assert!(self.has_room_for(state, size), "an empty extent has room for any batch");
        let before = state.sequence.0;
        let mut appended = Vec::with_capacity(records.len());
        for record in records {
            appended.push(self.append(state, Stream::Host, record)?);
        }
        let after = before + records.len() as u64;
        assert_eq!(state.sequence.0, after, "no extent is opened within a batch");
        Ok(appended)
    }

    /// True when the open extent of hosts takes the batch and then still its summary.
    fn has_room_for(&self, state: &State, size: Size) -> bool {
        let Some(frontier) = &state.frontiers[Stream::Host as usize] else { return false };
        let open = frontier.builder.numbers().max(self.layout.shared_numbers());
        let next = self.layout.aligned(self.layout.aligned(frontier.page) + open);
        self.fits_from(next, frontier.summary.bytes(), size)
    }

    /// The same of an extent that nothing was appended to.
    fn fits_empty_extent(&self, size: Size) -> bool {
        let next = self.layout.aligned(self.layout.shared_numbers());
        self.fits_from(next, Summary::default().bytes(), size)
    }

    /// True when the batch fits behind the page before `next`, with a summary of which the pages
    /// before the open one have taken `summary_bytes`.
    fn fits_from(&self, next: u32, summary_bytes: usize, size: Size) -> bool {
        // The headers of the open page are not in the summary yet, and as for a long record two
        // more pages are kept for what others add.
        let page = SUMMARY_ENTRY_BYTES + self.layout.headers_max();
        let entries = size.pages as usize * SUMMARY_ENTRY_BYTES;
        let summary = summary_bytes + 3 * page + entries + size.headers;
        let reserved = summary_numbers(self.layout, summary);
        next + size.pages + reserved <= self.shape.pages_per_extent
    }
}

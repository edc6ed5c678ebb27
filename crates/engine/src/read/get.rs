use crate::ack::Ack;
use crate::clean::expiry::has_expired;
use crate::error::Error;
use crate::format::address::{Address, PageNumber};
use crate::format::mend::repaired;
use crate::format::page_view::{PageView, Record, vouched_record};
use crate::format::record::{Header, Kind};
use crate::hashed_key::HashedKey;
use crate::key_space::{KeySpaceId, TableId};
use crate::lane::Lane;
use crate::lane::values::CachedValue;
use crate::log::{LateWhole, Log, OnItsWay, Unlanded, Visit, Writer, Writing};
use crate::read::look_up::{Known, Look, Visits, first_known};
use crate::sabotage::Sabotage;
use crate::store::Store;
use crate::write::condition::Version;
use crate::write::pending::durable;
use base::{Buf, Key, ValueRef};
use clock::{Class, UnixMillis};
use media::{ExtentId, Page, PageId, Span};
use std::cell::Cell;
use std::sync::Arc;

/// A value, its date of expiry and its version.
#[derive(Clone, Debug)]
pub struct Retrieved {
    /// The value.
    pub value: Buf,
    /// When the key ceases to exist.
    pub expires: Option<UnixMillis>,
    /// The version that [`Condition::Unchanged`](crate::Condition::Unchanged) compares.
    pub version: Version,
}

/// The length, date of expiry and version of a key's value, from its record's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyFacts {
    /// The length of the value in bytes.
    pub value_len: u32,
    /// When the key ceases to exist.
    pub expires: Option<UnixMillis>,
    /// The version that [`Condition::Unchanged`](crate::Condition::Unchanged) compares.
    pub version: Version,
}

/// The state of a key, as a record has it.
type Content = Look<Retrieved>;

/// When a key ceases to exist, and its version.
type Facts = (Option<UnixMillis>, Version);

/// What a reader knows of records that did not land, from one try to the next.
#[derive(Default)]
struct NotLanded {
    /// The decisions of writers before the last try: see [`Log::watch_decisions`].
    watched: Option<u64>,
    /// No record of the key is left to undo.
    is_undone: bool,
}

/// The writers of the log, which a reader locks when it meets a page that may not have landed.
trait Owners {
    /// Returns the writer that has the pages of `extent` that have not landed. `None` if it cannot
    /// be locked now.
    fn owner(&mut self, extent: ExtentId) -> Option<&Writer>;
}

impl Owners for LateWhole<'_> {
    fn owner(&mut self, extent: ExtentId) -> Option<&Writer> {
        Some(self.get().owner(extent))
    }
}

/// Locks the first writer that is asked for, and no other.
struct LateWriter<'a> {
    log: &'a Log,
    writing: Option<Writing<'a>>,
}

impl Owners for LateWriter<'_> {
    fn owner(&mut self, extent: ExtentId) -> Option<&Writer> {
        let writing = self.writing.get_or_insert_with(|| self.log.writing_to(extent));
        writing.owner(extent).ok()
    }
}

/// Returns what the header of a value says of its key.
#[inline]
const fn facts(header: &Header<'_>) -> Facts {
    (header.expires, Version::of(header.sequence))
}

/// Returns what a record with this header says of `key`; an error when its value is lost.
#[expect(
    clippy::inline_always,
    reason = "the compiler does so by chance, and a call takes 8 of 1,500"
)]
#[inline(always)]
fn state_of(key: &Key, header: &Header<'_>) -> Result<Look<()>, Error> {
    match header.kind {
        _ if !key.is(header.key) => Ok(Look::OtherKey),
        _ if has_expired(header.expires) => Ok(Look::Absent),
        Kind::Value => Ok(Look::Is(())),
        Kind::Lost => Err(Error::Unrecovered),
        Kind::Tombstone | Kind::Table => Ok(Look::Absent),
    }
}

impl Store {
    /// Returns the value of `key`.
    ///
    /// [`Error::Unrecovered`] when the medium does not return the bytes that were stored.
    pub async fn get(self: &Arc<Self>, space: KeySpaceId, key: &Key) -> Result<Buf, Error> {
        Ok(self.retrieve(space, key).await?.value)
    }

    pub(crate) async fn get_in(self: &Arc<Self>, table: TableId, key: &Key) -> Result<Buf, Error> {
        Ok(self.retrieve_in(Ok(table), key).await?.value)
    }

    /// Returns the value of `key`, its date of expiry, and its version for a later conditional
    /// write.
    #[inline]
    pub fn retrieve(
        self: &Arc<Self>,
        space: KeySpaceId,
        key: &Key,
    ) -> impl Future<Output = Result<Retrieved, Error>> {
        self.retrieve_in(self.table(space), key)
    }

    // Inline, as all else that makes a future: it is then made in its place, not copied there.
    #[inline]
    async fn retrieve_in(
        self: &Arc<Self>,
        table: Result<TableId, Error>,
        key: &Key,
    ) -> Result<Retrieved, Error> {
        let (table, key) = (table?, HashedKey::new(key));
        let mut met = NotLanded::default();
        let found = loop {
            match self.try_get(table, key).await {
                Ok(found) => break found,
                Err(Error::KeyNotFound) => return Err(Error::KeyNotFound),
                Err(error) => {
                    Box::pin(self.await_undo(table, key, error, &mut met)).await?;
                }
            }
        };
        if table != TableId::STORE {
            self.counters.count_retrieved_bytes(found.value.len());
        }
        Ok(found)
    }

    async fn try_get(
        self: &Arc<Self>,
        table: TableId,
        key: HashedKey<'_>,
    ) -> Result<Retrieved, Error> {
        let now = |lane: &mut Lane, state: &mut LateWhole<'_>, address| {
            let mut taken = None;
            let mut take = |value: ValueRef<'_>| taken = Some(value.into_buf());
            let content = self.content_now(lane, state, table, key, address, &mut take)?;
            Some(content.map(|(expires, version)| {
                let value = taken.expect("`take` is called with a value that is found");
                Retrieved { value, expires, version }
            }))
        };
        let mut visits = Visits::new();
        if let Known::Is(found) = self.begin_look_up(table, key, now, &mut visits).await {
            return found.ok_or(Error::KeyNotFound);
        }
        for visit in &mut visits {
            match self.content(visit, table, key).await {
                Ok(Look::Is(found)) => return Ok(found),
                Ok(Look::Absent) => return Err(Error::KeyNotFound),
                Ok(Look::OtherKey) => {}
                Err(Error::Unrecovered) if Sabotage::LostIsAbsent.is_on() => {
                    return Err(Error::KeyNotFound);
                }
                Err(error) => return Err(error),
            }
        }
        Err(Error::KeyNotFound)
    }

    /// Calls `take` once with the value of `key`. Returns [`Error::KeyNotFound`] if the key does
    /// not exist, and `None` if a wait is needed: see [`Self::retrieve`].
    ///
    /// `take` is called with locks of the store held: it must be short, and take none.
    #[inline]
    pub fn begin_get<'a>(
        &self,
        space: KeySpaceId,
        key: impl Into<HashedKey<'a>>,
        mut take: impl FnMut(ValueRef<'_>),
    ) -> Option<Result<(), Error>> {
        let key = key.into();
        let table = match self.table(space) {
            Ok(table) => table,
            Err(error) => return Some(Err(error)),
        };
        let mut lanes = self.lanes.lock(key.hash);
        let lane = lanes.of(key.hash);
        let candidates = self.index.lookup(lane, table, key).at_once()?;
        let mut owners = LateWriter { log: &self.log, writing: None };
        let mut take = |value: ValueRef<'_>| {
            self.counters.count_retrieved_bytes(value.len());
            take(value);
        };
        let look = |address| self.content_now(lane, &mut owners, table, key, address, &mut take);
        match first_known(&candidates, look) {
            Known::Is(Some(_)) => Some(Ok(())),
            Known::Is(None) => Some(Err(Error::KeyNotFound)),
            Known::From(_) => None,
        }
    }

    /// Returns true when `key` exists. Reads the record's header: the index alone cannot tell.
    pub async fn exist(self: &Arc<Self>, space: KeySpaceId, key: &Key) -> Result<bool, Error> {
        self.exist_in(self.table(space)?, key).await
    }

    pub(crate) async fn exist_in(
        self: &Arc<Self>,
        table: TableId,
        key: &Key,
    ) -> Result<bool, Error> {
        Ok(self.examine_in(table, key).await?.is_some())
    }

    /// Returns the length, date of expiry and version of `key`'s value, if the key exists. Does not
    /// read the value.
    pub async fn examine(
        self: &Arc<Self>,
        space: KeySpaceId,
        key: &Key,
    ) -> Result<Option<KeyFacts>, Error> {
        self.examine_in(self.table(space)?, key).await
    }

    async fn examine_in(
        self: &Arc<Self>,
        table: TableId,
        key: &Key,
    ) -> Result<Option<KeyFacts>, Error> {
        let key = HashedKey::new(key);
        let mut met = NotLanded::default();
        loop {
            match self.try_examine(table, key).await {
                Ok(facts) => return Ok(facts),
                Err(error) => {
                    Box::pin(self.await_undo(table, key, error, &mut met)).await?;
                }
            }
        }
    }

    async fn try_examine(
        self: &Arc<Self>,
        table: TableId,
        key: HashedKey<'_>,
    ) -> Result<Option<KeyFacts>, Error> {
        let Some(found) = self.find(table, key).await? else { return Ok(None) };
        found.settled(&self.log, self.config.ack).await?;
        let (value_len, expires) = (found.header.value_len, found.header.expires);
        Ok(found.version().map(|version| KeyFacts { value_len, expires, version }))
    }

    /// Waits until the record that made a reader fail with `error` is undone, if it did not land:
    /// the reader then tries again. Otherwise returns `error`. The reader keeps `met` from one try
    /// to the next.
    async fn await_undo(
        &self,
        table: TableId,
        key: HashedKey<'_>,
        error: Error,
        met: &mut NotLanded,
    ) -> Result<(), Error> {
        if error.is_of_writing() {
            // The writer may have undone the record before this task resumed: so the error is
            // returned if there was no decision since before the try.
            let seen = self.log.watch_decisions();
            if self.log.pins.has_any_revocable() {
                self.log.decision_after(seen).await;
            } else if met.watched == Some(seen) {
                return Err(error);
            }
            met.watched = Some(seen);
            return Ok(());
        }
        if error != Error::Unrecovered || met.is_undone || !self.undoes() {
            return Err(error);
        }
        met.is_undone = self.is_undone(table, key).await;
        Ok(())
    }

    /// Waits, while the index has a record of the key that did not land, for its writer to undo it.
    /// False after a wait: the reader looks again. True when none is left: the reader looks once
    /// more.
    pub(crate) async fn is_undone(&self, table: TableId, key: HashedKey<'_>) -> bool {
        let seen = self.log.watch_decisions();
        let failed = self.failed_of(table, key).await;
        if failed.is_empty() {
            return true;
        }
        if !self.are_final(&failed) {
            self.log.decision_after(seen).await;
            // Undoing one write can expose an earlier write that also failed.
            let left = self.failed_of(table, key).await;
            if left != failed {
                return left.is_empty();
            }
        }
        self.are_final(&failed)
    }

    /// Returns true when no record is left to undo in the extents of these records: they are lost,
    /// on pages before one that did not land.
    fn are_final(&self, failed: &[Address]) -> bool {
        let state = self.log.whole();
        let is_of = |id| failed.iter().any(|at| self.log.page_id(*at).extent == id);
        let mut extents = state.extents.iter().filter(|(id, _)| is_of(*id));
        extents.all(|(id, extent)| extent.has_landed() && !self.log.pins.has_revocable(id))
    }

    /// Returns the records that the index has for a key, or for one that looks like it, and did not
    /// land.
    async fn failed_of(&self, table: TableId, key: HashedKey<'_>) -> Vec<Address> {
        let candidates = self.lookup(table, key).await;
        candidates.into_iter().filter(|at| self.did_not_land(*at)).collect()
    }

    /// Returns true for a record of which a page has not landed since the store was opened. For an
    /// extent that was reset since the index led there it returns false.
    fn did_not_land(&self, address: Address) -> bool {
        let at = self.log.page_id(address);
        let state = self.log.whole();
        let mount = state.sequence.mount();
        state.extents.find(at.extent).is_some_and(|extent| {
            extent.gave_up_in(mount) && extent.holes().iter().any(|hole| *hole >= at.page)
        })
    }

    /// Returns true when records that did not land are undone.
    pub(crate) fn undoes(&self) -> bool {
        let state = self.log.whole();
        let mount = state.sequence.mount();
        let gave_up = state.extents.iter().any(|(_, extent)| extent.gave_up_in(mount));
        self.config.ack == Ack::Program && gave_up
    }

    /// Returns what the record at `address` says of `key`, if it has landed and all of it is in
    /// memory. If the key exists, `take` is called with the value. The index leads to the record as
    /// long as the lane is locked, so its extent is not reset.
    fn content_now(
        &self,
        lane: &mut Lane,
        owners: &mut impl Owners,
        table: TableId,
        key: HashedKey<'_>,
        address: Address,
        take: &mut impl FnMut(ValueRef<'_>),
    ) -> Option<Look<Facts>> {
        let at = self.log.page_id(address);
        if !self.log.settled.has(at) {
            let writer = owners.owner(at.extent)?;
            if writer.unlanded.has(address) {
                return self.unlanded_content_now(writer, key.key, address, take);
            }
        }
        if let Some(values) = &mut lane.values
            && let Some(cached) = values.get(table, key, address)
        {
            return Some(known_content(cached).map(|found| {
                take(ValueRef::Owned(found.value));
                (found.expires, found.version)
            }));
        }
        let (memory, layout) = (self.log.media.as_memory()?, &self.log.layout);
        self.counters.count_retrieve_read();
        memory.with_page(at, |page| {
            let (header, start) = vouched_record(layout, page, layout.offset(address))?;
            match state_of(key.key, &header).ok()? {
                Look::OtherKey => Some(Look::OtherKey),
                Look::Absent if self.config.ack == Ack::Program => None,
                Look::Absent => Some(Look::Absent),
                // `None` where the value continues on the next page.
                Look::Is(()) => {
                    let value = page.value_at(start, header.value_len)?;
                    self.is_whole(&value, &header).then(|| {
                        take(value);
                        Look::Is(facts(&header))
                    })
                }
            }
        })
    }

    /// As [`Self::content_now`], for a record whose page has not landed: `None` where hosts are
    /// answered once it has.
    fn unlanded_content_now(
        &self,
        writer: &Writer,
        key: &Key,
        address: Address,
        take: &mut impl FnMut(ValueRef<'_>),
    ) -> Option<Look<Facts>> {
        if self.config.ack == Ack::Program {
            return None;
        }
        self.log.with_unlanded(writer, address, |_, header, part| {
            match state_of(key, header).ok()? {
                Look::OtherKey => Some(Look::OtherKey),
                Look::Absent => Some(Look::Absent),
                Look::Is(()) => {
                    let value = ValueRef::Owned(part()?);
                    self.is_whole(&value, header).then(|| {
                        take(value);
                        Look::Is(facts(header))
                    })
                }
            }
        })
    }

    /// Returns the state of `key`, as a record has it.
    async fn content(
        self: &Arc<Self>,
        visit: &mut Visit<'_>,
        table: TableId,
        key: HashedKey<'_>,
    ) -> Result<Content, Error> {
        let address = visit.address;
        let OnItsWay { record, batch } = std::mem::take(&mut visit.on_its_way);
        if let Some(pages) = batch
            && self.config.ack == Ack::Program
        {
            durable(&pages).await?;
        }
        if let Some(unlanded) = record {
            return Box::pin(self.unlanded_content(address, key.key, *unlanded)).await;
        }
        if let Some(cached) = self.cached(table, key, address) {
            return Ok(known_content(cached));
        }
        self.counters.count_retrieve_read();
        let layout = self.log.layout;
        let offset = layout.offset(address);
        // `select` has checked the header of the page that is returned.
        let seen = Cell::new(None);
        let select = |page: &Page| {
            let Some(view) = PageView::new(layout, page) else { return 0 };
            let record = view.record_of(key.key, offset);
            seen.set(record);
            let header = record.and_then(|record| record.header);
            let wanted = header.filter(|header| !has_expired(header.expires));
            view.front_wanted(offset) + wanted.map_or(0, |header| view.part_len(&header, layout))
        };
        let read = self.log.media.read(layout.span(address), &select, Class::HostRead).await;
        let page = self.noticed(read)?;
        let look = || PageView::new(layout, &page)?.record_of(key.key, offset);
        let Some(Record { header, value_start }) = seen.take().or_else(look) else {
            return Box::pin(self.damaged_content(address, key.key, &page)).await;
        };
        let Some(header) = header else { return Ok(Look::OtherKey) };
        match state_of(key.key, &header)? {
            Look::OtherKey => Ok(Look::OtherKey),
            Look::Absent => self.unless_failed(address, 0).map(|()| Look::Absent),
            Look::Is(()) => {
                let part_len = layout.part_len(value_start, header.value_len);
                let part = page.data_at(value_start, part_len);
                let part = part.ok_or(Error::Unrecovered)?;
                let rest = header.value_len - part.len();
                self.unless_failed(address, rest)?;
                let whole = if rest == 0 {
                    self.checked(part, &header)?
                } else {
                    Box::pin(self.whole(address.page(), part, &header)).await?
                };
                self.note_value(key, address, &header, &whole.value);
                Ok(Look::Is(whole))
            }
        }
    }

    /// Notes a value that was read.
    fn note_value(&self, key: HashedKey<'_>, at: Address, header: &Header<'_>, value: &Buf) {
        if self.lanes.keep_values()
            && let Some(values) = &mut self.lanes.lock(key.hash).of(key.hash).values
        {
            values.note_read(key, at, header, value);
        }
    }

    /// Returns the value of a record from the cache of values.
    fn cached(&self, table: TableId, key: HashedKey<'_>, at: Address) -> Option<CachedValue> {
        if !self.lanes.keep_values() {
            return None;
        }
        let mut lanes = self.lanes.lock(key.hash);
        let values = lanes.of(key.hash).values.as_mut()?;
        let cached = values.get(table, key, at);
        if cached.is_none() {
            values.count_miss();
        }
        cached
    }

    /// Returns an error for a record of which a page did not land, also one of the pages after the
    /// first, with `rest` bytes of its value.
    fn unless_failed(&self, address: Address, rest: u32) -> Result<(), Error> {
        if self.config.ack != Ack::Program || !self.log.has_given_up() {
            return Ok(());
        }
        let PageId { extent, page } = self.log.page_id(address);
        let last = page + rest.div_ceil(self.log.layout.bare_room());
        if self.log.has_failed(extent, page..=last) { Err(Error::Unrecovered) } else { Ok(()) }
    }

    /// As [`Self::content`], for a record whose header is damaged on its page. The value is read
    /// again: its place is known only after the header is mended.
    async fn damaged_content(
        self: &Arc<Self>,
        address: Address,
        key: &Key,
        page: &Page,
    ) -> Result<Content, Error> {
        let record = self.mended_record(address, Some(page)).await.ok_or(Error::Unrecovered)?;
        let header = record.header.borrowed();
        match state_of(key, &header)? {
            Look::OtherKey => return Ok(Look::OtherKey),
            Look::Absent => return Ok(Look::Absent),
            Look::Is(()) => {}
        }
        let part_len = record.part_len(self.log.layout.page_bytes);
        self.counters.count_retrieve_read();
        let wanted = |_: &Page| part_len;
        let read =
            self.log.media.read(self.log.layout.span(address), &wanted, Class::HostRead).await;
        let part = self.noticed(read)?.data_at(record.value_start, part_len);
        let part = part.ok_or(Error::Unrecovered)?;
        self.whole(address.page(), part, &header).await.map(Look::Is)
    }

    /// As [`Self::content`], for a record whose first page has not landed: served from memory once
    /// it is durable.
    async fn unlanded_content(
        self: &Arc<Self>,
        address: Address,
        key: &Key,
        unlanded: Unlanded,
    ) -> Result<Content, Error> {
        let Unlanded { pages, header, part } = unlanded;
        if self.config.ack == Ack::Program && header.key == *key {
            durable(&[pages]).await?;
        }
        let header = header.borrowed();
        match state_of(key, &header)? {
            Look::OtherKey => Ok(Look::OtherKey),
            Look::Absent => Ok(Look::Absent),
            Look::Is(()) => self.whole(address.page(), part, &header).await.map(Look::Is),
        }
    }

    /// Reads the parts of a value after the first, which is on `page`, side by side, and checks the
    /// whole value.
    async fn whole(
        self: &Arc<Self>,
        page: PageNumber,
        first: Buf,
        header: &Header<'_>,
    ) -> Result<Retrieved, Error> {
        let value = match header.value_len - first.len() {
            0 => first,
            rest => self.joined(page, first, rest).await?,
        };
        self.checked(value, header)
    }

    /// Returns a whole value with the facts of its header, if it is as it was stored.
    fn checked(&self, value: Buf, header: &Header<'_>) -> Result<Retrieved, Error> {
        let value = ValueRef::Owned(value);
        if !self.is_whole(&value, header) {
            return Err(Error::Unrecovered);
        }
        let (expires, version) = facts(header);
        Ok(Retrieved { value: value.into_buf(), expires, version })
    }

    /// Returns whether all of the value of the record with this header is there as it was stored.
    #[inline]
    fn is_whole(&self, value: &ValueRef<'_>, header: &Header<'_>) -> bool {
        let crc = if self.log.has_crc(value.len()) { value.crc32c() } else { 0 };
        (value.len(), crc) == (header.value_len, header.value_crc)
    }

    /// Returns the value that begins with `first` on `page` and has `rest` bytes on the next pages.
    async fn joined(
        self: &Arc<Self>,
        page: PageNumber,
        first: Buf,
        rest: u32,
    ) -> Result<Buf, Error> {
        let pages = rest.div_ceil(self.log.layout.bare_room());
        let reads: Vec<_> = (1..=pages)
            .map(|more| {
                let store = self.clone();
                let number = PageNumber(page.0 + more);
                async move { store.continuation(number, Class::HostRead).await }
            })
            .collect();
        let mut parts = vec![first];
        for part in clock::join_all(reads).await {
            parts.push(part?);
        }
        Buf::join(&parts).ok_or(Error::Unrecovered)
    }

    /// Returns the part of a long value that begins page `number`.
    pub(crate) async fn continuation(
        &self,
        number: PageNumber,
        class: Class,
    ) -> Result<Buf, Error> {
        let layout = self.log.layout;
        if let Some((pages, part)) = self.log.unlanded_continuation(number) {
            if self.config.ack == Ack::Program {
                durable(&[pages]).await?;
            }
            return Ok(part);
        }
        if class == Class::HostRead {
            self.counters.count_retrieve_read();
        } else {
            self.counters.count_gc_reads(1);
        }
        let select = |page: &Page| PageView::new(layout, page).map_or(0, |view| view.continues());
        let at = number.id(self.log.shape.pages_per_extent);
        let read = self.log.media.read(Span::of(at), &select, class).await;
        let mut page = self.noticed(read)?;
        if PageView::new(layout, &page).is_none() {
            page = repaired(layout, &page).ok_or(Error::Unrecovered)?;
        }
        let view = PageView::new(layout, &page).ok_or(Error::Unrecovered)?;
        view.continuation().ok_or(Error::Unrecovered)
    }
}

/// Returns the state of a key from a record in memory.
pub(crate) fn known_content(known: CachedValue) -> Content {
    let CachedValue { value, expires, sequence } = known;
    if has_expired(expires) {
        return Look::Absent;
    }
    let version = Version::of(sequence);
    Look::Is(Retrieved { value, expires, version })
}

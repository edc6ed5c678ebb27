//! One look-up for all commands that need a key's record: get, exist, the header that a write
//! replaces.

use crate::ack::Ack;
use crate::clean::expiry::has_expired;
use crate::error::Error;
use crate::format::address::{Address, Candidates, PageNumber};
use crate::format::page_view::{PageView, vouched_header};
use crate::format::record::{Header, HeaderFields, OwnedHeader};
use crate::hashed_key::HashedKey;
use crate::key_space::TableId;
use crate::lane::Lane;
use crate::log::{LateWhole, Log, NotLocked, OnItsWay, Unlanded, Visit, Writing};
use crate::sabotage::Sabotage;
use crate::store::Store;
use crate::write::condition::Version;
use crate::write::pending::{Pending, durable};
use base::Key;
use base::checksum::hash64;
use clock::LocalFuture;
use media::{ExtentId, PageId};
use smallvec::SmallVec;
use std::mem::take;
use std::sync::Arc;

/// What the record of a candidate says of a key.
pub(crate) enum Look<T> {
    Is(T),
    /// It is the key's, and says that the key does not exist.
    Absent,
    OtherKey,
}

impl<T> Look<T> {
    #[inline]
    pub(crate) fn map<U>(self, make: impl FnOnce(T) -> U) -> Look<U> {
        match self {
            Self::Is(found) => Look::Is(make(found)),
            Self::Absent => Look::Absent,
            Self::OtherKey => Look::OtherKey,
        }
    }
}

/// What candidates say of a key.
pub(crate) enum Known<T> {
    Is(Option<T>),
    /// The candidate at this place has to be read first.
    From(usize),
}

/// Visits of the candidates that have to be read.
pub(crate) type Visits<'a> = SmallVec<[Visit<'a>; 1]>;

/// What `candidates` say, as far as `look` knows that without a wait.
#[inline]
pub(crate) fn first_known<T>(
    candidates: &[Address],
    mut look: impl FnMut(Address) -> Option<Look<T>>,
) -> Known<T> {
    for (at, address) in candidates.iter().enumerate() {
        match look(*address) {
            Some(Look::Is(found)) => return Known::Is(Some(found)),
            Some(Look::Absent) => return Known::Is(None),
            Some(Look::OtherKey) => {}
            None => return Known::From(at),
        }
    }
    Known::Is(None)
}

/// A key's record, as found by way of the index.
pub(crate) struct Found {
    pub(crate) address: Address,
    /// The extent of its page.
    pub(crate) extent: ExtentId,
    pub(crate) header: HeaderFields,
    /// The page it is on, unless that has landed.
    pub(crate) pages: Option<Arc<Pending>>,
    /// All pages of its batch, unless all have landed.
    pub(crate) batch: Option<Arc<[Arc<Pending>]>>,
}

impl Found {
    /// Returns true when it counts as a live value.
    pub(crate) fn is_value(&self) -> bool {
        self.header.kind.is_value()
    }

    /// Returns true when it makes its key exist.
    pub(crate) fn exists(&self) -> bool {
        self.is_value() && !has_expired(self.header.expires)
    }

    /// Returns the version of its key, if it makes that exist.
    pub(crate) fn version(&self) -> Option<Version> {
        self.exists().then(|| Version::of(self.header.sequence))
    }

    /// Waits until the last page of the record and of its batch is durable. Only then may a host be
    /// told of the record.
    pub(crate) async fn settled(&self, log: &Log, ack: Ack) -> Result<(), Error> {
        if ack != Ack::Program || Sabotage::IndexBeforeData.is_on() {
            return Ok(());
        }
        if let Some(pages) = &self.batch {
            return Ok(durable(pages).await?);
        }
        if let Some(pages) = &self.pages {
            durable(std::slice::from_ref(pages)).await?;
        }
        let HeaderFields { len: header_len, value_len, .. } = self.header;
        let mut more_at_least = 0;
        if !log.layout.fits_page(header_len, value_len) {
            let room = log.layout.bare_room();
            for more in 1..=value_len.div_ceil(room) {
                let number = PageNumber(self.address.page().0 + more);
                if let Some((pages, _)) = log.unlanded_continuation(number) {
                    durable(&[pages]).await?;
                }
            }
            more_at_least = value_len.saturating_sub(log.layout.page_bytes).div_ceil(room);
        }
        let PageId { extent, page } = log.page_id(self.address);
        if log.has_failed(extent, page..=page + more_at_least) {
            return Err(Error::Unrecovered);
        }
        Ok(())
    }
}

/// Returns the fields of a header, if it is of `key`.
fn of_key(key: HashedKey<'_>) -> impl Fn(&Header<'_>) -> Option<HeaderFields> {
    move |header| key.key.is(header.key).then(|| HeaderFields::of(header))
}

impl Store {
    /// Returns what the index's candidates for `key` say. `now` handles those that need no wait,
    /// `read` the others.
    pub(crate) async fn look_up<T>(
        &self,
        table: TableId,
        key: HashedKey<'_>,
        now: impl Fn(&mut Lane, &mut LateWhole<'_>, Address) -> Option<Look<T>>,
        read: impl AsyncFn(&mut Visit<'_>) -> Result<Look<T>, Error>,
    ) -> Result<Option<T>, Error> {
        let mut visits = Visits::new();
        if let Known::Is(found) = self.begin_look_up(table, key, now, &mut visits).await {
            return Ok(found);
        }
        for visit in &mut visits {
            match read(visit).await? {
                Look::Is(found) => return Ok(Some(found)),
                Look::Absent => return Ok(None),
                Look::OtherKey => {}
            }
        }
        Ok(None)
    }

    /// Returns what the index's candidates for `key` say, as far as `now` knows without a wait.
    /// Begins visits of those that have to be read first.
    pub(crate) async fn begin_look_up<'a, T>(
        &'a self,
        table: TableId,
        key: HashedKey<'a>,
        now: impl Fn(&mut Lane, &mut LateWhole<'_>, Address) -> Option<Look<T>>,
        visits: &mut Visits<'a>,
    ) -> Known<T> {
        match self.look_up_at_once(table, key, &now, visits) {
            Ok(known) => known,
            Err(later) => {
                // Such an index is used by one reactor: nothing changes between answer and visits.
                let candidates = later.await;
                let mut lanes = self.lanes.lock(key.hash);
                self.known_of(lanes.of(key.hash), &candidates, &now, visits)
            }
        }
    }

    /// As [`Self::known_of`], of the index's candidates for `key`, in one stretch. If the index
    /// needs a wait, returns its later answer.
    fn look_up_at_once<'a, T>(
        &'a self,
        table: TableId,
        key: HashedKey<'a>,
        now: impl Fn(&mut Lane, &mut LateWhole<'_>, Address) -> Option<Look<T>>,
        visits: &mut Visits<'a>,
    ) -> Result<Known<T>, LocalFuture<'a, Candidates>> {
        let mut lanes = self.lanes.lock(key.hash);
        let lane = lanes.of(key.hash);
        let candidates = self.index.lookup(lane, table, key).or_later()?;
        Ok(self.known_of(lane, &candidates, now, visits))
    }

    /// Returns what `candidates` say, and begins visits of those that have to be read first.
    fn known_of<'a, T>(
        &'a self,
        lane: &mut Lane,
        candidates: &[Address],
        now: impl Fn(&mut Lane, &mut LateWhole<'_>, Address) -> Option<Look<T>>,
        visits: &mut Visits<'a>,
    ) -> Known<T> {
        let mut state = self.log.late_whole();
        let known = first_known(candidates, |address| now(lane, &mut state, address));
        if let Known::From(at) = known {
            // All are pinned in the stretch of the index's answer.
            self.log.visit_all(&mut state, &candidates[at..], visits);
        }
        known
    }

    /// Returns the record of `key`, a tombstone too, or nothing. The key's latch is held, so the
    /// record stays the key's; only cleaning may move it.
    pub(crate) async fn find(
        self: &Arc<Self>,
        table: TableId,
        key: HashedKey<'_>,
    ) -> Result<Option<Found>, Error> {
        let now = |lane: &mut Lane, state: &mut LateWhole<'_>, at| {
            if self.log.has_landed(at) {
                return self.found_landed(lane, at, key);
            }
            let found = self.found_now(lane, state.get().writing(), at, key);
            found.expect("all writers are locked")
        };
        let read = async |visit: &mut Visit<'_>| {
            let (of, found) = self.header(visit.address, take(&mut visit.on_its_way)).await?;
            Ok(if of == *key.key { Look::Is(found) } else { Look::OtherKey })
        };
        self.look_up(table, key, now, read).await
    }

    /// As [`Self::find`], if that takes no wait: returns false if it does, and otherwise leaves the
    /// record in `found`. An error if a record may be on a page of a writer that is not locked.
    // A record is 80 bytes: it is made in its place.
    #[inline]
    pub(crate) fn find_now(
        &self,
        lane: &mut Lane,
        writing: &Writing<'_>,
        (table, key): (TableId, HashedKey<'_>),
        found: &mut Known<Found>,
    ) -> Result<bool, NotLocked> {
        let Some(candidates) = self.index.lookup(lane, table, key).at_once() else {
            return Ok(false);
        };
        for address in &candidates {
            match self.found_now(lane, writing, *address, key)? {
                Some(Look::Is(record)) => {
                    *found = Known::Is(Some(record));
                    return Ok(true);
                }
                Some(Look::Absent) => break,
                Some(Look::OtherKey) => {}
                None => return Ok(false),
            }
        }
        *found = Known::Is(None);
        Ok(true)
    }

    /// Returns what the record at `address` says of `key`, if its header is in memory. An error if
    /// it may be on a page of a writer that is not locked.
    #[inline]
    fn found_now(
        &self,
        lane: &Lane,
        writing: &Writing<'_>,
        address: Address,
        key: HashedKey<'_>,
    ) -> Result<Option<Look<Found>>, NotLocked> {
        let page = self.log.page_id(address);
        if self.log.settled.has(page) {
            return Ok(self.found_landed(lane, address, key));
        }
        let writer = writing.owner(page.extent)?;
        let (unlanded, batch) = self.log.unlanded_header(writer, address, of_key(key));
        let (known, pages) = unlanded.unzip();
        let known = known.or_else(|| self.landed_header(lane, key.hash, address, of_key(key)));
        Ok(known.map(|header| match header {
            Some(header) => Look::Is(Found { address, extent: page.extent, header, pages, batch }),
            None => Look::OtherKey,
        }))
    }

    /// As [`Self::found_now`], for a record that has landed with its batch.
    #[inline]
    pub(crate) fn found_landed(
        &self,
        lane: &Lane,
        address: Address,
        key: HashedKey<'_>,
    ) -> Option<Look<Found>> {
        let extent = self.log.page_id(address).extent;
        Some(match self.landed_header(lane, key.hash, address, of_key(key))? {
            None => Look::OtherKey,
            Some(header) => Look::Is(Found { address, extent, header, pages: None, batch: None }),
        })
    }

    /// Returns what `read` makes of the header of a record that has landed, if it is in memory.
    /// `hash` is that of its key, or what the index keeps of it.
    #[inline]
    pub(crate) fn landed_header<T>(
        &self,
        lane: &Lane,
        hash: u64,
        address: Address,
        read: impl Fn(&Header<'_>) -> T,
    ) -> Option<T> {
        if let Some(known) = lane.headers.with(hash, address, &read) {
            return Some(known);
        }
        let (memory, layout) = (self.log.media.as_memory()?, &self.log.layout);
        let at = layout.page_id(address.page());
        self.counters.count_lookup_read();
        memory.with_page(at, |page| {
            Some(read(&vouched_header(layout, page, layout.offset(address))?))
        })
    }

    /// Notes the header of a record to which the index points.
    pub(crate) fn note_header(&self, address: Address, header: &Header<'_>) {
        let hash = hash64(header.key);
        self.lanes.lock(hash).of(hash).headers.note(hash, None, address, header);
    }

    /// Returns a record that is being visited, and its key.
    pub(crate) async fn header(
        self: &Arc<Self>,
        address: Address,
        on_its_way: OnItsWay,
    ) -> Result<(Key, Found), Error> {
        let OnItsWay { record, batch } = on_its_way;
        let found = |header: &OwnedHeader, pages| {
            let fields = HeaderFields::of(&header.borrowed());
            let extent = self.log.page_id(address).extent;
            (header.key.clone(), Found { address, extent, header: fields, pages, batch })
        };
        if let Some(record) = record {
            let Unlanded { pages, header, .. } = *record;
            return Ok(found(&header, Some(pages)));
        }
        let layout = self.log.layout;
        let offset = layout.offset(address);
        let select = |page: &media::Page| {
            PageView::new(layout, page).map_or(0, |view| view.front_wanted(offset))
        };
        self.counters.count_lookup_read();
        let span = layout.header_span(address);
        let read = self.log.media.read(span, &select, clock::Class::HostRead).await;
        let page = match self.noticed(read) {
            Err(media::Error::Unrecovered(_)) => None,
            read => Some(read?),
        };
        let view = page.as_ref().and_then(|page| PageView::new(layout, page));
        let header = match view.as_ref().and_then(|view| view.header(offset)) {
            Some(header) => OwnedHeader::new(&header),
            None => {
                let record = Box::pin(self.mended_record(address, page.as_ref())).await;
                record.ok_or(Error::Unrecovered)?.header
            }
        };
        self.note_header(address, &header.borrowed());
        self.missed_header(address);
        Ok(found(&header, None))
    }
}

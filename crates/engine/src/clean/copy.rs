//! Reading the records of a victim, copying those that live, and moving their index entries to the
//! copies: the steps of [`cleaning a victim`](crate::clean::victims).

use crate::clean::expiry::has_expired;
use crate::clean::found::Chunk;
use crate::clean::turn::{SHARE_OF_A_TURN, Turn};
use crate::format::address::{Address, PageNumber};
use crate::format::mend::readable;
use crate::format::page_view::PageView;
use crate::format::record::{Header, InBatch, Kind, OwnedHeader, Sequence, header_len};
use crate::format::summary::{Listed, ListedPages, read_summary};
use crate::hashed_key::HashedKey;
use crate::lane::Lane;
use crate::log::{Appended, CountedValue, Log, NoRoom, Part};
use crate::recover::listing::Record;
use crate::recover::listing::Replay;
use crate::store::Store;
use base::Buf;
use clock::Class;
use media::{ExtentId, Page, PageId, Stream};
use std::sync::Arc;

pub(super) struct Moved {
    pub(super) record: Record,
    pub(super) copy: Appended,
    /// The kind of the copy's record, and its bytes.
    kind: Kind,
    footprint: u64,
}

/// Which live records of a victim were copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Copied {
    All,
    /// All but those on pages that the medium cannot read at present.
    Readable,
    /// All but those that a reactor had taken, which has ended.
    Partly,
}

impl Store {
    /// Returns the records of an extent, in the order of writing: all of them from its summary, or
    /// else those of the pages asked for, and how many of these cannot be read.
    pub(crate) async fn records_from(
        self: &Arc<Self>,
        replay: Replay,
        class: Class,
    ) -> (Vec<Record>, u64) {
        let Replay { extent: id, from } = replay;
        let listing = self.log.whole().extents.get(id).listing.clone();
        if let Some(listing) = listing {
            let mut records = Vec::with_capacity(listing.records.len());
            for some in listing.records.chunks(SHARE_OF_A_TURN) {
                records.extend_from_slice(some);
                clock::give_way().await;
            }
            return (records, listing.lost.len() as u64);
        }
        if let Some(records) = self.summary_of(id, class).await {
            return (records, 0);
        }
        let written = self.log.written_pages(id).await;
        let written = written.into_iter().filter(|page| *page >= from);
        let reads: Vec<_> = written
            .map(|page| {
                let store = self.clone();
                async move { store.records_on(PageId { extent: id, page }, class).await }
            })
            .collect();
        let pages = clock::join_all(reads).await;
        let lost = pages.iter().filter(|records| records.is_none()).count();
        let (mut records, mut turn) = (Vec::new(), Turn::default());
        for mut of_page in pages.into_iter().flatten() {
            turn.took(of_page.len()).await;
            records.append(&mut of_page);
        }
        (records, lost as u64)
    }

    /// Returns the records of an extent from its summary, if it has a whole one.
    pub(crate) async fn summary_of(
        self: &Arc<Self>,
        id: ExtentId,
        class: Class,
    ) -> Option<Vec<Record>> {
        self.log.listed_in_turns(id, &self.summary_bytes_of(id, class).await?).await
    }

    /// Returns the summary of an extent, if it has one and all of its pages can be read.
    pub(crate) async fn summary_bytes_of(
        self: &Arc<Self>,
        id: ExtentId,
        class: Class,
    ) -> Option<Vec<u8>> {
        let (first, end) = {
            let mut state = self.log.whole();
            let extent = state.extents.get(id);
            let is_whole =
                |first: &u32| extent.has_landed() && extent.holes().iter().all(|hole| hole < first);
            (extent.summary().filter(is_whole)?, extent.pages())
        };
        let first = PageId { extent: id, page: first };
        let spans = self.log.layout.summary_spans(first, end);
        let reads: Vec<_> = spans
            .map(|span| {
                let store = self.clone();
                let everything = |page: &Page| page.data_bytes();
                async move {
                    store.counters.count_gc_reads(1);
                    store.log.media.read(span, &everything, class).await
                }
            })
            .collect();
        let pages = clock::join_all(reads).await.into_iter().collect::<Result<Vec<_>, _>>().ok()?;
        // A summary has up to many MiB, which would be moved each time that it grows.
        let bytes = pages.iter().map(|page| page.data_bytes() as usize).sum();
        let mut summary = Vec::with_capacity(bytes);
        for page in pages {
            PageView::new(self.log.layout, &page)?.read_summary(&mut summary)?;
            clock::give_way().await;
        }
        Some(summary)
    }

    /// Returns the records on the closed pages of an extent that is being filled; `None` when it is
    /// not.
    pub(crate) fn open_summary_of(&self, id: ExtentId) -> Option<Vec<Record>> {
        self.log.listed(id, &self.log.open_summary(id)?)
    }

    /// Returns the records on one page; `None` when it cannot be read.
    pub(crate) async fn records_on(
        self: &Arc<Self>,
        at: PageId,
        class: Class,
    ) -> Option<Vec<Record>> {
        let layout = self.log.layout;
        self.counters.count_gc_reads(1);
        let headers =
            |page: &Page| PageView::new(layout, page).map_or(0, |view| view.prologue.front_len);
        let page = self.log.media.read(layout.headers_span(at), &headers, class).await.ok()?;
        self.records_of_page(at, &readable(layout, &page)?)
    }

    /// Returns the records whose headers are on `page`, at `at`.
    pub(crate) fn records_of_page(&self, at: PageId, page: &Page) -> Option<Vec<Record>> {
        let layout = self.log.layout;
        let view = PageView::new(layout, page)?;
        let listed = |(offset, header)| Listed {
            page: at.page,
            offset,
            values_start: view.values_start(),
            header,
        };
        Some(view.headers(layout).map(|found| self.log.record(at.extent, &listed(found))).collect())
    }

    /// Returns the epoch of the oldest extent but the victim. The victim's records all go at once.
    /// Extents that the medium could not erase count: the next opening finds them again.
    pub(super) fn oldest_epoch_but(&self, victim: ExtentId) -> u64 {
        let state = self.log.whole();
        let others = state.extents.iter().filter(|(id, _)| *id != victim);
        let others = others.map(|(_, extent)| extent.label.epoch);
        let erasing = state.space.erasing().iter().map(|(_, label)| label.epoch);
        others.chain(erasing).min().unwrap_or(u64::MAX)
    }

    /// Copies the live records of some pages of a victim.
    pub(super) async fn copy_chunk(
        self: &Arc<Self>,
        Chunk { oldest, pages }: Chunk,
        moved: &mut Vec<Vec<Moved>>,
    ) -> Result<Copied, NoRoom> {
        let mut kept = Vec::with_capacity(pages.len());
        let mut turn = Turn::default();
        for records in pages {
            let mut of_page = Vec::new();
            for record in records {
                turn.took(1).await;
                if let Some(kind) = self.kept_as(&record, oldest).await {
                    of_page.push((record, kind));
                }
            }
            kept.push(of_page);
        }
        let pages = self.pages_of_kept(&kept).await;
        for (records, page) in kept.into_iter().zip(pages) {
            let page = match page {
                None | Some(Err(media::Error::Unrecovered(_))) => None,
                Some(Ok(page)) => Some(page),
                Some(Err(_)) => return Ok(Copied::Readable),
            };
            moved.push(Vec::with_capacity(records.len()));
            let moved = moved.last_mut().expect("a list was added");
            self.copy_records(records, page.as_ref(), moved, &mut turn).await?;
        }
        Ok(Copied::All)
    }

    /// Reads the pages whose data are needed; `None` for the others.
    async fn pages_of_kept(
        &self,
        kept: &[Vec<(Record, Kind)>],
    ) -> Vec<Option<Result<Page, media::Error>>> {
        let wanted = |records: &[(Record, Kind)]| -> u32 {
            records.iter().map(|(record, kind)| self.log.moved_part(record, *kind)).sum()
        };
        let span = |records: &[(Record, Kind)]| self.log.layout.span(records[0].0.address);
        let needed: Vec<_> = kept.iter().filter(|records| wanted(records) > 0).collect();
        self.counters.count_gc_reads(needed.len() as u64);
        let found = match (self.log.layout.frames, &needed[..]) {
            (_, []) => Vec::new(),
            (Some(_), _) => {
                let spans = needed.iter().map(|records| span(records)).collect();
                self.log.media.read_all(spans, Class::Gc).await
            }
            (None, _) => {
                let mut found = Vec::with_capacity(needed.len());
                for records in needed {
                    let wanted = wanted(records);
                    found.push(self.log.media.read(span(records), &|_| wanted, Class::Gc).await);
                }
                found
            }
        };
        let mut found = found.into_iter();
        kept.iter().map(|records| (wanted(records) > 0).then(|| found.next()).flatten()).collect()
    }

    async fn copy_records(
        self: &Arc<Self>,
        records: Vec<(Record, Kind)>,
        page: Option<&Page>,
        moved: &mut Vec<Moved>,
        turn: &mut Turn,
    ) -> Result<(), NoRoom> {
        for (record, kind) in records {
            let len = self.log.moved_part(&record, kind);
            turn.took_bytes(1, record.header.value_len).await;
            let part = page.filter(|_| len > 0);
            let part = part.and_then(|page| page.data_at(record.value_start, len));
            let value = match (part, len) {
                (_, 0) => Some(Buf::phantom(0, 0)),
                (None, _) => None,
                (Some(part), _) => self.rest_of(&record, part).await,
            };
            moved.push(match value {
                Some(value) => self.copy(record, kind, &value)?,
                None => self.copy(record, Kind::Lost, &Buf::phantom(0, 0))?,
            });
        }
        Ok(())
    }

    /// Returns the whole value of a record whose first page holds `part` of it. It moves as it is:
    /// a damaged value keeps its checksum, and stays known as damaged.
    async fn rest_of(self: &Arc<Self>, record: &Record, part: Buf) -> Option<Buf> {
        let rest = record.header.value_len - part.len();
        if rest == 0 {
            return Some(part);
        }
        let first = record.address.page().0 + 1;
        let pages = first..first + rest.div_ceil(self.log.layout.bare_room());
        let reads: Vec<_> = pages
            .map(|number| {
                let store = self.clone();
                async move { store.continuation(PageNumber(number), Class::Gc).await }
            })
            .collect();
        let mut parts = vec![part];
        for part in clock::join_all(reads).await {
            parts.push(part.ok()?);
        }
        Buf::join(&parts).filter(|value| value.len() == record.header.value_len)
    }

    fn copy(self: &Arc<Self>, record: Record, kind: Kind, value: &Buf) -> Result<Moved, NoRoom> {
        let header = &record.header;
        let expires = header.expires.filter(|_| kind.is_value());
        let mut copied = Header {
            kind,
            value_len: value.len(),
            value_crc: if kind == header.kind { header.value_crc } else { 0 },
            expires,
            batch: InBatch::default(),
            ..header.borrowed()
        };
        let footprint = self.log.layout.footprint_of(&copied);
        let mut writing = self.log.writing_copies();
        let copy = self.log.append(&mut writing.part(), Stream::Gc, &mut copied, value)?;
        if kind == Kind::Tombstone {
            let extent = self.log.page_id(copy.address).extent;
            writing.writer().tally.add_tombstone(extent, footprint);
        }
        drop(writing);
        self.counters.count_moved();
        Ok(Moved { record, copy, kind, footprint })
    }

    /// Returns the kind of the record's copy, or `None` if it needs none. A record to which the
    /// index points keeps its kind. A tombstone, or an expired value, becomes a tombstone if an
    /// older version of the key may be in an extent that was opened before the record was written.
    async fn kept_as(&self, record: &Record, oldest: u64) -> Option<Kind> {
        let header = &record.header;
        let key = HashedKey::new(&header.key);
        let hides = Sequence(oldest) < header.sequence;
        if header.kind == Kind::Tombstone {
            let _entry = self.enter(header.table, key).await;
            self.remove_tombstone(header.table, key, record.address);
            let extent = self.log.page_id(record.address).extent;
            let mut writing = self.log.writing();
            let extent = writing.part().shared.get().extents.get(extent);
            let is_needless = extent.needless().contains(&record.address);
            return (hides && !is_needless).then_some(Kind::Tombstone);
        }
        // A record and its entry come in one stretch of the lane. So one that has none now will
        // not have any, unless the write that replaced it fails: then the victim is not reset.
        if !self.lookup(header.table, key).await.contains(&record.address) {
            return None;
        }
        if !has_expired(header.expires) {
            return Some(header.kind);
        }
        if hides {
            return Some(Kind::Tombstone);
        }
        let _entry = self.enter(header.table, key).await;
        self.end_expired(self.lanes.lock(key.hash).of(key.hash), key, record);
        None
    }

    /// Takes an expired value out of the index, unless a store has replaced it. The caller holds
    /// the right to change the key's entry.
    fn end_expired(&self, lane: &mut Lane, key: HashedKey<'_>, record: &Record) {
        let header = &record.header;
        if self.index.remove(lane, header.table, key, record.address) {
            let mut writing = self.log.writing();
            let mut part = writing.part();
            self.note_left(&mut part, record.address);
            part.uncount_value(record.counted(self.log.page_id(record.address).extent));
            let dropped = header.key.as_bytes().len() as u64 + u64::from(header.value_len);
            self.counters.count_dropped_bytes(part.writer.number, dropped);
        }
    }

    /// Notes a record to which the index does not point, for an index that may have to be made
    /// again: an original that was moved or has expired, or a copy to which it never pointed.
    fn note_left(&self, part: &mut Part<'_, '_>, at: Address) {
        if self.keeps_tables {
            let extent = self.log.page_id(at).extent;
            part.shared.get().extents.get(extent).left.insert(at);
        }
    }

    pub(super) async fn repoint(&self, moved: Moved) {
        let header = &moved.record.header;
        if header.kind == Kind::Tombstone {
            return;
        }
        let (table, key) = (header.table, HashedKey::new(&header.key));
        {
            let mut lanes = self.lanes.lock(key.hash);
            let entered = self.try_enter(&mut lanes, [(table, key)].into_iter());
            if entered.is_ok() {
                self.repoint_now(lanes.of(key.hash), key, &moved);
                drop(lanes);
                return;
            }
        }
        let _entry = self.enter(table, key).await;
        self.repoint_now(self.lanes.lock(key.hash).of(key.hash), key, &moved);
    }

    /// Points the entry of a record to its copy, in a stretch that has the right to change it.
    fn repoint_now(&self, lane: &mut Lane, key: HashedKey<'_>, moved: &Moved) {
        let Moved { record, copy, kind, footprint } = moved;
        let header = &record.header;
        if *kind == Kind::Tombstone {
            return self.end_expired(lane, key, record);
        }
        let is_replaced =
            !self.index.replace(lane, header.table, key, record.address, copy.address);
        if is_replaced && !self.keeps_tables {
            return;
        }
        let mut writing = self.log.writing();
        let mut part = writing.part();
        if is_replaced {
            // If the store that replaced the entry fails, the original is the newest again.
            return self.note_left(&mut part, copy.address);
        }
        self.note_left(&mut part, record.address);
        let is_lost = *kind != header.kind;
        let value_len = if is_lost { 0 } else { header.value_len };
        let value_crc = if is_lost { 0 } else { header.value_crc };
        let batch = InBatch::default();
        let header = Header { kind: *kind, value_len, value_crc, batch, ..header.borrowed() };
        lane.headers.note(key.hash, Some(record.address), copy.address, &header);
        if let Some(values) = &mut lane.values {
            values.moved(header.table, key, record.address, copy.address);
        }
        let value = record.counted(self.log.page_id(record.address).extent);
        part.uncount_value(value);
        let (extent, at) = (self.log.page_id(copy.address).extent, copy.address);
        part.count_value(CountedValue { extent, at, bytes: *footprint, ..value });
    }
}

impl Log {
    /// A step of `Store::forget_unpinned`. `None` while `victim` has a pin: the task that
    /// takes the last one off wakes the current task.
    pub(crate) fn forget_if_unpinned(&self, victim: ExtentId, have_landed: bool) -> Option<bool> {
        let mut state = self.whole();
        if self.pins.await_last(victim) {
            return None;
        }
        let is_unused = have_landed && !state.extents.get(victim).has_live();
        if is_unused {
            state.forget(victim);
        } else {
            state.give_back(victim);
        }
        Some(is_unused)
    }

    /// Returns the bytes of its value that cleaning needs of a record's own page.
    fn moved_part(&self, record: &Record, kind: Kind) -> u32 {
        if kind == Kind::Value { record.part_len(self.layout.page_bytes) } else { 0 }
    }

    /// Returns the numbers of the pages of records in an extent, without those cut off.
    pub(crate) async fn written_pages(&self, id: ExtentId) -> Vec<u32> {
        let (end, holes) = {
            let mut state = self.whole();
            let extent = state.extents.get(id);
            (extent.summary().unwrap_or(extent.pages()), extent.holes().to_vec())
        };
        // A frame that cannot be found is damaged, and its records cannot be known.
        let pages = match self.layout.frames {
            Some(_) => self.media.pages(id).await.unwrap_or_default(),
            None => (0..end).collect(),
        };
        pages.into_iter().filter(|page| *page < end && !holes.contains(page)).collect()
    }

    /// Returns the summary of the closed pages of an extent that is being filled; `None` when it is
    /// not.
    pub(crate) fn open_summary(&self, id: ExtentId) -> Option<Vec<u8>> {
        let state = self.whole();
        let mut open = state.writers().flat_map(|writer| writer.frontiers.iter());
        Some(open.find(|frontier| frontier.extent == id)?.summary.to_bytes())
    }

    /// Returns the records of an extent by its summary, if that is whole.
    pub(crate) fn listed(&self, id: ExtentId, summary: &[u8]) -> Option<Vec<Record>> {
        let mut records = Vec::new();
        let whole = read_summary(self.layout, summary, |listed| {
            records.push(self.record(id, &listed));
        });
        whole.then_some(records)
    }

    /// As [`Self::listed`], but gives way to other tasks between pages.
    async fn listed_in_turns(&self, id: ExtentId, summary: &[u8]) -> Option<Vec<Record>> {
        let mut records = Vec::with_capacity(summary.len() / header_len(1, None));
        let mut turn = Turn::default();
        for page in ListedPages::checked_in_turns(self.layout, summary).await? {
            let before = records.len();
            page.records(|listed| records.push(self.record(id, &listed)));
            turn.took(records.len() - before).await;
        }
        Some(records)
    }

    /// Returns the address of a listed record.
    pub(crate) fn address_of(&self, extent: ExtentId, listed: &Listed<'_>) -> Address {
        let number = self.number(extent, listed.page);
        self.layout.address(number, listed.offset, listed.header.len(), listed.header.value_len)
    }

    fn record(&self, extent: ExtentId, listed: &Listed<'_>) -> Record {
        Record {
            header: OwnedHeader::new(&listed.header),
            address: self.address_of(extent, listed),
            value_start: listed.values_start + u32::from(listed.header.value_offset),
            footprint: self.layout.footprint_of(&listed.header),
        }
    }
}

impl Record {
    /// Returns the value of the record, which is in `extent`, for the counts.
    pub(crate) fn counted(&self, extent: ExtentId) -> CountedValue {
        let Self { header, address, footprint, .. } = self;
        let (at, table, bytes) = (*address, header.table, *footprint);
        let (key_len, expires) = (header.key.as_bytes().len(), header.expires);
        CountedValue { extent, at, table, key_len, bytes, expires }
    }

    /// Returns the bytes of the value on the record's own page.
    pub(crate) fn part_len(&self, page_bytes: u32) -> u32 {
        self.header.value_len.min(page_bytes.saturating_sub(self.value_start))
    }
}

//! Cleaning an extent: what lives in it moves to another, then it is reset.
//!
//! 1. The extent's summary tells what it holds; without one every page is read for its headers.
//! 2. Pages that hold something live are read, several side by side, and what lives is appended to
//!    the stream of the cleaner, keeping its sequence number.
//! 3. When the copies are durable each index entry that still points to the old place is moved,
//!    under the latch of its key.
//! 4. When what took the place of its records is durable too, and the last reader has left, the
//!    extent is reset.

use crate::address::{Address, PageNumber};
use crate::index::HashedKey;
use crate::log::{Appended, NewRecord, NoRoom, OwnedHeader};
use crate::page_view::PageView;
use crate::pending::durable;
use crate::record::{Kind, Sequence};
use crate::repair::readable;
use crate::store::{Ack, Store};
use crate::summary::{Listed, read_summary};
use base::Buf;
use clock::{Class, Rank, Stage};
use media::{ExtentId, Page, PageId, Stream};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

/// A record of an extent, as its summary lists it.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) header: OwnedHeader,
    pub(crate) address: Address,
    /// Of the value in the page's data.
    value_start: u32,
    pub(crate) footprint: u64,
}

struct Moved {
    record: Record,
    copy: Appended,
}

impl Store {
    /// Moves all that lives in `victim` elsewhere and resets it. An extent with something live that
    /// cannot be read any more is kept as it is, out of use.
    ///
    /// [`NoRoom`] when the copies need more extents than there are; then the victim stays in use.
    pub(crate) async fn clean(self: &Arc<Self>, victim: ExtentId) -> Result<(), NoRoom> {
        self.log.state().begin_cleaning(victim);
        let mut records = self.records_of(victim, Class::Gc).await;
        // A summary may list what a power cut kept from the medium.
        records.retain(|record| self.is_complete(record));
        let (moved, copied) = self.copy_live(victim, records).await;
        {
            let mut state = self.log.state();
            self.log.pad(&mut state, Stream::Gc);
        }
        let mut landed = true;
        for moved in moved {
            if durable(&moved.copy.pages).await.is_ok() {
                self.repoint(victim, moved).await;
            } else {
                landed = false;
            }
        }
        let has_live = {
            let mut state = self.log.state();
            state.extents.get(victim).values.iter().any(|(_, live)| live.records > 0)
        };
        if copied.is_err() {
            self.log.state().extents.get(victim).victim = false;
            return copied;
        }
        if has_live || !landed {
            return Ok(());
        }
        // What took the place of the victim's records must be durable before they go; in a buffer
        // that outlives a loss of power it is.
        if self.config.ack == Ack::Program
            && durable(&self.log.unlanded_host_pages()).await.is_err()
        {
            return Ok(());
        }
        self.last_reader_left(victim).await;
        self.log.state().forget(victim);
        self.counters.count_victim();
        // The medium keeps what it cannot erase; the log has one extent less then.
        let _ = self.log.media.reset(victim, Class::Gc).await;
        Ok(())
    }

    async fn last_reader_left(&self, victim: ExtentId) {
        loop {
            {
                let mut state = self.log.state();
                let extent = state.extents.get(victim);
                if extent.pins == 0 {
                    return;
                }
                extent.last_reader = Some(clock::current());
            }
            clock::park(Rank::Free, Stage::Gc).await;
        }
    }

    /// The records of an extent, in the order of writing: from its summary, or else from its pages.
    pub(crate) async fn records_of(self: &Arc<Self>, id: ExtentId, class: Class) -> Vec<Record> {
        if let Some(records) = self.summary_of(id, class).await {
            return records;
        }
        let (pages, summary, holes) = {
            let mut state = self.log.state();
            let extent = state.extents.get(id);
            (extent.pages, extent.summary, extent.holes.clone())
        };
        let written = (0..summary.unwrap_or(pages)).filter(|page| !holes.contains(page));
        let reads: Vec<_> = written
            .map(|page| {
                let store = self.clone();
                async move { store.records_on(PageId { extent: id, page }, class).await }
            })
            .collect();
        clock::join_all(reads).await.into_iter().flatten().collect()
    }

    /// The records of an extent from its summary, if it has a whole one.
    pub(crate) async fn summary_of(
        self: &Arc<Self>,
        id: ExtentId,
        class: Class,
    ) -> Option<Vec<Record>> {
        let pages = {
            let mut state = self.log.state();
            let extent = state.extents.get(id);
            let is_whole =
                |first: &u32| extent.in_flight == 0 && extent.holes.iter().all(|hole| hole < first);
            extent.summary.filter(is_whole)?..extent.pages
        };
        let reads: Vec<_> = pages
            .map(|page| {
                let store = self.clone();
                let everything = |page: &Page| page.data_bytes();
                async move {
                    store.counters.count_gc_reads(1);
                    let at = PageId { extent: id, page };
                    store.log.media.read(at, &everything, class).await
                }
            })
            .collect();
        let mut summary = Vec::new();
        for page in clock::join_all(reads).await {
            let page = page.ok()?;
            summary.extend_from_slice(PageView::new(self.log.layout, &page)?.summary()?);
        }
        let mut records = Vec::new();
        let whole = read_summary(self.log.layout, &summary, |listed| {
            records.push(self.record(id, &listed));
        });
        whole.then_some(records)
    }

    /// The records on one page; none when it cannot be read.
    async fn records_on(self: &Arc<Self>, at: PageId, class: Class) -> Vec<Record> {
        let layout = self.log.layout;
        self.counters.count_gc_reads(1);
        let headers =
            |page: &Page| PageView::new(layout, page).map_or(0, |view| view.prologue.front_len);
        let Ok(page) = self.log.media.read(at, &headers, class).await else { return Vec::new() };
        let Some(page) = readable(layout, &page) else { return Vec::new() };
        let Some(view) = PageView::new(layout, &page) else { return Vec::new() };
        let listed = |(offset, header)| Listed {
            page: at.page,
            offset,
            values_start: view.values_start(),
            header,
        };
        view.headers(layout).map(|found| self.record(at.extent, &listed(found))).collect()
    }

    fn record(&self, extent: ExtentId, listed: &Listed<'_>) -> Record {
        let at = PageId { extent, page: listed.page };
        let number = PageNumber::new(at, self.log.shape.pages_per_extent);
        Record {
            header: OwnedHeader::new(&listed.header),
            address: Address::new(number, listed.offset),
            value_start: listed.values_start + u32::from(listed.header.value_offset),
            footprint: self.log.layout.footprint_of(&listed.header),
        }
    }

    /// Copies what lives among `records`, several pages side by side, as far as there is room.
    async fn copy_live(
        self: &Arc<Self>,
        victim: ExtentId,
        records: Vec<Record>,
    ) -> (Vec<Moved>, Result<(), NoRoom>) {
        let mut pages: VecDeque<Vec<Record>> = VecDeque::new();
        for record in records {
            match pages.back_mut() {
                Some(page) if page[0].address.page() == record.address.page() => page.push(record),
                _ => pages.push_back(vec![record]),
            }
        }
        let oldest = self.oldest_epoch_but(victim);
        let pages = Rc::new(RefCell::new(pages));
        let workers: Vec<_> = (0..self.log.shape.parallelism)
            .map(|_| {
                let (store, pages) = (self.clone(), pages.clone());
                async move {
                    let mut moved = Vec::new();
                    loop {
                        let page = pages.borrow_mut().pop_front();
                        let Some(page) = page else { return (moved, Ok(())) };
                        if store.copy_page(page, oldest, &mut moved).await.is_err() {
                            return (moved, Err(NoRoom));
                        }
                    }
                }
            })
            .collect();
        let (moved, copied): (Vec<_>, Vec<_>) = clock::join_all(workers).await.into_iter().unzip();
        (moved.into_iter().flatten().collect(), copied.into_iter().collect())
    }

    /// When the oldest extent that stays was opened. What lies in the victim goes as a whole.
    fn oldest_epoch_but(&self, victim: ExtentId) -> u64 {
        let state = self.log.state();
        let others = state.extents.iter().filter(|(id, _)| *id != victim);
        others.map(|(_, extent)| extent.label.epoch).min().unwrap_or(u64::MAX)
    }

    async fn copy_page(
        self: &Arc<Self>,
        records: Vec<Record>,
        oldest: u64,
        moved: &mut Vec<Moved>,
    ) -> Result<(), NoRoom> {
        let mut live = Vec::new();
        for record in records {
            if self.is_live(&record, oldest).await {
                live.push(record);
            }
        }
        let room = self.log.layout.page_bytes;
        let wanted: u32 = live.iter().map(|record| record.part_len(room)).sum();
        if wanted == 0 {
            for record in live {
                moved.push(self.copy(record, &Buf::phantom(0, 0))?);
            }
            return Ok(());
        }
        let at = self.log.page_id(live[0].address);
        self.counters.count_gc_reads(1);
        let read = self.log.media.read(at, &|_| wanted, Class::Gc).await;
        let Ok(page) = read else { return Ok(()) };
        for record in live {
            let len = record.part_len(room);
            let Some(part) = page.data_at(record.value_start, len) else { continue };
            if let Some(value) = self.rest_of(&record, part).await {
                moved.push(self.copy(record, &value)?);
            }
        }
        Ok(())
    }

    /// The whole value of a record whose first page holds `part` of it. It moves as it is: a
    /// damaged value keeps its checksum, and stays known as damaged.
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

    fn copy(self: &Arc<Self>, record: Record, value: &Buf) -> Result<Moved, NoRoom> {
        let header = &record.header;
        let copy = NewRecord {
            sequence: Some(header.sequence),
            kind: header.kind,
            table: header.table,
            key: header.key.as_bytes(),
            value,
            value_crc: header.value_crc,
        };
        let mut state = self.log.state();
        let copy = self.log.append(&mut state, Stream::Gc, &copy)?;
        if header.kind == Kind::Tombstone {
            state.count_tombstone(self.log.page_id(copy.address).extent, record.footprint);
        }
        drop(state);
        self.counters.count_moved();
        Ok(Moved { record, copy })
    }

    /// True when the index points to the record, or when it is a tombstone that an older version of
    /// its key may still need: in any extent that was opened before it was written.
    async fn is_live(&self, record: &Record, oldest: u64) -> bool {
        let header = &record.header;
        let key = HashedKey::new(&header.key);
        if header.kind == Kind::Tombstone {
            let _latch = self.latches.latch(key.hash).await;
            self.index.remove(header.table, key, record.address).await;
            let extent = self.log.page_id(record.address).extent;
            let needless = self.log.state().extents.get(extent).needless.contains(&record.address);
            return Sequence(oldest) < header.sequence && !needless;
        }
        if self.index.lookup(header.table, key).await.contains(&record.address) {
            return true;
        }
        // A store that has appended this record may be about to index it.
        let _latch = self.latches.latch(key.hash).await;
        self.index.lookup(header.table, key).await.contains(&record.address)
    }

    async fn repoint(&self, victim: ExtentId, moved: Moved) {
        let Moved { record, copy } = moved;
        let header = &record.header;
        if header.kind == Kind::Tombstone {
            return;
        }
        let key = HashedKey::new(&header.key);
        let _latch = self.latches.latch(key.hash).await;
        if self.index.replace(header.table, key, record.address, copy.address).await {
            let mut state = self.log.state();
            let to = self.log.page_id(copy.address).extent;
            state.uncount_value(victim, header.table, record.footprint);
            state.count_value(to, header.table, record.footprint);
        }
    }
}

impl Record {
    /// Bytes of the value on the record's own page.
    pub(crate) fn part_len(&self, page_bytes: u32) -> u32 {
        self.header.value_len.min(page_bytes.saturating_sub(self.value_start))
    }
}

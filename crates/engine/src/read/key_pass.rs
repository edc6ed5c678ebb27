//! Keys of many records, read extent by extent: the summary of each once, or where that is less,
//! the headers of each page.

use crate::clean::expiry::has_expired;
use crate::error::Error;
use crate::extent::Extent;
use crate::format::address::Address;
use crate::format::record::{Header, OwnedHeader};
use crate::format::summary::ListedPages;
use crate::index::IndexEntry;
use crate::key_space::{KeySpaceId, TableId};
use crate::lane::Lane;
use crate::log::{Log, Pin, Visit, Whole};
use crate::read::key_window::{KeyWindow, WindowRoom};
use crate::recover::listing::Record;
use crate::store::Store;
use base::Key;
use clock::Class;
use media::{ExtentId, PageId, Stream};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Records whose keys a pass over all extents reads at most: 8 bytes of memory each.
const RECORDS_AT_ONCE: usize = 16 << 20;

/// Index entries that are taken before other tasks have a turn.
const ENTRIES_A_TURN: usize = 64;

/// Extents whose summaries are in memory at a time.
const EXTENTS_AT_ONCE: usize = 4;

/// Pages that are read side by side where an extent has no summary.
const PAGES_AT_ONCE: usize = 64;

/// Pages of a summary that are looked at before other tasks have a turn.
const PAGES_A_TURN: usize = 16;

/// Headers of an extent as they were read.
enum Source {
    Summary(Vec<u8>),
    Pages(Vec<Record>),
}

/// Records of each extent that are to be read, with what keeps them in place.
#[derive(Default)]
struct Unread<'a> {
    extents: BTreeMap<ExtentId, (Vec<Address>, Pin<'a>)>,
    records: usize,
}

impl<'a> Unread<'a> {
    fn add(&mut self, extent: ExtentId, address: Address, pin: impl FnOnce() -> Pin<'a>) {
        let (addresses, _pin) = self.extents.entry(extent).or_insert_with(|| (Vec::new(), pin()));
        addresses.push(address);
        self.records += 1;
    }

    /// Returns the next extents, with their addresses in rising order.
    fn next(&mut self) -> Vec<(ExtentId, Vec<Address>, Pin<'a>)> {
        let mut some = Vec::new();
        while some.len() < EXTENTS_AT_ONCE
            && let Some((extent, (mut addresses, pin))) = self.extents.pop_first()
        {
            addresses.sort_unstable();
            some.push((extent, addresses, pin));
        }
        some
    }
}

impl Store {
    /// Hands every key of `space` to `take`, in no order. A key that exists throughout is handed
    /// over exactly once; one that is stored or deleted during the call may be left out.
    ///
    /// Headers in memory are not read. The others are read by extents, in the order of these, for
    /// up to 16,777,216 keys at a time: 8 bytes of memory each. Such extents are not reset before
    /// they are read. An index that has no order of hashes is listed.
    pub async fn every_key(
        self: &Arc<Self>,
        space: KeySpaceId,
        mut take: impl FnMut(&[u8]),
    ) -> Result<(), Error> {
        let table = self.table(space)?;
        let mut from = Some(0);
        while let Some(start) = from {
            let (mut unread, mut unsettled) = (Unread::default(), Vec::new());
            let next = self.gather(table, start, &mut unread, &mut unsettled, &mut take).await;
            let Some(next) = next else {
                let take = |key: &Key| {
                    take(key.as_bytes());
                    true
                };
                return self.list(space, None, take).await;
            };
            from = next;
            self.take_unread(table, unread, &mut take).await?;
            let keys = self.visited_keys(table, unsettled).await?;
            keys.iter().filter(|(_, exists)| *exists).for_each(|(key, _)| take(key.as_bytes()));
        }
        Ok(())
    }

    /// Hands the keys in memory, of records from the hash `from` on, to `take`. Gathers the other
    /// records, as many as are read at a time. Returns the hash to continue from, or `None` where
    /// the index has no order of hashes.
    async fn gather<'a>(
        self: &'a Arc<Self>,
        table: TableId,
        from: u64,
        unread: &mut Unread<'a>,
        unsettled: &mut Vec<Visit<'a>>,
        take: &mut impl FnMut(&[u8]),
    ) -> Option<Option<u64>> {
        let mut from = Some(from);
        while let Some(start) = from
            && unread.records < RECORDS_AT_ONCE
        {
            let (found, next) = self.index.entries_from(table, start, ENTRIES_A_TURN)?;
            for entry in &found {
                self.lanes.prefetch_header(entry.hash);
            }
            let mut known = Vec::new();
            self.each_entry(table, &found, |lane, state, entry| {
                let address = entry.address;
                let extent = self.log.page_id(address).extent;
                match self.key_in_memory(lane, state, table, entry) {
                    Some((key, true)) => known.push(key),
                    Some((_, false)) => {}
                    None if self.log.has_settled(state, address) => {
                        unread.add(extent, address, || self.log.pin(state, extent));
                    }
                    None => unsettled.push(self.log.visit(state, address)),
                }
            });
            for key in &known {
                take(key.as_bytes());
            }
            from = next;
            clock::give_way().await;
        }
        Some(from)
    }

    async fn take_unread(
        self: &Arc<Self>,
        table: TableId,
        mut unread: Unread<'_>,
        take: &mut impl FnMut(&[u8]),
    ) -> Result<(), Error> {
        loop {
            let some = unread.next();
            if some.is_empty() {
                return Ok(());
            }
            let note = |_: Address, header: &Header<'_>| {
                if header.kind.is_value() && !has_expired(header.expires) {
                    take(header.key);
                }
            };
            let left = self.read_extents(&some, note).await;
            for left in left.chunks(PAGES_AT_ONCE) {
                // The extents are pinned.
                let visits = {
                    let mut state = self.log.whole();
                    left.iter().map(|at| self.log.visit(&mut state, *at)).collect()
                };
                let keys = self.visited_keys(table, visits).await?;
                keys.iter().filter(|(_, exists)| *exists).for_each(|(key, _)| take(key.as_bytes()));
            }
        }
    }

    /// Reads the keys that come after the hash `after` into memory, once that pays for walks over
    /// `table`.
    pub(crate) async fn read_ahead(self: &Arc<Self>, table: TableId, after: Option<u64>) {
        let (windows, head_bytes) = (&self.log.windows, self.log.head_bytes());
        let Some(credit) = windows.credit(table, after, head_bytes) else { return };
        if let Some(room) = windows.begin(table, credit, head_bytes, self.log.pass_bytes()) {
            let window = self.window(table, after, room).await;
            windows.keep(table, window);
        }
    }

    async fn window(
        self: &Arc<Self>,
        table: TableId,
        after: Option<u64>,
        room: WindowRoom,
    ) -> KeyWindow {
        let (mut unread, mut window) = (Unread::default(), KeyWindow::default());
        let mut from = Some(after.map_or(0, |after| after.saturating_add(1)));
        while let Some(start) = from
            && unread.records < room.keys
            && let Some((found, next)) = self.index.entries_from(table, start, ENTRIES_A_TURN)
        {
            for entry in &found {
                self.lanes.prefetch_header(entry.hash);
            }
            self.each_entry(table, &found, |lane, state, IndexEntry { hash, address }| {
                // A page that has not landed cannot be read; without the pin its extent could be
                // reset and filled with other pages before the read.
                if !lane.headers.has(hash, address) && self.log.has_settled(state, address) {
                    let extent = self.log.page_id(address).extent;
                    unread.add(extent, address, || self.log.pin(state, extent));
                }
            });
            from = next;
            clock::give_way().await;
        }
        window.end(from);
        loop {
            let some = unread.next();
            if some.is_empty() {
                return window;
            }
            let note = |address: Address, header: &Header<'_>| {
                let fits = self.log.layout.fits_page(header.len(), header.value_len);
                if fits && window.bytes() < room.bytes {
                    window.note(address, header);
                }
            };
            self.read_extents(&some, note).await;
        }
    }

    /// Calls `note` with the address and header of the records of some extents that are asked for,
    /// in rising order. Returns those that cannot be read so.
    async fn read_extents(
        self: &Arc<Self>,
        some: &[(ExtentId, Vec<Address>, Pin<'_>)],
        mut note: impl FnMut(Address, &Header<'_>),
    ) -> Vec<Address> {
        let sources = some.iter().map(|(extent, wanted, _)| {
            let (store, extent) = (self.clone(), *extent);
            let mut pages: Vec<_> = wanted.iter().map(|at| self.log.page_id(*at).page).collect();
            pages.dedup();
            async move { store.source_of(extent, pages).await }
        });
        let sources = clock::join_all(sources.collect()).await;
        let mut left = Vec::new();
        for ((extent, wanted, _), source) in some.iter().zip(sources) {
            let mut wanted = wanted.iter().copied().peekable();
            let mut meet = |address: Address, header: &Header<'_>| {
                while let Some(before) = wanted.next_if(|wanted| *wanted < address) {
                    left.push(before);
                }
                if wanted.next_if_eq(&address).is_some() {
                    note(address, header);
                }
            };
            match &source {
                Source::Summary(summary) => {
                    let pages = ListedPages::checked_in_turns(self.log.layout, summary).await;
                    for (count, page) in (1..).zip(pages.into_iter().flatten()) {
                        page.records(|listed| {
                            meet(self.log.address_of(*extent, &listed), &listed.header);
                        });
                        if count % PAGES_A_TURN == 0 {
                            clock::give_way().await;
                        }
                    }
                }
                Source::Pages(records) => {
                    for record in records {
                        meet(record.address, &record.header.borrowed());
                    }
                }
            }
            left.extend(wanted);
        }
        left
    }

    /// Returns the headers of a pinned extent, at least those on `pages`: from its summary, unless
    /// that has more bytes than the headers of the pages.
    async fn source_of(self: &Arc<Self>, extent: ExtentId, pages: Vec<u32>) -> Source {
        if let Some(summary) = self.log.open_summary(extent) {
            return Source::Summary(summary);
        }
        if self.log.summary_bytes(extent) <= pages.len() as u64 * self.log.head_bytes()
            && let Some(summary) = self.summary_bytes_of(extent, Class::HostRead).await
        {
            return Source::Summary(summary);
        }
        let mut records = Vec::new();
        for pages in pages.chunks(PAGES_AT_ONCE) {
            let reads = pages.iter().map(|page| {
                let (store, at) = (self.clone(), PageId { extent, page: *page });
                async move { store.records_on(at, Class::HostRead).await }
            });
            let found = clock::join_all(reads.collect()).await;
            records.extend(found.into_iter().flatten().flatten());
        }
        Source::Pages(records)
    }

    /// Returns the key of the record of an entry, and whether it exists, if that is known without a
    /// wait.
    pub(crate) fn key_in_memory(
        &self,
        lane: &Lane,
        state: &Whole<'_>,
        table: TableId,
        entry: IndexEntry,
    ) -> Option<(Key, bool)> {
        let IndexEntry { hash, address } = entry;
        if !self.log.has_settled(state, address) {
            return None;
        }
        let extent = self.log.page_id(address).extent;
        if let Some(found) = self.log.windows.get(table, extent, address) {
            return Some(found);
        }
        let header = self.landed_header(lane, hash, address, OwnedHeader::new)?;
        let fits = self.log.layout.fits_page(header.len(), header.value_len);
        let exists = header.kind.is_value() && !has_expired(header.expires);
        fits.then_some((header.key, exists))
    }
}

impl Log {
    /// Returns the bytes of a page or of a unit.
    fn number_bytes(&self) -> u64 {
        u64::from(self.layout.frames.map_or(self.layout.page_bytes, |frames| frames.unit_bytes))
    }

    /// Returns the bytes that are read for the headers of a page.
    pub(crate) fn head_bytes(&self) -> u64 {
        let first = PageId { extent: ExtentId(0), page: 0 };
        u64::from(self.layout.headers_span(first).units) * self.number_bytes()
    }

    /// Returns the bytes of the summary of an extent in use; without one, of all of it.
    fn summary_bytes(&self, extent: ExtentId) -> u64 {
        let state = self.whole();
        let numbers = state.extents.find(extent).map_or(0, Extent::summary_numbers);
        u64::from(numbers) * self.number_bytes()
    }

    /// Returns the bytes that it takes to read the summaries of all extents of records.
    fn pass_bytes(&self) -> u64 {
        let state = self.whole();
        let records = state.extents.iter().filter(|(_, it)| it.label.stream != Stream::Index);
        let numbers = records.map(|(_, extent)| u64::from(extent.summary_numbers()));
        numbers.sum::<u64>() * self.number_bytes()
    }
}

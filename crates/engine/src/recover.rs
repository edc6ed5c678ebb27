//! Opening a store by what the medium holds: extent by extent, the newest record of each key wins.
//!
//! Sealed extents tell by their summaries; of others every page is read for its headers. Where two
//! records of a key have one sequence number they are a record and its copy, and the original wins:
//! then an extent that was being filled with copies holds nothing and can be reset for nothing. (An
//! extent is reset as a whole, so the original is there.) A long value that lost one of its pages
//! to a loss of power was never acknowledged and is passed over.

use crate::clean::Record;
use crate::error::Error;
use crate::extent::{Extent, Extents};
use crate::index::HashedKey;
use crate::key_space::{KeySpaceId, KeySpaces, TableId};
use crate::layout::PageKind;
use crate::log::Log;
use crate::page_view::PageView;
use crate::record::{Kind, Sequence};
use crate::store::{Config, Found, Store};
use base::{Key, Nanos};
use clock::Class;
use media::{ExtentId, ExtentInfo, Media, Page, PageId, Stream};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What opening a store took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Extents found in use.
    pub extents: u64,
    /// Of these, extents that had a summary.
    pub summaries: u64,
    /// Records found, live or not.
    pub records: u64,
    /// Time on the device's clock.
    pub time: Nanos,
}

/// What the scan collects beside the index.
#[derive(Default)]
struct Scan {
    newest: Sequence,
    records: u64,
    tables: BTreeSet<TableId>,
    spaces: BTreeSet<Key>,
    tombstones: Vec<(TableId, Key, crate::address::Address)>,
}

impl Store {
    /// The store that `media` holds. Reads the medium alone; nothing else survives.
    pub async fn open(
        media: Arc<dyn Media>,
        config: Config,
    ) -> Result<(Arc<Self>, Recovery), Error> {
        let start = clock::now();
        let found = media.extents();
        let mut extents = Extents::default();
        for info in &found {
            extents.insert(info.id, Extent::recovered(info));
        }
        let store = Self::new(Log::new(media, extents, Sequence::default()), config);
        let mut recovery = Recovery { extents: found.len() as u64, ..Recovery::default() };
        let mut scan = Scan::default();
        for info in found {
            recovery.summaries += u64::from(store.find_summary(&info).await);
            scan.newest = scan.newest.max(Sequence(info.label.epoch));
            let records = store.records_of(info.id, Class::HostRead).await;
            store.take_records(records, &mut scan).await?;
        }
        store.finish(&scan).await?;
        store.log.state().sequence = scan.newest.next_mount();
        clock::spawn(store.clone().clean_forever());
        recovery.records = scan.records;
        recovery.time = clock::now() - start;
        Ok((store, recovery))
    }

    /// Looks whether the extent's last page is one of a summary.
    async fn find_summary(&self, info: &ExtentInfo) -> bool {
        let Some(last) = info.pages.checked_sub(1) else { return false };
        let layout = self.log.layout;
        let at = PageId { extent: info.id, page: last };
        let front =
            |page: &Page| PageView::new(layout, page).map_or(0, |view| view.prologue.front_len);
        let Ok(page) = self.log.media.read(at, &front, Class::HostRead).await else {
            return false;
        };
        let Some(view) = PageView::new(layout, &page) else { return false };
        let first = (view.prologue.kind == PageKind::Summary)
            .then(|| last.checked_sub(view.prologue.continuation))
            .flatten();
        self.log.state().extents.get(info.id).summary = first;
        first.is_some()
    }

    /// Enters an extent's records into the index, many side by side. A key's records stay in order:
    /// one worker has them all.
    async fn take_records(
        self: &Arc<Self>,
        records: Vec<Record>,
        scan: &mut Scan,
    ) -> Result<(), Error> {
        let workers = self.log.shape.parallelism as usize;
        let mut shares: Vec<Vec<Record>> = vec![Vec::new(); workers];
        for record in records {
            if !self.is_complete(&record) {
                continue;
            }
            scan.note(&record);
            let share = record.header.key.hash() % workers as u64;
            shares[usize::try_from(share).expect("there are few workers")].push(record);
        }
        let work: Vec<_> = shares
            .into_iter()
            .map(|share| {
                let store = self.clone();
                async move {
                    for record in &share {
                        store.take_record(record).await?;
                    }
                    Ok(())
                }
            })
            .collect();
        clock::join_all(work).await.into_iter().collect()
    }

    /// False when a page of the record was never programmed.
    pub(crate) fn is_complete(&self, record: &Record) -> bool {
        let at = self.log.page_id(record.address);
        let header = &record.header;
        let key_len = header.key.as_bytes().len();
        let rest = header.value_len.saturating_sub(record.part_len(self.log.layout.page_bytes));
        let more = rest.div_ceil(self.log.layout.bare_room());
        let one_page = self.log.layout.fits_page(key_len, header.value_len);
        let last = if one_page { at.page } else { at.page + more };
        let mut state = self.log.state();
        let extent = state.extents.get(at.extent);
        last < extent.pages && !extent.holes.iter().any(|hole| (at.page..=last).contains(hole))
    }

    async fn take_record(self: &Arc<Self>, record: &Record) -> Result<(), Error> {
        let header = &record.header;
        let extent = self.log.page_id(record.address).extent;
        let key = HashedKey::new(&header.key);
        let known = match self.find(header.table, key).await {
            Ok(known) => known,
            // A damaged record of this key, or of one that looks like it: it stays in the index,
            // where reading it tells. A tombstone may be needed all the same.
            Err(Error::Unrecovered) => {
                if header.kind == Kind::Tombstone {
                    self.index.insert(header.table, key, record.address).await;
                }
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        if known.as_ref().is_some_and(|known| !self.is_newer(record, known)) {
            return Ok(());
        }
        match &known {
            None => self.index.insert(header.table, key, record.address).await,
            Some(known) => {
                self.index.replace(header.table, key, known.address, record.address).await;
            }
        }
        let mut state = self.log.state();
        if let Some(known) = known.filter(Found::is_value) {
            let from = self.log.page_id(known.address).extent;
            let (key_len, len) = (known.header.key.as_bytes().len(), known.header.value_len);
            state.uncount_value(from, header.table, self.log.layout.footprint(key_len, len));
        }
        if header.kind == Kind::Value {
            state.count_value(extent, header.table, record.footprint);
        }
        Ok(())
    }

    fn is_newer(&self, record: &Record, known: &Found) -> bool {
        let originality = |extent: ExtentId| {
            let mut state = self.log.state();
            let label = state.extents.get(extent).label;
            (label.stream == Stream::Host, Reverse(label.epoch))
        };
        let rank = |sequence, address| (sequence, originality(self.log.page_id(address).extent));
        rank(record.header.sequence, record.address) > rank(known.header.sequence, known.address)
    }

    /// Takes the deleted keys out of the index, and the key spaces that are gone. Tombstones that a
    /// newer record has made needless are not counted.
    async fn finish(self: &Arc<Self>, scan: &Scan) -> Result<(), Error> {
        for (table, key, address) in &scan.tombstones {
            let needed = self.index.remove(*table, HashedKey::new(key), *address).await;
            let extent = self.log.page_id(*address).extent;
            let mut state = self.log.state();
            if needed {
                let bytes = self.log.layout.footprint(key.as_bytes().len(), 0);
                state.count_tombstone(extent, bytes);
            } else {
                state.extents.get(extent).needless.push(*address);
            }
        }
        // The newest of a key space's copies; one that is damaged has another.
        let mut spaces: BTreeMap<KeySpaceId, TableId> = BTreeMap::new();
        for key in &scan.spaces {
            let Ok(value) = self.get_in(TableId::STORE, key).await else { continue };
            let decoded = value.bytes().and_then(|v| KeySpaces::decode(key.as_bytes(), v));
            let (table, exists) = decoded.ok_or(Error::Unrecovered)?;
            if spaces.get(&table.space).is_none_or(|newest| newest <= &table) {
                spaces.insert(table.space, table);
                self.spaces.set(table, exists);
            }
        }
        for table in scan.tables.iter().filter(|table| table.space != KeySpaceId::STORE) {
            if self.spaces.table(table.space) == Ok(*table) {
                continue;
            }
            // Only a later life of its key space ends a table. One without is not dead: the record
            // of its key space is lost.
            let is_over = spaces.get(&table.space).is_some_and(|newest| newest > table);
            if !is_over {
                return Err(Error::Unrecovered);
            }
            self.index.drop_table(*table);
            self.log.state().uncount_table(*table);
        }
        Ok(())
    }
}

impl Scan {
    fn note(&mut self, record: &Record) {
        let header = &record.header;
        self.records += 1;
        self.newest = self.newest.max(header.sequence);
        self.tables.insert(header.table);
        if header.table == TableId::STORE {
            self.spaces.insert(header.key.clone());
        }
        if header.kind == Kind::Tombstone {
            self.tombstones.push((header.table, header.key.clone(), record.address));
        }
    }
}

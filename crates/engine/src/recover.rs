//! Opening a store by what the medium holds: extent by extent, the newest record of each key wins.
//!
//! Sealed extents tell by their summaries; of others every page is read for its headers. Where two
//! records of a key have one sequence number they are a record and its copy, and the original wins:
//! then an extent that was being filled with copies holds nothing and can be reset for nothing. (An
//! extent is reset as a whole, so the original is there.) A long value that lost one of its pages
//! to a loss of power was never acknowledged and is passed over.

use crate::address::Address;
use crate::checkpoint::Image;
use crate::clean::Record;
use crate::cleaner::Begins;
use crate::error::Error;
use crate::extent::{Extent, Extents};
use crate::index::HashedKey;
use crate::key_space::{KeySpaceId, KeySpaces, TableId};
use crate::layout::PageKind;
use crate::log::Log;
use crate::page_view::PageView;
use crate::record::{Kind, Sequence, header_len};
use crate::sabotage::Sabotage;
use crate::store::{Config, Found, Store};
use base::{Key, Nanos};
use clock::Class;
use media::{ExtentId, ExtentInfo, Media, Page, PageId, Stream};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How a store was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum How {
    /// By all records that the medium holds.
    #[default]
    Scan,
    /// By a checkpoint and the records written since.
    Checkpoint,
}

/// What opening a store took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// How.
    pub how: How,
    /// Extents found in use.
    pub extents: u64,
    /// Of these, extents that were read for records: with a checkpoint only those that were written
    /// to since.
    pub replayed_extents: u64,
    /// Of those, extents that had a summary.
    pub summaries: u64,
    /// Records found in them, live or not.
    pub records: u64,
    /// Pages read, those of the checkpoint among them.
    pub pages_read: u64,
    /// Pages that a loss of power did not cut off and that could not be read, of extents without a
    /// summary. What they held may be lost, and older values of its keys be back.
    pub lost_pages: u64,
    /// Time on the device's clock.
    pub time: Nanos,
}

/// What is collected beside the index.
#[derive(Default)]
pub(crate) struct Scan {
    records: u64,
    summaries: u64,
    lost_pages: u64,
    tables: BTreeSet<TableId>,
    spaces: BTreeSet<Key>,
    tombstones: Vec<(TableId, Key, Address)>,
    /// Those that a checkpoint has counted.
    known_tombstones: Vec<(TableId, Key, Address)>,
}

/// An extent with records to be found, from this page on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Replay {
    pub(crate) extent: ExtentId,
    pub(crate) from: u32,
}

impl Store {
    /// The store that `media` holds. Reads the medium alone; nothing else survives.
    pub async fn open(
        media: Arc<dyn Media>,
        config: Config,
    ) -> Result<(Arc<Self>, Recovery), Error> {
        let start = clock::now();
        let mut pages_read = 0;
        // A table page may turn out to be damaged: one of the checkpoint, or at worst one that
        // opening itself has written. What was entered by then is worth nothing.
        for may_restore in [true, false, false] {
            let found = media.extents();
            let mut scan = Scan::default();
            let mut store = Self::found(media.clone(), config, &found);
            let restored = if may_restore { store.restore(&found, &mut scan).await } else { None };
            let (how, replays) = match restored {
                Some(replays) => (How::Checkpoint, replays),
                None => {
                    pages_read += store.pages_read();
                    store = Self::found(media.clone(), config, &found);
                    (How::Scan, Replay::all(&found))
                }
            };
            let entered = store.enter_all(&replays, &mut scan).await;
            pages_read += store.pages_read();
            if store.tables.is_damaged() {
                // From here on its index leaves the medium alone.
                store.index.freeze().await;
                continue;
            }
            entered?;
            store.start(Begins::AtWork);
            let recovery = Recovery {
                how,
                extents: found.len() as u64,
                replayed_extents: replays.len() as u64,
                summaries: scan.summaries,
                records: scan.records,
                pages_read,
                lost_pages: scan.lost_pages,
                time: clock::now() - start,
            };
            return Ok((store, recovery));
        }
        Err(Error::Unrecovered)
    }

    /// Enters what the log has beyond a checkpoint, or all of it.
    async fn enter_all(self: &Arc<Self>, all: &[Replay], scan: &mut Scan) -> Result<(), Error> {
        self.reset_tables().await;
        for replay in all {
            self.replay(*replay, scan).await?;
        }
        self.finish(scan).await
    }

    /// A store that knows nothing of these extents but that they are there. Numbering goes on in
    /// the next mount: no record has a number of a later one than some extent was opened in.
    fn found(media: Arc<dyn Media>, config: Config, found: &[ExtentInfo]) -> Arc<Self> {
        let (mut extents, mut newest) = (Extents::default(), Sequence::default());
        for info in found {
            extents.insert(info.id, Extent::recovered(info));
            newest = newest.max(Sequence(info.label.epoch));
        }
        Self::new(Log::new(media, extents, newest.next_mount()), config)
    }

    /// Pages read for opening: nobody else has asked for any yet.
    fn pages_read(&self) -> u64 {
        let counts = self.counters();
        counts.host_page_reads + counts.gc_page_reads + self.tables.traffic().0
    }

    /// Enters the records of an extent, those before the first page to look at left out.
    async fn replay(self: &Arc<Self>, replay: Replay, scan: &mut Scan) -> Result<(), Error> {
        let Replay { extent, from } = replay;
        let pages = self.log.state().extents.get(extent).pages;
        if let Some(last) = pages.checked_sub(1) {
            scan.summaries += u64::from(self.find_summary(PageId { extent, page: last }).await);
        }
        let (records, lost_pages) = self.records_from(replay, Class::HostRead).await;
        scan.lost_pages += lost_pages;
        let records = self.written_records(extent, records);
        let is_new = |record: &Record| {
            self.log.page_id(record.address).page >= from
                && !(record.header.kind == Kind::Tombstone && Sabotage::NoTombstones.is_on())
        };
        let records = records.into_iter().filter(is_new).collect();
        self.take_records(records, scan).await
    }

    /// Looks whether the extent's last page is one of a summary.
    async fn find_summary(&self, last: PageId) -> bool {
        let layout = self.log.layout;
        let front =
            |page: &Page| PageView::new(layout, page).map_or(0, |view| view.prologue.front_len);
        self.counters.count_gc_reads(1);
        let Ok(page) = self.log.media.read(last, &front, Class::HostRead).await else {
            return false;
        };
        let Some(view) = PageView::new(layout, &page) else { return false };
        let first = (view.prologue.kind == PageKind::Summary)
            .then(|| last.page.checked_sub(view.prologue.continuation))
            .flatten();
        self.log.state().extents.get(last.extent).summary = first;
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
            scan.note(&record);
            let extent = self.log.page_id(record.address).extent;
            self.log.state().extents.get(extent).note_expiry(record.header.expires);
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
        let rest = header.value_len.saturating_sub(record.part_len(self.log.layout.page_bytes));
        let more = rest.div_ceil(self.log.layout.bare_room());
        let one_page = self.log.layout.fits_page(header.len(), header.value_len);
        let last = if one_page { at.page } else { at.page + more };
        let mut state = self.log.state();
        let extent = state.extents.get(at.extent);
        Sabotage::TornRecords.is_on()
            || last < extent.pages
                && !extent.holes.iter().any(|hole| (at.page..=last).contains(hole))
    }

    async fn take_record(self: &Arc<Self>, record: &Record) -> Result<(), Error> {
        let header = &record.header;
        let extent = self.log.page_id(record.address).extent;
        let key = HashedKey::new(&header.key);
        let _entry = self.enter(header.table, key).await;
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
        // What a checkpoint knows may be found a second time.
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
            let (header_len, len) = (known.header.len(), known.header.value_len);
            state.uncount_value(from, header.table, self.log.layout.footprint(header_len, len));
        }
        if header.kind.is_value() {
            state.count_value(extent, header.table, record.footprint);
        }
        Ok(())
    }

    /// Of a record and its copies the original comes last: they have one number.
    pub(crate) fn originality(&self, extent: ExtentId) -> (bool, Reverse<u64>) {
        let mut state = self.log.state();
        let label = state.extents.get(extent).label;
        (label.stream == Stream::Host, Reverse(label.epoch))
    }

    fn is_newer(&self, record: &Record, known: &Found) -> bool {
        let rank =
            |sequence, address| (sequence, self.originality(self.log.page_id(address).extent));
        Sabotage::NoSequences.is_on()
            || rank(record.header.sequence, record.address)
                > rank(known.header.sequence, known.address)
    }

    /// Takes the deleted keys out of the index, and the key spaces that are gone. Tombstones that a
    /// newer record has made needless are noted as such.
    async fn finish(self: &Arc<Self>, scan: &Scan) -> Result<(), Error> {
        for (table, key, address) in &scan.tombstones {
            let hashed = HashedKey::new(key);
            let entry = self.enter(*table, hashed).await;
            let is_newest = self.index.remove(*table, hashed, *address).await;
            drop(entry);
            let extent = self.log.page_id(*address).extent;
            let bytes = self.log.layout.footprint(header_len(key.as_bytes().len(), None), 0);
            let mut state = self.log.state();
            state.count_tombstone(extent, bytes);
            if !is_newest {
                state.note_needless(*address, extent, bytes);
            }
        }
        for (table, key, address) in &scan.known_tombstones {
            let key = HashedKey::new(key);
            let _entry = self.enter(*table, key).await;
            self.index.remove(*table, key, *address).await;
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
            // Only a later life of its key space ends a table. Of one without, the record is lost,
            // and its keys are not: it goes on, though it may have been deleted.
            let mut later = scan.tables.iter().chain(spaces.get(&table.space));
            if !later.any(|other| other.space == table.space && other > table) {
                self.spaces.set(*table, true);
                continue;
            }
            self.index.drop_table(*table);
            self.log.state().uncount_table(*table);
        }
        Ok(())
    }
}

impl Replay {
    /// All of the extents that hold records.
    fn all(found: &[ExtentInfo]) -> Vec<Self> {
        let records = found.iter().filter(|info| info.label.stream != Stream::Index);
        records.map(|info| Self { extent: info.id, from: 0 }).collect()
    }
}

impl Scan {
    /// Begins with what a checkpoint knew.
    pub(crate) fn begin_at(&mut self, image: Image) {
        for space in &image.spaces {
            self.spaces.extend(KeySpaces::keys(*space));
        }
        let values = image.extents.iter().flat_map(|extent| &extent.values);
        self.tables.extend(values.map(|(table, _)| *table));
        self.known_tombstones = image.deleting;
        self.known_tombstones.extend(image.deleted);
    }

    fn note(&mut self, record: &Record) {
        let header = &record.header;
        self.records += 1;
        self.tables.insert(header.table);
        if header.table == TableId::STORE {
            self.spaces.insert(header.key.clone());
        }
        if header.kind == Kind::Tombstone {
            self.tombstones.push((header.table, header.key.clone(), record.address));
        }
    }
}

//! Opening a store by what the medium holds: extent by extent, the newest record of each key wins.
//!
//! Sealed extents tell by their summaries; of others every page is read for its headers. Where two
//! records of a key have one sequence number they are a record and its copy, and the original wins:
//! then an extent that was being filled with copies holds nothing and can be reset for nothing. (An
//! extent is reset as a whole, so the original is there.) A long value that lost one of its pages
//! to a loss of power was never acknowledged and is passed over.

use crate::clean::cleaner::Begins;
use crate::config::Config;
use crate::error::Error;
use crate::extent::{Extent, Extents};
use crate::format::address::Address;
use crate::format::layout::PageKind;
use crate::format::page_view::PageView;
use crate::format::record::{Kind, Sequence, header_len};
use crate::hashed_key::HashedKey;
use crate::key_space::{KeySpaceId, KeySpaces, TableId};
use crate::log::Log;
use crate::recover::checkpoint::Image;
use crate::recover::enter::LaneShare;
use crate::recover::entered::Entered;
use crate::recover::listing::Listing;
use crate::recover::listing::Record;
use crate::recover::listing::Replay;
use crate::recover::sort::Sorted;
use crate::store::Store;
use crate::work_pool::WorkPool;
use base::{Key, Nanos};
use clock::{Class, Stage};
use media::{ExtentId, ExtentInfo, Media, Page, PageId, Span, Stream};
use std::collections::{BTreeMap, BTreeSet};
use std::future::ready;
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

/// The ways in which opening is tried, one after the other. Each but the last may find that a page
/// of the index is damaged and cannot be made again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    /// By a checkpoint if there is one.
    Checkpoint,
    /// By all records. A lost index page is made again from the log; that fails if a page of the
    /// log cannot be read.
    Scan,
    /// The headers of all records stay in memory.
    Memory,
}

/// The purpose of opening a store.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Use,
    /// To look only: the medium is not changed.
    Looks,
}

/// How a store was opened, and the work that it took.
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
    /// Unreadable pages of extents without a summary, without those that a loss of power cut off.
    /// Their records may be lost, and older values of those keys may be back.
    pub lost_pages: u64,
    /// Time on the device's clock.
    pub time: Nanos,
}

/// What opening collects beside the index.
#[derive(Default)]
pub(crate) struct Scan {
    /// The index has been filled from a checkpoint.
    pub(super) is_after_checkpoint: bool,
    records: u64,
    pub(super) summaries: u64,
    pub(super) lost_pages: u64,
    tables: BTreeSet<TableId>,
    spaces: BTreeSet<Key>,
    tombstones: Vec<(TableId, Key, Address)>,
    /// Tombstones that a checkpoint has counted.
    known_tombstones: Vec<(TableId, Key, Address)>,
}

/// Number of extents of frames that are listed side by side. All their records are in memory at
/// once.
pub(crate) const LISTED_AT_ONCE: usize = 16;

/// Listings of extents that were read before those extents are entered.
#[derive(Debug, Default)]
pub(crate) struct Seen(BTreeMap<ExtentId, Listing>);

impl Seen {
    pub(crate) fn keep(&mut self, extent: ExtentId, listing: Listing) {
        self.0.insert(extent, listing);
    }

    /// Takes the listings of these extents, if they are here.
    pub(super) fn take(&mut self, replays: &[Replay]) -> Vec<(Replay, Option<Listing>)> {
        let seen = replays.iter().map(|replay| (*replay, self.0.remove(&replay.extent)));
        seen.collect()
    }
}

impl Store {
    /// Opens the store that `media` holds. The medium is the only source.
    pub async fn open(
        media: Arc<dyn Media>,
        config: Config,
    ) -> Result<(Arc<Self>, Recovery), Error> {
        Self::open_among(Arc::default(), media, config).await
    }

    /// As [`Self::open`], by all reactors of `pool`, which also do later work of the store.
    pub async fn open_among(
        pool: Arc<WorkPool>,
        media: Arc<dyn Media>,
        config: Config,
    ) -> Result<(Arc<Self>, Recovery), Error> {
        let (store, recovery) = Self::open_for(Purpose::Use, pool, media, config).await?;
        store.start(Begins::AtWork);
        Ok((store, recovery))
    }

    /// Opens the same store to look at it. No background task runs, and the store neither writes
    /// nor resets. The caller must not store anything.
    pub async fn look(
        media: Arc<dyn Media>,
        config: Config,
    ) -> Result<(Arc<Self>, Recovery), Error> {
        Self::open_for(Purpose::Looks, Arc::default(), media, config).await
    }

    async fn open_for(
        purpose: Purpose,
        pool: Arc<WorkPool>,
        media: Arc<dyn Media>,
        config: Config,
    ) -> Result<(Arc<Self>, Recovery), Error> {
        let start = clock::now();
        let mut pages_read = 0;
        for by in [By::Checkpoint, By::Scan, By::Memory] {
            let found = media.extents();
            let mut scan = Scan::default();
            let mut store = Self::found(pool.clone(), media.clone(), config, &found)?;
            let may_restore = by == By::Checkpoint;
            let restored = if may_restore { store.restore(&found, &mut scan).await } else { None };
            let (how, replays) = match restored {
                Some(replays) => {
                    scan.is_after_checkpoint = true;
                    (How::Checkpoint, replays)
                }
                None => {
                    pages_read += store.pages_read();
                    store = Self::found(pool.clone(), media.clone(), config, &found)?;
                    (How::Scan, Replay::all(&found))
                }
            };
            store.tables.while_opening(|entered| entered.keeps_all = by == By::Memory);
            if purpose == Purpose::Use {
                store.reset_tables().await;
                store.log.owe_extents();
            }
            let seen = match how {
                How::Checkpoint => store.recall(&replays).await?,
                How::Scan => Seen::default(),
            };
            let entered = store.enter_all(&replays, seen, &mut scan).await;
            pages_read += store.pages_read();
            // A scan passes over records that cannot be read; a checkpoint points to them.
            let is_behind_damage = how == How::Checkpoint && entered == Err(Error::Unrecovered);
            if !store.tables.end_opening() || is_behind_damage {
                store.tables.dismiss_keeper().await;
                continue;
            }
            entered?;
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

    /// Enters the records beyond a checkpoint, or all records of the log; `seen` has the listings
    /// that were read already.
    async fn enter_all(
        self: &Arc<Self>,
        all: &[Replay],
        mut seen: Seen,
        scan: &mut Scan,
    ) -> Result<(), Error> {
        for replays in all.chunks(self.listed_at_once()) {
            // An index with tables makes lost pages again from the records entered so far: so they
            // are entered in order.
            if self.pool.tasks() > 1 && !self.keeps_tables {
                self.replay_among_all(replays, &mut seen, scan).await?;
                continue;
            }
            let listings = self.list_extents(replays, &mut seen).await?;
            for (replay, listing) in replays.iter().zip(listings) {
                self.replay(*replay, listing, scan).await?;
            }
        }
        self.finish(scan).await
    }

    /// Makes a store that only knows that these extents exist. Its sequence numbers begin with the
    /// next mount: no record has a later mount than the newest extent.
    fn found(
        pool: Arc<WorkPool>,
        media: Arc<dyn Media>,
        config: Config,
        found: &[ExtentInfo],
    ) -> Result<Arc<Self>, Error> {
        let (mut extents, mut newest) = (Extents::default(), Sequence::default());
        for info in found {
            extents.insert(info.id, Extent::recovered(info));
            newest = newest.max(Sequence(info.label.epoch));
        }
        let mount = newest.next_mount().ok_or(Error::OpenedTooOften)?;
        let store = Self::new(pool, Log::new(media, extents, mount), config);
        if store.keeps_tables {
            store.tables.begin_opening();
        }
        Ok(store)
    }

    /// Returns the pages read for opening: all reads so far were for it.
    fn pages_read(&self) -> u64 {
        let counts = self.counters();
        counts.host_page_reads + counts.gc_page_reads + self.tables.traffic().0
    }

    /// Returns how many extents are listed side by side. On flash one extent keeps all dies busy.
    fn listed_at_once(&self) -> usize {
        if self.log.layout.frames.is_some() { LISTED_AT_ONCE } else { 1 }
    }

    /// Returns the records of extents, in order.
    pub(crate) async fn list_extents(
        self: &Arc<Self>,
        replays: &[Replay],
        seen: &mut Seen,
    ) -> Result<Vec<Listing>, Error> {
        self.list_then(replays, seen, |_, _, listing| ready(listing)).await
    }

    /// Returns what `then` makes of the records of each extent, in order. All reactors do so, each
    /// with its share of the extents side by side.
    pub(super) async fn list_then<T, F>(
        self: &Arc<Self>,
        replays: &[Replay],
        seen: &mut Seen,
        then: impl Fn(Arc<Self>, Replay, Listing) -> F + Copy + Send + 'static,
    ) -> Result<Vec<T>, Error>
    where
        T: Send + 'static,
        F: Future<Output = T> + 'static,
    {
        let share = replays.len().div_ceil(self.pool.tasks()).max(1);
        let pieces = replays.chunks(share).map(|replays| {
            let (store, wanted) = (self.clone(), seen.take(replays));
            move || async move {
                let done = wanted.into_iter().map(|(replay, seen)| {
                    let store = store.clone();
                    async move {
                        let listing = store.list_unless(replay, seen).await;
                        then(store, replay, listing).await
                    }
                });
                clock::join_all(done.collect()).await
            }
        });
        Ok(self.pool.run(Stage::Queue, pieces.collect()).await?.into_iter().flatten().collect())
    }

    /// Returns the records of an extent, which may have been `seen` already.
    async fn list_unless(self: &Arc<Self>, replay: Replay, seen: Option<Listing>) -> Listing {
        if let Some(listing) = seen {
            return listing;
        }
        if self.log.layout.frames.is_none() {
            let pages = self.log.whole().extents.get(replay.extent).pages();
            if let Some(page) = pages.checked_sub(1) {
                self.find_summary(PageId { extent: replay.extent, page }).await;
            }
        }
        self.listing(replay).await
    }

    /// Enters the records of an extent from its first page to look at on.
    async fn replay(
        self: &Arc<Self>,
        replay: Replay,
        listing: Listing,
        scan: &mut Scan,
    ) -> Result<(), Error> {
        let Sorted { scan: found, shares, .. } = self.sort(replay, listing, 1).await;
        scan.add(found);
        for (share, records) in LaneShare::all(1).zip(shares) {
            self.take_records(share, records, scan.is_after_checkpoint).await?;
        }
        self.tables.while_opening(Entered::end);
        Ok(())
    }

    /// Notes where the extent's summary begins, if its last page is one of a summary.
    async fn find_summary(&self, last: PageId) {
        let layout = self.log.layout;
        let front =
            |page: &Page| PageView::new(layout, page).map_or(0, |view| view.prologue.front_len);
        self.counters.count_gc_reads(1);
        let Ok(page) = self.log.media.read(Span::of(last), &front, Class::HostRead).await else {
            return;
        };
        let Some(view) = PageView::new(layout, &page) else { return };
        let first = (view.prologue.kind == PageKind::Summary)
            .then(|| last.page.checked_sub(view.prologue.continuation))
            .flatten();
        self.log.whole().extents.get(last.extent).find_summary(first);
    }

    /// Takes the deleted keys out of the index, and the key spaces that are gone. Tombstones that a
    /// newer record has made needless are noted as such.
    async fn finish(self: &Arc<Self>, scan: &Scan) -> Result<(), Error> {
        for (table, key, address) in &scan.tombstones {
            let hashed = HashedKey::new(key);
            let entry = self.enter(*table, hashed).await;
            let is_newest = self.remove_tombstone(*table, hashed, *address);
            drop(entry);
            let extent = self.log.page_id(*address).extent;
            let bytes = self.log.layout.footprint(header_len(key.as_bytes().len(), None), 0);
            let mut state = self.log.whole();
            state.count_tombstone(extent, bytes);
            if !is_newest {
                state.note_needless(*address, extent, bytes);
            }
        }
        for (table, key, address) in &scan.known_tombstones {
            let key = HashedKey::new(key);
            let _entry = self.enter(*table, key).await;
            self.remove_tombstone(*table, key, *address);
        }
        // The newest of a key space's records counts. If one is damaged, the other is read.
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
            // Only a later life of its key space ends a table. If there is none, the records that
            // keep the table are lost, but its keys are not. The table stays, though it may have
            // been deleted.
            let mut later = scan.tables.iter().chain(spaces.get(&table.space));
            if !later.any(|other| other.space == table.space && other > table) {
                self.spaces.set(*table, true);
                continue;
            }
            self.index.drop_table(*table);
            self.log.whole().uncount_table(*table);
        }
        Ok(())
    }
}

impl Replay {
    /// Returns a replay of each extent that holds records.
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

    /// Adds what was found in an extent.
    pub(super) fn add(&mut self, found: Self) {
        self.records += found.records;
        self.summaries += found.summaries;
        self.lost_pages += found.lost_pages;
        self.tables.extend(found.tables);
        self.spaces.extend(found.spaces);
        self.tombstones.extend(found.tombstones);
    }

    pub(super) fn note(&mut self, record: &Record) {
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

use crate::check::verify::Wrong;
use crate::clean::expiry::has_expired;
use crate::extent::Live;
use crate::format::address::Address;
use crate::format::record::{Kind, Sequence};
use crate::hashed_key::HashedKey;
use crate::key_space::{KeySpaceId, TableId};
use crate::log::OnItsWay;
use crate::recover::listing::Record;
use crate::recover::listing::Replay;
use crate::store::Store;
use hashbrown::HashMap;
use media::{ExtentId, OnDisk, PageId, Stream};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

/// The records of index and log, from one pass over all headers: 17 bytes for each live pair.
#[derive(Default)]
pub(super) struct Known {
    /// Tables that have not been dropped.
    tables: BTreeSet<TableId>,
    /// Where the index points to, in order.
    addresses: Vec<Address>,
    /// The number of the record there; zero as long as no record of such a key was found.
    sequences: Vec<Sequence>,
    /// The newest tombstone of each key, by the key's hash.
    deleted: HashMap<(TableId, u64), Sequence, foldhash::fast::FixedState>,
    /// Records that were never answered.
    torn: BTreeSet<Address>,
    pub(super) values: BTreeMap<ExtentId, Live>,
    pub(super) tombstones: BTreeMap<ExtentId, Live>,
    /// Extents of the log. The others are about to be erased.
    extents: BTreeSet<ExtentId>,
    /// Extents of which all records are known, even if their pages cannot be read.
    pub(super) listed: BTreeSet<ExtentId>,
    /// Extents that are old copies: the lost pairs of each are reported in one finding.
    pub(super) outdated: BTreeSet<ExtentId>,
}

impl Known {
    /// Reads the summary of each extent, or the headers of its pages.
    pub(super) async fn new(store: &Arc<Store>) -> Self {
        let outdated = store.log.media.as_disk().map_or_else(Vec::new, OnDisk::outdated);
        let outdated = outdated.into_iter().collect();
        let mut known = Self { outdated, ..Self::default() };
        let spaces = store.key_spaces().into_iter().chain([KeySpaceId::STORE]);
        known.tables = spaces.filter_map(|space| store.spaces.table(space).ok()).collect();
        for table in &known.tables {
            let entries = store.index.scan(*table, None, usize::MAX).await;
            known.addresses.extend(entries.iter().map(|entry| entry.address));
        }
        known.addresses.sort_unstable();
        known.sequences = vec![Sequence::default(); known.addresses.len()];
        for extent in store.extents_of_records() {
            known.extents.insert(extent);
            let listing = store.listing(Replay { extent, from: 0 }).await;
            if listing.lost.is_empty() {
                known.listed.insert(extent);
            }
            let mut torn: BTreeSet<Address> =
                listing.records.iter().map(|record| record.address).collect();
            for record in store.written_records(extent, listing.records).await {
                torn.remove(&record.address);
                known.note(store, extent, &record).await;
            }
            known.torn.extend(torn);
        }
        known
    }

    async fn note(&mut self, store: &Arc<Store>, extent: ExtentId, record: &Record) {
        let header = &record.header;
        let key = HashedKey::new(&header.key);
        match header.kind {
            Kind::Tombstone => {
                self.tombstones.entry(extent).or_default().add(record.footprint);
                let newest = self.deleted.entry((header.table, key.hash)).or_default();
                *newest = header.sequence.max(*newest);
            }
            Kind::Value | Kind::Lost => {
                let Some(at) = self.position(record.address) else { return };
                if store.lookup(header.table, key).await.contains(&record.address) {
                    self.sequences[at] = header.sequence;
                    let key_len = header.key.as_bytes().len();
                    let live = self.values.entry(extent).or_default();
                    live.add_value(key_len, record.footprint);
                }
            }
            Kind::Table => {}
        }
    }

    fn position(&self, address: Address) -> Option<usize> {
        self.addresses.binary_search(&address).ok()
    }

    pub(super) fn entries(&self) -> u64 {
        self.addresses.len() as u64
    }

    pub(super) fn is_live(&self, record: &Record) -> bool {
        self.position(record.address).is_some_and(|at| self.sequences[at] == record.header.sequence)
    }

    /// Returns the number of entries of the index that lead to a page.
    pub(super) fn live_on(&self, store: &Store, at: PageId) -> u64 {
        let page = |address: &Address| store.log.page_id(*address);
        let start = self.addresses.partition_point(|address| page(address) < at);
        self.addresses[start..].iter().take_while(|address| page(address) == at).count() as u64
    }

    /// Returns the pages of an extent in a range to which entries of the index lead.
    pub(super) fn pages_within(
        &self,
        store: &Store,
        extent: ExtentId,
        range: &Range<u32>,
    ) -> BTreeSet<u32> {
        let page = |address: &Address| store.log.page_id(*address);
        let first = PageId { extent, page: range.start };
        let start = self.addresses.partition_point(|address| page(address) < first);
        let pages = self.addresses[start..].iter().map(page);
        let is_within = |at: &PageId| at.extent == extent && range.contains(&at.page);
        pages.take_while(is_within).map(|at| at.page).collect()
    }

    /// Returns the entries that lead to no record of their key, by page.
    pub(super) fn astray(&self, store: &Store) -> BTreeMap<PageId, u64> {
        let mut astray = BTreeMap::new();
        for (address, sequence) in self.addresses.iter().zip(&self.sequences) {
            if *sequence == Sequence::default() {
                *astray.entry(store.log.page_id(*address)).or_default() += 1;
            }
        }
        astray
    }

    /// Returns the fault of the index for the key of a record, if any.
    pub(super) async fn weigh(&self, store: &Arc<Store>, record: &Record) -> Option<Wrong> {
        let header = &record.header;
        let is_nothing = header.kind == Kind::Table
            || !self.extents.contains(&store.log.page_id(record.address).extent)
            || !self.tables.contains(&header.table)
            || self.torn.contains(&record.address)
            || self.is_live(record);
        if is_nothing {
            return None;
        }
        let key = HashedKey::new(&header.key);
        let newest_tombstone = self.deleted.get(&(header.table, key.hash));
        let is_deleted = newest_tombstone.is_some_and(|newest| *newest > header.sequence);
        let mut is_indexed = false;
        for at in store.lookup(header.table, key).await {
            let sequence = self.position(at).map(|at| self.sequences[at]).unwrap_or_default();
            let is_older = sequence != Sequence::default() && sequence < header.sequence;
            // Other keys may look like this one to the index.
            if !is_older {
                is_indexed = true;
            } else if is_of(store, at, record).await {
                let is_tombstone = header.kind == Kind::Tombstone;
                return Some(if is_tombstone { Wrong::Deleted } else { Wrong::Stale });
            }
        }
        // A page that cannot be read may have had the tombstone.
        let may_be_missing = is_indexed
            || is_deleted
            || self.listed.len() < self.extents.len()
            || header.kind == Kind::Tombstone
            || has_expired(header.expires);
        (!may_be_missing).then_some(Wrong::NotIndexed)
    }
}

/// Returns whether the record at `at` has the same key as `other`.
async fn is_of(store: &Arc<Store>, at: Address, other: &Record) -> bool {
    let found = store.header(at, OnItsWay::default()).await;
    found.is_ok_and(|(key, _)| key == other.header.key)
}

impl Store {
    /// Returns the extents of records.
    pub(super) fn extents_of_records(&self) -> Vec<ExtentId> {
        let state = self.log.whole();
        let extents = state.extents.iter();
        let records = extents.filter(|(_, extent)| extent.label.stream != Stream::Index);
        records.map(|(id, _)| id).collect()
    }
}

//! The entries of a table page that cannot be read any more, found again in the log.

use crate::address::Address;
use crate::clean::Record;
use crate::key_space::TableId;
use crate::log::Pin;
use crate::record::Kind;
use crate::recover::Replay;
use crate::store::Store;
use base::{Key, Nanos};
use clock::{Class, Stage};
use media::{ExtentId, PageId, Stream};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// How often it is looked whether pages have landed. Whoever waits here may hold a latch, and so
/// cannot wait for whoever writes them; but they wait for nobody.
const LANDING: Nanos = Nanos::from_micros(50);

/// What of an extent had been written at some instant.
struct Written<'a> {
    extent: ExtentId,
    /// Pages of an extent that was open.
    open: Option<u32>,
    _pin: Pin<'a>,
}

impl Store {
    /// The entries of the keys of `table` whose hashes are among `hashes`: of each the newest
    /// record, and of a record and its copies the one that the index points to. Nobody changes
    /// these entries meanwhile, so what was written when it began has them all; it is pinned.
    pub(crate) async fn entries_of(
        self: &Arc<Self>,
        table: TableId,
        hashes: RangeInclusive<u64>,
    ) -> Vec<(u64, Address)> {
        let extents = self.written();
        self.landed().await;
        let mut newest: BTreeMap<Key, Record> = BTreeMap::new();
        for written in &extents {
            let records = self.records_written(written).await;
            for record in self.written_records(written.extent, records) {
                let header = &record.header;
                let is_wanted = header.table == table
                    && header.kind != Kind::Table
                    && hashes.contains(&header.key.hash());
                if is_wanted && !self.has_left(&record) {
                    self.keep_newer(&mut newest, record);
                }
            }
        }
        let state = self.log.state();
        let is_entry = |record: &Record| {
            record.header.kind.is_value() || state.deleting.contains_key(&record.address)
        };
        let entries = newest.into_iter().filter(|(_, record)| is_entry(record));
        entries.map(|(key, record)| (key.hash(), record.address)).collect()
    }

    /// The extents of records as they are at this instant, of which all open pages are closed.
    fn written(&self) -> Vec<Written<'_>> {
        let mut state = self.log.state();
        self.log.pad(&mut state, Stream::Host);
        self.log.pad(&mut state, Stream::Gc);
        let open: BTreeMap<ExtentId, u32> =
            state.frontiers.iter().flatten().map(|open| (open.extent, open.page)).collect();
        let extents = state.extents.iter();
        let records = extents.filter(|(_, extent)| extent.label.stream != Stream::Index);
        let ids: Vec<ExtentId> = records.map(|(id, _)| id).collect();
        let pinned = ids.into_iter().map(|id| {
            let pin = self.log.pin(&mut state, id);
            Written { extent: id, open: open.get(&id).copied(), _pin: pin }
        });
        pinned.collect()
    }

    /// Waits until every page that is on its way has landed, or is lost.
    async fn landed(&self) {
        let on_their_way = |pages: &&Arc<crate::pending::Pending>| pages.page().is_some();
        let mut waits_for: Vec<_> =
            self.log.state().pending.values().filter(on_their_way).cloned().collect();
        while !waits_for.is_empty() {
            clock::sleep(LANDING, Stage::Index).await;
            waits_for.retain(|pages| !pages.has_landed());
        }
    }

    async fn records_written(self: &Arc<Self>, written: &Written<'_>) -> Vec<Record> {
        let extent = written.extent;
        let Some(pages) = written.open else {
            return self.records_from(Replay { extent, from: 0 }, Class::HostRead).await.0;
        };
        let reads = (0..pages).map(|page| {
            let store = self.clone();
            async move { store.records_on(PageId { extent, page }, Class::HostRead).await }
        });
        let read = clock::join_all(reads.collect()).await;
        read.into_iter().flatten().flatten().collect()
    }

    /// True when the index has pointed to the record, and then to a copy or to nothing.
    fn has_left(&self, record: &Record) -> bool {
        let extent = self.log.page_id(record.address).extent;
        self.log.state().extents.get(extent).left.contains(&record.address)
    }

    fn keep_newer(&self, newest: &mut BTreeMap<Key, Record>, record: Record) {
        let rank = |record: &Record| {
            let extent = self.log.page_id(record.address).extent;
            (record.header.sequence, self.originality(extent))
        };
        match newest.get_mut(&record.header.key) {
            None => drop(newest.insert(record.header.key.clone(), record)),
            Some(known) if rank(&record) > rank(known) => *known = record,
            Some(_) => {}
        }
    }
}

//! Rebuilds the entries of an unreadable table page from the log.
//!
//! The rebuilt entries must equal those that were lost, because live bytes are counted with each
//! change of an entry. So while the store is being opened, only records that have been entered
//! count ([`Entered`]). Rebuilding fails if the header of an indexed record cannot be found.
//! Therefore the headers of an extent without a summary are kept in memory ([`Listing`]).

use crate::format::address::Address;
use crate::format::record::Kind;
use crate::format::record::OwnedHeader;
use crate::key_space::TableId;
use crate::log::Pin;
use crate::recover::entered::Entered;
use crate::recover::listing::Listing;
use crate::recover::listing::Record;
use crate::recover::listing::Replay;
use crate::store::Store;
use base::Key;
use clock::Class;
use media::{ExtentId, PageId, Stream};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// An extent at some instant, with its records if it was still being filled.
struct Written<'a> {
    extent: ExtentId,
    open: Option<Vec<Record>>,
    _pin: Pin<'a>,
}

impl Store {
    /// Returns the entries of the keys of `table` whose hashes are among `hashes`: of each key the
    /// newest record, and of a record and its copies the one that the index points to. No task
    /// changes these entries during the call, so the extents in use at its start have them all. It
    /// pins those extents.
    pub(crate) async fn entries_of(
        self: &Arc<Self>,
        table: TableId,
        hashes: RangeInclusive<u64>,
    ) -> Vec<(u64, Address)> {
        if self.tables.while_opening(Entered::note_page_lost) == Some(true) {
            return Vec::new();
        }
        let mut extents = self.written();
        self.all_landed().await;
        let mut newest: BTreeMap<Key, Record> = BTreeMap::new();
        for Written { extent, open, .. } in &mut extents {
            let extent = *extent;
            if self.tables.while_opening(|entered| entered.may_have(extent)) == Some(false) {
                continue;
            }
            let listing = match open.take() {
                Some(records) => Listing { records, lost: Vec::new() },
                None => self.listing(Replay { extent, from: 0 }).await,
            };
            self.tables.while_opening(|entered| entered.note_lost(&listing.lost));
            for record in self.written_records(extent, listing.records).await {
                let header = &record.header;
                let is_wanted = header.table == table
                    && header.kind != Kind::Table
                    && hashes.contains(&header.key.hash());
                let has_entered = |entered: &mut Entered| entered.has(extent, record.address);
                if is_wanted && self.tables.while_opening(has_entered) != Some(false) {
                    self.keep_newer(&mut newest, record);
                }
            }
        }
        if self.tables.while_opening(|entered| entered.is_damaged) == Some(true) {
            return Vec::new();
        }
        let is_entry = |record: &Record| {
            let is_deleting = self.log.whole().copies.is_deleting(record.address);
            !self.has_left(record) && (record.header.kind.is_value() || is_deleting)
        };
        let entries = newest.into_iter().filter(|(_, record)| is_entry(record));
        entries.map(|(key, record)| (key.hash(), record.address)).collect()
    }

    /// Closes all open pages, and returns the extents of records as they are then.
    fn written(&self) -> Vec<Written<'_>> {
        let mut state = self.log.whole();
        self.log.pad_records(&mut state);
        let extents = state.extents.iter();
        let records = extents.filter(|(_, extent)| extent.label.stream != Stream::Index);
        let ids: Vec<ExtentId> = records.map(|(id, _)| id).collect();
        let pins = ids.iter().map(|id| self.log.pin(&mut state, *id));
        let pins: Vec<Pin<'_>> = pins.collect();
        drop(state);
        let pinned = ids.into_iter().zip(pins).map(|(extent, pin)| Written {
            extent,
            open: self.open_summary_of(extent),
            _pin: pin,
        });
        pinned.collect()
    }

    /// Waits until every page that is on its way has landed, or is lost.
    async fn all_landed(&self) {
        let closed = self.log.whole().closed_in_order();
        for (_, pending) in closed {
            pending.over().await;
        }
    }

    /// Returns the records of an extent that is full or was found on opening: all of them from its
    /// summary, or else those of the pages asked for. If the index may have to be made again from
    /// them, all are read then and kept.
    pub(crate) async fn listing(self: &Arc<Self>, replay: Replay) -> Listing {
        let Replay { extent, from } = replay;
        if let Some(listing) = self.kept_listing(extent) {
            return Listing::clone(&listing);
        }
        let keeps_all = self.tables.while_opening(|entered| entered.keeps_all) == Some(true);
        if let Some(records) = self.summary_of(extent, Class::HostRead).await {
            let listing = Listing { records, lost: Vec::new() };
            if keeps_all {
                self.log.whole().extents.get(extent).listing = Some(Arc::new(listing.clone()));
            }
            return listing;
        }
        let keeps = self.keeps_tables;
        let first = if keeps { 0 } else { from };
        let pages = self.log.written_pages(extent).await;
        let pages = pages.into_iter().filter(|page| *page >= first);
        let reads = pages.map(|page| {
            let (store, at) = (self.clone(), PageId { extent, page });
            async move { store.records_on(at, Class::HostRead).await.ok_or(at) }
        });
        let mut listing = Listing::default();
        for page in clock::join_all(reads.collect()).await {
            match page {
                Ok(records) => listing.records.extend(records),
                Err(at) => listing.lost.push(at),
            }
        }
        if keeps {
            self.log.whole().extents.get(extent).listing = Some(Arc::new(listing.clone()));
        }
        listing
    }

    fn kept_listing(&self, extent: ExtentId) -> Option<Arc<Listing>> {
        self.log.whole().extents.get(extent).listing.clone()
    }

    /// Returns the header of a record, if it is in memory.
    pub(crate) fn listed_header(&self, at: Address) -> Option<OwnedHeader> {
        let listing = self.kept_listing(self.log.page_id(at).extent)?;
        listing.records.iter().find(|record| record.address == at).map(|found| found.header.clone())
    }

    /// Returns true when the record is noted as one to which the index does not point.
    fn has_left(&self, record: &Record) -> bool {
        let extent = self.log.page_id(record.address).extent;
        self.log.whole().extents.get(extent).left.contains(&record.address)
    }

    /// Returns true for a record that the cleaner has written since it began to copy. The index
    /// points to it once it no longer points to the original.
    fn is_being_copied(&self, record: &Record) -> bool {
        let at = self.log.page_id(record.address);
        let mut state = self.log.whole();
        let (copying, since) = (state.copies.copying(), state.copies.since().0);
        let label = state.extents.get(at.extent).label;
        copying.is_some_and(|copying| match copying.open {
            Some((open, page)) if open == at.extent => at.page >= page,
            _ => label.stream == Stream::Gc && label.epoch == since,
        })
    }

    fn keep_newer(&self, newest: &mut BTreeMap<Key, Record>, record: Record) {
        let rank = |record: &Record| {
            let extent = self.log.page_id(record.address).extent;
            let is_left = self.has_left(record);
            let is_copied = self.is_being_copied(record);
            let originality = self.log.whole().originality(extent);
            (record.header.sequence, !is_left, !is_copied, originality)
        };
        match newest.get_mut(&record.header.key) {
            None => drop(newest.insert(record.header.key.clone(), record)),
            Some(known) if rank(&record) > rank(known) => *known = record,
            Some(_) => {}
        }
    }
}

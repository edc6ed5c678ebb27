//! An extent of the log: its pages, its live records and its readers.

mod change;
mod extents;
mod live;

use crate::format::address::Address;
use crate::format::record::Sequence;
use crate::key_space::TableId;
use crate::recover::checkpoint::ExtentImage;
use crate::recover::listing::Listing;
pub(crate) use change::{Change, Counted};
use clock::UnixMillis;
pub(crate) use extents::Extents;
pub use live::Live;
use media::{ExtentInfo, Label, Stream};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The log's state of an extent in use.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Extent {
    pub(crate) label: Label,
    /// Pages written or on their way, summary included.
    pages: u32,
    /// Pages that were cut off by a loss of power, in rising order.
    holes: Vec<u32>,
    /// The first page of the summary, once that is written.
    summary: Option<u32>,
    /// Nothing more is appended.
    sealed: bool,
    /// Being cleaned.
    victim: bool,
    /// Pages on their way.
    in_flight: u32,
    /// Always 0: a saved state has it.
    pins: u32,
    #[serde(with = "crate::inline_list")]
    values: SmallVec<[(TableId, Live); 1]>,
    tombstones: Live,
    /// When the first of its values expired or will expire, whether it lives or not. Unknown again
    /// once it was cleaned.
    pub(crate) expires_first: Option<UnixMillis>,
    /// Tombstones found on opening that a newer record, or the original that they copy, makes
    /// needless.
    needless: Vec<Address>,
    /// Their footprints, which are counted in `tombstones` too.
    needless_bytes: u64,
    /// Values to which the index no longer points, because they were copied or have expired, and
    /// copies to which it never pointed. Kept for an index that may lose a page of its table.
    pub(crate) left: BTreeSet<Address>,
    /// The records of an extent without a readable summary, kept for the same purpose. Also kept if
    /// acknowledged records of the extent were lost.
    #[serde(skip)]
    pub(crate) listing: Option<Arc<Listing>>,
    /// Acknowledged records did not land, and cleaning has to mark their keys as lost.
    #[serde(skip)]
    pub(crate) has_lost: bool,
    /// Its values that expire are counted up to this address; without one, not at all.
    #[serde(skip)]
    pub(crate) expiring_until: Option<Address>,
    /// The value of `expires_first` when the extent was last cleaned, which may have left values in
    /// it.
    #[serde(skip)]
    expired_first: Option<UnixMillis>,
    /// Headers of its records that were not in memory and were read one by one, or 255 for more.
    #[serde(skip)]
    pub(crate) headers_read: u8,
}

impl Extent {
    pub(crate) fn new(label: Label) -> Self {
        Self {
            label,
            pages: 0,
            holes: Vec::new(),
            summary: None,
            sealed: false,
            victim: false,
            in_flight: 0,
            pins: 0,
            values: SmallVec::new(),
            tombstones: Live::default(),
            expires_first: None,
            needless: Vec::new(),
            left: BTreeSet::new(),
            listing: None,
            has_lost: false,
            expiring_until: Some(Address::MAX),
            expired_first: None,
            headers_read: 0,
            needless_bytes: 0,
        }
    }

    /// Returns an extent as it was found on the medium. It is never appended to again.
    pub(crate) fn recovered(info: &ExtentInfo) -> Self {
        let (pages, holes) = (info.pages, info.holes.clone());
        let summary = info.summary;
        Self { pages, holes, summary, sealed: true, ..Self::new(info.label) }
    }

    /// Takes over what a checkpoint knows of an extent that was found on the medium.
    pub(crate) fn restore(&mut self, image: &ExtentImage) {
        let is_new = self.values.is_empty() && self.tombstones == Live::default();
        assert!(is_new, "an extent is restored before its records are counted");
        // A page that the checkpoint knows and that cannot be read was not cut off: it is damaged.
        let found = self.holes.iter().filter(|hole| **hole >= image.pages);
        let holes = image.holes.iter().chain(found).copied();
        self.holes = holes.filter(|hole| *hole < self.pages).collect();
        // If the writes of its last pages failed, the medium has the extent without them.
        self.summary = image.summary.filter(|first| *first < self.pages);
        self.values = image.values.iter().copied().collect();
        self.tombstones = image.tombstones;
        self.needless.clone_from(&image.needless);
        self.needless_bytes = image.needless_bytes;
        self.expires_first = image.expires_first;
        self.expiring_until = None;
        self.left = image.left.iter().copied().collect();
    }

    /// Returns the number of pages written or on their way, summary included.
    #[inline]
    pub(crate) const fn pages(&self) -> u32 {
        self.pages
    }

    /// Returns the pages that did not land, in rising order.
    pub(crate) fn holes(&self) -> &[u32] {
        &self.holes
    }

    /// Returns the first page of the summary, once that is written.
    pub(crate) const fn summary(&self) -> Option<u32> {
        self.summary
    }

    /// Returns the live values by table.
    pub(crate) fn values(&self) -> &[(TableId, Live)] {
        &self.values
    }

    pub(crate) const fn tombstones(&self) -> Live {
        self.tombstones
    }

    /// Returns the tombstones that cleaning may drop.
    pub(crate) fn needless(&self) -> &[Address] {
        &self.needless
    }

    /// Returns the footprints of these, which are counted in `tombstones` too.
    pub(crate) const fn needless_bytes(&self) -> u64 {
        self.needless_bytes
    }

    pub(crate) const fn is_sealed(&self) -> bool {
        self.sealed
    }

    /// Returns true when none of its pages is on its way.
    pub(crate) const fn has_landed(&self) -> bool {
        self.in_flight == 0
    }

    /// Notes that page number `page` is its open page: the last one, until the extent is sealed.
    #[inline]
    pub(crate) fn note_open_page(&mut self, page: u32) {
        assert!(!self.sealed, "a sealed extent has no open page");
        let is_later = self.pages == 0 || page + 1 >= self.pages;
        assert!(is_later, "pages of an extent are written in the order of their numbers");
        self.pages = page + 1;
    }

    /// Expects the open page, number `page`, no longer: a saved state counted it as on its way.
    pub(crate) fn unexpect_page(&mut self, page: u32) {
        assert!(self.in_flight > 0, "a page that is not written was in flight");
        assert!(page + 1 == self.pages, "a page that is not written is the last of its extent");
        self.pages = page;
        self.in_flight -= 1;
    }

    /// Ends the extent after `pages` pages: nothing more is appended. `summary` is the first page
    /// of its summary.
    pub(crate) fn seal(&mut self, pages: u32, summary: Option<u32>) {
        assert!(!self.sealed, "an extent is sealed once");
        let is_within = summary.is_none_or(|first| first < pages);
        assert!(is_within, "a summary lies on pages of its extent");
        (self.sealed, self.pages, self.summary) = (true, pages, summary);
    }

    /// Adds what a writer has counted.
    pub(crate) fn settle(&mut self, change: &Counted) {
        let in_flight = self.in_flight.checked_add_signed(change.in_flight);
        assert!(in_flight.is_some(), "each page of an extent lands once");
        self.in_flight = in_flight.unwrap_or_default();
        for (table, change) in change.values() {
            self.values_of(*table).change(*change);
        }
        self.tombstones.change(change.tombstones);
        if change.expires_first.is_some() {
            self.note_expiry(change.expires_first);
        }
    }

    /// Notes where the summary of an extent begins that was found on the medium.
    pub(crate) fn find_summary(&mut self, summary: Option<u32>) {
        assert!(self.sealed, "a summary is looked for in an extent that is not appended to");
        let is_within = summary.is_none_or(|first| first < self.pages);
        assert!(is_within, "a summary that is found lies on pages of its extent");
        self.summary = summary;
    }

    /// Notes that page number `page` did not land.
    pub(crate) fn add_hole(&mut self, page: u32) {
        assert!(page < self.pages, "a hole is a page of its extent");
        let place = self.holes.partition_point(|hole| *hole < page);
        assert!(self.holes.get(place) != Some(&page), "a page becomes a hole once");
        self.holes.insert(place, page);
    }

    /// Takes the extent for cleaning. Cleaning may leave values in it, so their dates are kept.
    pub(crate) fn begin_cleaning(&mut self) {
        assert!(self.is_cleanable(), "a victim is sealed, has landed and is no victim yet");
        self.victim = true;
        self.expired_first = self.expires_first.take().or(self.expired_first);
    }

    /// Puts a victim that was not reset back into use.
    pub(crate) fn give_back(&mut self) {
        assert!(self.victim, "the cleaner gives only a victim back");
        self.victim = false;
    }

    /// Returns the earliest date at which one of its values expires or has expired, whether it was
    /// cleaned since or not.
    pub(crate) fn first_date(&self) -> Option<UnixMillis> {
        self.expires_first.or(self.expired_first)
    }

    /// Checks that nothing needs the extent, which was taken out of use.
    fn check_unused(&self) {
        assert!(self.in_flight == 0, "an extent is reset when all of its pages have landed");
        assert!(self.sealed, "an extent is reset when nothing more is appended to it");
        assert!(!self.has_live(), "an extent is reset when it has no live value");
    }

    /// Returns the number of pages of its summary; without one, all of its pages.
    pub(crate) fn summary_numbers(&self) -> u32 {
        self.pages - self.summary.unwrap_or(0)
    }

    /// A value that expires lies in it.
    pub(crate) fn note_expiry(&mut self, expires: Option<UnixMillis>) {
        let dates = [self.expires_first, expires].into_iter().flatten();
        self.expires_first = dates.min();
    }

    /// Returns the count of live values of `table`.
    fn values_of(&mut self, table: TableId) -> &mut Live {
        let at = self.values.iter().position(|(id, _)| *id == table).unwrap_or_else(|| {
            self.values.push((table, Live::default()));
            self.values.len() - 1
        });
        &mut self.values[at].1
    }

    /// Counts a live value of `bytes`, whose key has `key_len` bytes.
    pub(crate) fn count_value(&mut self, table: TableId, key_len: usize, bytes: u64) {
        self.values_of(table).add_value(key_len, bytes);
    }

    /// Counts a value as dead.
    pub(crate) fn uncount_value(&mut self, table: TableId, key_len: usize, bytes: u64) {
        self.values_of(table).remove_value(key_len, bytes);
    }

    pub(crate) fn count_tombstone(&mut self, bytes: u64) {
        self.tombstones.add(bytes);
    }

    /// Takes a tombstone off the count: its delete was undone.
    pub(crate) fn uncount_tombstone(&mut self, bytes: u64) {
        self.tombstones.remove(bytes);
        let is_needed = self.needless_bytes <= self.tombstones.bytes;
        assert!(is_needed, "a tombstone that is undone is not one of the needless");
    }

    /// Notes a counted tombstone that cleaning may drop.
    pub(crate) fn note_needless(&mut self, address: Address, bytes: u64) {
        self.needless.push(address);
        self.needless_bytes += bytes;
        let is_part = self.needless_bytes <= self.tombstones.bytes;
        assert!(is_part, "needless tombstones of an extent are some of its tombstones");
    }

    /// Forgets the values of `table`, and returns what they were.
    pub(crate) fn drop_table(&mut self, table: TableId) -> Live {
        match self.values.iter().position(|(id, _)| *id == table) {
            Some(at) => self.values.swap_remove(at).1,
            None => Live::default(),
        }
    }

    pub(crate) fn has_live(&self) -> bool {
        self.values.iter().any(|(_, live)| live.records > 0)
    }

    /// Returns true when it has no live value, no tombstone and no lost record to report.
    pub(crate) fn is_dead(&self) -> bool {
        let has_records = self.has_live() || self.tombstones.records > 0;
        !has_records && !self.has_lost && self.listing.is_none()
    }

    /// Returns the bytes that cleaning has to move.
    pub(crate) fn live_bytes(&self) -> u64 {
        let values = self.values.iter().map(|(_, live)| live.bytes).sum::<u64>();
        values + self.tombstones.bytes - self.needless_bytes
    }

    /// Returns true when it was opened in this mount, and some page of it did not land.
    pub(crate) fn gave_up_in(&self, mount: u64) -> bool {
        Sequence(self.label.epoch).mount() == mount && !self.holes.is_empty()
    }

    /// Returns true when it may be cleaned. Table pages are the business of their index.
    pub(crate) fn is_cleanable(&self) -> bool {
        let has_records = self.label.stream != Stream::Index;
        has_records && self.sealed && !self.victim && self.in_flight == 0
    }
}

/// Returns the class that a stream's programs wait in.
pub(crate) const fn class_of(stream: Stream) -> clock::Class {
    match stream {
        Stream::Host => clock::Class::HostWrite,
        Stream::Gc => clock::Class::Gc,
        Stream::Index => clock::Class::Index,
    }
}

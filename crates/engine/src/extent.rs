use crate::format::address::Address;
use crate::format::record::Sequence;
use crate::key_space::TableId;
use crate::recover::listing::Listing;
use base::limits::KEY_BYTES_INLINE;
use clock::{TaskId, UnixMillis};
use media::{ExtentId, ExtentInfo, Label, Stream};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::collections::BTreeSet;
use std::iter::Sum;
use std::sync::Arc;

/// Records and the bytes that they stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Live {
    /// How many.
    pub records: u64,
    /// Their footprints: headers, padding and summary entries included.
    pub bytes: u64,
    /// Of values, those whose keys have more than the 16 bytes that fit a command.
    pub long_keys: u64,
}

impl Live {
    pub(crate) fn add(&mut self, bytes: u64) {
        self.records += 1;
        self.bytes += bytes;
    }

    /// A value that has a key of this length.
    pub(crate) fn add_value(&mut self, key_len: usize, bytes: u64) {
        self.add(bytes);
        self.long_keys += u64::from(key_len > KEY_BYTES_INLINE);
    }

    pub(crate) fn add_all(&mut self, other: Self) {
        self.records += other.records;
        self.bytes += other.bytes;
        self.long_keys += other.long_keys;
    }

    pub(crate) fn remove(&mut self, bytes: u64) {
        assert!(self.records > 0 && self.bytes >= bytes, "only what was counted is taken off");
        self.records -= 1;
        self.bytes -= bytes;
    }

    /// The value of a key of this length.
    pub(crate) fn remove_value(&mut self, key_len: usize, bytes: u64) {
        self.remove(bytes);
        let long = u64::from(key_len > KEY_BYTES_INLINE);
        let left = self.long_keys.checked_sub(long).filter(|left| *left <= self.records);
        self.long_keys = left.expect("long keys are some of those that were counted");
    }

    pub(crate) fn remove_all(&mut self, other: Self) {
        assert!(self.records >= other.records && self.bytes >= other.bytes, "a part of the whole");
        assert!(self.long_keys >= other.long_keys, "a part of the whole");
        self.records -= other.records;
        self.bytes -= other.bytes;
        self.long_keys -= other.long_keys;
    }
}

impl Sum for Live {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |mut sum, live| {
            sum.add_all(live);
            sum
        })
    }
}

/// The log's state of an extent in use.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Extent {
    pub(crate) label: Label,
    /// Pages written or on their way, summary included.
    pub(crate) pages: u32,
    /// Pages that were cut off by a loss of power, in rising order.
    pub(crate) holes: Vec<u32>,
    /// The first page of the summary, once that is written.
    pub(crate) summary: Option<u32>,
    /// Nothing more is appended.
    pub(crate) sealed: bool,
    /// Being cleaned.
    pub(crate) victim: bool,
    /// Pages on their way.
    pub(crate) in_flight: u32,
    /// Readers that are in it.
    pub(crate) pins: u32,
    /// The cleaner, waiting for the last reader to leave.
    #[serde(skip)]
    pub(crate) last_reader: Option<TaskId>,
    #[serde(with = "crate::inline_list")]
    pub(crate) values: SmallVec<[(TableId, Live); 1]>,
    pub(crate) tombstones: Live,
    /// When the first of its values expired or will expire, whether it lives or not. Unknown again
    /// once it was cleaned.
    pub(crate) expires_first: Option<UnixMillis>,
    /// Tombstones found on opening that a newer record, or the original that they copy, makes
    /// needless.
    pub(crate) needless: Vec<Address>,
    /// Their footprints, which are counted in `tombstones` too.
    pub(crate) needless_bytes: u64,
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
    /// Its records that may have to be undone.
    #[serde(skip)]
    pub(crate) revocable: u32,
    /// Its values that expire are counted up to this address; without one, not at all.
    #[serde(skip)]
    pub(crate) expiring_until: Option<Address>,
    /// The value of `expires_first` when the extent was last cleaned, which may have left values in
    /// it.
    #[serde(skip)]
    pub(crate) expired_first: Option<UnixMillis>,
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
            last_reader: None,
            values: SmallVec::new(),
            tombstones: Live::default(),
            expires_first: None,
            needless: Vec::new(),
            left: BTreeSet::new(),
            listing: None,
            has_lost: false,
            revocable: 0,
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
    pub(crate) fn values_of(&mut self, table: TableId) -> &mut Live {
        let at = self.values.iter().position(|(id, _)| *id == table).unwrap_or_else(|| {
            self.values.push((table, Live::default()));
            self.values.len() - 1
        });
        &mut self.values[at].1
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

/// The extents in use, by id.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Extents(Vec<Option<Extent>>);

impl Extents {
    pub(crate) fn insert(&mut self, id: ExtentId, extent: Extent) {
        let at = id.0 as usize;
        if self.0.len() <= at {
            self.0.resize_with(at + 1, || None);
        }
        assert!(self.0[at].is_none(), "an extent is opened when it is free");
        self.0[at] = Some(extent);
    }

    pub(crate) fn remove(&mut self, id: ExtentId) -> Extent {
        self.0[id.0 as usize].take().expect("an extent in use is reset once")
    }

    #[inline]
    pub(crate) fn get(&mut self, id: ExtentId) -> &mut Extent {
        self.0[id.0 as usize].as_mut().expect("the index names only extents in use")
    }

    /// Returns the extent if it is in use: it may have been reset.
    pub(crate) fn find(&self, id: ExtentId) -> Option<&Extent> {
        self.0.get(id.0 as usize)?.as_ref()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (ExtentId, &Extent)> {
        let extents = self.0.iter().zip(0..);
        extents.filter_map(|(extent, id)| extent.as_ref().map(|extent| (ExtentId(id), extent)))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Extent> {
        self.0.iter_mut().flatten()
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

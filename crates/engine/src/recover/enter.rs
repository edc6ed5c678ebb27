//! Entering the records of the log into the index of a store that is being opened. The newest of
//! each key wins.

use crate::error::Error;
use crate::format::address::Address;
use crate::format::record::{HeaderFields, Kind};
use crate::hashed_key::{HashedKey, lane_of};
use crate::lane::Lane;
use crate::log::{CountedValue, OnItsWay, Part, State};
use crate::read::look_up::{Found, Known, first_known};
use crate::recover::listing::Record;
use crate::sabotage::Sabotage;
use crate::store::Store;
use base::limits::LANES;
use media::{ExtentId, Stream};
use smallvec::SmallVec;
use std::cmp::{Ordering, Reverse};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

/// Records that are entered in one stretch: as many as there are lanes, all of which it may lock.
/// So a record takes about one lock.
pub(crate) const PIECE: usize = LANES;

/// Number of records ahead for which the processor prefetches what is known of their keys.
pub(crate) const ENTRIES_AHEAD: usize = 16;

/// An equal share of the lanes. Records of different shares can be entered at the same time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaneShare {
    number: usize,
    /// The number of shares, a power of two of at most [`LANES`].
    shares: usize,
}

impl LaneShare {
    /// Returns all of so many shares.
    pub(crate) fn all(shares: usize) -> impl Iterator<Item = Self> {
        assert!(LANES.is_multiple_of(shares), "the lanes are shared equally");
        (0..shares).map(move |number| Self { number, shares })
    }

    /// Returns the share of keys with this hash among so many.
    pub(crate) const fn number_of(hash: u64, shares: usize) -> usize {
        lane_of(hash) * shares / LANES
    }

    /// Returns the numbers of its lanes.
    pub(crate) fn lanes(self) -> Range<usize> {
        let lanes = LANES / self.shares;
        self.number * lanes..(self.number + 1) * lanes
    }
}

impl Store {
    /// Enters records into the index, all of whose keys are of the lanes in a share.
    pub(super) async fn take_records(
        self: &Arc<Self>,
        share: LaneShare,
        records: Vec<Record>,
        by_checkpoint: bool,
    ) -> Result<(), Error> {
        self.counters.count_entered(records.len());
        let keeps_tables = self.keeps_tables;
        let unknown = if keeps_tables { records } else { self.take_known(share, records).await };
        self.take_unknown(unknown, by_checkpoint).await
    }

    /// Enters the records for which nothing has to be read, and returns the others. Once it returns
    /// a record of a key, it returns all later ones of that key too.
    async fn take_known(&self, share: LaneShare, records: Vec<Record>) -> Vec<Record> {
        let mut is_entered = Vec::with_capacity(records.len());
        let mut unknown = BTreeSet::new();
        for piece in records.chunks(PIECE) {
            {
                let keys = piece.iter().map(|record| HashedKey::new(&record.header.key));
                let keys: SmallVec<[HashedKey<'_>; PIECE]> = keys.collect();
                for (record, key) in piece.iter().zip(&keys) {
                    self.expect_write_in(record.header.table, *key);
                }
                let mut lanes = self.lanes.lock_range(share.lanes());
                let mut writing = self.log.writing();
                for (record, key) in piece.iter().zip(keys) {
                    let lane = lanes.of(key.hash);
                    let known = self.known_now(lane, record, key);
                    let is_known = matches!(known, Known::Is(_)) && !unknown.contains(&key.hash);
                    is_entered.push(is_known);
                    match known {
                        Known::Is(found) if is_known => {
                            let found = found.map(|found| (found.address, found.header));
                            self.weigh(lane, &mut writing.part(), record, key, found);
                        }
                        _ => drop(unknown.insert(key.hash)),
                    }
                }
            }
            clock::give_way().await;
        }
        if unknown.is_empty() {
            return Vec::new();
        }
        let records = records.into_iter().zip(is_entered);
        records.filter_map(|(record, is_entered)| (!is_entered).then_some(record)).collect()
    }

    /// Returns the record that the index has for the key of `record`, unless that needs a read.
    fn known_now(&self, lane: &mut Lane, record: &Record, key: HashedKey<'_>) -> Known<Found> {
        let candidates = self.index.lookup(lane, record.header.table, key).at_once();
        let Some(candidates) = candidates else { return Known::From(0) };
        let look = |at| {
            let has_landed = self.log.has_landed(at);
            has_landed.then(|| self.found_landed(lane, at, key)).flatten()
        };
        first_known(&candidates, look)
    }

    /// Enters records, many side by side. A key's records stay in order: one worker has them all.
    async fn take_unknown(
        self: &Arc<Self>,
        records: Vec<Record>,
        by_checkpoint: bool,
    ) -> Result<(), Error> {
        let workers = self.log.shape.parallelism as usize;
        let mut shares: Vec<Vec<Record>> = vec![Vec::new(); workers];
        for record in records {
            let share = record.header.key.hash() % workers as u64;
            shares[usize::try_from(share).expect("there are few workers")].push(record);
        }
        let shares = shares.into_iter().filter(|share| !share.is_empty());
        let work: Vec<_> = shares
            .map(|share| {
                let store = self.clone();
                async move {
                    for (at, record) in share.iter().enumerate() {
                        store.expect_entry(share.get(at + ENTRIES_AHEAD));
                        store.take_record(record, by_checkpoint).await?;
                    }
                    Ok(())
                }
            })
            .collect();
        clock::join_all(work).await.into_iter().collect()
    }

    /// Prefetches what the index and the lane have of a record's key.
    pub(crate) fn expect_entry(&self, record: Option<&Record>) {
        if let Some(Record { header, .. }) = record {
            self.expect_write_in(header.table, HashedKey::new(&header.key));
        }
    }

    async fn take_record(
        self: &Arc<Self>,
        record: &Record,
        by_checkpoint: bool,
    ) -> Result<(), Error> {
        let header = &record.header;
        let key = HashedKey::new(&header.key);
        let _entry = self.enter(header.table, key).await;
        let known = self.known(record).await;
        let mut lanes = self.lanes.lock(key.hash);
        let lane = lanes.of(key.hash);
        match known {
            Ok(known) => self.weigh(lane, &mut self.log.writing().part(), record, key, known),
            // A damaged record of this key, or of one that looks like it. Another way of opening,
            // where there is one, can tell which is newer; else the damaged one stays in the index,
            // where reading it tells. A tombstone may be needed all the same.
            Err(Error::Unrecovered) => {
                let is_cached = self.tables.while_opening(|entered| entered.is_damaged = true);
                if by_checkpoint || is_cached.is_some() {
                    return Err(Error::Unrecovered);
                }
                if header.kind == Kind::Tombstone {
                    self.add(lane, &mut self.log.writing().part(), record, key);
                }
            }
            Err(error) => return Err(error),
        }
        drop(lanes);
        let is_damaged = self.tables.while_opening(|entered| {
            entered.note(record.address);
            entered.is_damaged
        });
        if is_damaged == Some(true) { Err(Error::Unrecovered) } else { Ok(()) }
    }

    /// Returns the address and the header of the record that the index has for the key of `record`.
    ///
    /// [`Error::Unrecovered`] when it may be one that cannot be read.
    async fn known(
        self: &Arc<Self>,
        record: &Record,
    ) -> Result<Option<(Address, HeaderFields)>, Error> {
        let (table, key) = (record.header.table, HashedKey::new(&record.header.key));
        match self.find(table, key).await {
            Ok(found) => return Ok(found.map(|found| (found.address, found.header))),
            Err(Error::Unrecovered) => {}
            Err(error) => return Err(error),
        }
        let mut found = Ok(None);
        for at in self.lookup(table, key).await {
            let listed = (at == record.address).then(|| record.header.clone());
            let header = match listed.or_else(|| self.listed_header(at)) {
                Some(header) => Ok((header.key.clone(), HeaderFields::of(&header.borrowed()))),
                None => {
                    let read = self.header(at, OnItsWay::default()).await;
                    read.map(|(key, found)| (key, found.header))
                }
            };
            match header {
                Ok((of, header)) if of == *key.key => return Ok(Some((at, header))),
                Ok(_) => {}
                Err(error) => found = Err(error),
            }
        }
        found
    }

    /// Points the index to a record if it is newer than what the index points to.
    fn weigh(
        &self,
        lane: &mut Lane,
        part: &mut Part<'_, '_>,
        record: &Record,
        key: HashedKey<'_>,
        known: Option<(Address, HeaderFields)>,
    ) {
        let Some((at, known)) = known else { return self.add(lane, part, record, key) };
        let header = &record.header;
        // A record that the checkpoint knows may be found again.
        let is_newer = self.is_newer(part, record, at, &known);
        if header.sequence == known.sequence && record.address != at {
            self.note_left_out(part, if is_newer { at } else { record.address });
        }
        if !is_newer {
            return;
        }
        self.index.replace(lane, header.table, key, at, record.address);
        lane.headers.note(key.hash, Some(at), record.address, &header.borrowed());
        if known.kind == Kind::Tombstone {
            part.shared.get().copies.end_deleting(at);
        }
        if known.kind.is_value() {
            let (extent, table) = (self.log.page_id(at).extent, header.table);
            let bytes = self.log.layout.footprint(known.len, known.value_len);
            let (key_len, expires) = (header.key.as_bytes().len(), known.expires);
            part.uncount_value(CountedValue { extent, at, table, key_len, bytes, expires });
        }
        self.count_entry(part, record);
    }

    fn add(&self, lane: &mut Lane, part: &mut Part<'_, '_>, record: &Record, key: HashedKey<'_>) {
        let header = &record.header;
        self.index.insert(lane, header.table, key, record.address);
        lane.headers.note(key.hash, None, record.address, &header.borrowed());
        self.count_entry(part, record);
    }

    /// Counts a record that the index now points to.
    fn count_entry(&self, part: &mut Part<'_, '_>, record: &Record) {
        let header = &record.header;
        let extent = self.log.page_id(record.address).extent;
        if header.kind.is_value() {
            part.count_value(record.counted(extent));
        }
        if header.kind == Kind::Tombstone {
            let copies = &mut part.shared.get().copies;
            copies.begin_deleting(record.address, header.table, header.key.clone());
        }
    }

    /// Notes a record to which the index does not point, though it has the same number as the copy
    /// or original to which it does.
    fn note_left_out(&self, part: &mut Part<'_, '_>, record: Address) {
        if self.keeps_tables {
            let extents = &mut part.shared.get().extents;
            extents.get(self.log.page_id(record).extent).left.insert(record);
        }
    }

    fn is_newer(
        &self,
        part: &mut Part<'_, '_>,
        record: &Record,
        at: Address,
        known: &HeaderFields,
    ) -> bool {
        if Sabotage::NoSequences.is_on() {
            return true;
        }
        record.header.sequence.cmp(&known.sequence).then_with(|| {
            let state = part.shared.get();
            let mut rank = |address| state.originality(self.log.page_id(address).extent);
            rank(record.address).cmp(&rank(at))
        }) == Ordering::Greater
    }
}

impl State {
    /// Returns a rank by which the original comes after its copies, which have the same number.
    pub(crate) fn originality(&mut self, extent: ExtentId) -> (bool, Reverse<u64>) {
        let label = self.extents.get(extent).label;
        (label.stream == Stream::Host, Reverse(label.epoch))
    }
}

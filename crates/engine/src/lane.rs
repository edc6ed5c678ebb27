//! Lanes: what is known of a key in memory lies in the lane of its hash, behind one lock.
//!
//! A task locks the lanes of the keys that it changes before it reads the first of them, and gives
//! them back after its last change: see [`Section`]. The locks of the log are taken inside.

pub(crate) mod entries;
pub(crate) mod headers;
pub(crate) mod latches;
pub(crate) mod locations;
pub(crate) mod values;

use crate::format::record::Sequence;
use crate::hashed_key::{LANE_BITS, lane_of};
use crate::sync::Mutex;
use base::limits::LANES;
use clock::{Order, Section};
use entries::Entries;
use headers::{Headers, Set};
use latches::Latches;
use locations::Location;
use std::ops::Range;
use values::{CacheCounts, Values};

/// All lanes of a store, by the highest bits of keys' hashes.
#[derive(Debug)]
pub struct Lanes {
    locks: Vec<Mutex<Lane>>,
    /// Where the headers of each lane are.
    headers: Vec<Location<Set>>,
    headers_max: usize,
    keep_values: bool,
}

/// A lane: what is known of some of the keys, of all key spaces.
// A line of the processor's cache is fetched with its neighbour.
#[derive(Debug)]
#[repr(align(128))]
pub struct Lane {
    pub(crate) latches: Latches,
    /// Headers of records, by the hashes of their keys.
    pub(crate) headers: Headers,
    /// Values of records; `None` where no value is kept.
    pub(crate) values: Option<Values>,
    /// Those of the `hash` index; other indexes keep theirs elsewhere.
    pub(crate) entries: Entries,
    /// The last number that a record of one of its keys was given.
    pub(crate) clock: Sequence,
}

/// The locked lanes of one or several keys.
#[derive(Debug)]
pub struct Locked<'a>(Section<'a, Lane>);

impl Default for Lanes {
    /// Makes lanes that keep no header and no value.
    fn default() -> Self {
        Self::new(0, || None)
    }
}

impl Lanes {
    /// Makes lanes that together keep headers of records in at most `headers_bytes` of memory, and
    /// values in what `values` makes for each.
    pub(crate) fn new(headers_bytes: u64, values: impl Fn() -> Option<Values>) -> Self {
        let lane = || Lane {
            latches: Latches::default(),
            headers: Headers::new(headers_bytes / LANES as u64),
            values: values(),
            entries: Entries::default(),
            clock: Sequence::default(),
        };
        let lanes: Vec<_> = (0..LANES).map(|_| lane()).collect();
        let headers_max = lanes.iter().map(|lane| lane.headers.room()).sum();
        let headers = lanes.iter().map(|lane| lane.headers.location()).collect();
        let keep_values = lanes.iter().any(|lane| lane.values.is_some());
        let locks = lanes.into_iter().map(Mutex::new).collect();
        Self { locks, headers, headers_max, keep_values }
    }

    /// Returns whether lanes keep values: a reader need not lock one for a value otherwise.
    #[inline]
    pub(crate) const fn keep_values(&self) -> bool {
        self.keep_values
    }

    /// Returns the counts of all caches of values.
    pub(crate) fn value_counts(&self) -> CacheCounts {
        let mut counts = CacheCounts::default();
        self.each(|lane| {
            if let Some(values) = &lane.values {
                counts += values.counts();
            }
        });
        counts
    }

    /// Returns the most headers that are kept.
    pub(crate) const fn headers_max(&self) -> usize {
        self.headers_max
    }

    /// Prefetches the headers that are known of records whose keys have this hash.
    #[inline]
    pub(crate) fn prefetch_header(&self, hash: u64) {
        Headers::prefetch(&self.headers[lane_of(hash)], hash);
    }

    /// Locks the lane of keys with this hash.
    ///
    /// # Panics
    /// When the task has locked a lane already.
    #[inline]
    #[track_caller]
    pub fn lock(&self, hash: u64) -> Locked<'_> {
        let number = lane_of(hash);
        Locked(Section::one(Order::Lane, &self.locks, number))
    }

    /// Locks one lane after the other, and calls `visit` with each.
    pub(crate) fn each(&self, mut visit: impl FnMut(&mut Lane)) {
        (0..LANES as u64).for_each(|number| {
            let hash = number << (64 - LANE_BITS);
            visit(self.lock(hash).of(hash));
        });
    }

    /// Locks all lanes.
    #[track_caller]
    pub(crate) fn lock_each(&self) -> Locked<'_> {
        Locked(Section::all(Order::Lane, &self.locks))
    }

    /// Locks a range of the lanes, by their numbers.
    #[track_caller]
    pub(crate) fn lock_range(&self, numbers: Range<usize>) -> Locked<'_> {
        if numbers.len() == LANES {
            return self.lock_each();
        }
        Locked(Section::of(Order::Lane, &self.locks, numbers))
    }

    /// Locks the lanes of keys with these hashes.
    #[inline]
    #[track_caller]
    pub(crate) fn lock_all(&self, mut hashes: impl ExactSizeIterator<Item = u64>) -> Locked<'_> {
        match (hashes.len(), hashes.next()) {
            (1, Some(hash)) => self.lock(hash),
            (_, first) => Locked(Section::of(
                Order::Lane,
                &self.locks,
                first.into_iter().chain(hashes).map(lane_of),
            )),
        }
    }
}

impl Locked<'_> {
    /// Calls `visit` with each locked lane.
    pub(crate) fn each(&mut self, visit: impl FnMut(&mut Lane)) {
        self.0.iter_mut().for_each(visit);
    }

    /// Returns the lane of keys with this hash.
    ///
    /// # Panics
    /// When it is not locked.
    #[inline]
    pub fn of(&mut self, hash: u64) -> &mut Lane {
        self.0.get(lane_of(hash))
    }
}

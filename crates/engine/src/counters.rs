mod by_reactor;

use crate::extent::Live;
use crate::sync::Apart;
use by_reactor::ByReactor;
pub use by_reactor::ReactorWork;
use media::Traffic;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering};

/// The content of a store in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Live values and their footprints.
    pub values: Live,
    /// Tombstones on the medium: an older version may still be somewhere.
    pub tombstones: Live,
    /// Extents that are free.
    pub extents_free: u32,
    /// Entries of the index.
    pub index_entries: u64,
    /// Memory of the index in bytes.
    pub index_bytes: u64,
}

/// Counters of a store since it was opened. They only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Bytes of keys and values that hosts stored.
    pub host_bytes: u64,
    /// Bytes of keys and values of pairs that were overwritten or deleted one by one, also of those
    /// that were stored before the store was opened.
    pub dropped_bytes: u64,
    /// Pages sensed for hosts.
    pub host_page_reads: u64,
    /// Of these, pages sensed for retrieves.
    pub retrieve_page_reads: u64,
    /// Extents cleaned.
    pub victims: u64,
    /// Records that cleaning moved.
    pub records_moved: u64,
    /// Pages sensed for cleaning.
    pub gc_page_reads: u64,
    /// Pages programmed with room left, because no announced store was to join them.
    pub padded_pages: u64,
}

/// Adds to a counter that several reactors add to at once.
#[inline]
fn add_shared(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}

/// Adds to a counter that one reactor adds to, or the holder of a writer's lock. Others only read
/// it.
#[inline]
fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Relaxed);
}

/// The counters behind [`Counts`].
#[derive(Debug)]
pub(crate) struct Counters {
    by_reactor: ByReactor,
    /// By writer of the log: see [`Counts::dropped_bytes`]. They change under the lock of the
    /// writer.
    dropped_bytes: Vec<Apart<AtomicU64>>,
    gc_page_reads: AtomicU64,
}

impl Counters {
    /// For a store that so many reactors use, with a log of so many writers.
    pub(crate) fn new(reactors: u32, writers: usize) -> Self {
        Self {
            by_reactor: ByReactor::new(reactors),
            dropped_bytes: (0..writers).map(|_| Apart::default()).collect(),
            gc_page_reads: AtomicU64::new(0),
        }
    }

    #[inline]
    pub(crate) fn count_lookup_read(&self) {
        self.by_reactor.count(|work| &work.lookup_page_reads, 1);
    }

    #[inline]
    pub(crate) fn count_retrieve_read(&self) {
        self.by_reactor.count(|work| &work.retrieve_page_reads, 1);
    }

    #[inline]
    pub(crate) fn count_host_bytes(&self, bytes: u64) {
        self.by_reactor.count(|work| &work.host_bytes, bytes);
    }

    #[inline]
    pub(crate) fn count_retrieved_bytes(&self, bytes: u32) {
        self.by_reactor.count(|work| &work.retrieved_bytes, bytes.into());
    }

    /// The writer of this number is locked.
    #[inline]
    pub(crate) fn count_dropped_bytes(&self, writer: usize, bytes: u64) {
        add(&self.dropped_bytes[writer], bytes);
    }

    pub(crate) fn count_gc_reads(&self, pages: u64) {
        add_shared(&self.gc_page_reads, pages);
    }

    pub(crate) fn count_victim(&self) {
        self.by_reactor.count(|work| &work.victims, 1);
    }

    pub(crate) fn count_entered(&self, records: usize) {
        self.by_reactor.count(|work| &work.records_entered, records as u64);
    }

    pub(crate) fn count_scrubbed(&self, bytes: u64) {
        self.by_reactor.count(|work| &work.scrubbed_bytes, bytes);
    }

    pub(crate) fn count_moved(&self) {
        self.by_reactor.count(|work| &work.records_moved, 1);
    }

    /// Returns the work of each reactor that has done some.
    pub(crate) fn by_reactor(&self) -> Vec<ReactorWork> {
        self.by_reactor.work()
    }

    /// Returns the bytes that hosts stored and retrieved.
    pub(crate) fn traffic(&self) -> Traffic {
        let work = self.by_reactor.sum();
        Traffic { read_bytes: work.retrieved_bytes, written_bytes: work.host_bytes }
    }

    /// Continues counting from `counts`.
    pub(crate) fn restore(&self, counts: &Counts) {
        self.by_reactor.restore(counts);
        self.dropped_bytes[0].store(counts.dropped_bytes, Ordering::Relaxed);
        self.gc_page_reads.store(counts.gc_page_reads, Ordering::Relaxed);
    }

    pub(crate) fn counts(&self, padded_pages: u64) -> Counts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let work = self.by_reactor.sum();
        Counts {
            host_bytes: work.host_bytes,
            dropped_bytes: self.dropped_bytes.iter().map(|dropped| read(dropped)).sum(),
            host_page_reads: work.lookup_page_reads + work.retrieve_page_reads,
            retrieve_page_reads: work.retrieve_page_reads,
            victims: work.victims,
            records_moved: work.records_moved,
            gc_page_reads: read(&self.gc_page_reads),
            padded_pages,
        }
    }
}

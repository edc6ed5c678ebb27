use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The array's counters since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Pages read.
    pub reads: u64,
    /// Pages programmed.
    pub programs: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Senses that moved no data: tags read and pages probed.
    pub probes: u64,
    /// Data bytes that reads moved over the channels.
    pub bytes_read: u64,
    /// Data bytes that programs moved over the channels, padding included.
    pub bytes_programmed: u64,
    /// Pages copied within their plane.
    pub copybacks: u64,
    /// Senses of reads and copies beyond their first.
    pub retries: u64,
    /// Times that a program, copy or erase was suspended for host reads.
    pub suspends: u64,
}

impl Counters {
    /// Returns all counters in a fixed order, for a digest.
    pub const fn words(&self) -> [u64; 9] {
        [
            self.reads,
            self.programs,
            self.erases,
            self.probes,
            self.bytes_read,
            self.bytes_programmed,
            self.copybacks,
            self.retries,
            self.suspends,
        ]
    }
}

/// Counts [`Counters`]: senses at their end, changes when the cells change.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    reads: AtomicU64,
    programs: AtomicU64,
    erases: AtomicU64,
    probes: AtomicU64,
    bytes_read: AtomicU64,
    bytes_programmed: AtomicU64,
    copybacks: AtomicU64,
    retries: AtomicU64,
    suspends: AtomicU64,
}

impl Tally {
    #[inline]
    pub(crate) fn reads(&self, reads: u64, bytes: u64) {
        self.reads.fetch_add(reads, Relaxed);
        self.bytes_read.fetch_add(bytes, Relaxed);
    }

    #[inline]
    pub(crate) fn program(&self, bytes: u32) {
        self.programs.fetch_add(1, Relaxed);
        self.bytes_programmed.fetch_add(u64::from(bytes), Relaxed);
    }

    pub(crate) fn erase(&self) {
        self.erases.fetch_add(1, Relaxed);
    }

    pub(crate) fn copyback(&self) {
        self.copybacks.fetch_add(1, Relaxed);
    }

    #[inline]
    pub(crate) fn retries(&self, retries: u32) {
        if retries > 0 {
            self.retries.fetch_add(u64::from(retries), Relaxed);
        }
    }

    #[inline]
    pub(crate) fn suspends(&self, suspends: u32) {
        if suspends > 0 {
            self.suspends.fetch_add(u64::from(suspends), Relaxed);
        }
    }

    pub(crate) fn probe(&self) {
        self.probes.fetch_add(1, Relaxed);
    }

    pub(crate) fn restore(&self, counters: &Counters) {
        let all = [
            (&self.reads, counters.reads),
            (&self.programs, counters.programs),
            (&self.erases, counters.erases),
            (&self.probes, counters.probes),
            (&self.bytes_read, counters.bytes_read),
            (&self.bytes_programmed, counters.bytes_programmed),
            (&self.copybacks, counters.copybacks),
            (&self.retries, counters.retries),
            (&self.suspends, counters.suspends),
        ];
        for (mine, saved) in all {
            mine.store(saved, Relaxed);
        }
    }

    pub(crate) fn counters(&self) -> Counters {
        Counters {
            reads: self.reads.load(Relaxed),
            programs: self.programs.load(Relaxed),
            erases: self.erases.load(Relaxed),
            probes: self.probes.load(Relaxed),
            bytes_read: self.bytes_read.load(Relaxed),
            bytes_programmed: self.bytes_programmed.load(Relaxed),
            copybacks: self.copybacks.load(Relaxed),
            retries: self.retries.load(Relaxed),
            suspends: self.suspends.load(Relaxed),
        }
    }
}

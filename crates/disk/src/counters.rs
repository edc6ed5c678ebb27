use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// The counters of a disk since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Reads.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Writes, except for the zeros of trims.
    pub writes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Of the written bytes, those copied first, because their memory was not aligned for the disk.
    pub copied_bytes: u64,
    /// Trims.
    pub trims: u64,
    /// Flushes.
    pub flushes: u64,
    /// Operations that failed.
    pub failures: u64,
}

/// Counts [`Counters`], and keeps the last error.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    reads: AtomicU64,
    read_bytes: AtomicU64,
    writes: AtomicU64,
    written_bytes: AtomicU64,
    copied_bytes: AtomicU64,
    trims: AtomicU64,
    flushes: AtomicU64,
    failures: AtomicU64,
    failure: Mutex<Option<String>>,
}

impl Tally {
    pub(crate) fn read(&self, bytes: u64) {
        self.reads.fetch_add(1, Relaxed);
        self.read_bytes.fetch_add(bytes, Relaxed);
    }

    pub(crate) fn write(&self, bytes: u64, copied: u64) {
        self.writes.fetch_add(1, Relaxed);
        self.written_bytes.fetch_add(bytes, Relaxed);
        self.copied_bytes.fetch_add(copied, Relaxed);
    }

    pub(crate) fn trim(&self) {
        self.trims.fetch_add(1, Relaxed);
    }

    pub(crate) fn flush(&self) {
        self.flushes.fetch_add(1, Relaxed);
    }

    /// Counts a failure of `what` with `error`.
    pub(crate) fn fail(&self, what: &str, error: &io::Error) {
        self.failures.fetch_add(1, Relaxed);
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        *failure = Some(format!("{what}: {error}"));
    }

    pub(crate) fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn counters(&self) -> Counters {
        Counters {
            reads: self.reads.load(Relaxed),
            read_bytes: self.read_bytes.load(Relaxed),
            writes: self.writes.load(Relaxed),
            written_bytes: self.written_bytes.load(Relaxed),
            copied_bytes: self.copied_bytes.load(Relaxed),
            trims: self.trims.load(Relaxed),
            flushes: self.flushes.load(Relaxed),
            failures: self.failures.load(Relaxed),
        }
    }
}

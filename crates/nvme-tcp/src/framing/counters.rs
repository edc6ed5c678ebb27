use std::cell::Cell;

/// Counters of all connections that share them.
#[derive(Debug, Default)]
pub struct Counters {
    copied: Cell<u64>,
    reads: Cell<u64>,
    bytes_read: Cell<u64>,
    writes: Cell<u64>,
    bytes_written: Cell<u64>,
    pdus_received: Cell<u64>,
    pdus_sent: Cell<u64>,
}

impl Counters {
    /// Returns the copied data bytes: from the staging area to their buffer, and, for small data,
    /// from their buffer to the header.
    pub fn copied(&self) -> u64 {
        self.copied.get()
    }

    /// Returns the number of reads of streams, empty ones included.
    pub fn reads(&self) -> u64 {
        self.reads.get()
    }

    /// Returns the received bytes.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read.get()
    }

    /// Returns the number of writes to streams, those that found no room included.
    pub fn writes(&self) -> u64 {
        self.writes.get()
    }

    /// Returns the sent bytes.
    pub fn bytes_written(&self) -> u64 {
        self.bytes_written.get()
    }

    /// Returns the number of received PDU headers.
    pub fn pdus_received(&self) -> u64 {
        self.pdus_received.get()
    }

    /// Returns the number of PDUs queued for sending.
    pub fn pdus_sent(&self) -> u64 {
        self.pdus_sent.get()
    }

    #[inline]
    pub(super) fn count_copy(&self, bytes: usize) {
        add(&self.copied, bytes);
    }

    #[inline]
    pub(super) fn count_read(&self, bytes: usize) {
        add(&self.reads, 1);
        add(&self.bytes_read, bytes);
    }

    #[inline]
    pub(super) fn count_write(&self, bytes: usize) {
        add(&self.writes, 1);
        add(&self.bytes_written, bytes);
    }

    #[inline]
    pub(super) fn count_received(&self) {
        add(&self.pdus_received, 1);
    }

    #[inline]
    pub(super) fn count_sent(&self) {
        add(&self.pdus_sent, 1);
    }
}

#[inline]
fn add(counter: &Cell<u64>, more: usize) {
    counter.set(counter.get() + more as u64);
}

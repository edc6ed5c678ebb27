use std::sync::atomic::{AtomicU64, Ordering};

/// What a door has done since it was opened, or since somebody asked to count anew.
#[derive(Debug, Default)]
pub struct Counters {
    commands: AtomicU64,
    connections: AtomicU64,
    copied_bytes: AtomicU64,
    read_bytes: AtomicU64,
    written_bytes: AtomicU64,
    refused: AtomicU64,
    query_overruns: AtomicU64,
    output_overruns: AtomicU64,
}

impl Counters {
    /// Commands that were executed.
    pub fn commands(&self) -> u64 {
        self.commands.load(Ordering::Relaxed)
    }

    /// Connections that were served.
    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    /// Bytes of values that were copied, beside what the kernel copies.
    pub fn copied_bytes(&self) -> u64 {
        self.copied_bytes.load(Ordering::Relaxed)
    }

    /// Bytes that came.
    pub fn read_bytes(&self) -> u64 {
        self.read_bytes.load(Ordering::Relaxed)
    }

    /// Bytes that were sent.
    pub fn written_bytes(&self) -> u64 {
        self.written_bytes.load(Ordering::Relaxed)
    }

    /// Connections for which there was no place.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Connections that were closed because a request took too much memory.
    pub fn query_overruns(&self) -> u64 {
        self.query_overruns.load(Ordering::Relaxed)
    }

    /// Connections that were closed because too many bytes waited for the client.
    pub fn output_overruns(&self) -> u64 {
        self.output_overruns.load(Ordering::Relaxed)
    }

    /// Counts a connection for which there was no place.
    pub fn count_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_query_overrun(&self) {
        self.query_overruns.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_output_overrun(&self) {
        self.output_overruns.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_commands(&self, count: usize) {
        self.commands.fetch_add(count as u64, Ordering::Relaxed);
    }

    pub(crate) fn count_connection(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_copy(&self, bytes: usize) {
        self.copied_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn count_read(&self, bytes: usize) {
        self.read_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn count_write(&self, bytes: usize) {
        self.written_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn reset(&self) {
        let all = [&self.commands, &self.connections, &self.read_bytes, &self.written_bytes];
        let limits = [&self.refused, &self.query_overruns, &self.output_overruns];
        for counter in all.into_iter().chain(limits) {
            counter.store(0, Ordering::Relaxed);
        }
    }
}

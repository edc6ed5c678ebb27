use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What a door has done since it was opened, or since the last CONFIG RESETSTAT.
#[derive(Debug, Default)]
pub struct Counters {
    commands: Counter,
    connections: Counter,
    copied_bytes: AtomicU64,
    read_bytes: Counter,
    written_bytes: Counter,
    refused: Counter,
    query_overruns: Counter,
    output_overruns: Counter,
    keyspace_hits: Counter,
    keyspace_misses: Counter,
    executions: Counter,
    batches: Counter,
}

/// What can be counted anew, and still only grows for others.
#[derive(Debug, Default)]
struct Counter {
    total: AtomicU64,
    /// The total when it was last counted anew.
    before: AtomicU64,
}

impl Counter {
    fn add(&self, count: u64) {
        self.total.fetch_add(count, Relaxed);
    }

    fn total(&self) -> u64 {
        self.total.load(Relaxed)
    }

    /// Since the last reset. A reset may come between the two loads.
    fn get(&self) -> u64 {
        self.total().saturating_sub(self.before.load(Relaxed))
    }

    fn reset(&self) {
        self.before.store(self.total(), Relaxed);
    }
}

/// What a door has done since it was opened: CONFIG RESETSTAT does not change it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Commands that were executed.
    pub commands: u64,
    /// Connections that were served.
    pub connections: u64,
    /// Bytes that came.
    pub read_bytes: u64,
    /// Bytes that were sent.
    pub written_bytes: u64,
    /// Connections for which there was no place.
    pub refused: u64,
    /// Connections that were closed because a request took too much memory.
    pub query_overruns: u64,
    /// Connections that were closed because too many bytes waited for the client.
    pub output_overruns: u64,
}

impl Counters {
    /// All since the door was opened.
    pub fn totals(&self) -> Totals {
        Totals {
            commands: self.commands.total(),
            connections: self.connections.total(),
            read_bytes: self.read_bytes.total(),
            written_bytes: self.written_bytes.total(),
            refused: self.refused.total(),
            query_overruns: self.query_overruns.total(),
            output_overruns: self.output_overruns.total(),
        }
    }

    /// Commands that were executed.
    pub fn commands(&self) -> u64 {
        self.commands.get()
    }

    /// Connections that were served.
    pub fn connections(&self) -> u64 {
        self.connections.get()
    }

    /// Bytes of values that were copied, beside what the kernel copies.
    pub fn copied_bytes(&self) -> u64 {
        self.copied_bytes.load(Relaxed)
    }

    /// Bytes that came.
    pub fn read_bytes(&self) -> u64 {
        self.read_bytes.get()
    }

    /// Bytes that were sent.
    pub fn written_bytes(&self) -> u64 {
        self.written_bytes.get()
    }

    /// Connections for which there was no place.
    pub fn refused(&self) -> u64 {
        self.refused.get()
    }

    /// Connections that were closed because a request took too much memory.
    pub fn query_overruns(&self) -> u64 {
        self.query_overruns.get()
    }

    /// Connections that were closed because too many bytes waited for the client.
    pub fn output_overruns(&self) -> u64 {
        self.output_overruns.get()
    }

    /// Keys that commands have looked for to read them, and found.
    pub(crate) fn keyspace_hits(&self) -> u64 {
        self.keyspace_hits.get()
    }

    /// The same of keys that did not exist.
    pub(crate) fn keyspace_misses(&self) -> u64 {
        self.keyspace_misses.get()
    }

    pub(crate) fn count_lookups(&self, are_found: bool, count: u64) {
        if count > 0 {
            if are_found { &self.keyspace_hits } else { &self.keyspace_misses }.add(count);
        }
    }

    /// Executions of commands that change keys, repeated ones included.
    pub fn executions(&self) -> u64 {
        self.executions.get()
    }

    /// Commits of these.
    pub fn batches(&self) -> u64 {
        self.batches.get()
    }

    /// Counts a connection for which there was no place.
    pub fn count_refused(&self) {
        self.refused.add(1);
    }

    pub(crate) fn count_query_overrun(&self) {
        self.query_overruns.add(1);
    }

    pub(crate) fn count_output_overrun(&self) {
        self.output_overruns.add(1);
    }

    pub(crate) fn count_execution(&self) {
        self.executions.add(1);
    }

    pub(crate) fn count_batch(&self) {
        self.batches.add(1);
    }

    pub(crate) fn count_commands(&self, count: usize) {
        self.commands.add(count as u64);
    }

    pub(crate) fn count_connection(&self) {
        self.connections.add(1);
    }

    pub(crate) fn count_copy(&self, bytes: usize) {
        self.copied_bytes.fetch_add(bytes as u64, Relaxed);
    }

    pub(crate) fn count_read(&self, bytes: usize) {
        self.read_bytes.add(bytes as u64);
    }

    pub(crate) fn count_write(&self, bytes: usize) {
        self.written_bytes.add(bytes as u64);
    }

    /// Counts all but copies anew.
    pub(crate) fn reset(&self) {
        let all = [&self.commands, &self.connections, &self.read_bytes, &self.written_bytes];
        let limits = [&self.refused, &self.query_overruns, &self.output_overruns];
        let lookups = [&self.keyspace_hits, &self.keyspace_misses];
        let writes = [&self.executions, &self.batches];
        let others = limits.into_iter().chain(lookups).chain(writes);
        all.into_iter().chain(others).for_each(Counter::reset);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_counts_anew_takes_nothing_from_the_totals() {
        let counters = Counters::default();
        counters.count_commands(3);
        counters.count_refused();
        counters.reset();
        counters.count_commands(2);
        counters.count_output_overrun();
        assert_eq!((counters.commands(), counters.refused()), (2, 0));
        let all = Totals { commands: 5, refused: 1, output_overruns: 1, ..Totals::default() };
        assert_eq!(counters.totals(), all);
    }
}

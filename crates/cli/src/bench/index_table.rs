use crate::flash::Window;
use crate::number::{grouped, percent, quotient, ratio};
use base::human_bytes;
use serde::Serialize;

/// The counters of an index with a table on flash, over the measured window.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct IndexTable {
    /// Memory of the index.
    dram_bytes: u64,
    /// Current table pages on flash.
    table_bytes: u64,
    /// Table pages that were needed and found in memory.
    hits: u64,
    /// Table pages that were needed and not in memory.
    misses: u64,
    /// The share of needed pages that were found in memory.
    hit_rate: Option<f64>,
    page_reads: u64,
    page_writes: u64,
    /// Per operation.
    page_reads_per_op: Option<f64>,
    page_writes_per_op: Option<f64>,
}

impl IndexTable {
    /// Returns the counters of `ops` operations, or nothing for an index that is entirely in
    /// memory.
    pub(super) fn new(window: &Window, ops: u64) -> Option<Self> {
        let (before, after) = (&window.before.index, &window.after.index);
        if after.page_writes == 0 {
            return None;
        }
        let (hits, misses) = (after.hits - before.hits, after.misses - before.misses);
        let page_reads = after.page_reads - before.page_reads;
        let page_writes = after.page_writes - before.page_writes;
        Some(Self {
            dram_bytes: after.dram_bytes,
            table_bytes: after.table_bytes,
            hits,
            misses,
            hit_rate: quotient(hits, hits + misses),
            page_reads,
            page_writes,
            page_reads_per_op: quotient(page_reads, ops),
            page_writes_per_op: quotient(page_writes, ops),
        })
    }

    /// Returns the section of a report.
    pub(super) fn facts(&self) -> Vec<(&'static str, String)> {
        let hits = self.hit_rate.map_or_else(
            || "no lookups".to_owned(),
            |rate| format!("{} of {}", percent(rate, 1.0), grouped(self.hits + self.misses)),
        );
        vec![
            ("memory", human_bytes(self.dram_bytes)),
            ("table on flash", human_bytes(self.table_bytes)),
            ("hits", hits),
            ("page reads", per_op(self.page_reads, self.page_reads_per_op)),
            ("page writes", per_op(self.page_writes, self.page_writes_per_op)),
        ]
    }
}

fn per_op(count: u64, per_op: Option<f64>) -> String {
    format!("{}, {} for each operation", grouped(count), ratio(per_op))
}

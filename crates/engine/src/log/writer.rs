//! What the log has of one of the reactors that write to it.

use super::Log;
use super::frontier::Frontiers;
use super::host_buffer::HostBuffer;
use super::own::Owner;
use super::tally::Tally;
use super::unlanded::UnlandedPages;
use crate::format::record::Sequence;

/// The open extents of a writer, its pages that have not landed, and what it has counted.
///
/// A reactor appends to extents of its own writer, behind the lock of that writer. The first writer
/// has the streams of the cleaner and of the index too. A log has as many writers as reactors, or
/// fewer where it has few extents: then reactors share one.
// A line of the processor's cache is fetched with its neighbour.
#[repr(align(128))]
pub(crate) struct Writer {
    /// Its place among all writers.
    pub(crate) number: usize,
    /// The last sequence number that it gave a record, or one that came before in another way. See
    /// `docs/internals/cores.md` for what the clocks of writers have in common.
    pub(crate) clock: Sequence,
    pub(crate) frontiers: Frontiers,
    pub(crate) unlanded: UnlandedPages,
    pub(crate) buffer: HostBuffer,
    pub(crate) tally: Tally,
    /// Bytes that live values may take more of the capacity, before all writers are asked for what
    /// is left.
    pub(crate) credit: u64,
    /// Page numbers that records were written to and that are not counted in the log's sum.
    pub(crate) numbers_since: u64,
    /// Makes the references of its stores to the log.
    pub(crate) log: Owner<Log>,
}

impl Writer {
    pub(crate) fn new(number: usize, clock: Sequence, pages_per_extent: u32) -> Self {
        Self {
            number,
            clock,
            frontiers: Frontiers::default(),
            unlanded: UnlandedPages::new(pages_per_extent),
            buffer: HostBuffer::default(),
            tally: Tally::default(),
            credit: 0,
            numbers_since: 0,
            log: Owner::default(),
        }
    }

    /// Returns the next sequence number.
    #[inline]
    pub(crate) fn next_sequence(&mut self) -> Sequence {
        self.clock.0 += 1;
        self.clock
    }
}

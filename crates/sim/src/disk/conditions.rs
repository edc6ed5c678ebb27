use base::{Nanos, Rng};
use std::collections::BTreeSet;

/// What a disk is like.
#[derive(Clone, Debug)]
pub struct DiskConditions {
    /// Bytes that are written as a whole, whatever happens: 512 or 4096 on real disks. They
    /// may be fewer than those of a logical block, or more.
    pub sector_bytes: u32,
    /// Whether what is trimmed is zeros; else it stays as it was, as disks may have it.
    pub trims: bool,
    /// The longest that a read takes; each takes its own time.
    pub read: Nanos,
    /// The longest that a write or a trim takes.
    pub write: Nanos,
    /// The longest that a flush takes.
    pub flush: Nanos,
    /// All that the disk does ends at a multiple of this, so that several reactors have something
    /// to do at one instant.
    pub tick: Nanos,
    /// Of eight reads, writes and flushes so many take no time at all.
    pub at_once: u64,
    /// What goes wrong while there is power.
    pub faults: DiskFaults,
}

/// What goes wrong on a disk while there is power.
#[derive(Clone, Debug, Default)]
pub struct DiskFaults {
    /// Logical blocks that cannot be read until they are written again.
    pub unreadable: BTreeSet<u64>,
    /// Reads that fail, by their number from 0. The next one may succeed.
    pub failed_reads: BTreeSet<u64>,
    /// Writes that fail, by their number from 0: any part of them may have been done.
    pub failed_writes: BTreeSet<u64>,
    /// Writes that find no space, in the same way: nothing of them was done.
    pub no_space: BTreeSet<u64>,
    /// Flushes that fail, by their number from 0. Later flushes succeed without effect, as kernels
    /// drop pages that they could not write.
    pub failed_flushes: BTreeSet<u64>,
    /// Flushes succeed and are worth nothing, as on disks that lie.
    pub lies: bool,
}

impl DiskConditions {
    /// A disk without faults, with sectors of so many bytes.
    pub fn new(sector_bytes: u32) -> Self {
        Self {
            sector_bytes,
            trims: true,
            read: Nanos(100_000),
            write: Nanos(200_000),
            flush: Nanos(2_000_000),
            tick: Nanos(1),
            at_once: 0,
            faults: DiskFaults::default(),
        }
    }
}

impl DiskFaults {
    /// A few failures among `count` writes, and as many flushes, from number `first` on.
    pub fn random(seed: u64, first: u64, count: u64) -> Self {
        let mut rng = Rng::new(seed);
        let mut some = |most: u64| -> BTreeSet<u64> {
            (0..rng.below(most + 1)).map(|_| first + rng.below(count)).collect()
        };
        Self {
            failed_writes: some(2),
            no_space: some(2),
            failed_flushes: some(1),
            ..Self::default()
        }
    }
}

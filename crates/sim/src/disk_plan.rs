use crate::disk::{DiskConditions, DiskFaults, Left, SimDisk};
use base::{Nanos, Rng};
use drive::{Durability, Format};
use media::BlocksShape;
use node::{DISK_DRIVE_EXTENTS_MIN, DiskOptions};
use std::collections::BTreeSet;

/// Bytes of a disk beside its extents.
const OTHER_BYTES: u64 = 12 << 10;

/// Log between two checkpoints, in bytes, where some are to be made in each life.
const CHECKPOINT_BYTES: u64 = 400_000;

/// A disk, and how the drive on it is used.
#[derive(Clone, Debug)]
pub(crate) struct DiskPlan {
    pub(crate) seed: u64,
    pub(crate) block_bytes: u32,
    sector_bytes: u32,
    trims: bool,
    pub(crate) extent_bytes: u64,
    extents: u64,
    pub(crate) options: DiskOptions,
    has_faults: bool,
    /// Reactors in which hosts work.
    pub(crate) reactors: usize,
}

impl DiskPlan {
    pub(crate) fn new(seed: u64, rng: &mut Rng) -> Self {
        let size = |rng: &mut Rng| if rng.below(2) == 0 { 512 } else { 4_096 };
        let durability = match rng.below(4) {
            0 => Durability::EverySecond,
            1 => Durability::Capacitor,
            _ => Durability::Group,
        };
        let defaults = DiskOptions::default();
        let checkpoint_bytes =
            if rng.below(3) == 0 { defaults.checkpoint_bytes } else { CHECKPOINT_BYTES };
        let block_bytes = size(rng);
        let (sector_bytes, trims) = (size(rng), rng.below(2) == 0);
        let extents = u64::from(DISK_DRIVE_EXTENTS_MIN) + 1 + rng.below(8);
        let has_faults = rng.below(2) == 0;
        let reactors = 1 + u32::try_from(rng.below(4)).expect("at most four");
        Self {
            seed,
            block_bytes,
            sector_bytes,
            trims,
            extent_bytes: 128 << 10,
            extents,
            options: DiskOptions { durability, checkpoint_bytes, reactors, ..defaults },
            has_faults,
            reactors: reactors as usize,
        }
    }

    /// The disk, with nothing on it.
    pub(crate) fn disk(&self) -> SimDisk {
        let bytes = OTHER_BYTES + self.extents * self.extent_bytes;
        let blocks = bytes / u64::from(self.block_bytes);
        let shape = BlocksShape { block_bytes: self.block_bytes, blocks, parallelism: 4 };
        let (tick, at_once) = [(1, 0), (20_000, 0), (200_000, 0), (20_000, 7)]
            [usize::try_from(self.seed % 4).expect("one of four")];
        let conditions = DiskConditions {
            trims: self.trims,
            tick: Nanos(tick),
            at_once,
            ..DiskConditions::new(self.sector_bytes)
        };
        SimDisk::new(shape, conditions, self.seed)
    }

    pub(crate) fn format(&self) -> Format {
        Format { id: [1; 16], secret: [2; 16], extent_bytes: Some(self.extent_bytes) }
    }

    /// What goes wrong with the disk in its next life, beside the blocks that could not be read
    /// before.
    pub(crate) fn faults(&self, unreadable: BTreeSet<u64>, rng: &mut Rng) -> DiskFaults {
        let mut faults = DiskFaults { unreadable, ..DiskFaults::default() };
        if !self.has_faults {
            return faults;
        }
        let mut some = |one_in: u64, most: u64, below: u64| -> BTreeSet<u64> {
            let count = if rng.below(one_in) == 0 { 1 + rng.below(most) } else { 0 };
            (0..count).map(|_| rng.below(below)).collect()
        };
        faults.failed_writes = some(2, 3, 400);
        faults.no_space = some(3, 3, 400);
        faults.failed_flushes = some(4, 1, 300);
        faults.failed_reads = some(3, 2, 3_000);
        let blocks = self.extents * self.extent_bytes / u64::from(self.block_bytes);
        faults.unreadable.extend(some(4, 2, blocks));
        faults
    }

    /// What a loss of power leaves.
    pub(crate) fn left(&self, rng: &mut Rng) -> Left {
        match self.options.durability {
            Durability::Capacitor => Left::All,
            _ => Left::ALL[usize::try_from(rng.below(4)).expect("one of four")],
        }
    }
}

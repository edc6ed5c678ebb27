//! Drives on a simulated disk that several reactors use.

use base::Key;
use drive::{Durability, Format};
use engine::WorkPool;
use media::BlocksShape;
use node::{DiskDrive, DiskOptions};
use reactor::{PeerGroup, Reactor};
use sim::{DiskConditions, SimDisk};
use std::sync::Arc;

pub(crate) const BLOCK_BYTES: u32 = 4_096;

/// Bytes before the first extent.
pub(crate) const BEFORE_EXTENTS: u64 = 12 << 10;

pub(crate) fn options(durability: Durability, reactors: usize) -> DiskOptions {
    DiskOptions {
        durability,
        scrub_rate: 0,
        cache_bytes: 0,
        reactors: u32::try_from(reactors).expect("a few"),
        ..DiskOptions::default()
    }
}

pub(crate) fn key(number: u64) -> Key {
    Key::new(format!("key {number}").as_bytes()).expect("it is short")
}

/// Returns a disk with an empty drive of so many extents.
pub(crate) fn formatted(extents: u64, extent_bytes: u64, seed: u64) -> Arc<SimDisk> {
    let blocks = (BEFORE_EXTENTS + extents * extent_bytes) / u64::from(BLOCK_BYTES);
    let shape = BlocksShape { block_bytes: BLOCK_BYTES, blocks, parallelism: 4 };
    let disk = Arc::new(SimDisk::new(shape, DiskConditions::new(BLOCK_BYTES), seed));
    let blocks = disk.clone();
    let format = Format { id: [1; 16], secret: [2; 16], extent_bytes: Some(extent_bytes) };
    Reactor::new(None).run(async { DiskDrive::format(blocks, format).await.expect("it is whole") });
    disk
}

/// Returns so many reactors, of which all but the first do pieces of the pool's work.
pub(crate) fn peers(reactors: usize, seed: u64) -> (PeerGroup, Arc<WorkPool>) {
    let mut group = PeerGroup::new(reactors, seed, Some(seed));
    group.preempt_often(4, 8);
    let pool = Arc::<WorkPool>::default();
    for place in 1..reactors {
        let pool = pool.clone();
        group.places().spawn(place, async move { drop(pool.join()) });
    }
    (group, pool)
}

//! The drives under load.

use crate::disk::Disk;
use drive::{Durability, Format};
use node::{DiskDrive, DiskOptions, MemoryDrive, MemoryKind};
use std::sync::Arc;

/// Bytes of a disk: so many that no run writes all, and the cleaner rests.
const DISK_BYTES: u64 = 1 << 30;

const MEMORY_BYTES: u64 = 256 << 20;

/// Returns an empty disk.
pub(crate) fn new_disk() -> Arc<Disk> {
    Arc::new(Disk::new(DISK_BYTES))
}

/// Opens a new drive on a disk that no run fills.
pub(crate) async fn on_a_disk(durability: Durability) -> DiskDrive {
    on_this_disk(new_disk(), durability).await
}

/// Opens a new drive on `disk`.
pub(crate) async fn on_this_disk(disk: Arc<Disk>, durability: Durability) -> DiskDrive {
    let format = Format { id: [1; 16], secret: [2; 16], extent_bytes: None };
    DiskDrive::format(disk.clone(), format).await.expect("the disk is large enough");
    let options = match durability {
        // As `serve`, the only program that uses it.
        Durability::EverySecond => DiskOptions::of_server(),
        _ => DiskOptions::default(),
    };
    let options = DiskOptions { durability, ..options };
    DiskDrive::open(disk, options).await.expect("the drive is new")
}

/// Creates a drive in memory.
pub(crate) async fn in_memory() -> MemoryDrive {
    MemoryDrive::format(MemoryKind::Kv, MEMORY_BYTES, 1, 1).await.expect("it has some extents")
}

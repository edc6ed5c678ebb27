//! Opening a drive after a crash.

use crate::aside::aside;
use crate::commands::key;
use crate::disk::Disk;
use crate::drives;
use base::{Buf, Rng};
use drive::Durability;
use engine::{KeySpaceId, Write};
use node::{DiskDrive, DiskOptions};
use reactor::Reactor;
use std::sync::Arc;

/// Stores outstanding, so that they share pages.
const DEPTH: u64 = 64;

/// Opens a drive whose log has `records` records of 64 B since its last checkpoint. Each key has
/// two on the average.
pub(crate) fn of_a_crashed_drive(records: u64) {
    let disk = aside(|| crashed(records));
    Reactor::new(None).run(async {
        let drive = DiskDrive::open(disk, DiskOptions::default()).await;
        let found = drive.expect("the drive is whole").recovery().records;
        assert!(found >= records, "all records are read, those of the key spaces too");
    });
}

/// Returns the disk of a drive that was not closed.
fn crashed(records: u64) -> Arc<Disk> {
    let disk = drives::new_disk();
    let after = disk.clone();
    Reactor::new(None).run(async move {
        let drive = drives::on_this_disk(disk, Durability::Capacitor).await;
        let mut rng = Rng::new(1);
        for _ in 0..records / DEPTH {
            let stores = (0..DEPTH).map(|_| {
                let (store, key) = (drive.store().clone(), key(rng.below(records / 2)));
                async move {
                    let (announced, value) = (store.announce(), Buf::copy_from(&[0xa5; 64]));
                    let write = Write::default();
                    store.put(KeySpaceId(1), &key, &value, write, announced).await
                }
            });
            for stored in clock::join_all(stores.collect()).await {
                stored.expect("there is room");
            }
        }
    });
    after
}

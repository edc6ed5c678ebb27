//! One reactor reads keys that seldom change, while another overwrites the others so fast that the
//! cleaner moves the seldom ones again and again. The disk takes no time, so all of that may happen
//! between two stretches of a read.

use crate::disk::{DiskConditions, SimDisk};
use base::{Buf, Key, Nanos, Rng};
use clock::Stage;
use drive::{Durability, Format};
use engine::{KeySpaceId, Store, Write};
use media::BlocksShape;
use node::{DISK_DRIVE_EXTENTS_MIN, DiskDrive, DiskOptions};
use reactor::{PeerGroup, Reactor};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

const SPACE: KeySpaceId = KeySpaceId(1);
const BLOCK_BYTES: u32 = 512;
const EXTENT_BYTES: u64 = 128 << 10;
/// Keys of which each tenth is seldom written, and each extent has a few.
const KEYS: u64 = 400;
const SELDOM: u64 = 10;
const VALUE_BYTES: usize = 1_500;
const READS: u64 = 64_000;
/// Reads between two writes.
const READS_AT_ONCE: u64 = 16;

fn key(number: u64) -> Key {
    Key::new(&number.to_be_bytes()).expect("eight bytes are a key")
}

fn value(number: u64) -> Buf {
    Buf::copy_from(&number.to_be_bytes().repeat(VALUE_BYTES / 8))
}

async fn put(store: &Arc<Store>, number: u64) {
    let (key, value) = (key(number), value(number));
    let stored = store.put(SPACE, &key, &value, Write::default(), store.announce()).await;
    stored.expect("there is room");
}

/// Runs this on a new drive, and returns how many extents were cleaned.
///
/// # Panics
/// When a read does not return what was stored, or the store finds itself wrong.
pub fn read_while_cleaning(seed: u64) -> u64 {
    let blocks = u64::from(DISK_DRIVE_EXTENTS_MIN + 2) * EXTENT_BYTES / u64::from(BLOCK_BYTES);
    let shape = BlocksShape { block_bytes: BLOCK_BYTES, blocks, parallelism: 4 };
    let conditions = DiskConditions { at_once: 8, ..DiskConditions::new(BLOCK_BYTES) };
    let disk = Arc::new(SimDisk::new(shape, conditions, seed));
    let format = Format { id: [1; 16], secret: [2; 16], extent_bytes: Some(EXTENT_BYTES) };
    let formatted = disk.clone();
    Reactor::new(None).run(async { DiskDrive::format(formatted, format).await }).expect("it fits");
    let mut reactors = PeerGroup::new(2, seed, None);
    reactors.preempt_often(4, 16);
    let places = reactors.places();
    reactors.run(async move {
        let options = DiskOptions {
            durability: Durability::Capacitor,
            reactors: 2,
            ..DiskOptions::default()
        };
        let drive = DiskDrive::open(disk, options).await.expect("nothing fails");
        let store = drive.store().clone();
        for number in 0..KEYS {
            put(&store, number).await;
        }
        let is_read = Rc::new(Cell::new(false));
        let (read, reader) = (is_read.clone(), store.clone());
        places.spawn(1, async move {
            let mut rng = Rng::new(seed);
            for count in 1..=READS {
                let number = rng.below(KEYS / SELDOM) * SELDOM;
                let found = reader.get(SPACE, &key(number)).await.expect("it was stored");
                assert_eq!(found.bytes(), value(number).bytes(), "key {number}");
                if count % READS_AT_ONCE == 0 {
                    clock::sleep(Nanos(1), Stage::Queue).await;
                }
            }
            read.set(true);
        });
        let mut rng = Rng::new(!seed);
        while !is_read.get() {
            put(&store, rng.below(KEYS / SELDOM) * SELDOM + 1 + rng.below(SELDOM - 1)).await;
            clock::sleep(Nanos(1), Stage::Queue).await;
        }
        store.counters().victims
    })
}

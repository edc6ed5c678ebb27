//! Superblocks that are whole and yet not what they should be.

use crate::rig::{EXTENTS, append, formatted, label, on};
use base::Buf;
use base::checksum::crc32c;
use clock::Class;
use drive::{Damage, DamagedPart, Durability, Medium, OpenError};
use media::{Blocks, Media, MemoryBlocks, OnDisk, Segments};
use reactor::Reactor;
use std::sync::Arc;

const BLOCK_BYTES: u32 = 512;
const BLOCKS: u32 = 4_096 / BLOCK_BYTES;

/// Blocks at which the two begin.
fn places(memory: &MemoryBlocks) -> [u64; 2] {
    [8, memory.shape().blocks - 8]
}

async fn found(memory: &MemoryBlocks) -> [Segments; 2] {
    let [first, second] = places(memory);
    [
        memory.read(first, BLOCKS, Class::HostRead).await.expect("nothing fails"),
        memory.read(second, BLOCKS, Class::HostRead).await.expect("nothing fails"),
    ]
}

async fn put(memory: &MemoryBlocks, superblocks: [Segments; 2]) {
    for (place, superblock) in places(memory).into_iter().zip(superblocks) {
        memory.write(place, superblock, Class::HostWrite).await.expect("nothing fails");
    }
}

async fn damage(memory: &Arc<MemoryBlocks>) -> Vec<Damage> {
    let blocks: Arc<dyn Blocks> = memory.clone();
    let drive = Medium::look(blocks).await.expect("it is a drive");
    drive.damage().await.expect("nothing fails")
}

#[test]
fn a_start_is_later_than_all_that_extents_tell_of_though_both_superblocks_are_old() {
    let memory = formatted(BLOCK_BYTES, EXTENTS);
    let old = Reactor::new(None).run(found(&memory));
    let (mut used, mut starts) = (Vec::new(), Vec::new());
    for start in 1..=4 {
        starts.push(Reactor::new(None).run(found(&memory)));
        used.push(on(memory.clone(), Durability::Group, async |drive| {
            assert_eq!(drive.info().mounts, start);
            let extent = Media::open(&*drive, label(start.into())).unwrap();
            append(&drive, extent, 0, &[start.into()]).await;
            extent
        }));
    }
    Reactor::new(None).run(async {
        assert_eq!(damage(&memory).await, []);
        // As a start that was cut off before it wrote its own.
        put(&memory, starts.pop().expect("there were four")).await;
        assert_eq!(damage(&memory).await, []);
        put(&memory, old).await;
        let damaged = damage(&memory).await;
        let places = places(&memory).map(|block| block * u64::from(BLOCK_BYTES));
        let expected = places.map(|byte| Damage { byte, part: DamagedPart::OldSuperblock });
        assert_eq!(damaged, expected);
    });
    on(memory.clone(), Durability::Group, async |drive| {
        assert_eq!(drive.info().mounts, 5);
        let found: Vec<_> = Media::extents(&*drive).iter().map(|extent| extent.id).collect();
        assert_eq!(found, used);
        drive.reset(used[0], Class::Gc).await.unwrap();
        let extent = Media::open(&*drive, label(9)).unwrap();
        append(&drive, extent, 0, &[5]).await;
    });
    on(memory.clone(), Durability::Group, async |drive| {
        assert_eq!(Media::extents(&*drive).len(), used.len());
        assert_eq!(drive.outdated(), []);
    });
    assert_eq!(Reactor::new(None).run(damage(&memory)), []);
}

#[test]
fn a_superblock_of_a_drive_that_cannot_be_is_refused() {
    let memory = formatted(BLOCK_BYTES, EXTENTS);
    let [whole, _] = Reactor::new(None).run(found(&memory));
    let whole = Buf::join(&whole).unwrap().bytes().unwrap().to_vec();
    let with = |at: usize, number: u32| {
        let mut bytes = whole.clone();
        bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
        bytes[12..16].fill(0);
        let crc = crc32c(&bytes);
        bytes[12..16].copy_from_slice(&crc.to_le_bytes());
        let bytes = Segments::from_iter([Buf::copy_from(&bytes)]);
        Reactor::new(None).run(async {
            put(&memory, [bytes.clone(), bytes]).await;
            let blocks: Arc<dyn Blocks> = memory.clone();
            let looked = Medium::look(blocks.clone()).await.map(|_| ());
            let opened = Medium::open(blocks, Durability::Group).await.map(|_| ());
            (looked, opened)
        })
    };
    let cannot_be = (Err(OpenError::Impossible), Err(OpenError::Impossible));
    let extent_bytes = u32::from_le_bytes(whole[56..60].try_into().unwrap());
    assert_eq!(with(68, 4_096), cannot_be, "units");
    assert_eq!(with(68, 0), cannot_be, "units");
    assert_eq!(with(56, extent_bytes + 1), cannot_be, "bytes of an extent");
    assert_eq!(with(56, extent_bytes * 2), cannot_be, "bytes of an extent");
    assert_eq!(with(64, 0), cannot_be, "extents");
    assert_eq!(with(64, EXTENTS + 1), cannot_be, "extents");
    assert_eq!(with(72, u32::MAX), (Ok(()), Err(OpenError::Impossible)), "mounts");
}

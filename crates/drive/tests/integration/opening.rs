//! What is opened and what is refused.

use crate::rig::{EXTENT_BYTES, FORMAT, ID, append, formatted, label, memory, on};
use base::Buf;
use base::checksum::crc32c;
use clock::Class;
use drive::{Durability, Format, Medium, OpenError};
use media::{Blocks, BlocksShape, Error, Frames, Media, MemoryBlocks, Page, PageId, Segments};
use reactor::Reactor;
use std::sync::Arc;

fn open(blocks: &Arc<MemoryBlocks>) -> Result<Medium, OpenError> {
    let blocks: Arc<dyn Blocks> = blocks.clone();
    Reactor::new(None).run(async { Medium::open(blocks, Durability::Group).await })
}

fn format(blocks: &Arc<MemoryBlocks>, format: Format) -> Result<(), OpenError> {
    let blocks: Arc<dyn Blocks> = blocks.clone();
    Reactor::new(None).run(async { Medium::format(blocks, format).await })
}

/// A copy of the first blocks, followed by others that were never written.
fn resized(memory: &MemoryBlocks, blocks: u64) -> Arc<MemoryBlocks> {
    let shape = memory.shape();
    let copy = Arc::new(MemoryBlocks::new(BlocksShape { blocks, ..shape }));
    Reactor::new(None).run(async {
        for block in 0..blocks.min(shape.blocks) {
            let content = memory.read(block, 1, Class::HostRead).await.expect("nothing fails");
            copy.write(block, content, Class::HostWrite).await.expect("nothing fails");
        }
    });
    copy
}

fn change(memory: &MemoryBlocks, block: u64, change: impl FnOnce(&mut Vec<u8>)) {
    Reactor::new(None).run(async {
        let content =
            Buf::join(&memory.read(block, 1, Class::HostRead).await.expect("nothing fails"));
        let mut bytes = content.as_ref().and_then(Buf::bytes).expect("it is real").to_vec();
        change(&mut bytes);
        let data = Segments::from_iter([Buf::copy_from(&bytes)]);
        memory.write(block, data, Class::HostWrite).await.expect("nothing fails");
    });
}

#[test]
fn the_shape_is_that_of_the_drive() {
    let unit_bytes = 512;
    for block_bytes in [512, 4_096] {
        let drive = open(&formatted(block_bytes, 3)).unwrap();
        let shape = drive.shape();
        let frames = Frames { unit_bytes, block_units: 8, head_bytes: 64 };
        assert_eq!(shape.frames, Some(frames));
        assert_eq!((shape.extents, shape.parallelism, shape.spare_bytes), (3, 4, 4_032));
        let units = u32::try_from(EXTENT_BYTES).unwrap() / unit_bytes;
        assert_eq!(shape.pages_per_extent, units - 3 * 4_096 / unit_bytes);
        assert_eq!(shape.page_bytes, 16 << 10);
        let info = drive.info();
        assert_eq!((info.id, info.extents, info.mounts), (ID, 3, 1));
        assert_eq!((info.unit_bytes, info.extent_bytes), (unit_bytes, EXTENT_BYTES));
    }
}

#[test]
fn a_large_drive_has_extents_of_its_size_and_the_longest_pages() {
    let shape = BlocksShape { block_bytes: 4_096, blocks: 5 << 18, parallelism: 4 };
    let memory = Arc::new(MemoryBlocks::new(shape));
    format(&memory, Format { extent_bytes: None, ..FORMAT }).unwrap();
    let drive = open(&memory).unwrap();
    assert_eq!(drive.info().extent_bytes, 16 << 20);
    assert_eq!((drive.shape().page_bytes, drive.shape().extents), (2 << 20, 319));
    let before = Format { extent_bytes: Some(16 << 20), ..FORMAT };
    format(&memory, before).unwrap();
    assert_eq!(open(&memory).unwrap().shape().extents, 319, "a drive is formatted again");
}

#[test]
fn each_reason_not_to_open_is_told() {
    let refused = |memory: &Arc<MemoryBlocks>| open(memory).map(|_| ()).unwrap_err();
    assert_eq!(refused(&memory(512, 2)), OpenError::NotADrive);
    let tiny = BlocksShape { block_bytes: 512, blocks: 3, parallelism: 1 };
    assert_eq!(refused(&Arc::new(MemoryBlocks::new(tiny))), OpenError::NotADrive);

    let whole = formatted(512, 3);
    let blocks = whole.shape().blocks;
    let (formatted_bytes, other) = (blocks * 512, [blocks - 8, blocks - 1, blocks + 8, blocks * 2]);
    for blocks in other {
        let expected = OpenError::OtherSize { formatted: formatted_bytes, found: blocks * 512 };
        assert_eq!(refused(&resized(&whole, blocks)), expected);
    }
    // Without the first superblock nothing tells that the second is missing.
    let cut = resized(&whole, blocks - 8);
    change(&cut, 8, |bytes| bytes[100] ^= 1);
    assert_eq!(refused(&cut), OpenError::Damaged);

    // A later format or an unknown feature in one place, and another drive's superblock.
    let superblock = |memory: &Arc<MemoryBlocks>| {
        let mut bytes = Vec::new();
        (8..16).for_each(|block| change(memory, block, |found| bytes.extend_from_slice(found)));
        bytes
    };
    let put = |place: u64, bytes: &[u8]| {
        let copy = resized(&whole, blocks);
        for (block, part) in (place..).zip(bytes.chunks(512)) {
            change(&copy, block, |found| found.copy_from_slice(part));
        }
        copy
    };
    let with = |at: usize, byte: u8| {
        let mut bytes = superblock(&whole);
        bytes[at] = byte;
        bytes[12..16].fill(0);
        let crc = crc32c(&bytes);
        bytes[12..16].copy_from_slice(&crc.to_le_bytes());
        bytes
    };
    let (newer, featured) = (with(8, 2), with(77, 0b100));
    let other = memory(512, 3);
    format(&other, Format { id: [9; 16], secret: [8; 16], ..FORMAT }).unwrap();
    for place in [8, blocks - 8] {
        assert!(matches!(refused(&put(place, &newer)), OpenError::Newer { .. }), "{place}");
        let unknown = OpenError::Unknown { features: 0x400 };
        assert_eq!(refused(&put(place, &featured)), unknown, "{place}");
        assert_eq!(refused(&put(place, &superblock(&other))), OpenError::TwoDrives, "{place}");
    }

    for (first, second) in [(true, false), (false, true), (true, true)] {
        let copy = resized(&whole, blocks);
        for block in
            [8].into_iter().filter(|_| first).chain([blocks - 8].into_iter().filter(|_| second))
        {
            change(&copy, block, |bytes| bytes[70] ^= 4);
        }
        match (first, second) {
            (true, true) => assert_eq!(refused(&copy), OpenError::Damaged),
            _ => {
                open(&copy).unwrap();
                open(&copy).unwrap();
            }
        }
    }
}

#[test]
fn each_reason_not_to_format_is_told() {
    let of = |extent_bytes| format(&memory(512, 2), Format { extent_bytes, ..FORMAT });
    for bytes in [0, 16 << 10, (32 << 10) + 512, 2 << 30] {
        assert_eq!(of(Some(bytes)), Err(OpenError::Sizes), "{bytes}");
    }
    let found = memory(512, 2).shape().blocks * 512;
    let needed = 12_288 + 8_192 + (4 << 20);
    assert_eq!(of(None), Err(OpenError::TooSmall { found, needed }));
    for block_bytes in [256, 520, 8_192] {
        let shape = BlocksShape { block_bytes, blocks: 1 << 20, parallelism: 1 };
        let blocks = Arc::new(MemoryBlocks::new(shape));
        assert_eq!(format(&blocks, FORMAT), Err(OpenError::Sizes), "{block_bytes}");
    }
}

#[test]
fn who_looks_changes_nothing() {
    let memory = formatted(512, 3);
    let extent = on(memory.clone(), Durability::Group, async |drive| {
        let extent = Media::open(&*drive, label(4)).unwrap();
        append(&drive, extent, 0, &[1, 2, 3]).await;
        extent
    });
    let before = resized(&memory, memory.shape().blocks);
    let blocks: Arc<dyn Blocks> = memory.clone();
    Reactor::new(None).run(async {
        let drive = Medium::look(blocks).await.unwrap();
        let found = Media::extents(&drive);
        assert_eq!((found.len(), found[0].label), (1, label(4)));
        assert_eq!(Media::open(&drive, label(5)), Err(Error::ReadOnly));
        assert_eq!(drive.reset(extent, Class::Gc).await, Err(Error::ReadOnly));
        let at = PageId { extent, page: found[0].pages };
        let appended = drive.append(at, Page::new(b"", []), Class::HostWrite).await;
        assert_eq!(appended, Err(Error::ReadOnly));
        for block in 0..memory.shape().blocks {
            let [now, then] = [&memory, &before];
            let [now, then] = [
                now.read(block, 1, Class::HostRead).await.unwrap(),
                then.read(block, 1, Class::HostRead).await.unwrap(),
            ];
            assert!(now[0].bytes() == then[0].bytes(), "block {block}");
        }
    });
}

/// Of others nothing is left that passes for theirs; who boots from the disk writes there later.
#[test]
fn what_lies_before_the_drive_is_zeros_and_then_left_alone() {
    let memory = memory(512, 2);
    change(&memory, 3, |bytes| bytes.fill(0xAB));
    format(&memory, FORMAT).unwrap();
    change(&memory, 3, |bytes| assert!(bytes.iter().all(|byte| *byte == 0)));
    change(&memory, 3, |bytes| bytes.fill(0xAB));
    on(memory.clone(), Durability::Group, async |drive| {
        let extent = Media::open(&*drive, label(4)).unwrap();
        append(&drive, extent, 0, &[1, 2, 3]).await;
    });
    change(&memory, 3, |bytes| assert!(bytes.iter().all(|byte| *byte == 0xAB)));
}

#[test]
fn a_drive_that_was_formatted_again_holds_nothing_of_before() {
    let memory = formatted(512, 2);
    on(memory.clone(), Durability::Group, async |drive| {
        for epoch in 0..2 {
            let extent = Media::open(&*drive, label(epoch)).unwrap();
            append(&drive, extent, 0, &[1, 2, 3]).await;
        }
    });
    for secret in [FORMAT.secret, [7; 16]] {
        format(&memory, Format { secret, ..FORMAT }).unwrap();
        on(memory.clone(), Durability::Group, async |drive| {
            assert_eq!((Media::extents(&*drive).len(), drive.free_extents()), (0, 2));
        });
    }
}

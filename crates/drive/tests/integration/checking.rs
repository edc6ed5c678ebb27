//! What whoever checks a drive is told: all pages in long reads, and what is damaged beside them.

use crate::rig::{EXTENT_BYTES, EXTENTS, UNIT, append, data, formatted, label, memory, on, page};
use base::Buf;
use clock::Class;
use drive::{Damage, DamagedPart, Durability, Medium};
use media::{Blocks, ExtentId, Media, MemoryBlocks, OnDisk, Segments, SweptPage};
use reactor::Reactor;
use std::sync::Arc;

/// Turns over a bit of byte `at`.
fn flip(memory: &MemoryBlocks, at: u64) {
    let block_bytes = u64::from(memory.shape().block_bytes);
    let (block, byte) = (at / block_bytes, usize::try_from(at % block_bytes).expect("it is small"));
    Reactor::new(None).run(async {
        let found = memory.read(block, 1, Class::HostRead).await.expect("nothing fails");
        let mut bytes =
            Buf::join(&found).as_ref().and_then(Buf::bytes).expect("it is real").to_vec();
        bytes[byte] ^= 1;
        let data = Segments::from_iter([Buf::copy_from(&bytes)]);
        memory.write(block, data, Class::HostWrite).await.expect("nothing fails");
    });
}

async fn sweep(drive: &Medium, extent: ExtentId, from: u32) -> Vec<SweptPage> {
    let (mut all, mut next) = (Vec::new(), Some(from));
    while let Some(from) = next {
        let swept = drive.sweep(extent, from, Class::HostRead).await.expect("nothing fails");
        assert!(!swept.pages.is_empty(), "it goes on");
        all.extend(swept.pages);
        next = swept.next;
    }
    all
}

#[test]
fn a_sweep_returns_all_pages_and_names_those_that_cannot_be_read() {
    for (block_bytes, at_once) in [(512, 5), (4_096, 5), (4_096, 1)] {
        let blocks = formatted(block_bytes, EXTENTS);
        let contents: Vec<u64> = (0..5).collect();
        let extent = ExtentId(0);
        let numbers = on(blocks.clone(), Durability::Group, async |drive| {
            assert_eq!(Media::open(&*drive, label(2)).unwrap(), extent);
            let (mut numbers, mut next) = (Vec::new(), 0);
            for some in contents.chunks(at_once) {
                let (more, end) = append(&drive, extent, next, some).await;
                numbers.extend(more);
                next = end;
            }
            drive.close().await.unwrap();
            numbers
        });
        let shape = on(blocks.clone(), Durability::Group, async |drive| {
            let swept = sweep(&drive, extent, 0).await;
            let found: Vec<u32> = swept.iter().map(|page| page.number).collect();
            assert_eq!(found, numbers);
            for (swept, content) in swept.iter().zip(&contents) {
                let (found, expected) =
                    (swept.page.as_ref().unwrap(), page(*content, &drive.shape()));
                assert!(swept.is_whole && found.spare() == expected.spare());
                assert!(data(found) == data(&expected), "page {}", swept.number);
            }
            assert_eq!(sweep(&drive, extent, numbers[3]).await.len(), contents.len() - 3);
            drive.shape()
        });
        let start = 8_192 + 4_096;
        let byte = |number: u32| start + u64::from(number) * u64::from(UNIT);
        let long = contents.iter().position(|content| page(*content, &shape).data_bytes() > 0);
        let long = long.unwrap();
        let spare = u32::try_from(page(contents[long], &shape).spare().len()).unwrap();
        let head_units = shape.frames.unwrap().head_units(spare);
        flip(&blocks, byte(numbers[long] + head_units));
        let headless = if long == 3 { 2 } else { 3 };
        flip(&blocks, byte(numbers[headless]) + 12);
        on(blocks, Durability::Group, async |drive| {
            let swept = sweep(&drive, extent, 0).await;
            let found: Vec<u32> = swept.iter().map(|page| page.number).collect();
            // One bit tells where a page began, behind padding too.
            assert_eq!(found, numbers);
            for (at, swept) in swept.iter().enumerate() {
                assert_eq!(swept.page.is_none(), at == headless, "page {at}");
                assert_eq!(swept.is_mended, at == headless, "page {at}");
                assert_eq!(swept.is_whole, at != headless && at != long, "page {at}");
            }
        });
    }
}

fn damage(blocks: &Arc<MemoryBlocks>) -> Vec<Damage> {
    let blocks = blocks.clone();
    Reactor::new(None).run(async {
        let drive = Medium::look(blocks).await.expect("nothing fails");
        drive.damage().await.expect("nothing fails")
    })
}

#[test]
fn damage_beside_pages_is_named_with_its_place() {
    let blocks = formatted(512, EXTENTS);
    on(blocks.clone(), Durability::Group, async |drive| {
        let extent = Media::open(&*drive, label(2)).unwrap();
        append(&drive, extent, 0, &[1, 2]).await;
        drive.close().await.unwrap();
    });
    assert_eq!(damage(&blocks), []);
    let size = memory(512, EXTENTS).shape().blocks * 512;
    let [used, free] = [0, 3].map(|number| 8_192 + number * EXTENT_BYTES);
    let in_extent = EXTENT_BYTES - 8_192;
    let ledger = size / 4_096 * 4_096 - 3 * 4_096;
    for (byte, part) in [
        (4_096, DamagedPart::Superblock),
        (size / 4_096 * 4_096 - 4_096, DamagedPart::Superblock),
        (used, DamagedPart::Mark(ExtentId(0))),
        (used + in_extent, DamagedPart::Mark(ExtentId(0))),
        (free, DamagedPart::Mark(ExtentId(3))),
        (used + in_extent + 4_096, DamagedPart::Footer(ExtentId(0))),
        (free + in_extent + 4_096, DamagedPart::Footer(ExtentId(3))),
        (ledger, DamagedPart::Ledger(ExtentId(0))),
        (ledger + 4_096, DamagedPart::Ledger(ExtentId(0))),
        (ledger + 4_096 + 3 * 32, DamagedPart::Ledger(ExtentId(3))),
    ] {
        flip(&blocks, byte + 9);
        let found = damage(&blocks);
        assert_eq!((found.len(), found[0].byte, found[0].part), (1, byte, part));
        flip(&blocks, byte + 9);
    }
    // The ledger has room for more extents than there are, which nobody reads.
    for number in [u64::from(EXTENTS), 91, 127] {
        flip(&blocks, ledger + 4_096 + number * 32);
        assert_eq!(damage(&blocks), [], "entry {number}");
    }
}

/// Of zeros no checksum tells, but the ledger does.
#[test]
fn a_footer_that_is_gone_is_named() {
    for durability in [Durability::Group, Durability::EverySecond, Durability::Capacitor] {
        let blocks = formatted(512, EXTENTS);
        on(blocks.clone(), durability, async |drive| {
            for number in 0..3 {
                let extent = Media::open(&*drive, label(number)).unwrap();
                let (numbers, _) = append(&drive, extent, 0, &[1, 2]).await;
                match number {
                    0 => drive.seal(extent, numbers[1]).await.unwrap(),
                    1 => drive.reset(extent, Class::Gc).await.unwrap(),
                    _ => {}
                }
            }
            drive.close().await.unwrap();
        });
        assert_eq!(damage(&blocks), [], "{durability:?}");
        let byte = |extent: u64| 8_192 + (extent + 1) * EXTENT_BYTES - 4_096;
        for (extent, is_ended) in [(0, true), (1, false), (2, true), (3, false)] {
            let before = zero(&blocks, byte(extent));
            let part = DamagedPart::Footer(ExtentId(u32::try_from(extent).unwrap()));
            let expected = is_ended.then_some(Damage { byte: byte(extent), part });
            let expected: Vec<Damage> = expected.into_iter().collect();
            assert_eq!(damage(&blocks), expected, "extent {extent}, {durability:?}");
            put(&blocks, byte(extent), before);
        }
        // Whoever opens the drive writes another one.
        zero(&blocks, byte(2));
        on(blocks.clone(), durability, async |_| {});
        assert_eq!(damage(&blocks), [], "{durability:?}");
    }
}

/// Puts zeros in the place of the 4 KiB at `byte`, and returns what was there.
fn zero(memory: &MemoryBlocks, byte: u64) -> Segments {
    let first = byte / u64::from(memory.shape().block_bytes);
    let count = 4_096 / memory.shape().block_bytes;
    let read = async { memory.read(first, count, Class::HostRead).await.expect("nothing fails") };
    let before = Reactor::new(None).run(read);
    put(memory, byte, Segments::from_iter([Buf::copy_from(&[0; 4_096])]));
    before
}

fn put(memory: &MemoryBlocks, byte: u64, data: Segments) {
    let first = byte / u64::from(memory.shape().block_bytes);
    let write = async { memory.write(first, data, Class::HostWrite).await };
    Reactor::new(None).run(write).expect("nothing fails");
}

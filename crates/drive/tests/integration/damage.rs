//! Blocks that are lost, swapped or of another time.

use crate::rig::{
    EXTENT_BYTES, EXTENTS, UNIT, append, assert_holds, data, formatted, label, on, page, read,
    units,
};
use base::{Buf, Rng};
use clock::{Class, LocalFuture};
use drive::{Durability, Medium};
use media::{
    Blocks, BlocksShape, Error, ExtentId, Media, MemoryBlocks, OnDisk, Page, PageId, Segments,
};
use reactor::Reactor;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Blocks of which some cannot be read.
struct Worn {
    memory: Arc<MemoryBlocks>,
    unreadable: BTreeSet<u64>,
    trims: bool,
}

impl Blocks for Worn {
    fn shape(&self) -> BlocksShape {
        self.memory.shape()
    }

    fn read(
        &self,
        first: u64,
        count: u32,
        class: Class,
    ) -> LocalFuture<'_, Result<Segments, Error>> {
        let mut blocks = first..first + u64::from(count);
        let lost = blocks.find(|block| self.unreadable.contains(block));
        match lost {
            Some(block) => Box::pin(std::future::ready(Err(Error::UnrecoveredBlock(block)))),
            None => self.memory.read(first, count, class),
        }
    }

    fn write(
        &self,
        first: u64,
        data: Segments,
        class: Class,
    ) -> LocalFuture<'_, Result<(), Error>> {
        self.memory.write(first, data, class)
    }

    fn trim(&self, first: u64, count: u64, class: Class) -> LocalFuture<'_, Result<(), Error>> {
        if self.trims {
            return self.memory.trim(first, count, class);
        }
        Box::pin(std::future::ready(Ok(())))
    }

    fn flush(&self) -> LocalFuture<'_, Result<(), Error>> {
        self.memory.flush()
    }
}

const CONTENTS: [u64; 6] = [21, 22, 23, 24, 25, 26];

/// The block at which a page of an extent begins; blocks are of 512 bytes.
fn block(at: PageId) -> u64 {
    (8_192 + u64::from(at.extent.0) * EXTENT_BYTES + 4_096) / 512 + u64::from(at.page)
}

/// One extent that is sealed and one that is not, with the same pages, one after the other. Their
/// numbers.
fn two_extents(memory: &Arc<MemoryBlocks>) -> Vec<u32> {
    on(memory.clone(), Durability::Group, async |drive| {
        let mut numbers = Vec::new();
        for epoch in [1, 2] {
            let extent = Media::open(&*drive, label(epoch)).expect("one is free");
            numbers.clear();
            let mut next = 0;
            for content in CONTENTS {
                numbers.push(next);
                (_, next) = append(&drive, extent, next, &[content]).await;
            }
            if epoch == 1 {
                drive.seal(extent, numbers[5]).await.expect("nothing fails");
            }
        }
        numbers
    })
}

async fn spoil(memory: &MemoryBlocks, block: u64, rng: &mut Rng) {
    let mut bytes = vec![0; 512];
    rng.fill(&mut bytes);
    let data = Segments::from_iter([Buf::copy_from(&bytes)]);
    memory.write(block, data, Class::HostWrite).await.expect("nothing fails");
}

/// Each page holds what it did, or is told to be lost; the lost ones.
async fn lost(drive: &Medium, extent: ExtentId, numbers: &[u32]) -> Vec<u32> {
    let mut lost = Vec::new();
    for (number, content) in numbers.iter().zip(CONTENTS) {
        let at = PageId { extent, page: *number };
        let expected = page(content, &drive.shape());
        match read(drive, at, content).await {
            Ok(found) if data(&found) == data(&expected) => {
                assert!(found.spare() == expected.spare());
            }
            // The log's checksum of the value tells.
            Ok(found) => {
                assert!(found.spare() == expected.spare());
                lost.push(*number);
            }
            Err(error) => {
                assert_eq!(error, Error::Unrecovered(at));
                lost.push(*number);
            }
        }
    }
    lost
}

#[test]
fn what_is_spoiled_below_a_page_that_landed_later_stays_as_a_page_that_is_lost() {
    let mut rng = Rng::new(3);
    let shape = on(formatted(512, EXTENTS), Durability::Group, async |drive| drive.shape());
    let units = CONTENTS.map(|content| units(&page(content, &shape), &shape));
    for spoiled in 0..5 {
        for unit in 0..units[spoiled] {
            let memory = formatted(512, EXTENTS);
            let numbers = two_extents(&memory);
            Reactor::new(None).run(async {
                for extent in [0, 1].map(ExtentId) {
                    let at = PageId { extent, page: numbers[spoiled] + unit };
                    spoil(&memory, block(at), &mut rng).await;
                }
            });
            on(memory, Durability::Group, async |drive| {
                let found = Media::extents(&*drive);
                for (info, extent) in found.iter().zip([0, 1].map(ExtentId)) {
                    assert_eq!((info.id, info.pages), (extent, numbers[5] + units[5]));
                    assert_eq!(drive.pages(extent).await.unwrap(), numbers, "page {spoiled}");
                    assert_eq!(lost(&drive, extent, &numbers).await, [numbers[spoiled]]);
                }
            });
        }
    }
}

#[test]
fn a_block_that_cannot_be_read_loses_its_page_and_no_other() {
    let memory = formatted(512, EXTENTS);
    let numbers = two_extents(&memory);
    for unreadable in 8..(8_192 + 2 * EXTENT_BYTES) / 512 + 16 {
        let worn =
            Worn { memory: memory.clone(), unreadable: BTreeSet::from([unreadable]), trims: true };
        Reactor::new(None).run(async {
            let drive = Medium::look(Arc::new(worn)).await.unwrap();
            let found = Media::extents(&drive);
            assert_eq!(found.len(), 2, "block {unreadable}");
            for extent in [0, 1].map(ExtentId) {
                let pages = drive.pages(extent).await.unwrap();
                assert!(pages.starts_with(&numbers), "block {unreadable}: {pages:?}");
                let lost = lost(&drive, extent, &numbers).await;
                let shape = drive.shape();
                let hit = numbers.iter().zip(CONTENTS).find(|(number, content)| {
                    let first = block(PageId { extent, page: **number });
                    let count = units(&page(*content, &shape), &shape);
                    (first..first + u64::from(count)).contains(&unreadable)
                });
                assert_eq!(lost, hit.into_iter().map(|(number, _)| *number).collect::<Vec<_>>());
            }
        });
    }
}

async fn move_blocks(memory: &MemoryBlocks, from: u64, to: u64, count: u64) -> Vec<Segments> {
    let mut before = Vec::new();
    for block in 0..count {
        before.push(memory.read(to + block, 1, Class::HostRead).await.expect("nothing fails"));
        let content = memory.read(from + block, 1, Class::HostRead).await.expect("nothing fails");
        memory.write(to + block, content, Class::HostWrite).await.expect("nothing fails");
    }
    before
}

#[test]
fn swapped_extents_are_told_of_and_not_used() {
    let blocks = EXTENT_BYTES / 512;
    // The second is in use too, or free.
    for other in [1, 3] {
        let memory = formatted(512, EXTENTS);
        two_extents(&memory);
        let [first, second] = [0, other].map(|extent| 8_192 / 512 + extent * blocks);
        Reactor::new(None).run(async {
            let before = move_blocks(&memory, second, first, blocks).await;
            for (block, content) in (second..).zip(before) {
                memory.write(block, content, Class::HostWrite).await.unwrap();
            }
        });
        on(memory, Durability::Group, async |drive| {
            let swapped = [0, u32::try_from(other).unwrap()].map(ExtentId);
            for extent in swapped {
                let pages = drive.pages(extent).await.unwrap();
                let at = PageId { extent, page: pages[0] };
                assert_eq!(read(&drive, at, 1).await.map(|_| ()), Err(Error::Unrecovered(at)));
            }
            assert_eq!(drive.free_extents(), if other == 1 { 3 } else { 2 });
            // Who has told of it may use the place again.
            for extent in swapped {
                drive.reset(extent, Class::Gc).await.unwrap();
            }
            let mut opened = BTreeSet::new();
            while let Ok(extent) = Media::open(&*drive, label(9)) {
                append(&drive, extent, 0, &CONTENTS).await;
                opened.insert(extent);
            }
            assert!(swapped.iter().all(|extent| opened.contains(extent)));
        });
    }
}

#[test]
fn a_frame_of_another_place_is_no_page() {
    let memory = formatted(512, EXTENTS);
    let numbers = two_extents(&memory);
    let shape = on(memory.clone(), Durability::Group, async |drive| drive.shape());
    let count = u64::from(units(&page(CONTENTS[1], &shape), &shape));
    let [from, to] =
        [0, 1].map(|extent| block(PageId { extent: ExtentId(extent), page: numbers[1] }));
    Reactor::new(None).run(async { move_blocks(&memory, from, to, count).await });
    on(memory, Durability::Group, async |drive| {
        assert_eq!(lost(&drive, ExtentId(1), &numbers).await, [numbers[1]]);
        assert_eq!(drive.pages(ExtentId(1)).await.unwrap(), numbers);
        assert_holds(&drive, PageId { extent: ExtentId(0), page: numbers[1] }, CONTENTS[1]).await;
    });
}

/// A drive of one extent on a disk that does not trim.
fn untrimmed(memory: &Arc<MemoryBlocks>) -> Arc<Worn> {
    Arc::new(Worn { memory: memory.clone(), unreadable: BTreeSet::new(), trims: false })
}

#[test]
fn what_was_reset_is_not_found_again_by_either_mark_alone() {
    let extent_blocks = EXTENT_BYTES / 512;
    for mark in [8_192 / 512, 8_192 / 512 + extent_blocks - 16] {
        let memory = formatted(512, 1);
        on(untrimmed(&memory), Durability::Group, async |drive| {
            let extent = Media::open(&*drive, label(1)).unwrap();
            append(&drive, extent, 0, &CONTENTS).await;
            drive.reset(extent, Class::Gc).await.unwrap();
        });
        let mut rng = Rng::new(mark);
        Reactor::new(None).run(spoil(&memory, mark, &mut rng));
        on(memory, Durability::Group, async |drive| {
            assert!(Media::extents(&*drive).is_empty());
            let extent = Media::open(&*drive, label(2)).unwrap();
            append(&drive, extent, 0, &CONTENTS[..1]).await;
            assert_eq!(drive.pages(extent).await, Ok(vec![0]));
        });
    }
}

/// Has the ledger know of nothing, as if what was appended had not landed.
async fn forget(memory: &MemoryBlocks) {
    let blocks = memory.shape().blocks;
    let zeros = Segments::from_iter([Buf::copy_from(&[0; 8_192])]);
    memory.write(blocks / 8 * 8 - 24, zeros, Class::HostWrite).await.expect("nothing fails");
}

/// Of an opening that was cut off nothing may be left but a page in the middle, where the next
/// opening puts one too.
#[test]
fn what_was_cut_off_is_not_taken_for_what_a_later_mount_appends() {
    let memory = formatted(512, 1);
    let first = block(PageId { extent: ExtentId(0), page: 0 });
    on(memory.clone(), Durability::Group, async |drive| {
        let extent = Media::open(&*drive, label(1)).unwrap();
        append(&drive, extent, 0, &CONTENTS).await;
    });
    Reactor::new(None).run(async {
        let zeros = Segments::from_iter([Buf::copy_from(&[0; 4_096])]);
        memory.write(first, zeros, Class::HostWrite).await.unwrap();
        forget(&memory).await;
    });
    on(memory.clone(), Durability::Group, async |drive| {
        assert!(Media::extents(&*drive).is_empty());
        let extent = Media::open(&*drive, label(2)).unwrap();
        append(&drive, extent, 0, &CONTENTS[..1]).await;
    });
    on(memory, Durability::Group, async |drive| {
        let found = Media::extents(&*drive);
        assert_eq!((found.len(), found[0].label), (1, label(2)));
        assert_eq!(drive.pages(found[0].id).await, Ok(vec![0]));
    });
}

/// A later page of the same data may be written over one that was cut off, and be cut off too.
#[test]
fn what_was_cut_off_does_not_become_whole_later() {
    let memory = formatted(512, 1);
    on(memory.clone(), Durability::Group, async |drive| {
        let extent = Media::open(&*drive, label(1)).unwrap();
        append(&drive, extent, 0, &CONTENTS[..1]).await;
    });
    let data = block(PageId { extent: ExtentId(0), page: 3 });
    let before = Reactor::new(None).run(async {
        let before = memory.read(data, 1, Class::HostRead).await.unwrap();
        spoil(&memory, data, &mut Rng::new(1)).await;
        forget(&memory).await;
        before
    });
    let is_free = async |drive: Arc<Medium>| Media::extents(&*drive).is_empty();
    assert!(on(memory.clone(), Durability::Group, is_free));
    Reactor::new(None).run(async {
        memory.write(data, before, Class::HostWrite).await.unwrap();
    });
    assert!(on(memory, Durability::Group, is_free));
}

/// The units that an interrupted write did not reach differ in one bit from the new content. If
/// that counted as damage, the lost page would hide the values that it replaces.
#[test]
fn an_interrupted_page_of_which_one_bit_is_missing_ends_the_extent() {
    let one_bit = |len: usize| {
        let mut bytes = vec![0; len];
        bytes[len - 1] = 2;
        bytes
    };
    // The last unit of the data, that of the spare bytes, and both.
    let spare = UNIT as usize - 64;
    let torn = [
        (Page::new(b"spare", [Buf::copy_from(&one_bit(1))]), vec![1]),
        (Page::new(b"spare", [Buf::copy_from(&one_bit(UNIT as usize + 1))]), vec![2]),
        (Page::new(&one_bit(spare + 1), [Buf::copy_from(&[7; 600])]), vec![1, 2, 3]),
        (Page::new(&one_bit(spare + 1), [Buf::copy_from(&one_bit(1))]), vec![1, 2]),
    ];
    for (number, (page, missing)) in torn.into_iter().enumerate() {
        let memory = formatted(512, EXTENTS);
        let extent = ExtentId(0);
        let end = on(memory.clone(), Durability::Group, async |drive| {
            assert_eq!(Media::open(&*drive, label(1)), Ok(extent));
            let (_, end) = append(&drive, extent, 0, &CONTENTS[..2]).await;
            let at = PageId { extent, page: drive.place(PageId { extent, page: end }, false) };
            drive.append(at, page, Class::HostWrite).await.expect("nothing fails");
            assert_eq!(at.page, end);
            end
        });
        Reactor::new(None).run(async {
            for unit in missing {
                let zeros = Segments::from_iter([Buf::copy_from(&[0; UNIT as usize])]);
                let block = block(PageId { extent, page: end + unit });
                memory.write(block, zeros, Class::HostWrite).await.expect("nothing fails");
            }
            forget(&memory).await;
        });
        on(memory, Durability::Group, async |drive| {
            let found = Media::extents(&*drive);
            assert_eq!((found.len(), found[0].pages), (1, end), "page {number}");
            assert_eq!(drive.pages(extent).await.unwrap().len(), 2, "page {number}");
        });
    }
}

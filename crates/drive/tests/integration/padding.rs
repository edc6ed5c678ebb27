//! Blocks that are larger than units: which pages share one, and what lies between others.

use crate::rig::{EXTENTS, units};
use crate::rig::{UNIT, append, assert_holds, formatted, label, on, page, read};
use crate::slow::{Counts, Slow, WRITE};
use base::{Buf, Nanos, Rng};
use clock::{Class, Stage, sleep};
use drive::{Durability, Medium};
use media::{Blocks, Error, ExtentId, Media, MemoryBlocks, OnDisk, Page, PageId, Segments, Span};
use reactor::Reactor;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

const BLOCK: u32 = 4_096;

/// Long enough for a few writes.
const WAIT: Nanos = Nanos(9 * WRITE.0);

/// The block of a unit of the first extent.
const fn block(unit: u32) -> u64 {
    (8_192 + 4_096) / BLOCK as u64 + (unit * UNIT / BLOCK) as u64
}

/// A page of so many units: one for its head.
fn page_of(units: u32) -> Page {
    Page::new(b"spare", [Buf::copy_from(&vec![3; ((units - 1) * UNIT) as usize])])
}

type Ended = Rc<RefCell<Vec<u32>>>;

fn start(drive: &Arc<Medium>, at: PageId, units: u32, ended: &Ended) {
    let (drive, ended) = (drive.clone(), ended.clone());
    clock::spawn(async move {
        drive.append(at, page_of(units), Class::HostWrite).await.expect("nothing fails");
        ended.borrow_mut().push(at.page);
    });
}

#[test]
fn a_lone_page_is_padded_to_a_block_and_the_next_begins_one() {
    let slow = Slow::new(formatted(BLOCK, EXTENTS));
    on(slow.clone(), Durability::Capacitor, async |drive| {
        let extent = Media::open(&*drive, label(0)).unwrap();
        *slow.counts() = Counts::default();
        let (mut next, mut expected) = (0, Vec::new());
        for units in [2, 17, 8, 1] {
            let at = PageId { extent, page: drive.place(PageId { extent, page: next }, true) };
            assert_eq!(at.page, next.next_multiple_of(8));
            drive.append(at, page_of(units), Class::HostWrite).await.unwrap();
            next = at.page + units;
            expected.push((block(at.page), u64::from(units.div_ceil(8))));
        }
        assert_eq!(slow.counts().writes, expected);
        assert_eq!(Media::extents(&*drive)[0].pages, next);
    });
}

#[test]
fn pages_that_wait_together_lie_close_together() {
    let slow = Slow::new(formatted(BLOCK, EXTENTS));
    on(slow.clone(), Durability::Capacitor, async |drive| {
        let extent = Media::open(&*drive, label(0)).unwrap();
        *slow.counts() = Counts::default();
        let ended = Ended::default();
        for number in 0..6 {
            let at = PageId { extent, page: 17 * number };
            assert_eq!(drive.place(at, true), at.page);
            start(&drive, at, 17, &ended);
        }
        sleep(WAIT, Stage::Queue).await;
        // 102 units in 13 blocks.
        assert_eq!(slow.counts().writes, [(block(0), 13)]);
        assert_eq!(*ended.borrow(), [0, 17, 34, 51, 68, 85]);
    });
}

#[test]
fn a_page_waits_for_one_that_shares_its_block_and_for_no_other() {
    let slow = Slow::new(formatted(BLOCK, EXTENTS));
    on(slow.clone(), Durability::Capacitor, async |drive| {
        let extent = Media::open(&*drive, label(0)).unwrap();
        *slow.counts() = Counts::default();
        let (ended, at) = (Ended::default(), |page| PageId { extent, page });
        assert_eq!(drive.place(at(0), true), 0);
        assert_eq!(drive.place(at(3), true), 3);
        start(&drive, at(0), 3, &ended);
        sleep(WAIT, Stage::Queue).await;
        assert_eq!((slow.counts().writes.len(), ended.borrow().len()), (0, 0));
        // One that may come late does not hold those before it.
        assert_eq!(drive.place(at(5), false), 8);
        start(&drive, at(3), 2, &ended);
        sleep(WAIT, Stage::Queue).await;
        assert_eq!(slow.counts().writes, [(block(0), 1)]);
        assert_eq!(*ended.borrow(), [0, 3]);
        start(&drive, at(8), 8, &ended);
        // This one begins a block in any case.
        assert_eq!(drive.place(at(16), true), 16);
        sleep(WAIT, Stage::Queue).await;
        assert_eq!(slow.counts().writes[1..], [(block(8), 1)]);
        start(&drive, at(16), 1, &ended);
        sleep(WAIT, Stage::Queue).await;
        assert_eq!(*ended.borrow(), [0, 3, 8, 16]);
    });
}

#[test]
fn who_ends_an_extent_waits_for_no_page_that_never_came() {
    on(formatted(BLOCK, EXTENTS), Durability::Group, async |drive| {
        let extent = Media::open(&*drive, label(0)).unwrap();
        assert_eq!(drive.place(PageId { extent, page: 0 }, true), 0);
        assert_eq!(drive.place(PageId { extent, page: 3 }, true), 3);
        start(&drive, PageId { extent, page: 0 }, 3, &Ended::default());
        sleep(WAIT, Stage::Queue).await;
        drive.close().await.unwrap();
        assert_eq!(drive.pages(extent).await, Ok(vec![0]));
    });
}

#[test]
fn pages_that_come_at_any_time_are_where_they_were_placed_and_no_block_is_written_twice() {
    for seed in 0..40 {
        let memory = formatted(BLOCK, EXTENTS);
        let slow = Slow::new(memory.clone());
        let durability = if seed % 2 == 0 { Durability::Group } else { Durability::Capacitor };
        let (extent, known) = on(slow, durability, async |drive| {
            let mut rng = Rng::new(seed);
            let extent = Media::open(&*drive, label(0)).unwrap();
            let (shape, mut next, mut known) = (drive.shape(), 0_u32, Vec::new());
            let mut queue: Vec<(PageId, u64)> = Vec::new();
            for content in 100 * seed.. {
                let page = page(content, &shape);
                let most = next.next_multiple_of(8) + units(&page, &shape);
                if most > shape.pages_per_extent {
                    break;
                }
                let at = PageId { extent, page: next };
                let at = PageId { page: drive.place(at, rng.below(3) > 0), ..at };
                assert!((next..=next.next_multiple_of(8)).contains(&at.page));
                next = at.page + units(&page, &shape);
                known.push((at.page, content));
                queue.push((at, content));
                if rng.below(3) > 0 {
                    for (at, content) in queue.drain(..) {
                        let (drive, page) = (drive.clone(), crate::rig::page(content, &shape));
                        clock::spawn(async move {
                            drive.append(at, page, Class::HostWrite).await.unwrap();
                        });
                    }
                }
                sleep(Nanos(rng.below(4) * rng.below(60_000)), Stage::Queue).await;
            }
            // Each may wait for the next.
            let appends = queue.drain(..).map(|(at, content)| {
                let (drive, page) = (drive.clone(), page(content, &shape));
                async move { drive.append(at, page, Class::HostWrite).await.unwrap() }
            });
            clock::join_all(appends.collect()).await;
            sleep(Nanos(100_000_000), Stage::Queue).await;
            for (number, content) in &known {
                assert_holds(&drive, PageId { extent, page: *number }, *content).await;
            }
            (extent, known)
        });
        // Once read through, once by its footer.
        for _ in 0..2 {
            on(memory.clone(), durability, async |drive| {
                let numbers: Vec<u32> = known.iter().map(|(number, _)| *number).collect();
                assert_eq!(drive.pages(extent).await.unwrap(), numbers, "seed {seed}");
                let mut swept = Vec::new();
                let mut from = Some(0);
                while let Some(first) = from {
                    let some = drive.sweep(extent, first, Class::HostRead).await.unwrap();
                    assert!(some.pages.iter().all(|page| page.is_whole));
                    swept.extend(some.pages.iter().map(|page| page.number));
                    from = some.next;
                }
                assert_eq!(swept, numbers, "seed {seed}");
                for (number, content) in &known {
                    assert_holds(&drive, PageId { extent, page: *number }, *content).await;
                }
            });
        }
    }
}

/// Fills 512 bytes of a unit of the first extent with anything.
fn spoil(memory: &MemoryBlocks, unit: u32, rng: &mut Rng) {
    Reactor::new(None).run(async {
        let found = memory.read(block(unit), 1, Class::HostRead).await.expect("nothing fails");
        let mut bytes =
            Buf::join(&found).expect("nothing fails").bytes().expect("nothing fails").to_vec();
        rng.fill(&mut bytes[(unit % 8 * UNIT) as usize..][..UNIT as usize]);
        let data = Segments::from_iter([Buf::copy_from(&bytes)]);
        memory.write(block(unit), data, Class::HostWrite).await.expect("nothing fails");
    });
}

/// Pages of an extent, some of them alone in their write, with their numbers; it is sealed or not.
fn some_pages(memory: &Arc<MemoryBlocks>, seals: bool) -> Vec<(u32, u64)> {
    on(memory.clone(), Durability::Group, async |drive| {
        let extent = Media::open(&*drive, label(1)).expect("nothing fails");
        assert_eq!(extent, ExtentId(0));
        let (mut known, mut next) = (Vec::new(), 0);
        for contents in [&[3][..], &[4, 5, 8], &[9], &[10, 11], &[12]] {
            let (numbers, end) = append(&drive, extent, next, contents).await;
            known.extend(numbers.into_iter().zip(contents.iter().copied()));
            next = end;
        }
        if seals {
            drive.seal(extent, known[6].0).await.expect("nothing fails");
        }
        known
    })
}

#[test]
fn a_destroyed_head_before_the_end_of_a_block_is_damage_and_not_padding() {
    let mut rng = Rng::new(1);
    for (seals, lost) in (0..7).flat_map(|lost| [(false, lost), (true, lost)]) {
        let memory = formatted(BLOCK, EXTENTS);
        let known = some_pages(&memory, seals);
        assert!(known.iter().skip(1).any(|(number, _)| number % 8 == 0));
        assert!(known.iter().any(|(number, _)| number % 8 != 0));
        spoil(&memory, known[lost].0, &mut rng);
        on(memory, Durability::Group, async |drive| {
            let extent = ExtentId(0);
            let found = drive.pages(extent).await.unwrap();
            assert_eq!(found.len(), known.len(), "page {lost}: {found:?} of {known:?}");
            for (at, (number, content)) in known.iter().enumerate() {
                let page = PageId { extent, page: *number };
                if at == lost {
                    let error = read(&drive, page, *content).await.map(drop);
                    assert_eq!(error, Err(Error::Unrecovered(page)));
                    // It begins behind what may be padding, or may not.
                    let before = found[at]..=found[at].next_multiple_of(8);
                    assert!(before.contains(number), "page {lost}: {found:?} of {known:?}");
                } else {
                    assert_eq!(found[at], *number);
                    assert_holds(&drive, page, *content).await;
                }
            }
        });
    }
}

/// A small page behind another in the same block, and padding behind it.
#[test]
fn a_small_page_that_is_gone_from_the_end_of_a_block_is_missed() {
    let memory = formatted(BLOCK, EXTENTS);
    on(memory.clone(), Durability::Group, async |drive| {
        let extent = Media::open(&*drive, label(1)).unwrap();
        let mut appends = Vec::new();
        for (at, units) in [(0, 5), (5, 2)].map(|(page, n)| (PageId { extent, page }, n)) {
            assert_eq!(drive.place(at, true), at.page);
            let drive = drive.clone();
            appends.push(async move { drive.append(at, page_of(units), Class::Gc).await.unwrap() });
        }
        clock::join_all(appends).await;
        let at = PageId { extent, page: drive.place(PageId { extent, page: 7 }, true) };
        assert_eq!(at.page, 8);
        drive.append(at, page_of(2), Class::Gc).await.unwrap();
    });
    let pages = |memory: &Arc<MemoryBlocks>| {
        on(memory.clone(), Durability::Group, async |drive| drive.pages(ExtentId(0)).await.unwrap())
    };
    assert_eq!(pages(&memory), [0, 5, 8]);
    // Zeros, as padding is.
    Reactor::new(None).run(async {
        let found = memory.read(block(0), 1, Class::HostRead).await.unwrap();
        let mut bytes = Buf::join(&found).unwrap().bytes().unwrap().to_vec();
        bytes[5 * UNIT as usize..].fill(0);
        let data = Segments::from_iter([Buf::copy_from(&bytes)]);
        memory.write(block(0), data, Class::HostWrite).await.unwrap();
    });
    assert_eq!(pages(&memory), [0, 5, 8]);
    on(memory, Durability::Group, async |drive| {
        let at = PageId { extent: ExtentId(0), page: 5 };
        let found = drive.read(Span { at, units: 2 }, &|_| 0, Class::HostRead).await;
        assert_eq!(found.map(drop), Err(Error::Unrecovered(at)));
        let swept = drive.sweep(ExtentId(0), 0, Class::HostRead).await.unwrap();
        let mut numbers: Vec<_> = swept.pages.iter().map(|p| (p.number, p.is_whole)).collect();
        let rest = drive.sweep(ExtentId(0), swept.next.unwrap(), Class::HostRead).await.unwrap();
        numbers.extend(rest.pages.iter().map(|p| (p.number, p.is_whole)));
        let rest = drive.sweep(ExtentId(0), rest.next.unwrap_or(8), Class::HostRead).await.unwrap();
        numbers.extend(rest.pages.iter().map(|p| (p.number, p.is_whole)));
        numbers.dedup();
        assert_eq!(numbers, [(0, true), (5, false), (8, true)]);
    });
}

/// One bit that is wrong tells that a page had landed, behind padding too.
#[test]
fn a_flipped_bit_behind_padding_is_damage() {
    for bit in (0..8 * 64).step_by(7) {
        let memory = formatted(BLOCK, EXTENTS);
        let known = some_pages(&memory, false);
        let (last, _) = *known.last().unwrap();
        assert_eq!(last % 8, 0, "it is alone in its write");
        let blocks = memory.shape().blocks;
        Reactor::new(None).run(async {
            let found = memory.read(block(last), 1, Class::HostRead).await.unwrap();
            let flipped = Segments::from_iter([found[0].with_flipped_bit(bit)]);
            memory.write(block(last), flipped, Class::HostWrite).await.unwrap();
            // The ledger knows nothing of it.
            let zeros = Segments::from_iter([Buf::copy_from(&[0; 8_192])]);
            memory.write(blocks - 3, zeros, Class::HostWrite).await.unwrap();
        });
        on(memory, Durability::Group, async |drive| {
            let numbers: Vec<u32> = known.iter().map(|(number, _)| *number).collect();
            assert_eq!(drive.pages(ExtentId(0)).await.unwrap(), numbers, "bit {bit}");
        });
    }
}

#[test]
fn a_page_is_read_at_once_by_the_blocks_that_it_lies_in() {
    let slow = Slow::new(formatted(BLOCK, EXTENTS));
    on(slow.clone(), Durability::Group, async |drive| {
        let extent = Media::open(&*drive, label(0)).unwrap();
        let at = move |number: u32| PageId { extent, page: 17 * number };
        let appends = (0..6).map(|number| {
            drive.place(at(number), true);
            let drive = drive.clone();
            async move { drive.append(at(number), page_of(17), Class::Gc).await.unwrap() }
        });
        clock::join_all(appends.collect()).await;
        *slow.counts() = Counts::default();
        for number in 0..6 {
            let span = Span { at: at(number), units: 17 };
            let found = drive.read(span, &|_| 0, Class::HostRead).await.unwrap();
            assert_eq!(found.data_bytes(), 8_192);
        }
        // 12 KiB for 8 KiB and their head, wherever in a block they begin.
        let blocks = (0..6).map(|number| (block(17 * number), 3)).collect::<Vec<_>>();
        assert_eq!(slow.counts().reads, blocks);
    });
}

/// A log begins a summary with 4 KiB, whatever the blocks.
#[test]
fn what_the_log_leaves_out_is_padding_on_small_blocks_too() {
    let memory = formatted(512, EXTENTS);
    let mut rng = Rng::new(1);
    Reactor::new(None).run(async {
        // What was there before is gone.
        let mut bytes = vec![0; 16 * UNIT as usize];
        rng.fill(&mut bytes);
        let data = Segments::from_iter([Buf::copy_from(&bytes)]);
        memory.write((8_192 + 4_096) / 512 + 1, data, Class::HostWrite).await.unwrap();
    });
    on(memory.clone(), Durability::Group, async |drive| {
        let extent = Media::open(&*drive, label(1)).unwrap();
        for (from, units) in [(0, 3), (8, 2), (10, 1)] {
            let at = PageId { extent, page: from };
            assert_eq!(drive.place(at, true), from);
            drive.append(at, page_of(units), Class::Gc).await.unwrap();
        }
        let found = memory.read((8_192 + 4_096) / 512 + 3, 5, Class::HostRead).await.unwrap();
        assert!(found.iter().all(|part| part.bytes().unwrap().iter().all(|byte| *byte == 0)));
    });
    on(memory, Durability::Group, async |drive| {
        assert_eq!(drive.pages(ExtentId(0)).await.unwrap(), [0, 8, 10]);
    });
}

/// What was cut off behind padding takes the padding with it.
#[test]
fn an_extent_ends_with_its_last_whole_page_and_not_with_padding() {
    let memory = formatted(BLOCK, EXTENTS);
    on(memory.clone(), Durability::Group, async |drive| {
        let extent = Media::open(&*drive, label(1)).unwrap();
        for from in [0, 8] {
            let at = PageId { extent, page: from };
            assert_eq!(drive.place(at, true), from);
            drive.append(at, page_of(3), Class::Gc).await.unwrap();
        }
    });
    spoil(&memory, 9, &mut Rng::new(1));
    let blocks = memory.shape().blocks;
    Reactor::new(None).run(async {
        // The ledger knows nothing of it.
        let zeros = Segments::from_iter([Buf::copy_from(&[0; 8_192])]);
        memory.write(blocks - 3, zeros, Class::HostWrite).await.unwrap();
    });
    for _ in 0..2 {
        on(memory.clone(), Durability::Group, async |drive| {
            assert_eq!(Media::extents(&*drive)[0].pages, 3);
            assert_eq!(drive.pages(ExtentId(0)).await.unwrap(), [0]);
            let swept = drive.sweep(ExtentId(0), 0, Class::HostRead).await.unwrap();
            assert_eq!((swept.pages.len(), swept.next), (1, None));
        });
    }
}

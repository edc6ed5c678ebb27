//! When appends return, and what they share.

use crate::rig::{EXTENT_BYTES, EXTENTS, FORMAT, formatted, label, memory, on};
use crate::slow::{Counts, FLUSH, Slow, WRITE};
use base::{Buf, Nanos};
use clock::{Class, Stage, now, sleep};
use drive::{Durability, Format, Medium};
use media::{Error, ExtentId, Media, OnDisk, Page, PageId, Span};
use reactor::Reactor;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// Two units of 512 bytes: head and data.
pub(crate) fn small_page() -> Page {
    Page::new(b"spare", [Buf::copy_from(&[3; 400])])
}

/// The block of a page of the first extent, on blocks of 512 bytes.
pub(crate) const fn block(page: u32) -> u64 {
    (8_192 + 4_096) / 512 + page as u64
}

/// When each append ended, and how.
type Ended = Rc<RefCell<Vec<(u32, Nanos, Result<(), Error>)>>>;

/// Starts to append small pages from number `first` on.
fn start(drive: &Arc<Medium>, extent: ExtentId, pages: impl Iterator<Item = u32>) -> Ended {
    let ended = Ended::default();
    for page in pages {
        let (drive, ended) = (drive.clone(), ended.clone());
        clock::spawn(async move {
            let at = PageId { extent, page };
            let result = drive.append(at, small_page(), Class::HostWrite).await;
            ended.borrow_mut().push((page, now(), result));
        });
    }
    ended
}

/// Long enough for anything.
async fn wait() {
    sleep(Nanos(100_000_000), Stage::Queue).await;
}

#[test]
fn of_64_appends_at_once_one_write_and_one_flush_take_care() {
    let slow = Slow::new(formatted(512, EXTENTS));
    on(slow.clone(), Durability::Group, async |drive| {
        let extent = Media::open(&*drive, label(0)).unwrap();
        *slow.counts() = Counts::default();
        let (ended, began) = (start(&drive, extent, (0..40).map(|n| 2 * n)), now());
        wait().await;
        assert_eq!(slow.counts().writes, [(block(0), 80)]);
        assert_eq!(slow.counts().flushes, 1);
        let expected: Vec<_> = (0..40).map(|n| (2 * n, began + WRITE + FLUSH, Ok(()))).collect();
        assert_eq!(*ended.borrow(), expected);
    });
}

#[test]
fn one_flush_is_under_way_and_all_that_was_written_before_it_began_share_it() {
    let slow = Slow::new(formatted(512, EXTENTS));
    on(slow.clone(), Durability::Group, async |drive| {
        let extents: Vec<_> =
            (0..4).map(|epoch| Media::open(&*drive, label(epoch)).unwrap()).collect();
        *slow.counts() = Counts::default();
        let began = now();
        let mut all = Vec::new();
        // One append every 51 us, in four extents in turn.
        for number in 0..40_u32 {
            let extent = extents[(number % 4) as usize];
            let ended = start(&drive, extent, std::iter::once(number / 4 * 2));
            all.push((now(), ended));
            sleep(Nanos(51_000), Stage::Queue).await;
        }
        wait().await;
        let counts = slow.counts();
        assert_eq!((counts.flushing_max, counts.flushes), (1, 3));
        for (start, ended) in all {
            // The flush that began at the end of the first write, or one that came right after.
            let written = start + WRITE - began;
            let begin = (written.0 - WRITE.0).div_ceil(FLUSH.0) * FLUSH.0 + WRITE.0;
            assert_eq!(ended.borrow()[0].1 - began, Nanos(begin) + FLUSH, "written at {written}");
        }
    });
}

#[test]
fn pages_that_come_while_a_write_is_under_way_go_out_together() {
    let slow = Slow::new(formatted(512, EXTENTS));
    on(slow.clone(), Durability::Capacitor, async |drive| {
        let extent = Media::open(&*drive, label(0)).unwrap();
        *slow.counts() = Counts::default();
        let mut ends = Vec::new();
        for number in 0..20 {
            ends.push(start(&drive, extent, std::iter::once(2 * number)));
            sleep(Nanos(1_000), Stage::Queue).await;
        }
        wait().await;
        let counts = slow.counts();
        let expected = [(block(0), 2), (block(2), 38)];
        assert_eq!((&counts.writes[..], counts.writing_max, counts.flushes), (&expected[..], 1, 0));
    });
}

/// 64 KiB are 64 of these pages, more than the extents of the other tests have.
#[test]
fn what_is_worth_a_write_goes_out_beside_others() {
    let format = Format { extent_bytes: Some(4 * EXTENT_BYTES), ..FORMAT };
    let slow = Slow::new(memory(512, 4 * EXTENTS));
    Reactor::new(None).run(async {
        Medium::format(slow.clone(), format).await.expect("nothing fails");
        let opened = Medium::open(slow.clone(), Durability::Capacitor).await;
        let drive = Arc::new(opened.expect("nothing fails"));
        let extent = Media::open(&*drive, label(0)).unwrap();
        *slow.counts() = Counts::default();
        let mut ends = Vec::new();
        for number in 0..90 {
            ends.push(start(&drive, extent, std::iter::once(2 * number)));
            sleep(Nanos(1_000), Stage::Queue).await;
        }
        wait().await;
        let counts = slow.counts();
        let expected = [(block(0), 2), (block(2), 128), (block(130), 50)];
        assert_eq!((&counts.writes[..], counts.writing_max), (&expected[..], 2));
    });
}

#[test]
fn a_page_lands_behind_all_before_it() {
    for durability in [Durability::Group, Durability::Capacitor] {
        let slow = Slow::new(formatted(512, EXTENTS));
        on(slow.clone(), durability, async |drive| {
            let extent = Media::open(&*drive, label(0)).unwrap();
            slow.slow_down(block(2), Nanos(10_000_000));
            let mut ends = Vec::new();
            for number in 0..4 {
                ends.push(start(&drive, extent, std::iter::once(2 * number)));
                sleep(Nanos(1_000), Stage::Queue).await;
            }
            wait().await;
            let times: Vec<_> = ends.iter().map(|ended| ended.borrow()[0].1).collect();
            assert!(times[0] + Nanos(8_000_000) < times[1], "{times:?}");
            assert!(times[1] == times[2] && times[2] == times[3], "{times:?}");
        });
    }
}

#[test]
fn a_failed_write_fails_all_behind_it_in_its_extent_and_nothing_else() {
    let memory = formatted(512, EXTENTS);
    let slow = Slow::new(memory.clone());
    on(slow.clone(), Durability::Group, async |drive| {
        let extent = Media::open(&*drive, label(0)).unwrap();
        let other = Media::open(&*drive, label(1)).unwrap();
        let error = Error::UnwrittenBlock(block(2));
        slow.fail_write(block(2), error);
        let (ended, began) = (Ended::default(), now());
        for number in 0..6 {
            let one = start(&drive, extent, std::iter::once(2 * number));
            sleep(Nanos(1_000), Stage::Queue).await;
            let ended = ended.clone();
            clock::spawn(async move {
                wait().await;
                ended.borrow_mut().extend(one.borrow().iter().copied());
            });
        }
        let of_other = start(&drive, other, 0..1);
        wait().await;
        wait().await;
        let results: Vec<_> = ended.borrow().iter().map(|(_, _, result)| *result).collect();
        assert_eq!(results[0], Ok(()));
        assert_eq!(results[1..], [Err(error); 5]);
        // All are told when nothing of the extent is under way any more.
        assert!(ended.borrow()[1..].iter().all(|(_, at, _)| *at <= began + WRITE + WRITE));
        assert_eq!(of_other.borrow()[0].2, Ok(()));
        assert_eq!(drive.seal(extent, 0).await, Err(error));
        assert_eq!(drive.pages(extent).await, Ok(vec![0]));
        assert_eq!(Media::extents(&*drive)[0].pages, 2);
        let next = PageId { extent, page: 12 };
        assert_eq!(drive.append(next, small_page(), Class::HostWrite).await, Err(error));
        drive.reset(extent, Class::Gc).await.unwrap();
        assert_eq!(drive.free_extents(), EXTENTS - 1);
    });
    on(memory, Durability::Group, async |drive| {
        assert_eq!(Media::extents(&*drive).len(), 1, "the other one is there");
    });
}

#[test]
fn after_a_failed_flush_nothing_is_written_and_what_is_there_is_read() {
    let slow = Slow::new(formatted(512, EXTENTS));
    on(slow.clone(), Durability::Group, async |drive| {
        let extent = Media::open(&*drive, label(0)).unwrap();
        let first = start(&drive, extent, 0..1);
        wait().await;
        slow.fail_flush(Error::NotFlushed);
        let second = start(&drive, extent, std::iter::once(2));
        sleep(WRITE + Nanos(1), Stage::Queue).await;
        let third = start(&drive, extent, std::iter::once(4));
        wait().await;
        let of = |ended: &Ended| ended.borrow()[0].2;
        let lost = Err(Error::NotFlushed);
        assert_eq!((of(&first), of(&second), of(&third)), (Ok(()), lost, lost));
        let writes = slow.counts().writes.len();
        let at = PageId { extent, page: 6 };
        assert_eq!(drive.append(at, small_page(), Class::HostWrite).await, lost);
        assert_eq!(Media::open(&*drive, label(9)), Err(Error::NotFlushed));
        assert_eq!(drive.reset(extent, Class::Gc).await, lost);
        assert_eq!((drive.flush().await, drive.seal(extent, 0).await), (lost, lost));
        assert_eq!(slow.counts().writes.len(), writes);
        let span = Span { at: PageId { extent, page: 0 }, units: 2 };
        let found = drive.read(span, &|_| 0, Class::HostRead).await.unwrap();
        assert_eq!(found.spare(), b"spare");
    });
}

/// The end of one extent asks for a flush after one has failed, while writes of another are under
/// way.
#[test]
fn no_flush_makes_durable_what_a_failed_one_may_have_lost() {
    let slow = Slow::new(formatted(512, EXTENTS));
    on(slow.clone(), Durability::Group, async |drive| {
        let [extent, ending] = [0, 1].map(|epoch| Media::open(&*drive, label(epoch)).unwrap());
        let first = start(&drive, ending, 0..1);
        wait().await;
        assert_eq!(first.borrow()[0].2, Ok(()));
        slow.fail_flush(Error::NotFlushed);
        let lost = start(&drive, extent, std::iter::once(0));
        sleep(WRITE + Nanos(1), Stage::Queue).await;
        // The flush is under way. This write ends before it does.
        let flushes = slow.counts().flushes;
        let late = start(&drive, extent, std::iter::once(2));
        sleep(Nanos(FLUSH.0 - WRITE.0 / 2), Stage::Queue).await;
        // These end after it.
        let sealing = drive.clone();
        clock::spawn(async move { sealing.seal(ending, 0).await.unwrap() });
        slow.slow_down(block(4), Nanos(5 * FLUSH.0));
        let later = start(&drive, extent, std::iter::once(4));
        wait().await;
        assert_eq!(slow.counts().flushes, flushes, "no flush begins after it");
        for ended in [&lost, &late, &later] {
            assert_eq!(ended.borrow()[0].2, Err(Error::NotFlushed));
        }
    });
}

#[test]
fn a_flush_covers_what_has_returned_and_costs_nothing_where_nothing_has() {
    let slow = Slow::new(formatted(512, EXTENTS));
    on(slow.clone(), Durability::EverySecond, async |drive| {
        let extent = Media::open(&*drive, label(0)).unwrap();
        let before = slow.counts().flushes;
        let flushes = || slow.counts().flushes - before;
        drive.flush().await.unwrap();
        assert_eq!(flushes(), 0);
        drive.append(PageId { extent, page: 0 }, small_page(), Class::HostWrite).await.unwrap();
        assert_eq!(flushes(), 0);
        drive.flush().await.unwrap();
        drive.flush().await.unwrap();
        assert_eq!(flushes(), 1);
    });
}

#[test]
fn a_footer_is_written_behind_a_flush_of_all_pages() {
    let slow = Slow::new(formatted(512, EXTENTS));
    on(slow.clone(), Durability::EverySecond, async |drive| {
        let extent = Media::open(&*drive, label(0)).unwrap();
        let ended = start(&drive, extent, (0..2).map(|n| 2 * n));
        sleep(Nanos(1), Stage::Queue).await;
        let (flushes, began) = (slow.counts().flushes, now());
        drive.seal(extent, 2).await.unwrap();
        assert_eq!(ended.borrow().len(), 2);
        assert_eq!(slow.counts().flushes - flushes, 1);
        assert_eq!(now() - began, Nanos(WRITE.0 - 1) + FLUSH + WRITE);
        assert_eq!(Media::extents(&*drive)[0].summary, Some(2));
        assert_eq!(drive.pages(extent).await, Ok(vec![0, 2]));
    });
}

#[test]
fn a_write_has_up_to_a_mebibyte_and_four_are_under_way() {
    let shape = media::BlocksShape { block_bytes: 4_096, blocks: 10_000, parallelism: 1 };
    let memory = Arc::new(media::MemoryBlocks::new(shape));
    let slow = Slow::new(memory.clone());
    reactor::Reactor::new(None).run(async {
        let format = drive::Format { extent_bytes: Some(16 << 20), ..crate::rig::FORMAT };
        Medium::format(memory, format).await.unwrap();
        let drive = Medium::open(slow.clone(), Durability::Capacitor).await.unwrap();
        let (drive, value) = (Arc::new(drive), Buf::copy_from(&vec![7; 65_000]));
        let extent = Media::open(&*drive, label(0)).unwrap();
        *slow.counts() = Counts::default();
        // 128 units each: of a head and of 127 of data, so 16 pages are a MiB.
        for number in 0..100 {
            let (drive, page) = (drive.clone(), Page::new(b"", [value.clone()]));
            let at = PageId { extent, page: number * 128 };
            assert_eq!(drive.place(at, true), at.page);
            clock::spawn(async move { drive.append(at, page, Class::HostWrite).await.unwrap() });
        }
        wait().await;
        let counts = slow.counts();
        let units: Vec<u64> = counts.writes.iter().map(|(_, units)| *units).collect();
        assert_eq!((units, counts.writing_max), (vec![256, 256, 256, 256, 256, 256, 64], 4));
    });
}

#[test]
fn who_closes_ends_what_is_open_and_writes_nothing_more() {
    let slow = Slow::new(formatted(512, EXTENTS));
    on(slow.clone(), Durability::EverySecond, async |drive| {
        let extent = Media::open(&*drive, label(0)).unwrap();
        Media::open(&*drive, label(1)).unwrap();
        let ended = start(&drive, extent, (0..3).map(|n| 2 * n));
        sleep(Nanos(1), Stage::Queue).await;
        let before = slow.counts().flushes;
        drive.close().await.unwrap();
        // Of pages, of footers and of the ledger, which tells of what was flushed.
        assert_eq!((ended.borrow().len(), slow.counts().flushes - before), (3, 3));
        assert_eq!(Media::open(&*drive, label(2)), Err(Error::ReadOnly));
    });
    let before = slow.counts().writes.len();
    on(slow.clone(), Durability::Group, async |drive| {
        // Both superblocks, and no footer.
        assert_eq!(slow.counts().writes.len() - before, 2);
        let extents = Media::extents(&*drive);
        assert_eq!((extents.len(), extents[0].pages, extents[0].summary), (1, 6, None));
        assert_eq!(drive.pages(extents[0].id).await, Ok(vec![0, 2, 4]));
    });
}

#[test]
#[should_panic(expected = "page 3 of extent 0 is appended to 2 units")]
fn appending_out_of_order_panics() {
    on(formatted(512, EXTENTS), Durability::Group, async |drive| {
        let extent = Media::open(&*drive, label(0)).unwrap();
        for page in [0, 3] {
            let at = PageId { extent, page };
            drive.append(at, small_page(), Class::HostWrite).await.unwrap();
        }
    });
}

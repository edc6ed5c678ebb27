//! A drive whose content is read in the background: at its rate, all of it, again after a restart
//! from where it was, and damage is told of.

use base::{Buf, Nanos, Rng};
use clock::{Class, Stage, sleep};
use controller::{QueuePair, Submission};
use drive::Format;
use media::{Blocks, BlocksShape, MemoryBlocks, Segments};
use node::{DiskDrive, DiskLook, DiskOptions};
use reactor::Reactor;
use spec::{Command, Status, StoreOptions};
use std::cell::RefCell;
use std::num::NonZero;
use std::rc::Rc;
use std::sync::Arc;

const EXTENT_BYTES: u64 = 1 << 20;
const EXTENTS: u64 = 24;
const FORMAT: Format = Format { id: [1; 16], secret: [2; 16], extent_bytes: Some(EXTENT_BYTES) };
const RATE: u64 = 1 << 20;
const KEYS: u64 = 400;
const PASS: Nanos = Nanos::from_secs(60 * 60);

type Told = Rc<RefCell<Vec<String>>>;

fn formatted() -> Arc<MemoryBlocks> {
    let blocks = (EXTENTS * EXTENT_BYTES + (20 << 10)) / 4_096;
    let shape = BlocksShape { block_bytes: 4_096, blocks, parallelism: 4 };
    let memory = Arc::new(MemoryBlocks::new(shape));
    let blocks = memory.clone();
    Reactor::new(None)
        .run(async { DiskDrive::format(blocks, FORMAT).await.expect("it is large enough") });
    memory
}

async fn open(memory: &Arc<MemoryBlocks>) -> DiskDrive {
    DiskDrive::open(memory.clone(), DiskOptions::default()).await.expect("it is a drive")
}

fn scrub(drive: &DiskDrive) -> Told {
    let told = Told::default();
    let tell = told.clone();
    let rate = NonZero::new(RATE).expect("it is some");
    drive.scrub(rate, move |sentence| tell.borrow_mut().push(sentence));
    told
}

async fn store(queue: &QueuePair, rng: &mut Rng) {
    let key = rng.below(KEYS).to_le_bytes();
    let mut value = vec![0; usize::try_from(rng.below(30_000)).expect("it is small")];
    rng.fill(&mut value);
    let len = u32::try_from(value.len()).expect("it is small");
    let command = Command::store(1, &key, len, StoreOptions::NONE);
    queue.submit(Submission { command, long_key: None, data: Buf::copy_from(&value) });
    assert_eq!(queue.next().await.status, Status::SUCCESS);
}

/// A drive with something on it that was closed.
fn filled() -> Arc<MemoryBlocks> {
    let memory = formatted();
    Reactor::new(None).run(async {
        let drive = open(&memory).await;
        let (queue, mut rng) = (drive.controller().queue_pair(), Rng::new(1));
        for _ in 0..600 {
            store(&queue, &mut rng).await;
        }
        drive.close().await.expect("nothing fails");
    });
    memory
}

async fn flip(memory: &MemoryBlocks, byte: u64) {
    let (block, at) = (byte / 4_096, usize::try_from(byte % 4_096).expect("it is small"));
    let found = memory.read(block, 1, Class::HostRead).await.expect("nothing fails");
    let found = Buf::join(&found);
    let mut bytes = found.as_ref().and_then(Buf::bytes).expect("it is real").to_vec();
    bytes[at] ^= 16;
    let data = Segments::from_iter([Buf::copy_from(&bytes)]);
    memory.write(block, data, Class::HostWrite).await.expect("nothing fails");
}

/// Bytes of all pages in extents to which nothing is appended.
fn bytes_of(drive: &DiskDrive) -> u64 {
    let facts = drive.store().extent_facts();
    facts.iter().map(|extent| u64::from(extent.pages) * u64::from(drive.info().unit_bytes)).sum()
}

#[test]
fn no_more_is_read_than_the_rate_allows_and_in_the_end_all() {
    let memory = filled();
    Reactor::new(None).run(async {
        let drive = open(&memory).await;
        let (told, all, began) = (scrub(&drive), bytes_of(&drive), clock::now());
        assert!(all > 6 << 20);
        let mut least = 0;
        while drive.store().scrubbed().passes == 0 {
            sleep(Nanos(10_000_000), Stage::Queue).await;
            let (bytes, time) = (drive.store().scrubbed().bytes, clock::now() - began);
            // A read may be of a MiB, and of a page more.
            let allowed = time.0 / 1_000 * RATE / 1_000_000 + (2 << 20);
            assert!(bytes <= allowed, "{bytes} bytes after {time}");
            least = least.max(allowed - bytes);
        }
        assert_eq!(drive.store().scrubbed().bytes, all);
        assert!(least <= 4 << 20, "it reads as much as it may");
        // The next pass begins an hour after this one.
        sleep(Nanos(PASS.0 - 60_000_000_000), Stage::Queue).await;
        assert_eq!(drive.store().scrubbed().bytes, all);
        sleep(Nanos(120_000_000_000), Stage::Queue).await;
        assert_eq!(drive.store().scrubbed().bytes, 2 * all);
        assert_eq!((drive.store().scrubbed().damaged, told.borrow().len()), (0, 0));
    });
}

#[test]
fn each_damaged_page_is_told_of_once_with_its_place() {
    let memory = filled();
    let mut rng = Rng::new(7);
    // Pages anywhere: of each something is found by who checks all at once.
    for _ in 0..40 {
        let start = 8_192 + 4_096 + rng.below(6) * EXTENT_BYTES;
        Reactor::new(None).run(flip(&memory, start + rng.below(EXTENT_BYTES - 20_000)));
    }
    let mut expected = Reactor::new(None).run(async {
        let look = DiskLook::open(memory.clone()).await.expect("it is a drive");
        let verified = look.store().verify(|_, _| {}).await.expect("nothing fails");
        let all = verified.findings.iter().chain(&verified.harmless);
        let pages = all.filter_map(|finding| Some((finding.extent?.0, finding.page?)));
        pages.collect::<Vec<_>>()
    });
    expected.sort_unstable();
    expected.dedup();
    assert!(expected.len() > 6, "{expected:?}");
    Reactor::new(None).run(async {
        let drive = open(&memory).await;
        let told = scrub(&drive);
        sleep(Nanos(2 * PASS.0 + 60_000_000_000), Stage::Queue).await;
        assert!(drive.store().scrubbed().passes > 1);
        let told = told.borrow();
        for (extent, page) in &expected {
            let place = format!("extent {extent}, page {page}: ");
            let named = told.iter().filter(|sentence| sentence.contains(&place)).count();
            assert_eq!(named, 1, "{place} in {told:?}");
        }
        assert_eq!(told.len(), expected.len(), "{told:?} for {expected:?}");
        assert_eq!(drive.store().scrubbed().damaged, told.len() as u64);
    });
}

#[test]
fn nothing_is_found_while_hosts_write_and_extents_are_cleaned() {
    let memory = filled();
    Reactor::new(None).run(async {
        let drive = open(&memory).await;
        let told = scrub(&drive);
        let (queue, mut rng) = (drive.controller().queue_pair(), Rng::new(2));
        for _ in 0..6_000 {
            store(&queue, &mut rng).await;
            sleep(Nanos(rng.below(12_000_000_000)), Stage::Queue).await;
        }
        let (scrubbed, counters) = (drive.store().scrubbed(), drive.store().counters());
        assert!(counters.victims > 20 && scrubbed.passes > 5, "{counters:?} {scrubbed:?}");
        assert_eq!((scrubbed.damaged, told.borrow().len()), (0, 0), "{:?}", told.borrow());
        drive.close().await.expect("nothing fails");
        let bytes = drive.store().scrubbed().bytes;
        sleep(Nanos(2 * PASS.0), Stage::Queue).await;
        let after = drive.store().scrubbed().bytes;
        assert!(after - bytes <= 2 << 20, "what was under way ends");
    });
}

#[test]
fn scrubbing_resumes_after_a_restart() {
    let memory = filled();
    let (mut extent, mut all, mut read) = (0, 0, 0);
    for round in 0..3 {
        Reactor::new(None).run(async {
            let drive = open(&memory).await;
            assert_eq!(drive.store().scrubbed().extent, extent);
            scrub(&drive);
            if round == 0 {
                all = bytes_of(&drive);
            }
            sleep(Nanos(2_500_000_000), Stage::Queue).await;
            drive.close().await.expect("nothing fails");
            let scrubbed = drive.store().scrubbed();
            assert!(scrubbed.extent > extent && scrubbed.passes == 0, "{scrubbed:?}");
            (extent, read) = (scrubbed.extent, read + scrubbed.bytes);
        });
    }
    Reactor::new(None).run(async {
        let drive = open(&memory).await;
        scrub(&drive);
        while drive.store().scrubbed().passes == 0 {
            sleep(Nanos(100_000_000), Stage::Queue).await;
        }
        read += drive.store().scrubbed().bytes;
        drive.close().await.expect("nothing fails");
    });
    // At each start that many bytes of one extent, and what the checkpoints left, are read again.
    assert!(read < 2 * all, "{read} of {all}");
    Reactor::new(None).run(async {
        assert_eq!(open(&memory).await.store().scrubbed().passes, 1, "it is kept");
    });
}

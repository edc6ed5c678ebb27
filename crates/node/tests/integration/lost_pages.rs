//! Lost pages of a drive: a check names the location of each, with the keys of its records as far
//! as they are known.

use base::Buf;
use clock::Class;
use controller::{QueuePair, Submission};
use drive::Format;
use engine::{Finding, PageContent, Wrong};
use media::{Blocks, BlocksShape, MemoryBlocks, PageId, Segments, Stream};
use node::{DiskDrive, DiskLook, DiskOptions};
use reactor::Reactor;
use spec::{Command, Status, StoreOptions};
use std::collections::BTreeSet;
use std::sync::Arc;

const EXTENT_BYTES: u64 = 256 << 10;
const EXTENTS: u64 = 24;
const FORMAT: Format = Format { id: [1; 16], secret: [2; 16], extent_bytes: Some(EXTENT_BYTES) };
const KEYS: u16 = 90;

/// A page with values of hosts.
#[derive(Debug)]
struct Lost {
    at: PageId,
    byte: u64,
    keys: Vec<base::Key>,
    live: u64,
    has_summary: bool,
}

async fn store(queue: &QueuePair, key: u16, value: &[u8]) {
    let len = u32::try_from(value.len()).expect("a short value");
    let command = Command::store(1, &key.to_be_bytes(), len, StoreOptions::NONE);
    queue.submit(Submission { command, long_key: None, data: Buf::copy_from(value) });
    assert_eq!(queue.next().await.status, Status::SUCCESS);
}

/// A drive whose pages were written eight at a time, so that they lie one behind the other and
/// share blocks.
fn packed() -> Arc<MemoryBlocks> {
    let (memory, open) = formatted();
    Reactor::new(None).run(async {
        let drive = open.await;
        let queue = drive.controller().queue_pair();
        for first in (0..KEYS).step_by(8) {
            let keys = first..KEYS.min(first + 8);
            for key in keys.clone() {
                let value = Buf::copy_from(&[7; 5_000]);
                let command = Command::store(1, &key.to_be_bytes(), 5_000, StoreOptions::NONE);
                queue.submit(Submission { command, long_key: None, data: value });
            }
            for _ in keys {
                assert_eq!(queue.next().await.status, Status::SUCCESS);
            }
        }
        drive.close().await.expect("nothing fails");
    });
    memory
}

/// A drive whose pages were written one by one, so that each begins a block, behind padding. Some
/// of the keys were stored over.
fn filled() -> Arc<MemoryBlocks> {
    let (memory, open) = formatted();
    Reactor::new(None).run(async {
        let drive = open.await;
        let queue = drive.controller().queue_pair();
        for key in (0..KEYS).chain((0..KEYS).step_by(5)) {
            store(&queue, key, &[7; 4_000]).await;
        }
        drive.close().await.expect("nothing fails");
    });
    memory
}

/// Blocks, and what makes an empty drive of them.
fn formatted() -> (Arc<MemoryBlocks>, impl Future<Output = DiskDrive>) {
    let blocks = (EXTENTS * EXTENT_BYTES + (20 << 10)) / 4_096;
    let shape = BlocksShape { block_bytes: 4_096, blocks, parallelism: 4 };
    let memory = Arc::new(MemoryBlocks::new(shape));
    let blocks = memory.clone();
    let open = async move {
        DiskDrive::format(blocks.clone(), FORMAT).await.expect("it is large enough");
        DiskDrive::open(blocks, DiskOptions::default()).await.expect("it is a drive")
    };
    (memory, open)
}

async fn look(memory: &Arc<MemoryBlocks>) -> DiskLook {
    DiskLook::open(memory.clone()).await.expect("it is a drive")
}

/// All pages with values of hosts.
async fn pages(memory: &Arc<MemoryBlocks>) -> Vec<Lost> {
    let (look, mut pages) = (look(memory).await, Vec::new());
    for facts in look.store().extent_facts() {
        if facts.label.stream != Stream::Host {
            continue;
        }
        for page in look.store().extent_content(facts.id).await.expect("nothing fails") {
            let PageContent::Records(records) = page.content else { continue };
            let at = PageId { extent: facts.id, page: page.number };
            let live = records.iter().filter(|record| record.is_live);
            let keys: Vec<base::Key> = live.map(|record| record.key.clone()).collect();
            pages.push(Lost {
                at,
                byte: look.byte_of(at),
                live: keys.len() as u64,
                keys,
                has_summary: facts.has_summary,
            });
        }
    }
    pages
}

/// What a check finds wrong, and what harmless.
async fn check(memory: &Arc<MemoryBlocks>) -> (Vec<Finding>, Vec<Finding>) {
    let verified = look(memory).await.store().verify(|_, _| {}).await.expect("nothing fails");
    (verified.findings, verified.harmless)
}

/// Overwrites the bytes of a block from its first byte on.
async fn spoil(memory: &MemoryBlocks, byte: u64, with: u8, len: usize) -> Segments {
    let before = memory.read(byte / 4_096, 1, Class::HostRead).await.expect("nothing fails");
    let found = Buf::join(&before);
    let mut bytes = found.as_ref().and_then(Buf::bytes).expect("it is real").to_vec();
    bytes[..len].fill(with);
    put(memory, byte, Segments::from_iter([Buf::copy_from(&bytes)])).await;
    before
}

async fn put(memory: &MemoryBlocks, byte: u64, data: Segments) {
    memory.write(byte / 4_096, data, Class::HostWrite).await.expect("nothing fails");
}

fn finding(at: PageId, key: Option<&base::Key>, wrong: Wrong) -> Finding {
    Finding { extent: Some(at.extent), page: Some(at.page), key: key.cloned(), wrong }
}

#[test]
fn a_page_that_is_lost_behind_padding_is_named_with_its_keys() {
    let memory = filled();
    let pages = Reactor::new(None).run(pages(&memory));
    let (mut live, mut dead, mut keyless) = (0, 0, 0);
    for page in &pages {
        // Zeros look like padding.
        for (with, len) in [(0xAA, 64), (0, 64), (0, 4_096)] {
            let (wrong, harmless) = Reactor::new(None).run(async {
                let before = spoil(&memory, page.byte, with, len).await;
                let found = check(&memory).await;
                put(&memory, page.byte, before).await;
                found
            });
            let lost = Wrong::Page { live: page.live };
            let (expected, needless) = match (page.live, page.has_summary) {
                (0, true) => (vec![], vec![finding(page.at, None, Wrong::DeadPage)]),
                (_, true) => {
                    let each = page.keys.iter().map(|key| finding(page.at, Some(key), lost));
                    (each.collect(), vec![])
                }
                (_, false) => (vec![finding(page.at, None, lost)], vec![]),
            };
            assert_eq!((wrong, harmless), (expected, needless), "{page:?}, {with} {len} times");
        }
        live += u32::from(page.live > 0 && page.has_summary);
        dead += u32::from(page.live == 0 && page.has_summary);
        keyless += u32::from(!page.has_summary);
    }
    assert!(live > 20 && dead > 4 && keyless > 4, "{live} {dead} {keyless} of {}", pages.len());
}

#[test]
fn pages_that_are_lost_side_by_side_are_named_one_by_one() {
    let memory = filled();
    let pages = Reactor::new(None).run(pages(&memory));
    let first = pages.iter().find(|page| page.has_summary).expect("some are full");
    let is_beside = |page: &&Lost| page.at.extent == first.at.extent;
    let full: Vec<&Lost> = pages.iter().filter(is_beside).collect();
    let (wrong, harmless) = Reactor::new(None).run(async {
        for page in &full[3..8] {
            spoil(&memory, page.byte, 0xAA, 4_096).await;
        }
        check(&memory).await
    });
    let mut found: Vec<_> = wrong.iter().chain(&harmless).map(|finding| finding.page).collect();
    found.sort_unstable();
    assert_eq!(found, full[3..8].iter().map(|page| Some(page.at.page)).collect::<Vec<_>>());
    assert!(!wrong.is_empty() && wrong.iter().all(|finding| finding.key.is_some()), "{wrong:?}");
}

#[test]
fn a_summary_that_is_lost_behind_padding_is_told_of_alone() {
    let memory = filled();
    let (at, byte) = Reactor::new(None).run(async {
        let look = look(&memory).await;
        let facts = look.store().extent_facts();
        let full = facts.iter().find(|facts| facts.has_summary).expect("some are full");
        let pages = look.store().extent_content(full.id).await.expect("nothing fails");
        let summary = pages.iter().find(|page| page.content == PageContent::Summary);
        let at = PageId { extent: full.id, page: summary.expect("it is there").number };
        (at, look.byte_of(at))
    });
    let found = Reactor::new(None).run(async {
        spoil(&memory, byte, 0xAA, 64).await;
        check(&memory).await
    });
    assert_eq!(found, (vec![finding(at, None, Wrong::Summary)], vec![]));
}

#[test]
fn all_keys_whose_heads_a_lost_block_had_are_named_and_nothing_that_is_whole() {
    let memory = packed();
    let pages = Reactor::new(None).run(pages(&memory));
    let full: Vec<&Lost> = pages.iter().filter(|page| page.has_summary).collect();
    let (mut shared, mut named) = (0, 0);
    for pair in full.windows(2).filter(|pair| pair[0].at.extent == pair[1].at.extent) {
        let block = pair[1].byte / 4_096;
        let heads = full.iter().filter(|page| page.byte / 4_096 == block);
        let heads: BTreeSet<base::Key> = heads.flat_map(|page| page.keys.clone()).collect();
        let (wrong, harmless) = Reactor::new(None).run(async {
            let before = spoil(&memory, block * 4_096, 0, 4_096).await;
            let found = check(&memory).await;
            put(&memory, block * 4_096, before).await;
            found
        });
        let keys: BTreeSet<base::Key> =
            wrong.iter().filter_map(|finding| finding.key.clone()).collect();
        assert!(keys.is_superset(&heads), "{block}: {wrong:?} {harmless:?} lacks {heads:?}");
        // Also of what begins in the block before and ends in this one.
        assert!(keys.len() <= heads.len() + 1, "{block}: {wrong:?}");
        assert!(wrong.iter().all(|finding| finding.key.is_some()), "{block}: {wrong:?}");
        shared += u32::from(!pair[1].byte.is_multiple_of(4_096));
        named += heads.len();
    }
    assert!(shared > 20 && named > 30, "{shared} blocks, {named} keys");
}

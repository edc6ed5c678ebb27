//! A log's medium on blocks against a model of it, over restarts and losses of power.

use base::{Buf, Nanos, Rng};
use clock::{Class, LocalFuture, Stage, join_all, now, sleep, sleep_until};
use media::{
    Blocks, BlocksShape, Error, ExtentId, ExtentInfo, Label, LogOnBlocks, Media, MemoryBlocks,
    Page, PageId, Segments, Shape, Span, Stream,
};
use reactor::Reactor;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::{Arc, Mutex};

const BLOCK: u32 = 4_096;
const PAGE_BYTES: u32 = 7 * BLOCK;
const PAGE_BLOCKS: u64 = 8;
const EXTENT_PAGES: u32 = 32;
const EXTENTS: u32 = 5;

fn memory() -> Arc<MemoryBlocks> {
    let blocks = PAGE_BLOCKS * u64::from(EXTENT_PAGES * EXTENTS) + 100;
    Arc::new(MemoryBlocks::new(BlocksShape { block_bytes: BLOCK, blocks, parallelism: 4 }))
}

/// Blocks that take their time, each its own, and may forget that they were trimmed.
struct Slow {
    memory: Arc<MemoryBlocks>,
    rng: Mutex<Rng>,
    forgets_trims: bool,
    /// Blocks written so far.
    written: Mutex<u64>,
}

impl Slow {
    fn new(memory: &Arc<MemoryBlocks>, seed: u64, forgets_trims: bool) -> Arc<Self> {
        let (rng, written) = (Mutex::new(Rng::new(seed)), Mutex::new(0));
        Arc::new(Self { memory: memory.clone(), rng, forgets_trims, written })
    }

    /// Does something to each of `count` blocks, after a time of its own.
    async fn each<F>(&self, count: u64, act: impl Fn(u64) -> F)
    where
        F: Future<Output = Result<(), Error>> + 'static,
    {
        let acts = (0..count).map(|block| {
            let (time, act) =
                (Nanos(self.rng.lock().expect("nobody panicked").below(1_000_000)), act(block));
            async move {
                sleep(time, Stage::Array).await;
                act.await.expect("nothing fails");
            }
        });
        join_all(acts.collect()).await;
    }
}

impl Blocks for Slow {
    fn shape(&self) -> BlocksShape {
        self.memory.shape()
    }

    fn read(
        &self,
        first: u64,
        count: u32,
        class: Class,
    ) -> LocalFuture<'_, Result<Segments, Error>> {
        self.memory.read(first, count, class)
    }

    fn write(
        &self,
        first: u64,
        data: Segments,
        class: Class,
    ) -> LocalFuture<'_, Result<(), Error>> {
        let page = Page::new(&[], data);
        let count = u64::from(page.data_bytes() / BLOCK);
        *self.written.lock().expect("nobody panicked") += count;
        Box::pin(async move {
            self.each(count, |block| {
                let start = u32::try_from(block).expect("a small number") * BLOCK;
                let content = page.segments_at(start, BLOCK).expect("it is there");
                let memory = self.memory.clone();
                async move { memory.write(first + block, content, class).await }
            })
            .await;
            Ok(())
        })
    }

    fn trim(&self, first: u64, count: u64, class: Class) -> LocalFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            if !self.forgets_trims {
                self.each(count, |block| {
                    let memory = self.memory.clone();
                    async move { memory.trim(first + block, 1, class).await }
                })
                .await;
            }
            Ok(())
        })
    }

    fn flush(&self) -> LocalFuture<'_, Result<(), Error>> {
        self.memory.flush()
    }
}

/// Runs `body` on the medium that `blocks` hold.
fn on(blocks: Arc<dyn Blocks>, body: impl AsyncFnOnce(Arc<LogOnBlocks>)) {
    Reactor::new(None).run(async {
        let medium = LogOnBlocks::open(blocks).await.expect("nothing fails");
        body(Arc::new(medium)).await;
    });
}

fn label(epoch: u64) -> Label {
    let stream = if epoch.is_multiple_of(2) { Stream::Host } else { Stream::Gc };
    Label { stream, epoch }
}

/// A page of any size: bytes first, then a phantom or two, then bytes.
fn page(content: u64) -> Page {
    let mut rng = Rng::new(content);
    let mut below = |bound: u64| rng.below(bound);
    let max =
        [1, 5_000, u64::from(PAGE_BYTES / 4)][usize::try_from(below(3)).expect("a small number")];
    let mut lens = [0; 4].map(|_| u32::try_from(below(max)).expect("a small number"));
    if below(4) == 0 {
        lens = [PAGE_BYTES - 3 * BLOCK, BLOCK, BLOCK, BLOCK];
    }
    let [mut front, mut end] = [lens[0], lens[3]].map(|len| vec![0; len as usize]);
    let mut spare = vec![0; usize::try_from(below(2) * below(3_984)).expect("a small number")];
    for bytes in [&mut front, &mut end, &mut spare] {
        rng.fill(bytes);
    }
    let data = [
        Buf::copy_from(&front),
        Buf::phantom(lens[1], content),
        Buf::phantom(lens[2], content + 1),
        Buf::copy_from(&end),
    ];
    Page::new(&spare, data)
}

/// Every byte, or what stands for it.
fn bytes(page: &Page) -> Vec<u64> {
    let segments = page.segments();
    let data = segments.iter().flat_map(|part| match part.bytes() {
        Some(bytes) => bytes.iter().map(|byte| u64::from(*byte)).collect(),
        None => vec![part.checksum(); part.len() as usize],
    });
    page.spare().iter().map(|byte| u64::from(*byte)).chain(data).collect()
}

async fn assert_holds(medium: &LogOnBlocks, at: PageId, content: u64) {
    let found = medium.read(Span::of(at), &|_| 0, Class::HostRead).await.expect("nothing fails");
    let expected = page(content);
    assert!(bytes(&found) == bytes(&expected), "{at} holds what was appended");
    assert_eq!((found.spare(), found.data_bytes()), (expected.spare(), expected.data_bytes()));
    let first = |page: &Page| page.segments().iter().map(Buf::len).find(|len| *len > 0);
    assert_eq!(first(&found), first(&expected), "the first segment is whole");
}

async fn append(medium: &Arc<LogOnBlocks>, extent: ExtentId, first: u32, contents: &[u64]) {
    let appends = (first..).zip(contents).map(|(number, content)| {
        let (medium, page) = (medium.clone(), page(*content));
        let at = PageId { extent, page: number };
        async move { medium.append(at, page, Class::HostWrite).await.expect("nothing fails") }
    });
    join_all(appends.collect()).await;
}

/// Label and contents of each extent.
type Expected = BTreeMap<ExtentId, (Label, Vec<u64>)>;

fn infos(expected: &Expected) -> Vec<ExtentInfo> {
    let info = |(id, (label, contents)): (&ExtentId, &(Label, Vec<u64>))| {
        let pages = u32::try_from(contents.len()).expect("a small number");
        ExtentInfo { id: *id, label: *label, pages, holes: Vec::new(), summary: None }
    };
    expected.iter().map(info).collect()
}

async fn assert_is(medium: &LogOnBlocks, expected: &Expected) {
    assert_eq!(Media::extents(medium), infos(expected));
    assert_eq!(
        medium.free_extents(),
        EXTENTS - u32::try_from(expected.len()).expect("a small number")
    );
    for (extent, (_, contents)) in expected {
        for (page, content) in (0..).zip(contents) {
            assert_holds(medium, PageId { extent: *extent, page }, *content).await;
        }
    }
}

async fn step(medium: &Arc<LogOnBlocks>, expected: &mut Expected, rng: &mut Rng, next: &mut u64) {
    *next += 100;
    let count = expected.len() as u64;
    let picked = usize::try_from(rng.below(count.max(1))).expect("a small number");
    let picked = expected.keys().nth(picked).copied();
    match (rng.below(8), picked) {
        (0, _) | (_, None) => match Media::open(&**medium, label(*next)) {
            Ok(extent) => {
                assert!(expected.insert(extent, (label(*next), Vec::new())).is_none());
            }
            Err(error) => assert_eq!((error, count), (Error::NoFreeExtent, EXTENTS.into())),
        },
        (1, Some(extent)) => {
            medium.reset(extent, Class::Gc).await.expect("nothing fails");
            expected.remove(&extent);
        }
        (_, Some(extent)) => {
            let contents = &mut expected.get_mut(&extent).expect("it is there").1;
            let first = u32::try_from(contents.len()).expect("a small number");
            let new: Vec<u64> =
                (*next..*next + rng.below(6)).take((EXTENT_PAGES - first) as usize).collect();
            append(medium, extent, first, &new).await;
            contents.extend(new);
        }
    }
}

#[test]
fn random_use_over_restarts_is_as_the_model() {
    for seed in 0..6 {
        let (memory, mut next) = (memory(), 0);
        let (mut rng, mut expected) = (Rng::new(seed), Expected::new());
        for life in 0..5 {
            let blocks = Slow::new(&memory, seed + life, seed % 2 == 0);
            on(blocks, async |medium| {
                assert_is(&medium, &expected).await;
                for _ in 0..80 {
                    step(&medium, &mut expected, &mut rng, &mut next).await;
                }
                assert_is(&medium, &expected).await;
            });
            expected.retain(|_, (_, contents)| !contents.is_empty());
        }
    }
}

#[test]
fn extents_are_cut_from_the_blocks_and_pages_from_extents() {
    let shape = |blocks| {
        let of_blocks = BlocksShape { block_bytes: BLOCK, blocks, parallelism: 3 };
        LogOnBlocks::format(Arc::new(MemoryBlocks::new(of_blocks))).shape()
    };
    let small = Shape {
        page_bytes: PAGE_BYTES,
        spare_bytes: BLOCK - 112,
        pages_per_extent: 32,
        extents: 1,
        parallelism: 3,
        frames: None,
    };
    assert_eq!((shape(256), shape(511)), (small, small));
    assert_eq!(shape(1 << 18), Shape { pages_per_extent: 128, extents: 256, ..small });
    assert_eq!(shape(1 << 24), Shape { pages_per_extent: 256, extents: 8_192, ..small });
}

#[test]
fn a_short_page_writes_only_the_blocks_that_it_needs() {
    let slow = Slow::new(&memory(), 0, false);
    on(slow.clone(), async |medium| {
        let extent = Media::open(&*medium, label(0)).unwrap();
        for (page, (len, blocks)) in (0..).zip([(0, 1), (1, 2), (BLOCK, 2), (PAGE_BYTES, 8)]) {
            let before = *slow.written.lock().unwrap();
            let content = Page::new(b"spare", [Buf::phantom(len, 1)]);
            let at = PageId { extent, page };
            medium.append(at, content, Class::HostWrite).await.unwrap();
            assert_eq!(*slow.written.lock().unwrap() - before, blocks);
        }
    });
}

/// What `at` is to hold.
fn content_at(at: PageId) -> u64 {
    u64::from(at.extent.0 * 1_000 + at.page) * 3
}

/// Appends pages to three extents at once, cuts the power after `time`, and returns which had ended
/// by then.
fn cut_appends(blocks: Arc<Slow>, rng: &mut Rng, time: Nanos) -> BTreeSet<PageId> {
    let ended = Rc::new(RefCell::new(BTreeSet::new()));
    let mut reactor = Reactor::new(None);
    reactor.run(async {
        let medium = Arc::new(LogOnBlocks::open(blocks).await.expect("nothing fails"));
        for epoch in 0..3 {
            let extent = Media::open(&*medium, label(epoch)).expect("one is free");
            let (medium, ended, pause) = (medium.clone(), ended.clone(), rng.below(300_000));
            clock::spawn(async move {
                for page in 0..EXTENT_PAGES {
                    sleep(Nanos(pause), Stage::Batch).await;
                    let (medium, ended, at) =
                        (medium.clone(), ended.clone(), PageId { extent, page });
                    clock::spawn(async move {
                        let page = self::page(content_at(at));
                        medium.append(at, page, Class::HostWrite).await.expect("nothing fails");
                        ended.borrow_mut().insert(at);
                    });
                }
            });
        }
        sleep_until(now() + time, Stage::Batch).await;
    });
    drop(reactor);
    ended.take()
}

/// The extents that hold `pages`, with those that are missing below the last.
fn infos_of(pages: &BTreeSet<PageId>) -> Vec<ExtentInfo> {
    let ids: BTreeSet<ExtentId> = pages.iter().map(|at| at.extent).collect();
    let info = |id: ExtentId| {
        let last = pages.iter().rfind(|at| at.extent == id).expect("it is there").page;
        let is_missing = |page: &u32| !pages.contains(&PageId { extent: id, page: *page });
        let holes = (0..last).filter(is_missing).collect();
        ExtentInfo { id, label: label(id.0.into()), pages: last + 1, holes, summary: None }
    };
    ids.into_iter().map(info).collect()
}

#[test]
fn after_a_power_cut_the_holes_are_the_pages_whose_write_had_not_ended() {
    let (mut rng, mut holes, mut torn) = (Rng::new(5), 0, 0);
    for seed in 0..40 {
        let (memory, time) = (memory(), Nanos(200_000 + rng.below(6_000_000)));
        let ended = cut_appends(Slow::new(&memory, seed, false), &mut rng, time);
        on(memory.clone(), async |medium| {
            let found = Media::extents(&*medium);
            assert_eq!(found, infos_of(&ended));
            for at in &ended {
                assert_holds(&medium, *at, content_at(*at)).await;
            }
            holes += found.iter().map(|extent| extent.holes.len()).sum::<usize>();
            for block in (0..u64::from(3 * EXTENT_PAGES)).map(|page| page * PAGE_BLOCKS) {
                let content = memory.read(block, 1, Class::HostRead).await.unwrap();
                torn += usize::from(content[0].bytes().unwrap()[4] != 0);
            }
            torn -= ended.len();
            for extent in found {
                medium.reset(extent.id, Class::Gc).await.unwrap();
            }
        });
        on(memory, async |medium| assert_eq!(medium.free_extents(), EXTENTS));
    }
    assert!(holes > 0 && torn > 0, "{holes} holes, {torn} pages whose first block alone was there");
}

#[test]
fn a_reset_that_is_cut_leaves_all_of_an_extent_or_nothing() {
    let mut rng = Rng::new(6);
    let (mut kept, mut gone) = (0, 0);
    for seed in 0..60 {
        let (memory, forgets_trims) = (memory(), seed % 2 == 0);
        let slow = || Slow::new(&memory, seed, forgets_trims);
        let pages = 1 + u32::try_from(rng.below(20)).unwrap();
        let contents: Vec<u64> = (0..pages).map(|page| u64::from(page) * 7).collect();
        let mut reactor = Reactor::new(None);
        reactor.run(async {
            let medium = Arc::new(LogOnBlocks::open(slow()).await.unwrap());
            let extent = Media::open(&*medium, label(4)).unwrap();
            append(&medium, extent, 0, &contents).await;
            clock::spawn(async move { medium.reset(extent, Class::Gc).await.unwrap() });
            sleep(Nanos(rng.below(2_200_000)), Stage::Batch).await;
        });
        drop(reactor);
        let whole = Expected::from([(ExtentId(0), (label(4), contents))]);
        on(slow(), async |medium| {
            if Media::extents(&*medium).is_empty() {
                gone += 1;
                let extent = Media::open(&*medium, label(4)).unwrap();
                append(&medium, extent, 0, &[900]).await;
            } else {
                kept += 1;
                assert_is(&medium, &whole).await;
            }
        });
        on(slow(), async |medium| {
            let found = Media::extents(&*medium);
            assert_eq!((found.len(), found[0].holes.len()), (1, 0));
            if found[0].pages == 1 && pages > 1 {
                let again = Expected::from([(ExtentId(0), (label(4), vec![900]))]);
                assert_is(&medium, &again).await;
            }
        });
    }
    assert!(kept > 10 && gone > 10, "{kept} kept, {gone} gone");
}

/// Turns over a bit of a block.
async fn flip(memory: &MemoryBlocks, block: u64, bit: u64) {
    let content = memory.read(block, 1, Class::HostRead).await.expect("nothing fails");
    let content =
        Segments::from_iter([Buf::join(&content).expect("it is there").with_flipped_bit(bit)]);
    memory.write(block, content, Class::HostWrite).await.expect("nothing fails");
}

#[test]
fn a_flipped_bit_loses_no_extent_and_two_are_told_of() {
    let memory = memory();
    on(memory.clone(), async |medium| {
        let extent = Media::open(&*medium, label(0)).unwrap();
        append(&medium, extent, 0, &[3, 6, 9]).await;
        for page in 0..3 {
            flip(&memory, page * PAGE_BLOCKS, 77 * (page + 1)).await;
        }
    });
    on(memory.clone(), async |medium| {
        let expected = Expected::from([(ExtentId(0), (label(0), vec![3, 6, 9]))]);
        assert_is(&medium, &expected).await;
        flip(&memory, PAGE_BLOCKS, 56 * 8).await;
        let at = PageId { extent: ExtentId(0), page: 1 };
        let read = medium.read(Span::of(at), &|_| 0, Class::HostRead).await.map(|_| ());
        assert_eq!(read, Err(Error::Unrecovered(at)));
    });
}

#[test]
#[should_panic(expected = "page 2 of extent 0 is appended after 1 others")]
fn appending_out_of_order_panics() {
    on(memory(), async |medium| {
        let extent = Media::open(&*medium, label(0)).unwrap();
        append(&medium, extent, 0, &[1]).await;
        append(&medium, extent, 2, &[1]).await;
    });
}

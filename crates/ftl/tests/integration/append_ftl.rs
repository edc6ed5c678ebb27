//! The append translation layer against a model of it, over restarts.

use base::{Buf, Nanos, Rng};
use clock::{Class, Group, Stage, join_all, now, sleep_until};
use ftl::{AppendFtl, Region, Stripe};
use media::{Error, ExtentId, ExtentInfo, Label, Media, Page, PageId, Span, Stream};
use nand::{BlockId, Cells, DieId, FaultPlan, Geometry, Model, Nand, Ppa, Registers, Timing};
use reactor::Reactor;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

const STRIPES: [Stripe; 3] = [Stripe::Die, Stripe::Channel, Stripe::All];
const READ: Nanos = Nanos::from_micros(45);
const PROGRAM: Nanos = Nanos::from_micros(660);
const ERASE: Nanos = Nanos::from_micros(3_500);

const GEOMETRY: Geometry = Geometry {
    channels: 2,
    dies_per_channel: 3,
    planes_per_die: 2,
    blocks_per_plane: 8,
    pages_per_block: 5,
    page_bytes: 4_096,
    spare_bytes: 64,
};

fn nand(cells: &Arc<Cells>) -> Arc<Nand> {
    let timing = Timing::uniform(Model::Staged, Registers::Double, READ, PROGRAM, ERASE, 0);
    Arc::new(Nand::new(cells.clone(), timing, FaultPlan::default(), Group::new()))
}

/// Runs `body` on an empty medium over `cells`.
fn on(cells: &Arc<Cells>, stripe: Stripe, body: impl AsyncFnOnce(Arc<AppendFtl>)) {
    Reactor::new(None).run(async {
        body(Arc::new(AppendFtl::format(nand(cells), Region::all(cells.geometry()), stripe))).await;
    });
}

/// As [`on`], on the content of `cells`.
fn on_opened(cells: &Arc<Cells>, stripe: Stripe, body: impl AsyncFnOnce(Arc<AppendFtl>)) {
    Reactor::new(None).run(async {
        body(Arc::new(AppendFtl::open(nand(cells), Region::all(cells.geometry()), stripe).await))
            .await;
    });
}

fn blank() -> Arc<Cells> {
    Arc::new(Cells::new(GEOMETRY, 0, 0, 0))
}

fn blocks() -> impl Iterator<Item = BlockId> + Clone {
    let dies = (0..GEOMETRY.dies()).map(DieId);
    dies.flat_map(|die| (0..GEOMETRY.blocks_per_die()).map(move |block| BlockId { die, block }))
}

fn page(content: u64) -> Page {
    let data = [Buf::phantom(1_000, content)];
    Page::new(&content.to_le_bytes(), data)
}

fn label(epoch: u64) -> Label {
    let stream = if epoch.is_multiple_of(2) { Stream::Host } else { Stream::Gc };
    Label { stream, epoch }
}

/// Appends pages `first..` of `contents` concurrently.
async fn append(ftl: &Arc<AppendFtl>, extent: ExtentId, first: u32, contents: &[u64]) {
    let appends = (first..).zip(contents).map(|(number, content)| {
        let (ftl, page) = (ftl.clone(), page(*content));
        async move {
            let at = PageId { extent, page: number };
            ftl.append(at, page, Class::HostWrite).await.expect("nothing fails");
        }
    });
    join_all(appends.collect()).await;
}

async fn content(ftl: &AppendFtl, at: PageId) -> u64 {
    let page =
        ftl.read(Span::of(at), &Page::data_bytes, Class::HostRead).await.expect("nothing fails");
    let content = page.segments()[0].checksum();
    assert_eq!(*page.spare(), content.to_le_bytes());
    content
}

/// The expected content of the medium: label and contents of each extent.
#[derive(Default)]
struct Expected {
    extents: BTreeMap<ExtentId, (Label, Vec<u64>)>,
    next: u64,
}

impl Expected {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn pick(&self, rng: &mut Rng) -> Option<ExtentId> {
        let count = self.extents.len() as u64;
        let index = usize::try_from(rng.below(count.max(1))).expect("few extents");
        self.extents.keys().nth(index).copied()
    }

    async fn step(&mut self, ftl: &Arc<AppendFtl>, rng: &mut Rng) {
        let picked = self.pick(rng);
        match (rng.below(12), picked) {
            (0..3, _) | (_, None) => self.open(ftl),
            (3, Some(extent)) => {
                ftl.reset(extent, Class::Gc).await.expect("nothing fails");
                self.extents.remove(&extent);
            }
            (4..9, Some(extent)) => self.append(ftl, extent, rng.below(9)).await,
            (_, Some(extent)) => {
                let contents = &self.extents[&extent].1;
                if let Some(expected) = contents.last() {
                    let last = u32::try_from(contents.len() - 1).expect("few pages");
                    let at = PageId { extent, page: last };
                    assert_eq!(content(ftl, at).await, *expected);
                }
            }
        }
    }

    fn open(&mut self, ftl: &AppendFtl) {
        let label = label(self.number());
        if self.extents.len() == ftl.shape().extents as usize {
            assert_eq!(ftl.open(label), Err(Error::NoFreeExtent));
        } else {
            let extent = ftl.open(label).expect("one is free");
            assert!(self.extents.insert(extent, (label, Vec::new())).is_none());
        }
    }

    async fn append(&mut self, ftl: &Arc<AppendFtl>, extent: ExtentId, pages: u64) {
        let first = u32::try_from(self.extents[&extent].1.len()).expect("few pages");
        let room = u64::from(ftl.shape().pages_per_extent - first);
        let contents: Vec<u64> = (0..pages.min(room)).map(|_| self.number()).collect();
        append(ftl, extent, first, &contents).await;
        self.extents.get_mut(&extent).expect("in use").1.extend(contents);
    }

    /// An open extent without a page is lost in a restart, because only pages carry its tag.
    fn restart(&mut self) {
        self.extents.retain(|_, (_, contents)| !contents.is_empty());
    }

    async fn assert_is(&self, ftl: &AppendFtl) {
        let used = u32::try_from(self.extents.len()).expect("few extents");
        assert_eq!(ftl.free_extents(), ftl.shape().extents - used);
        let info = |(id, (label, contents)): (&ExtentId, &(Label, Vec<u64>))| {
            let pages = u32::try_from(contents.len()).expect("few pages");
            ExtentInfo { id: *id, label: *label, pages, holes: Vec::new(), summary: None }
        };
        let expected: Vec<ExtentInfo> = self.extents.iter().map(info).collect();
        assert_eq!(ftl.extents(), expected);
        for (extent, (_, contents)) in &self.extents {
            for (page, expected) in (0..).zip(contents) {
                assert_eq!(content(ftl, PageId { extent: *extent, page }).await, *expected);
            }
        }
    }
}

/// Returns the sum over the sets of the fewest good blocks in one of their planes.
fn extents_that_fit(cells: &Cells, region: Region, stripe: Stripe) -> usize {
    let numbers = region.first..region.first + region.count;
    let good = |die: u32, plane: u32| {
        let blocks = numbers.clone().map(|number| number * GEOMETRY.planes_per_die + plane);
        blocks.filter(|block| !cells.is_bad(BlockId { die: DieId(die), block: *block })).count()
    };
    let fewest = |dies: &mut dyn Iterator<Item = u32>| {
        let planes = dies.flat_map(|die| (0..GEOMETRY.planes_per_die).map(move |p| (die, p)));
        planes.map(|(die, plane)| good(die, plane)).min().expect("sets have dies")
    };
    let mut dies = 0..GEOMETRY.dies();
    match stripe {
        Stripe::Die => dies.map(|die| fewest(&mut std::iter::once(die))).sum(),
        Stripe::Channel => (0..GEOMETRY.channels)
            .map(|channel| fewest(&mut dies.clone().filter(|d| d % GEOMETRY.channels == channel)))
            .sum(),
        Stripe::All => fewest(&mut dies),
    }
}

#[test]
fn random_use_over_restarts_is_as_the_model() {
    for (seed, stripe) in (0..4).flat_map(|seed| STRIPES.map(|stripe| (seed, stripe))) {
        let cells = Arc::new(Cells::new(GEOMETRY, 150_000, 0, seed));
        let (mut rng, mut expected) = (Rng::new(seed), Expected::default());
        for _ in 0..4 {
            on_opened(&cells, stripe, async |ftl| {
                let fitting = extents_that_fit(&cells, Region::all(&GEOMETRY), stripe);
                assert_eq!(ftl.shape().extents as usize, fitting);
                assert_eq!(ftl.unreadable_blocks(), 0);
                expected.assert_is(&ftl).await;
                for _ in 0..500 {
                    expected.step(&ftl, &mut rng).await;
                }
                expected.assert_is(&ftl).await;
            });
            expected.restart();
        }
        for block in blocks().filter(|block| cells.is_bad(*block)) {
            assert_eq!((cells.programmed(block), cells.erase_count(block)), (0, 0));
        }
    }
}

#[test]
fn the_shape_leaves_room_for_tags_and_counts_the_stripe() {
    for (stripe, width, extents) in
        [(Stripe::Die, 2, 6 * 8), (Stripe::Channel, 6, 2 * 8), (Stripe::All, 12, 8)]
    {
        on(&blank(), stripe, async |ftl| {
            let shape = ftl.shape();
            assert_eq!((shape.page_bytes, shape.spare_bytes), (4_096, 40));
            assert_eq!((shape.pages_per_extent, shape.extents), (5 * width, extents));
            assert_eq!(shape.parallelism, 12);
        });
    }
}

#[test]
fn an_extent_alternates_between_the_dies_of_its_stripe() {
    let sets: [(Stripe, &[u32]); 3] =
        [(Stripe::Die, &[1]), (Stripe::Channel, &[1, 3, 5]), (Stripe::All, &[0, 1, 2, 3, 4, 5])];
    for (stripe, dies) in sets {
        let cells = blank();
        on(&cells, stripe, async |ftl| {
            ftl.open(label(0)).unwrap();
            let others = if stripe == Stripe::All { Ok(ExtentId(0)) } else { ftl.open(label(1)) };
            let start = now();
            append(&ftl, others.unwrap(), 0, &[1, 2, 3, 4, 5, 6][..dies.len()]).await;
            let rounds = if dies.len() == 1 { 1 } else { 2 };
            let expected = Nanos(PROGRAM.0 * rounds);
            assert_eq!(now() - start, expected, "the first page, then the others side by side");
        });
        let used: Vec<u32> = blocks()
            .filter(|block| cells.programmed(*block) == 1)
            .map(|block| block.die.0)
            .collect();
        assert_eq!(used, dies);
    }
}

#[test]
fn a_stripe_has_all_its_dies_before_their_second_planes() {
    let sets: [(Stripe, &[u32]); 3] =
        [(Stripe::Die, &[0]), (Stripe::Channel, &[0, 2, 4]), (Stripe::All, &[0, 1, 2, 3, 4, 5])];
    for (stripe, dies) in sets {
        let cells = blank();
        let mut order = Vec::new();
        on(&cells, stripe, async |ftl| {
            let extent = ftl.open(label(0)).unwrap();
            for page in 0..ftl.shape().pages_per_extent {
                let before: Vec<u32> = blocks().map(|block| cells.programmed(block)).collect();
                append(&ftl, extent, page, &[1]).await;
                let changed = blocks().zip(before).find(|(b, pages)| cells.programmed(*b) > *pages);
                let (block, _) = changed.expect("one of the blocks has one more page");
                order.push((block.die.0, block.block % 2));
            }
        });
        let planes = [0, 1].map(|plane| dies.iter().map(move |die| (*die, plane)));
        let round: Vec<_> = planes.into_iter().flatten().collect();
        assert_eq!(order, round.repeat(5), "{stripe:?}");
    }
}

/// Returns pages and erases of each block that is not in `region`.
fn outside(cells: &Cells, region: Region) -> Vec<(u32, u32)> {
    let numbers = region.first..region.first + region.count;
    let is_outside = |block: &BlockId| !numbers.contains(&(block.block / 2));
    let state = |block| (cells.programmed(block), cells.erase_count(block));
    blocks().filter(is_outside).map(state).collect()
}

#[test]
fn several_on_one_array_never_touch_each_others_blocks() {
    let regions = [(0, 3), (3, 1), (4, 4)].map(|(first, count)| Region { first, count });
    for seed in 0..6 {
        let cells = Arc::new(Cells::new(GEOMETRY, 40_000, 0, seed));
        let mut rng = Rng::new(seed);
        let mut users = regions.map(|region| (region, STRIPES[0], Expected::default()));
        for user in &mut users {
            user.1 = STRIPES[usize::try_from(rng.below(3)).unwrap()];
        }
        for life in 0..3 {
            Reactor::new(None).run(async {
                let nand = nand(&cells);
                for (region, stripe, expected) in &mut users {
                    let ftl = if life == 0 {
                        AppendFtl::format(nand.clone(), *region, *stripe)
                    } else {
                        AppendFtl::open(nand.clone(), *region, *stripe).await
                    };
                    let fitting = extents_that_fit(&cells, *region, *stripe);
                    assert_eq!(ftl.shape().extents as usize, fitting);
                    let (ftl, others) = (Arc::new(ftl), outside(&cells, *region));
                    expected.assert_is(&ftl).await;
                    for _ in 0..150 {
                        expected.step(&ftl, &mut rng).await;
                    }
                    expected.assert_is(&ftl).await;
                    assert_eq!(outside(&cells, *region), others, "{region:?}");
                }
            });
            for (_, _, expected) in &mut users {
                expected.restart();
            }
        }
    }
}

#[test]
#[should_panic(expected = "is a part of the 8 blocks of a plane")]
fn a_region_beyond_the_array_panics() {
    Reactor::new(None).run(async {
        AppendFtl::format(nand(&blank()), Region { first: 5, count: 4 }, Stripe::All);
    });
}

#[test]
fn a_narrow_extent_opens_where_most_are_free() {
    on(&blank(), Stripe::Die, async |ftl| {
        let opened: Vec<ExtentId> = (0..7).map(|epoch| ftl.open(label(epoch)).unwrap()).collect();
        assert_eq!(opened, [0, 1, 2, 3, 4, 5, 6].map(ExtentId));
        ftl.reset(ExtentId(3), Class::Gc).await.unwrap();
        assert_eq!(ftl.open(label(7)), Ok(ExtentId(3)));
    });
}

#[test]
fn wear_stays_even_under_random_resets() {
    for stripe in STRIPES {
        let cells = blank();
        on(&cells, stripe, async |ftl| {
            let mut rng = Rng::new(3);
            let width = ftl.shape().pages_per_extent / GEOMETRY.pages_per_block;
            let mut used = Vec::new();
            for epoch in 0..6_000 / u64::from(width) {
                if used.len() as u64 == u64::from(ftl.shape().extents / 4) {
                    let index = usize::try_from(rng.below(used.len() as u64)).unwrap();
                    ftl.reset(used.swap_remove(index), Class::Gc).await.unwrap();
                }
                let extent = ftl.open(label(epoch)).unwrap();
                append(&ftl, extent, 0, &vec![epoch; width as usize]).await;
                used.push(extent);
            }
        });
        for die in (0..GEOMETRY.dies()).map(DieId) {
            let erases = blocks().filter(|block| block.die == die).map(|b| cells.erase_count(b));
            let (least, most) = (erases.clone().min().unwrap(), erases.max().unwrap());
            assert!(least >= 50 && most - least <= 3, "{stripe:?}: {least} to {most}");
        }
    }
}

#[test]
fn only_blocks_that_hold_pages_are_erased() {
    let cells = blank();
    on(&cells, Stripe::All, async |ftl| {
        let extent = ftl.open(label(0)).unwrap();
        ftl.reset(extent, Class::Gc).await.unwrap();
        let extent = ftl.open(label(1)).unwrap();
        append(&ftl, extent, 0, &[1, 2]).await;
        ftl.reset(extent, Class::Gc).await.unwrap();
    });
    assert_eq!(blocks().map(|block| cells.erase_count(block)).sum::<u32>(), 2);
}

#[test]
fn tables_take_at_most_four_bytes_for_each_block() {
    let geometry = Geometry {
        channels: 8,
        dies_per_channel: 8,
        planes_per_die: 2,
        blocks_per_plane: 128,
        pages_per_block: 256,
        ..GEOMETRY
    };
    let blocks = (geometry.dies() * geometry.blocks_per_die()) as usize;
    for stripe in [Stripe::Channel, Stripe::All] {
        on(&Arc::new(Cells::new(geometry, 0, 0, 0)), stripe, async |ftl| {
            assert!((2 * blocks..=4 * blocks).contains(&ftl.table_bytes()));
        });
    }
}

#[test]
fn dies_are_scanned_side_by_side() {
    let cells = blank();
    on(&cells, Stripe::All, async |ftl| {
        let extent = ftl.open(label(0)).unwrap();
        append(&ftl, extent, 0, &[1; 6]).await;
    });
    on_opened(&cells, Stripe::All, async |_| {
        // A tag for each of 16 blocks; in one of them pages 3, 2 and 1, to find that it has one
        // page.
        assert_eq!(now(), Nanos(READ.0 * (16 + 3)));
    });
}

/// Programs the first page of a block with bytes that are no tag.
fn scribble(cells: &Arc<Cells>, block: BlockId) {
    Reactor::new(None).run(async {
        nand(cells)
            .program(Ppa { block, page: 0 }, page(0), Some([7; 24]), Class::Gc)
            .await
            .expect("good flash");
    });
}

#[test]
fn blocks_without_a_readable_tag_are_erased_on_open() {
    let cells = blank();
    let block = BlockId { die: DieId(2), block: 4 };
    scribble(&cells, block);
    on_opened(&cells, Stripe::All, async |ftl| {
        assert_eq!((ftl.unreadable_blocks(), ftl.free_extents()), (1, ftl.shape().extents));
        assert_eq!((cells.programmed(block), cells.erase_count(block)), (0, 1));
    });
}

#[test]
#[should_panic(expected = "block 4 of die 2 of the array to format is in use")]
fn formatting_an_array_in_use_panics() {
    let cells = blank();
    scribble(&cells, BlockId { die: DieId(2), block: 4 });
    on(&cells, Stripe::All, async |_| ());
}

#[test]
#[should_panic(expected = "which has no block there with this stripe")]
fn opening_with_another_stripe_panics() {
    let cells = blank();
    on(&cells, Stripe::All, async |ftl| {
        let extent = ftl.open(label(0)).unwrap();
        append(&ftl, extent, 0, &[1; 6]).await;
    });
    on_opened(&cells, Stripe::Die, async |_| ());
}

#[test]
#[should_panic(expected = "page 2 of extent 0 is appended in order, after 1 others")]
fn appending_out_of_order_panics() {
    on(&blank(), Stripe::All, async |ftl| {
        let extent = ftl.open(label(0)).unwrap();
        append(&ftl, extent, 0, &[1]).await;
        append(&ftl, extent, 2, &[1]).await;
    });
}

#[test]
#[should_panic(expected = "extent 5 is not in use")]
fn resetting_a_free_extent_panics() {
    on(&blank(), Stripe::All, async |ftl| {
        ftl.reset(ExtentId(5), Class::Gc).await.unwrap();
    });
}

/// Appends three whole extents at once, cuts the power after `time`, and returns the pages that had
/// landed. Occasional reads delay single dies.
fn cut_appends(cells: &Arc<Cells>, stripe: Stripe, rng: &mut Rng, time: Nanos) -> BTreeSet<PageId> {
    let ended = Rc::new(RefCell::new(BTreeSet::new()));
    let mut reactor = Reactor::new(None);
    reactor.run(async {
        let ftl = Arc::new(AppendFtl::format(nand(cells), Region::all(cells.geometry()), stripe));
        for epoch in 0..3 {
            let extent = ftl.open(label(epoch)).expect("one is free");
            for number in 0..ftl.shape().pages_per_extent {
                let (ftl, ended, at) =
                    (ftl.clone(), ended.clone(), PageId { extent, page: number });
                clock::spawn(async move {
                    let page = page(content_at(at));
                    ftl.append(at, page, Class::HostWrite).await.expect("nothing fails");
                    ended.borrow_mut().insert(at);
                });
            }
        }
        while now() < time {
            sleep_until(time.min(now() + Nanos(rng.below(200_000))), Stage::Batch).await;
            let index = usize::try_from(rng.below(100)).expect("a small number");
            let read = ended.borrow().iter().nth(index).copied();
            if let Some(at) = read {
                let ftl = ftl.clone();
                clock::spawn(async move {
                    assert_eq!(content(&ftl, at).await, content_at(at));
                });
            }
        }
    });
    drop(reactor);
    ended.take()
}

fn content_at(at: PageId) -> u64 {
    u64::from(at.extent.0 * 1_000 + at.page)
}

/// Returns the extents that hold `pages`, with the missing pages below the last one. An extent may
/// end at a later page that was found: its program was cut off.
fn infos(pages: &BTreeSet<PageId>, found: &[ExtentInfo]) -> Vec<ExtentInfo> {
    let ids: BTreeSet<ExtentId> = pages.iter().map(|at| at.extent).collect();
    // The first three extents opened have their epochs in the order of their ids.
    let infos = (0..).zip(ids).map(|(epoch, id)| {
        let last = pages.iter().rfind(|at| at.extent == id).expect("it has pages").page;
        let is_missing = |page: &u32| !pages.contains(&PageId { extent: id, page: *page });
        let of_found = found.iter().find(|info| info.id == id).map_or(0, |info| info.pages);
        let end = of_found.max(last + 1);
        let holes = (0..end).filter(is_missing).collect();
        ExtentInfo { id, label: label(epoch), pages: end, holes, summary: None }
    });
    infos.collect()
}

#[test]
fn after_a_power_cut_the_holes_are_the_pages_whose_program_had_not_ended() {
    let mut rng = Rng::new(5);
    for stripe in STRIPES {
        let mut holes = 0;
        for _ in 0..60 {
            let time = Nanos(700_000 + rng.below(7_000_000));
            let cells = blank();
            let ended = cut_appends(&cells, stripe, &mut rng, time);
            on_opened(&cells, stripe, async |ftl| {
                let found = ftl.extents();
                assert_eq!(found, infos(&ended, &found));
                for at in &ended {
                    assert_eq!(content(&ftl, *at).await, content_at(*at));
                }
                holes += found.iter().map(|extent| extent.holes.len()).sum::<usize>();
                for extent in found {
                    ftl.reset(extent.id, Class::Gc).await.unwrap();
                }
                assert_eq!(ftl.free_extents(), ftl.shape().extents);
            });
            assert!(blocks().all(|block| cells.programmed(block) == 0));
        }
        // The planes of one die share its array, which may program in order.
        assert!(holes > 0 || stripe == Stripe::Die, "dies do not wait for each other");
    }
}

#[test]
fn an_extent_whose_reset_was_cut_is_gone() {
    let cells = blank();
    on(&cells, Stripe::Channel, async |ftl| {
        let extent = ftl.open(label(9)).unwrap();
        append(&ftl, extent, 0, &[1, 2, 3, 4]).await;
        clock::spawn(async move { ftl.reset(extent, Class::Gc).await.unwrap() });
        sleep_until(now() + Nanos(ERASE.0 + 1), Stage::Batch).await;
    });
    on_opened(&cells, Stripe::Channel, async |ftl| {
        assert_eq!(ftl.extents(), []);
        assert!(blocks().all(|block| cells.programmed(block) == 0));
        assert_eq!(ftl.open(label(10)), Ok(ExtentId(0)));
        append(&ftl, ExtentId(0), 0, &[5]).await;
        assert_eq!(ftl.extents()[0].holes, []);
    });
}

#[test]
#[should_panic(expected = "page 3 of extent 0 lies behind pages that were cut off")]
fn appending_to_an_extent_with_holes_panics() {
    let cells = blank();
    on(&cells, Stripe::All, async |ftl| {
        let extent = ftl.open(label(0)).unwrap();
        append(&ftl, extent, 0, &[1, 2, 3]).await;
        nand(&cells).erase(BlockId { die: DieId(1), block: 0 }, Class::Gc).await.unwrap();
    });
    on_opened(&cells, Stripe::All, async |ftl| append(&ftl, ExtentId(0), 3, &[4]).await);
}

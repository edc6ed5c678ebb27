//! The append translation layer against a model of it, on flash that fails, over losses of power.

use base::{Buf, Nanos, Rng};
use clock::{Class, Group, Stage, now, sleep_until};
use ftl::{AppendFtl, Region, Stripe};
use media::{Error, ExtentId, ExtentInfo, Label, Media, Page, PageId, Span, Stream};
use nand::{
    BlockId, Cells, DieId, FaultKind, FaultPlan, FaultRule, Geometry, Model as Timekeeping, Nand,
    Registers, Timing, When,
};
use reactor::Reactor;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

const STRIPES: [Stripe; 3] = [Stripe::Die, Stripe::Channel, Stripe::All];
const PROGRAM: Nanos = Nanos::from_micros(660);

const GEOMETRY: Geometry = Geometry {
    channels: 2,
    dies_per_channel: 2,
    planes_per_die: 2,
    blocks_per_plane: 10,
    pages_per_block: 5,
    page_bytes: 4_096,
    spare_bytes: 64,
};

/// How often the flash fails, in millionths.
#[derive(Clone, Copy, Debug, Default)]
struct Rates {
    program: u32,
    erase: u32,
    bad_block: u32,
    read: u32,
}

impl Rates {
    fn plan(self, seed: u64) -> FaultPlan {
        let rule = |kind, ppm| FaultRule::new(kind, When::Ppm(ppm));
        let rules = vec![
            rule(FaultKind::FailedProgram, self.program),
            rule(FaultKind::FailedErase, self.erase),
            rule(FaultKind::BadBlock, self.bad_block),
            rule(FaultKind::UncorrectableRead, self.read),
        ];
        FaultPlan { seed, rules }
    }
}

fn nand(cells: &Arc<Cells>, faults: FaultPlan) -> Arc<Nand> {
    let (read, erase) = (Nanos::from_micros(45), Nanos::from_micros(3_500));
    let model = Timekeeping::Staged;
    let timing = Timing::uniform(model, Registers::Double, read, PROGRAM, erase, 1_000_000_000);
    Arc::new(Nand::new(cells.clone(), timing, faults, Group::new()))
}

fn page(content: u64) -> Page {
    Page::new(&content.to_le_bytes(), [Buf::phantom(1_000, content)])
}

fn label(epoch: u64) -> Label {
    let stream = if epoch.is_multiple_of(2) { Stream::Host } else { Stream::Gc };
    Label { stream, epoch }
}

/// The model's knowledge of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Started,
    Durable(u64),
    /// Its append failed: it is unreadable until the next start, which may find it.
    Refused,
    /// A read of it failed: it is lost for good.
    Lost,
}

#[derive(Debug)]
struct Extent {
    label: Label,
    pages: Vec<Known>,
    under_way: u32,
    /// The extent takes no more appends.
    is_closed: bool,
    is_resetting: bool,
}

#[derive(Debug, Default)]
struct Model {
    extents: BTreeMap<ExtentId, Extent>,
    next: u64,
    /// Durable pages that were lost, in all.
    lost: u64,
    /// Appends refused for lack of space.
    refused: u64,
}

impl Model {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn pick(&self, rng: &mut Rng, may: impl Fn(&Extent) -> bool) -> Option<ExtentId> {
        let ids: Vec<ExtentId> =
            self.extents.iter().filter(|(_, extent)| may(extent)).map(|(id, _)| *id).collect();
        let index = rng.below(ids.len().max(1) as u64);
        ids.get(usize::try_from(index).expect("few extents")).copied()
    }

    fn page(&mut self, at: PageId) -> &mut Known {
        let extent = self.extents.get_mut(&at.extent).expect("in use");
        &mut extent.pages[at.page as usize]
    }

    fn ended(&mut self, at: PageId, content: u64, result: Result<(), Error>) {
        let extent = self.extents.get_mut(&at.extent).expect("in use");
        extent.under_way -= 1;
        let page = &mut extent.pages[at.page as usize];
        match result {
            Ok(()) => *page = Known::Durable(content),
            Err(Error::Unrecovered(page_id)) => {
                assert_eq!(page_id, at);
                *page = Known::Refused;
                extent.is_closed = true;
                self.refused += 1;
            }
            Err(other) => panic!("{other}"),
        }
    }
}

type Shared = Rc<RefCell<Model>>;

/// Starts concurrent appends of some pages to an extent.
fn start_appends(ftl: &Arc<AppendFtl>, model: &Shared, extent: ExtentId, count: u64) {
    for _ in 0..count {
        let (at, content) = {
            let mut all = model.borrow_mut();
            let content = all.number();
            let of = all.extents.get_mut(&extent).expect("in use");
            let page = u32::try_from(of.pages.len()).expect("few pages");
            if page == ftl.shape().pages_per_extent {
                return;
            }
            of.pages.push(Known::Started);
            of.under_way += 1;
            (PageId { extent, page }, content)
        };
        let (ftl, model) = (ftl.clone(), model.clone());
        clock::spawn(async move {
            let result = ftl.append(at, page(content), Class::HostWrite).await;
            model.borrow_mut().ended(at, content, result);
        });
    }
}

fn start_reset(ftl: &Arc<AppendFtl>, model: &Shared, extent: ExtentId) {
    model.borrow_mut().extents.get_mut(&extent).expect("in use").is_resetting = true;
    let (ftl, model) = (ftl.clone(), model.clone());
    clock::spawn(async move {
        ftl.reset(extent, Class::Gc).await.expect("it retires what it cannot erase");
        model.borrow_mut().extents.remove(&extent);
    });
}

/// Reads a known page: it is as it was, or lost for good.
async fn check(ftl: &AppendFtl, model: &Shared, at: PageId) {
    let known = *model.borrow_mut().page(at);
    let read = ftl.read(Span::of(at), &Page::data_bytes, Class::HostRead).await;
    match (known, read) {
        (Known::Durable(content), Ok(page)) => {
            assert_eq!(*page.spare(), content.to_le_bytes(), "{at}");
            assert_eq!(page.segments()[0].checksum(), content, "{at}");
        }
        (Known::Durable(_), Err(error)) => {
            assert_eq!(error, Error::Unrecovered(at));
            let mut model = model.borrow_mut();
            *model.page(at) = Known::Lost;
            model.lost += 1;
        }
        (Known::Lost | Known::Refused, Err(error)) => assert_eq!(error, Error::Unrecovered(at)),
        (Known::Lost | Known::Refused, Ok(_)) => panic!("{at} was lost"),
        (Known::Started, _) => panic!("{at} is under way"),
    }
}

async fn step(ftl: &Arc<AppendFtl>, model: &Shared, rng: &mut Rng) {
    let settled = |extent: &Extent| !extent.is_resetting && extent.under_way == 0;
    match rng.below(12) {
        0..2 => {
            let label = label(model.borrow_mut().number());
            if let Ok(id) = ftl.open(label) {
                let (pages, under_way) = (Vec::new(), 0);
                let extent =
                    Extent { label, pages, under_way, is_closed: false, is_resetting: false };
                assert!(model.borrow_mut().extents.insert(id, extent).is_none());
            } else {
                assert_eq!(ftl.free_extents(), 0);
            }
        }
        2 => {
            let picked = model.borrow().pick(rng, settled);
            if let Some(extent) = picked {
                start_reset(ftl, model, extent);
            }
        }
        3..9 => {
            let is_open = |extent: &Extent| !extent.is_resetting && !extent.is_closed;
            let picked = model.borrow().pick(rng, is_open);
            let count = rng.below(9);
            if let Some(extent) = picked {
                start_appends(ftl, model, extent, count);
            }
        }
        _ => {
            let picked = model.borrow().pick(rng, |extent| {
                settled(extent) && extent.pages.iter().any(|page| *page != Known::Started)
            });
            let Some(extent) = picked else { return };
            let pages = model.borrow().extents[&extent].pages.len() as u64;
            let page = u32::try_from(rng.below(pages)).expect("few pages");
            check(ftl, model, PageId { extent, page }).await;
        }
    }
    sleep_until(now() + Nanos(rng.below(400_000)), Stage::Batch).await;
}

/// Checks after a loss of power: every durable page is found, and each extent is whole or gone.
async fn reopened(ftl: &AppendFtl, model: &Shared) {
    let found: BTreeMap<ExtentId, ExtentInfo> =
        ftl.extents().into_iter().map(|info| (info.id, info)).collect();
    let mut lost = 0;
    model.borrow_mut().extents.retain(|id, extent| {
        let durable = |page: &&Known| matches!(page, Known::Durable(_));
        let Some(info) = found.get(id) else {
            if !extent.is_resetting {
                lost += extent.pages.iter().filter(durable).count() as u64;
            }
            return false;
        };
        assert_eq!(info.label, extent.label);
        assert!(info.pages as usize <= extent.pages.len(), "{info:?} of {extent:?}");
        let beyond = extent.pages.split_off(info.pages as usize);
        lost += beyond.iter().filter(durable).count() as u64;
        extent.is_closed = !info.holes.is_empty();
        (extent.under_way, extent.is_resetting) = (0, false);
        true
    });
    model.borrow_mut().lost += lost;
    assert!(found.keys().all(|id| model.borrow().extents.contains_key(id)));
    let ids: Vec<ExtentId> = found.into_keys().collect();
    for id in ids {
        let pages = model.borrow().extents[&id].pages.clone();
        for (page, known) in (0..).zip(pages) {
            let at = PageId { extent: id, page };
            if !matches!(known, Known::Started | Known::Refused) {
                check(ftl, model, at).await;
            } else if let Ok(page) =
                ftl.read(Span::of(at), &Page::data_bytes, Class::HostRead).await
            {
                // It landed, but its append never returned.
                *model.borrow_mut().page(at) = Known::Durable(page.segments()[0].checksum());
            } else {
                *model.borrow_mut().page(at) = Known::Lost;
            }
        }
    }
}

/// Returns the number of good blocks in the plane.
fn good(cells: &Cells, die: u32, plane: u32) -> u32 {
    let numbers = (0..GEOMETRY.blocks_per_plane).map(|n| n * GEOMETRY.planes_per_die + plane);
    let blocks = numbers.map(|block| BlockId { die: DieId(die), block });
    u32::try_from(blocks.filter(|block| !cells.is_bad(*block)).count()).expect("few blocks")
}

/// Returns how many extents the good blocks of each set allow.
fn capacity(cells: &Cells, stripe: Stripe) -> Vec<u32> {
    let sets = match stripe {
        Stripe::Die => GEOMETRY.dies(),
        Stripe::Channel => GEOMETRY.channels,
        Stripe::All => 1,
    };
    let of_set = |set: u32| {
        let dies = (0..GEOMETRY.dies()).filter(move |die| die % sets == set);
        let planes = dies.flat_map(|die| (0..GEOMETRY.planes_per_die).map(move |p| (die, p)));
        planes.map(|(die, plane)| good(cells, die, plane)).min().expect("sets have dies")
    };
    (0..sets).map(of_set).collect()
}

/// Checks that, without operations in progress, the free extents are those of the good blocks less
/// those in use.
fn assert_capacity(ftl: &AppendFtl, cells: &Cells, stripe: Stripe, model: &Model) {
    let capacity = capacity(cells, stripe);
    let mut free = capacity.clone();
    for id in model.extents.keys() {
        let set = id.0 as usize % capacity.len();
        free[set] = free[set].saturating_sub(1);
    }
    assert_eq!(ftl.free_extents(), free.iter().sum::<u32>());
}

async fn settle(model: &Shared) {
    let is_busy = |extent: &Extent| extent.under_way > 0 || extent.is_resetting;
    while model.borrow().extents.values().any(is_busy) {
        sleep_until(now() + PROGRAM, Stage::Batch).await;
    }
}

/// Uses one array over several lives, each ended by a loss of power at any instant, sometimes while
/// it opens. Returns the model, and how many pages a sense could not correct.
fn use_up(seed: u64, stripe: Stripe, rates: Rates) -> (Model, u64, Arc<Cells>) {
    let cells = Arc::new(Cells::new(GEOMETRY, 20_000, 0, seed));
    let mut rng = Rng::new(seed);
    let model = Shared::default();
    let mut uncorrectable = 0;
    for life in 0..8 {
        for cut in [rng.below(4), 4] {
            let plan = rates.plan(rng.next_u64());
            let steps = rng.below(120);
            let mut reactor = Reactor::new(None);
            let faults = reactor.run(async {
                let nand = nand(&cells, plan);
                let opening = AppendFtl::open(nand.clone(), Region::all(&GEOMETRY), stripe);
                if cut == 0 {
                    clock::spawn(async move { drop(opening.await) });
                    sleep_until(Nanos(rng.below(6_000_000)), Stage::Batch).await;
                    return nand.faults();
                }
                let ftl = Arc::new(opening.await);
                reopened(&ftl, &model).await;
                assert_capacity(&ftl, &cells, stripe, &model.borrow());
                for _ in 0..steps {
                    step(&ftl, &model, &mut rng).await;
                }
                if life % 2 == 0 {
                    settle(&model).await;
                    assert_capacity(&ftl, &cells, stripe, &model.borrow());
                }
                nand.faults()
            });
            drop(reactor);
            uncorrectable += faults.counts.uncorrectable_reads;
            if cut > 0 {
                break;
            }
        }
    }
    (Rc::try_unwrap(model).expect("the reactors are gone").into_inner(), uncorrectable, cells)
}

fn each_seed(seeds: impl Iterator<Item = u64>, mut f: impl FnMut(u64, Stripe)) {
    for (seed, stripe) in seeds.flat_map(|seed| STRIPES.map(|stripe| (seed, stripe))) {
        f(seed, stripe);
    }
}

fn retired(cells: &Cells) -> BTreeSet<BlockId> {
    let dies = (0..GEOMETRY.dies()).map(DieId);
    let blocks = dies
        .flat_map(|die| (0..GEOMETRY.blocks_per_die()).map(move |block| BlockId { die, block }));
    blocks.filter(|block| cells.is_bad(*block) && !cells.came_bad(*block)).collect()
}

#[test]
fn good_flash_loses_nothing_and_keeps_its_blocks() {
    each_seed(0..30, |seed, stripe| {
        let (model, _, cells) = use_up(seed, stripe, Rates::default());
        assert_eq!((model.lost, model.refused), (0, 0), "seed {seed}, {stripe:?}");
        assert!(retired(&cells).is_empty());
    });
}

#[test]
fn failed_programs_and_erases_cost_blocks_and_no_pages() {
    let mut all = (0, 0);
    // The last seed leaves a hole where a retired block still has a page.
    each_seed((0..40).chain([1_253]), |seed, stripe| {
        let often = [2_000, 20_000, 100_000][usize::try_from(seed % 3).unwrap()];
        let rates = Rates { program: often, erase: often, bad_block: often / 4, read: 0 };
        let (model, _, cells) = use_up(seed, stripe, rates);
        assert_eq!(model.lost, 0, "seed {seed}, {stripe:?}");
        all.0 += retired(&cells).len();
        all.1 += usize::from(model.refused > 0);
    });
    assert!(all.0 > 500 && all.1 > 5, "{all:?}");
}

#[test]
fn unreadable_pages_cost_themselves_and_their_blocks() {
    let mut lost = 0;
    each_seed(0..40, |seed, stripe| {
        let rates = Rates { program: 5_000, erase: 5_000, bad_block: 1_000, read: 5_000 };
        let (model, uncorrectable, _) = use_up(seed, stripe, rates);
        assert!(model.lost <= uncorrectable, "seed {seed}, {stripe:?}");
        lost += model.lost;
    });
    assert!(lost > 50, "{lost}");
}

/// Appends pages in sequence, with their numbers as content.
async fn append(ftl: &AppendFtl, extent: ExtentId, pages: std::ops::Range<u32>) {
    for number in pages {
        let at = PageId { extent, page: number };
        ftl.append(at, page(number.into()), Class::HostWrite).await.expect("there is room");
    }
}

async fn content(ftl: &AppendFtl, extent: ExtentId, number: u32) -> Result<u64, Error> {
    let at = PageId { extent, page: number };
    let page = ftl.read(Span::of(at), &Page::data_bytes, Class::HostRead).await?;
    Ok(page.segments()[0].checksum())
}

/// Runs `body` on the content of `cells`, with a stripe of all dies and these faults.
fn on(cells: &Arc<Cells>, rules: &[FaultRule], body: impl AsyncFnOnce(Arc<Nand>, Arc<AppendFtl>)) {
    let plan = FaultPlan { seed: 0, rules: rules.to_vec() };
    Reactor::new(None).run(async {
        let nand = nand(cells, plan);
        let ftl = AppendFtl::open(nand.clone(), Region::all(&GEOMETRY), Stripe::All).await;
        body(nand, Arc::new(ftl)).await;
    });
}

fn blank() -> Arc<Cells> {
    Arc::new(Cells::new(GEOMETRY, 0, 0, 0))
}

const fn nth(kind: FaultKind, number: u64) -> FaultRule {
    FaultRule::new(kind, When::Nth(number))
}

#[test]
fn a_block_that_failed_is_replaced_with_all_that_it_held() {
    let cells = blank();
    // Pages 0, 8 and 16 are the first three of one block.
    on(&cells, &[nth(FaultKind::BadBlock, 17)], async |nand, ftl| {
        let extent = ftl.open(label(1)).unwrap();
        append(&ftl, extent, 0..20).await;
        assert_eq!(nand.counters().copybacks, 2);
        for number in 0..20 {
            assert_eq!(content(&ftl, extent, number).await, Ok(number.into()));
        }
        assert_eq!((ftl.shape().extents, ftl.free_extents()), (10, 8));
    });
    assert_eq!(retired(&cells).len(), 1);
    on(&cells, &[], async |_, ftl| {
        let found = ftl.extents();
        assert_eq!((found.len(), found[0].pages, found[0].holes.len()), (1, 20, 0));
        append(&ftl, found[0].id, 20..40).await;
        for number in 0..40 {
            assert_eq!(content(&ftl, found[0].id, number).await, Ok(number.into()));
        }
        assert_eq!((ftl.shape().extents, ftl.free_extents()), (10, 8));
        ftl.reset(found[0].id, Class::Gc).await.unwrap();
        assert_eq!(ftl.free_extents(), 9);
    });
}

#[test]
fn an_unreadable_page_makes_its_extent_suspect_until_a_reset_retires_the_block() {
    let cells = blank();
    on(&cells, &[nth(FaultKind::UncorrectableRead, 1)], async |_, ftl| {
        let (first, second) = (ftl.open(label(1)).unwrap(), ftl.open(label(2)).unwrap());
        append(&ftl, first, 0..12).await;
        append(&ftl, second, 0..12).await;
        assert_eq!(ftl.suspects(), []);
        let at = PageId { extent: second, page: 3 };
        assert_eq!(content(&ftl, second, 3).await, Err(Error::Unrecovered(at)));
        assert_eq!(content(&ftl, second, 11).await, Ok(11), "of the same block");
        assert_eq!(ftl.suspects(), [second]);
        ftl.reset(first, Class::Gc).await.unwrap();
        assert_eq!((ftl.suspects(), retired(&cells).len()), (vec![second], 0));
        ftl.reset(second, Class::Gc).await.unwrap();
        assert_eq!((ftl.suspects(), retired(&cells).len()), (vec![], 1));
        assert_eq!(ftl.free_extents(), 9);
    });
}

#[test]
fn a_page_lost_before_its_block_failed_stays_lost_and_no_other_block_is_suspect() {
    let cells = blank();
    let rules = [nth(FaultKind::UncorrectableRead, 1), nth(FaultKind::FailedProgram, 17)];
    on(&cells, &rules, async |_, ftl| {
        let extent = ftl.open(label(1)).unwrap();
        append(&ftl, extent, 0..16).await;
        let lost = Err(Error::Unrecovered(PageId { extent, page: 8 }));
        assert_eq!(content(&ftl, extent, 8).await, lost);
        append(&ftl, extent, 16..17).await;
        assert_eq!(content(&ftl, extent, 8).await, lost);
        assert_eq!(
            (content(&ftl, extent, 0).await, content(&ftl, extent, 16).await),
            (Ok(0), Ok(16))
        );
        assert_eq!((ftl.suspects(), retired(&cells).len()), (vec![], 1));
    });
}

#[test]
fn an_extent_outlives_the_only_page_of_its_first_block() {
    let cells = blank();
    on(&cells, &[nth(FaultKind::UncorrectableRead, 1)], async |_, ftl| {
        let extent = ftl.open(label(1)).unwrap();
        append(&ftl, extent, 0..6).await;
        assert!(content(&ftl, extent, 0).await.is_err());
    });
    for _ in 0..2 {
        on(&cells, &[], async |_, ftl| {
            let found = ftl.extents();
            assert_eq!((found[0].pages, &found[0].holes[..]), (6, &[0][..]));
            let id = found[0].id;
            assert!(content(&ftl, id, 0).await.is_err());
            for number in 1..6 {
                assert_eq!(content(&ftl, id, number).await, Ok(number.into()));
            }
            assert_eq!(ftl.suspects(), [id]);
        });
    }
}

#[test]
fn without_a_spare_block_an_extent_can_be_read_and_no_longer_appended_to() {
    let cells = blank();
    on(&cells, &[nth(FaultKind::BadBlock, 12)], async |_, ftl| {
        let extents: Vec<ExtentId> = (0..10).map(|epoch| ftl.open(label(epoch)).unwrap()).collect();
        let extent = extents[4];
        append(&ftl, extent, 0..11).await;
        for number in [11, 12] {
            let at = PageId { extent, page: number };
            let refused = Err(Error::Unrecovered(at));
            assert_eq!(ftl.append(at, page(0), Class::HostWrite).await, refused);
            assert_eq!(content(&ftl, extent, number).await, Err(Error::Unrecovered(at)));
        }
        for number in 0..11 {
            assert_eq!(content(&ftl, extent, number).await, Ok(number.into()));
        }
        assert_eq!(ftl.suspects(), [extent]);
        append(&ftl, extents[0], 0..20).await;
        ftl.reset(extent, Class::Gc).await.unwrap();
        assert_eq!((ftl.free_extents(), retired(&cells).len()), (0, 1));
    });
}

#[test]
fn a_repair_on_capacitors_takes_what_energy_there_is() {
    // The failed program, two copies, the page itself and the mark take power.
    for (pages, saved) in [(5, true), (4, false), (0, false)] {
        let cells = blank();
        on(&cells, &[nth(FaultKind::FailedProgram, 17)], async |nand, ftl| {
            let extent = ftl.open(label(1)).unwrap();
            append(&ftl, extent, 0..16).await;
            nand.run_on_capacitors(pages);
            let at = PageId { extent, page: 16 };
            let result = ftl.append(at, page(16), Class::HostWrite).await;
            assert_eq!(result, if saved { Ok(()) } else { Err(Error::PowerLost) });
        });
        on(&cells, &[], async |_, ftl| {
            let id = ftl.extents()[0].id;
            for number in 0..16 {
                assert_eq!(content(&ftl, id, number).await, Ok(number.into()));
            }
            assert!(!saved || content(&ftl, id, 16).await == Ok(16));
        });
    }
}

#[test]
fn a_reset_cut_off_in_its_first_erase_leaves_nothing() {
    let cells = blank();
    let mut reactor = Reactor::new(None);
    reactor.run(async {
        let nand = nand(&cells, FaultPlan::default());
        let ftl = Arc::new(AppendFtl::format(nand, Region::all(&GEOMETRY), Stripe::All));
        let extent = ftl.open(label(1)).unwrap();
        append(&ftl, extent, 0..6).await;
        clock::spawn(async move { ftl.reset(extent, Class::Gc).await.unwrap() });
        sleep_until(now() + Nanos(1), Stage::Batch).await;
    });
    drop(reactor);
    assert_eq!(cells.unreadable(BlockId { die: DieId(0), block: 0 }).len(), 5);
    on(&cells, &[], async |_, ftl| {
        assert_eq!((ftl.extents().len(), ftl.free_extents()), (0, 10));
    });
}

//! Times of zones: closed forms for one command at a time and for concurrent commands, and a medium
//! that fails.

use base::{Buf, Nanos, Rng};
use clock::{Class, Group, LocalFuture, Stage, join_all, now, stages};
use ftl::{AppendFtl, Region, Stripe, ZoneAction, ZoneError, ZoneState, Zones, ZonesConfig};
use media::{
    Error, ExtentId, ExtentInfo, Label, Media, Memory, Page, PageId, Segments, Select, Shape, Span,
};
use nand::{Cells, FaultPlan, Geometry, Model, Nand, Registers, Timing};
use reactor::Reactor;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

const BLOCK: u32 = 4_096;
/// Blocks of a page.
const PAGE: u64 = 4;
/// Blocks of a zone: two dies with three pages each.
const CAPACITY: u64 = 6 * PAGE;
const READ: Nanos = Nanos::from_micros(65);
const PROGRAM: Nanos = Nanos::from_micros(450);
const ERASE: Nanos = Nanos::from_micros(2_000);
const RATE: u64 = 409_600_000;
/// A block, and a page, on a channel at that rate.
const MOVE: Nanos = Nanos::from_micros(10);
const MOVE_PAGE: Nanos = Nanos::from_micros(40);

fn times(time: Nanos, count: u64) -> Nanos {
    Nanos(time.0 * count)
}

const LIMITS: ZonesConfig =
    ZonesConfig { max_open: 0, max_active: 0, buffer_bytes: 1 << 20, zones: None };

/// Runs `body` on zones over two dies on two channels: four zones if extents span both.
fn on_flash(stripe: Stripe, config: ZonesConfig, body: impl AsyncFnOnce(Arc<Zones>)) {
    let geometry = Geometry {
        channels: 2,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks_per_plane: 4 + Zones::SPARE_EXTENTS,
        pages_per_block: 3,
        page_bytes: u32::try_from(PAGE).expect("a small number") * BLOCK,
        spare_bytes: 24 + 52,
    };
    let timing = Timing::uniform(Model::Staged, Registers::Double, READ, PROGRAM, ERASE, RATE);
    Reactor::new(None).run(async {
        let cells = Arc::new(Cells::new(geometry, 0, 0, 0));
        let nand = Arc::new(Nand::new(cells, timing, FaultPlan::default(), Group::new()));
        let ftl = AppendFtl::format(nand, Region::all(&geometry), stripe);
        // One of the two spare extents is in use, as after a save at a loss of power.
        ftl.open(Label { stream: media::Stream::Host, epoch: u64::MAX }).expect("it is free");
        body(Zones::format(Arc::new(ftl), config)).await;
    });
}

fn data(content: u64, blocks: u64) -> Segments {
    let len = u32::try_from(blocks).expect("a small number") * BLOCK;
    Segments::from_iter([Buf::phantom(len, content)])
}

async fn append(zones: &Arc<Zones>, zone: u64, content: u64, blocks: u64) -> u64 {
    let start = zone * zones.shape().zone_blocks;
    zones.append(start, data(content, blocks), Class::HostWrite).await.expect("there is room")
        - start
}

/// Returns the contents of the pieces that a read returns.
async fn read(zones: &Arc<Zones>, lba: u64, count: u32) -> Vec<u64> {
    let data = zones.read(lba, count, Class::HostRead).await.expect("nothing fails");
    assert_eq!(data.iter().map(Buf::len).sum::<u32>(), count * BLOCK);
    let content = |part: &Buf| if part.bytes().is_some() { 0 } else { part.checksum() };
    data.iter().map(content).collect()
}

/// Returns the time of `action`.
async fn time_of<T>(action: impl Future<Output = T>) -> Nanos {
    let start = now();
    action.await;
    now() - start
}

#[test]
fn alone_each_command_takes_the_time_of_its_steps() {
    on_flash(Stripe::All, LIMITS, async |zones| {
        let stride = zones.shape().zone_blocks;
        assert_eq!((stride, zones.shape().zone_capacity), (32, CAPACITY));
        let write = zones.write(0, data(1, 2 * PAGE + 1), Class::HostWrite);
        assert_eq!(time_of(write).await, Nanos::ZERO, "into the buffer");
        assert_eq!(time_of(read(&zones, 0, 4)).await, Nanos::ZERO, "out of the buffer");
        // The second page starts when the first has landed.
        let flush = times(MOVE_PAGE + PROGRAM, 2);
        assert_eq!(time_of(zones.flush()).await, flush);
        assert_eq!(time_of(zones.flush()).await, Nanos::ZERO, "what is not full stays");
        assert_eq!(time_of(read(&zones, 1, 1)).await, READ + MOVE, "a block that has landed");
        assert_eq!(time_of(read(&zones, 1, 3)).await, READ + times(MOVE, 3));
        assert_eq!(time_of(read(&zones, 2, 4)).await, READ + times(MOVE, 2), "two dies");
        assert_eq!(time_of(read(&zones, 8, 1)).await, Nanos::ZERO, "in the open page");
        assert_eq!(time_of(read(&zones, 9, 20)).await, Nanos::ZERO, "never written");
        let copy = zones.copy(&[(0, 1), (7, 2)], stride, Class::HostWrite);
        assert_eq!(time_of(copy).await, READ + MOVE, "into the buffer of another zone");
        assert_eq!(read(&zones, stride, 4).await, [1, 1, 1, 0]);
        assert_eq!(time_of(zones.change(1, ZoneAction::Finish)).await, Nanos::ZERO);
        assert_eq!(time_of(zones.flush()).await, MOVE_PAGE + PROGRAM, "its one page");
        assert_eq!(time_of(zones.change(0, ZoneAction::Reset)).await, times(ERASE, 2));
        assert_eq!(time_of(zones.change(1, ZoneAction::Reset)).await, ERASE, "one block");
        append(&zones, 2, 1, 3).await;
        assert_eq!(time_of(zones.change(2, ZoneAction::Reset)).await, Nanos::ZERO, "no page");
        append(&zones, 2, 1, CAPACITY).await;
        append(&zones, 3, 1, CAPACITY).await;
        zones.flush().await;
        let reset = zones.change_all(ZoneAction::Reset);
        // First the blocks of both on the first die, then the last one on the other die.
        assert_eq!(time_of(reset).await, times(ERASE, 3));
    });
}

#[test]
fn a_full_buffer_answers_at_the_rate_of_the_flash() {
    const PAGES: u64 = 2;
    let config = ZonesConfig { buffer_bytes: PAGES * PAGE * u64::from(BLOCK), ..LIMITS };
    on_flash(Stripe::Die, config, async |zones| {
        for number in 0..3 {
            append(&zones, 0, number, PAGE).await;
            // With two registers a page moves while the one before it is programmed, except that
            // nothing moves before the first page has landed.
            let landed = [Nanos::ZERO, Nanos::ZERO, MOVE_PAGE + PROGRAM];
            assert_eq!(now(), landed[usize::try_from(number).unwrap()]);
        }
        assert_eq!(stages()[Stage::Queue], now());
        // One block joins no page in flight, but needs space.
        append(&zones, 1, 9, 1).await;
        assert_eq!(now(), times(MOVE_PAGE + PROGRAM, 2));
    });
}

#[test]
fn a_write_enters_a_full_buffer_when_no_page_is_in_flight() {
    let config = ZonesConfig { buffer_bytes: u64::from(BLOCK), ..LIMITS };
    on_flash(Stripe::Die, config, async |zones| {
        let appends = (0..4).map(|zone| {
            let zones = zones.clone();
            async move { append(&zones, zone, zone, 3).await }
        });
        join_all(appends.collect()).await;
        assert_eq!(now(), Nanos::ZERO, "twelve blocks wait in open pages, one fits");
        append(&zones, 0, 5, 2 * PAGE).await;
        assert_eq!(now(), Nanos::ZERO);
    });
}

#[test]
fn a_reset_makes_room_for_what_its_zone_held_in_memory() {
    let config = ZonesConfig { buffer_bytes: 6 * u64::from(BLOCK), ..LIMITS };
    on_flash(Stripe::Die, config, async |zones| {
        append(&zones, 0, 1, 3).await;
        zones.change(0, ZoneAction::Reset).await.unwrap();
        append(&zones, 1, 2, PAGE).await;
        append(&zones, 2, 3, 2).await;
        assert_eq!(now(), Nanos::ZERO);
    });
}

#[test]
fn appends_under_way_together_go_one_after_the_other_in_order_of_arrival() {
    let mut rng = Rng::new(1);
    for buffer_blocks in [0, 3, 5, 6, 7, 100] {
        let buffer_bytes = buffer_blocks * u64::from(BLOCK);
        let config = ZonesConfig { buffer_bytes, ..LIMITS };
        on_flash(Stripe::All, config, async |zones| {
            let lengths: Vec<u64> = (0..8).map(|_| 1 + rng.below(3)).collect();
            let appends = lengths.iter().zip(1..).map(|(blocks, content)| {
                let (zones, blocks) = (zones.clone(), *blocks);
                async move { append(&zones, 2, content, blocks).await }
            });
            let at = join_all(appends.collect()).await;
            let mut next = 0;
            for ((at, blocks), content) in at.into_iter().zip(lengths).zip(1..) {
                assert_eq!(at, next);
                let lba = 2 * zones.shape().zone_blocks + at;
                let found = read(&zones, lba, u32::try_from(blocks).unwrap()).await;
                assert!(found.iter().all(|found| *found == content));
                next += blocks;
            }
        });
    }
}

/// Fills, reads and resets zone `zone` repeatedly.
async fn use_zone(zones: Arc<Zones>, zone: u64, mut rng: Rng) {
    let mut contents = Vec::new();
    for version in 0..150 {
        let blocks = 1 + rng.below(5);
        if contents.len() as u64 + blocks > CAPACITY {
            let number = u32::try_from(zone).expect("a small number");
            if rng.below(2) == 0 {
                zones.change(number, ZoneAction::Finish).await.expect("nothing fails");
            }
            zones.change(number, ZoneAction::Reset).await.expect("nothing fails");
            contents.clear();
        }
        let content = zone * 1_000 + version + 1;
        assert_eq!(append(&zones, zone, content, blocks).await, contents.len() as u64);
        contents.extend(vec![content; usize::try_from(blocks).expect("a small number")]);
        let start = rng.below(contents.len() as u64);
        let stop = start + 1 + rng.below(contents.len() as u64 - start);
        let range = usize::try_from(start).expect("a small number")
            ..usize::try_from(stop).expect("a small number");
        let count = u32::try_from(range.len()).expect("a small number");
        let lba = zone * zones.shape().zone_blocks + start;
        let mut found = read(&zones, lba, count).await;
        found.dedup();
        let mut expected = contents[range].to_vec();
        expected.dedup();
        assert_eq!(found, expected);
    }
}

#[test]
fn zones_that_take_all_extents_are_used_side_by_side() {
    for (seed, buffer_bytes) in [(1, 0), (2, 20_000), (3, 40_000), (4, 1 << 20)] {
        on_flash(Stripe::All, ZonesConfig { buffer_bytes, ..LIMITS }, async |zones| {
            assert_eq!(zones.shape().zones, 4);
            let users =
                (0..4).map(|zone| use_zone(zones.clone(), zone, Rng::new(seed * 10 + zone)));
            join_all(users.collect()).await;
        });
    }
}

#[test]
fn a_reset_waits_for_reads_and_a_write_after_it_for_nothing() {
    on_flash(Stripe::All, LIMITS, async |zones| {
        for zone in 0..4 {
            append(&zones, zone, 1 + zone, CAPACITY).await;
        }
        zones.flush().await;
        let (start, got) = (now(), Rc::new(RefCell::new(Vec::new())));
        let (reader, seen) = (zones.clone(), got.clone());
        clock::spawn(async move {
            seen.replace(read(&reader, 0, 1).await);
        });
        let resetter = zones.clone();
        clock::spawn(async move {
            resetter.change(0, ZoneAction::Reset).await.unwrap();
            assert_eq!(now() - start, READ + MOVE + times(ERASE, 2));
        });
        clock::sleep(Nanos(1), Stage::Batch).await;
        assert_eq!(read(&zones, 0, 1).await, [0], "it is empty");
        append(&zones, 0, 9, CAPACITY).await;
        assert_eq!(now() - start, Nanos(1), "no extent is needed yet");
        let mut found = read(&zones, 0, u32::try_from(CAPACITY).unwrap()).await;
        found.dedup();
        assert_eq!(found, [9]);
        zones.flush().await;
        assert!(now() - start > READ + MOVE + times(ERASE, 2), "the extent came back");
        assert_eq!(read(&zones, 0, 1).await, [9]);
        assert_eq!(*got.borrow(), [1], "what the zone held when the read came");
    });
}

#[test]
fn a_reset_of_a_zone_that_waits_for_an_extent_leaves_nothing_behind() {
    on_flash(Stripe::All, LIMITS, async |zones| {
        for zone in 0..4 {
            append(&zones, zone, 1, CAPACITY).await;
        }
        zones.flush().await;
        let resetter = zones.clone();
        clock::spawn(async move { resetter.change(0, ZoneAction::Reset).await.unwrap() });
        clock::sleep(Nanos(1), Stage::Batch).await;
        append(&zones, 0, 2, PAGE + 1).await;
        assert_eq!(time_of(zones.change(0, ZoneAction::Reset)).await, Nanos::ZERO);
        assert_eq!(time_of(zones.flush()).await, Nanos::ZERO, "nothing is under way");
        append(&zones, 0, 3, CAPACITY).await;
        zones.flush().await;
        assert_eq!(read(&zones, 0, 1).await, [3]);
    });
}

/// A medium that fails an append or a reset on demand.
struct Failing {
    medium: Memory,
    page: PageId,
    resets: bool,
}

impl Media for Failing {
    fn shape(&self) -> Shape {
        self.medium.shape()
    }

    fn free_extents(&self) -> u32 {
        self.medium.free_extents()
    }

    fn open(&self, label: Label) -> Result<ExtentId, Error> {
        self.medium.open(label)
    }

    fn append(&self, at: PageId, page: Page, class: Class) -> LocalFuture<'_, Result<(), Error>> {
        let append = self.medium.append(at, page, class);
        if at == self.page { Box::pin(async move { Err(Error::Unrecovered(at)) }) } else { append }
    }

    fn read<'a>(
        &'a self,
        span: Span,
        select: Select<'a>,
        class: Class,
    ) -> LocalFuture<'a, Result<Page, Error>> {
        let at = span.at;
        assert_ne!(at, self.page, "what the medium did not take is not read from it");
        self.medium.read(span, select, class)
    }

    fn reset(&self, extent: ExtentId, class: Class) -> LocalFuture<'_, Result<(), Error>> {
        if self.resets {
            return self.medium.reset(extent, class);
        }
        Box::pin(async move { Err(Error::Unrecovered(PageId { extent, page: 0 })) })
    }

    fn extents(&self) -> Vec<ExtentInfo> {
        self.medium.extents()
    }
}

fn on_failing(page: PageId, resets: bool, body: impl AsyncFnOnce(Arc<Zones>)) {
    let shape = Shape {
        page_bytes: BLOCK,
        spare_bytes: 40,
        pages_per_extent: 4,
        extents: 3 + Zones::SPARE_EXTENTS,
        parallelism: 1,
        frames: None,
    };
    Reactor::new(None).run(async {
        let medium = Failing { medium: Memory::new(shape), page, resets };
        body(Zones::format(Arc::new(medium), LIMITS)).await;
    });
}

#[test]
fn a_zone_whose_page_is_not_taken_can_only_be_read() {
    on_failing(PageId { extent: ExtentId(0), page: 1 }, true, async |zones| {
        append(&zones, 0, 5, 3).await;
        zones.flush().await;
        let info = zones.report(0).unwrap();
        assert_eq!((info.state, info.write_pointer), (ZoneState::ReadOnly, u64::MAX));
        assert_eq!(read(&zones, 0, 4).await, [5, 5, 5, 0]);
        let written = zones.write(3, data(6, 1), Class::HostWrite).await;
        assert_eq!(written, Err(ZoneError::ReadOnly));
        for action in [ZoneAction::Open, ZoneAction::Close, ZoneAction::Finish, ZoneAction::Reset] {
            assert_eq!(zones.change(0, action).await, Err(ZoneError::InvalidTransition));
            assert_eq!(zones.change_all(action).await, Ok(()), "it is passed over");
        }
        assert_eq!(zones.report(0).unwrap().state, ZoneState::ReadOnly);
        assert_eq!(append(&zones, 1, 7, 4).await, 0, "others go on");
    });
}

#[test]
fn a_zone_that_cannot_be_reset_is_offline() {
    on_failing(PageId { extent: ExtentId(9), page: 0 }, false, async |zones| {
        append(&zones, 1, 5, 2).await;
        zones.flush().await;
        let at = PageId { extent: ExtentId(0), page: 0 };
        let reset = zones.change(1, ZoneAction::Reset).await;
        assert_eq!(reset, Err(ZoneError::Media(Error::Unrecovered(at))));
        assert_eq!(zones.report(1).unwrap().state, ZoneState::Offline);
        let start = zones.shape().zone_blocks;
        let read = zones.read(start, 1, Class::HostRead).await.map(|_| ());
        assert_eq!(read, Err(ZoneError::Offline));
        let written = zones.write(start, data(6, 1), Class::HostWrite).await;
        assert_eq!(written, Err(ZoneError::Offline));
        let changed = zones.change(1, ZoneAction::Reset).await;
        assert_eq!(changed, Err(ZoneError::InvalidTransition));
        assert_eq!(append(&zones, 0, 7, 4).await, 0, "others go on");
    });
}

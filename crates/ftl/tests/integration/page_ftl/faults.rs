//! Flash with faults and losses of power: durable data is readable, or reported as lost.

use crate::page_ftl::content::Content;
use crate::page_ftl::rig::{BLOCKINGS, FRONTIERS, GEOMETRY, Setup, cells, config};
use base::{Nanos, Rng};
use clock::{Class, Stage, sleep_until, spawn};
use ftl::{PageFtl, WriteAck};
use media::{Blocks, Error};
use nand::{Cells, FaultKind, FaultPlan, FaultRule, Geometry, When};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

const CLIENTS: u64 = 4;

/// The possible contents of a block.
#[derive(Clone, Debug)]
struct Block {
    /// The durable content; `None` once it is lost.
    kept: Option<Content>,
    /// The contents written since.
    tried: Vec<Content>,
    /// All contents ever written.
    old: Vec<Content>,
}

#[derive(Debug, Default)]
struct Tally {
    lost: u64,
    /// Losses in the page that a plane programmed last, which look like a page spoiled by a loss of
    /// power.
    gone_back: u64,
    refused: u64,
    read_only: u64,
    retired: u64,
    faults: u64,
}

struct History {
    blocks: Vec<Block>,
    tally: Tally,
    may_lose: bool,
}

impl History {
    fn find(&mut self, at: usize, found: &Result<Content, Error>, is_start: bool) {
        let block = &mut self.blocks[at];
        match found {
            Ok(content) if block.kept == Some(*content) || block.tried.contains(content) => {
                block.kept = Some(*content);
            }
            Ok(content) if is_start && self.may_lose && block.old.contains(content) => {
                self.tally.gone_back += 1;
                block.kept = Some(*content);
            }
            Err(Error::UnrecoveredBlock(number)) if self.may_lose => {
                assert_eq!(*number, at as u64, "the block that was asked for");
                self.tally.lost += u64::from(block.kept.is_some());
                block.kept = None;
            }
            found => panic!("block {at} is {found:?}, not {:?} or {:?}", block.kept, block.tried),
        }
        if is_start {
            block.tried.clear();
        }
    }
}

type Shared = Rc<RefCell<History>>;

fn index(number: u64) -> usize {
    usize::try_from(number).expect("few blocks")
}

/// Writes and reads its own single blocks until the device is read only. Without `acks` a write is
/// durable after the next flush.
async fn client(ftl: Arc<PageFtl>, number: u64, mut rng: Rng, acks: bool, history: Shared) {
    let share = ftl.shape().blocks / CLIENTS;
    let mut unflushed: Vec<usize> = Vec::new();
    loop {
        let block = number * share + rng.below(share);
        let at = index(block);
        if rng.below(4) == 0 {
            let read = ftl.read(block, 1, Class::HostRead).await;
            let found = read.map(|data| Content::of_blocks(&data)[0]);
            let mut history = history.borrow_mut();
            let latest = history.blocks[at].tried.last().copied();
            if let (Some(latest), Ok(found)) = (latest, &found) {
                assert_eq!(*found, latest, "block {at}: a read sees the last write");
            } else {
                history.find(at, &found, false);
            }
            continue;
        }
        let content = Content::numbered(1 + rng.below(1 << 40));
        {
            let block = &mut history.borrow_mut().blocks[at];
            block.tried.push(content);
            block.old.push(content);
        }
        let data = Content::data(&[content], &mut rng);
        if ftl.write(block, data, Class::HostWrite).await.is_err() {
            history.borrow_mut().tally.refused += 1;
            return;
        }
        unflushed.push(at);
        let mut is_safe = acks;
        if !acks && rng.below(8) == 0 {
            is_safe = ftl.flush().await.is_ok();
        }
        if is_safe {
            for at in unflushed.drain(..) {
                let block = &mut history.borrow_mut().blocks[at];
                if let Some(last) = block.tried.pop() {
                    block.kept = Some(last);
                    block.tried.clear();
                }
            }
        }
    }
}

/// Compares the flash with the history, and runs for `time` until power is cut.
fn run(setup: &Setup, cells: &Arc<Cells>, history: &Shared, seed: u64, time: Nanos) {
    let acks = setup.config.ack == WriteAck::Program;
    setup.clone().on_written(cells, async |ftl, nand| {
        for block in 0..ftl.shape().blocks {
            let read = ftl.read(block, 1, Class::HostRead).await;
            let found = read.map(|data| Content::of_blocks(&data)[0]);
            history.borrow_mut().find(index(block), &found, true);
        }
        for number in 0..CLIENTS {
            let rng = Rng::fork(seed, number);
            spawn(client(ftl.clone(), number, rng, acks, history.clone()));
        }
        sleep_until(clock::now() + time, Stage::Queue).await;
        let tally = &mut history.borrow_mut().tally;
        tally.retired += ftl.counts().retired_blocks;
        tally.faults += nand.faults().counts.total();
    });
}

/// Runs all setups on flash with faults of `kinds`, each with its rate in a million steps.
fn soak(kinds: &[(FaultKind, u32)], may_lose: bool, fill: u64) -> Tally {
    let mut sum = Tally::default();
    let mut seed = 0;
    let rounds = 16;
    for (blocking, frontier) in BLOCKINGS.iter().flat_map(|b| FRONTIERS.map(|f| (*b, f))) {
        for ack in [WriteAck::Program, WriteAck::Buffer { bytes: 200_000 }] {
            let page_bytes = if seed % 3 == 0 { 4_096 } else { 16_384 };
            let cells = cells(Geometry { page_bytes, blocks_per_plane: 16, ..GEOMETRY });
            let mut setup = config(&cells);
            setup.config.blocks = setup.config.blocks * fill / 100;
            (setup.config.blocking, setup.config.frontier) = (blocking, frontier);
            setup.config.ack = ack;
            let block =
                Block { kept: Some(Content::Zeros), tried: Vec::new(), old: vec![Content::Zeros] };
            let blocks = vec![block; index(setup.config.blocks)];
            let history = History { blocks, tally: Tally::default(), may_lose };
            let history = Rc::new(RefCell::new(history));
            for _ in 0..rounds {
                seed += 1;
                let rules = kinds.iter().map(|(kind, ppm)| FaultRule::new(*kind, When::Ppm(*ppm)));
                setup.faults = FaultPlan { seed, rules: rules.collect() };
                setup.shuffle = (seed % 4 == 0).then_some(seed);
                let time = Nanos::from_micros(20_000 + Rng::new(seed).below(400_000));
                run(&setup, &cells, &history, seed, time);
            }
            let tally = &history.borrow().tally;
            sum.lost += tally.lost;
            sum.gone_back += tally.gone_back;
            sum.refused += tally.refused;
            sum.read_only += u64::from(tally.refused > 0);
            sum.retired += tally.retired;
            sum.faults += tally.faults;
        }
    }
    println!("{sum:?}");
    sum
}

#[test]
fn no_failed_program_or_erase_loses_anything() {
    let kinds = [
        (FaultKind::FailedProgram, 3_000),
        (FaultKind::FailedErase, 10_000),
        (FaultKind::BadBlock, 1_000),
    ];
    let tally = soak(&kinds, false, 50);
    assert!(tally.retired > 50 && tally.faults > 100, "{tally:?}");
}

#[test]
fn flash_that_fails_too_often_stays_readable() {
    let kinds = [(FaultKind::FailedProgram, 30_000), (FaultKind::BadBlock, 30_000)];
    let tally = soak(&kinds, false, 80);
    assert!(tally.read_only > 5, "{tally:?}");
}

#[test]
fn an_unreadable_block_fails_until_it_is_written_and_others_do_not() {
    let kinds = [(FaultKind::UncorrectableRead, 2_000), (FaultKind::FlippedBit, 2_000)];
    let tally = soak(&kinds, true, 60);
    assert!(tally.lost > 100 && tally.gone_back * 5 < tally.lost, "{tally:?}");
}

#[test]
fn faults_of_all_kinds_lose_no_data_silently() {
    let kinds = [
        (FaultKind::UncorrectableRead, 1_000),
        (FaultKind::FlippedBit, 1_000),
        (FaultKind::FailedProgram, 2_000),
        (FaultKind::FailedErase, 5_000),
        (FaultKind::BadBlock, 500),
    ];
    let tally = soak(&kinds, true, 50);
    assert!(tally.lost > 50 && tally.retired > 50, "{tally:?}");
}

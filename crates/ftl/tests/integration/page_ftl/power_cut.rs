//! Losses of power: what was acknowledged, or flushed, is found again.

use crate::page_ftl::content::Content;
use crate::page_ftl::rig::{
    BLOCKINGS, FRONTIERS, GEOMETRY, Setup, VICTIMS, cells, config, one_plane,
};
use base::{Nanos, Rng};
use clock::{Class, Stage, sleep_until, spawn};
use ftl::{Frontier, GcBlocking, PageFtl, WriteAck};
use media::Blocks;
use nand::{Cells, Geometry};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

const CLIENTS: u64 = 6;

/// The last durable content of each block, and the contents written since.
struct History {
    kept: Vec<Content>,
    tried: Vec<Vec<Content>>,
}

impl History {
    fn new(blocks: u64) -> Self {
        let count = usize::try_from(blocks).expect("few blocks");
        Self { kept: vec![Content::Zeros; count], tried: vec![Vec::new(); count] }
    }

    /// Enters `content`, which a start has found in a block.
    fn find(&mut self, block: usize, content: Content) {
        let allowed = self.kept[block] == content || self.tried[block].contains(&content);
        let (kept, tried) = (self.kept[block], &self.tried[block]);
        assert!(allowed, "block {block}: {content:?} is neither {kept:?} nor of {tried:?}");
        self.kept[block] = content;
        self.tried[block].clear();
    }

    /// The last content of a block now survives a loss of power.
    fn keep(&mut self, block: usize) {
        if let Some(last) = self.tried[block].pop() {
            self.kept[block] = last;
            self.tried[block].clear();
        }
    }
}

/// Overwrites its own single blocks forever. Without `acks` a write is durable after the next
/// flush.
async fn client(
    ftl: Arc<PageFtl>,
    number: u64,
    mut rng: Rng,
    acks: bool,
    history: Rc<RefCell<History>>,
) {
    let share = ftl.shape().blocks / CLIENTS;
    let mut unflushed = Vec::new();
    loop {
        let block = number * share + rng.below(share);
        let at = usize::try_from(block).expect("few blocks");
        let content = Content::numbered(1 + rng.below(1 << 40));
        history.borrow_mut().tried[at].push(content);
        let data = Content::data(&[content], &mut rng);
        ftl.write(block, data, Class::HostWrite).await.expect("nothing fails");
        unflushed.push(at);
        let safe = acks || rng.below(8) == 0;
        if safe && !acks {
            ftl.flush().await.expect("nothing fails");
        }
        if safe {
            unflushed.drain(..).for_each(|at| history.borrow_mut().keep(at));
        }
    }
}

/// Compares the flash with the history, and runs for `time` until power is cut.
fn run(setup: &Setup, cells: &Arc<Cells>, history: &Rc<RefCell<History>>, seed: u64, time: Nanos) {
    let acks = setup.config.ack == WriteAck::Program;
    setup.clone().on_written(cells, async |ftl, _| {
        for block in 0..ftl.shape().blocks {
            let data = ftl.read(block, 1, Class::HostRead).await.expect("nothing fails");
            let at = usize::try_from(block).expect("few blocks");
            history.borrow_mut().find(at, Content::of_blocks(&data)[0]);
        }
        for number in 0..CLIENTS {
            let rng = Rng::fork(seed, number);
            spawn(client(ftl.clone(), number, rng, acks, history.clone()));
        }
        sleep_until(clock::now() + time, Stage::Queue).await;
    });
}

/// Overwrites every block, which requires space for cleaning.
fn overwrite_all(setup: &Setup, cells: &Arc<Cells>, history: &Rc<RefCell<History>>) {
    setup.clone().on_written(cells, async |ftl, _| {
        for block in 0..ftl.shape().blocks {
            let at = usize::try_from(block).expect("few blocks");
            let content = Content::numbered(1 + block);
            let data = Content::data(&[content], &mut Rng::new(block));
            ftl.write(block, data, Class::HostWrite).await.expect("nothing fails");
            history.borrow_mut().tried[at].push(content);
        }
        ftl.flush().await.expect("nothing fails");
        for block in 0..ftl.shape().blocks {
            history.borrow_mut().keep(usize::try_from(block).expect("few blocks"));
        }
    });
}

#[test]
fn durable_data_survives_power_cuts_at_any_moment() {
    let mut seed = 0;
    let rounds = 12;
    for (blocking, frontier) in BLOCKINGS.iter().flat_map(|b| FRONTIERS.map(|f| (*b, f))) {
        for ack in [WriteAck::Program, WriteAck::Buffer { bytes: 200_000 }] {
            let page_bytes = if seed % 3 == 0 { 4_096 } else { 16_384 };
            let cells = cells(Geometry { page_bytes, blocks_per_plane: 8, ..GEOMETRY });
            let mut setup = config(&cells);
            setup.config.blocking = blocking;
            setup.config.frontier = frontier;
            setup.config.ack = ack;
            setup.config.victims = VICTIMS[usize::try_from(seed % 5).expect("few blocks")];
            let history = Rc::new(RefCell::new(History::new(setup.config.blocks)));
            for _ in 0..rounds {
                seed += 1;
                let time = Nanos::from_micros(20_000 + Rng::new(seed).below(400_000));
                run(&setup, &cells, &history, seed, time);
            }
        }
    }
}

#[test]
fn repeated_cuts_leave_a_full_device_room_for_writes() {
    let mut seed = 0;
    // Where hosts write to space that the collector counts on, its work cannot be undone.
    let frontier = Frontier::Own;
    for blocking in BLOCKINGS {
        for (victims, pages) in VICTIMS.iter().flat_map(|v| [3, 4, 5, 6].map(|p| (*v, p))) {
            let cells = cells(Geometry { page_bytes: 16_384, ..one_plane(4, pages) });
            let mut setup = config(&cells);
            (setup.config.blocking, setup.config.frontier) = (blocking, frontier);
            setup.config.victims = victims;
            let history = Rc::new(RefCell::new(History::new(setup.config.blocks)));
            overwrite_all(&setup, &cells, &history);
            for _ in 0..8 {
                for _ in 0..10 {
                    seed += 1;
                    let time = Nanos::from_micros(Rng::new(seed).below(12_000));
                    run(&setup, &cells, &history, seed, time);
                }
                overwrite_all(&setup, &cells, &history);
            }
        }
    }
}

/// Writes and flushes single blocks on flash with little room, `flushed` of them. After `pause`
/// overwrites one more without a flush, and cuts power when the device is idle.
fn cut_after_an_overwrite(blocking: GcBlocking, frontier: Frontier, flushed: u64, pause: Nanos) {
    let geometry = Geometry { page_bytes: 16_384, ..one_plane(6, 4) };
    let cells = cells(geometry);
    let mut setup = config(&cells);
    setup.config.ack = WriteAck::Buffer { bytes: 100_000 };
    (setup.config.blocking, setup.config.frontier) = (blocking, frontier);
    let blocks = setup.config.blocks;
    let mut rng = Rng::fork(flushed, pause.0);
    let last = rng.below(blocks);
    let content = |of: u64| Content::Words(1 + of);
    let mut held = vec![Content::Zeros; usize::try_from(blocks).expect("few blocks")];
    setup.clone().on_blank(&cells, async |ftl, _| {
        for number in 0..flushed {
            let block = if number < blocks { number } else { Rng::fork(number, 1).below(blocks) };
            let data = Content::data(&[content(number)], &mut rng);
            ftl.write(block, data, Class::HostWrite).await.expect("nothing fails");
            if number >= blocks {
                ftl.flush().await.expect("nothing fails");
            }
            held[usize::try_from(block).expect("few blocks")] = content(number);
        }
        sleep_until(clock::now() + pause, Stage::Queue).await;
        let data = Content::data(&[content(flushed)], &mut rng);
        ftl.write(last, data, Class::HostWrite).await.expect("nothing fails");
        sleep_until(clock::now() + Nanos::from_micros(30_000), Stage::Queue).await;
    });
    setup.on_written(&cells, async |ftl, _| {
        let data = ftl.read(last, 1, Class::HostRead).await.expect("nothing fails");
        let found = Content::of_blocks(&data)[0];
        let before = held[usize::try_from(last).expect("few blocks")];
        assert!(
            found == before || found == content(flushed),
            "{blocking:?} {frontier:?} {flushed} {pause:?}: block {last} held {before:?}, and now \
             {found:?}"
        );
    });
}

#[test]
fn a_lost_overwrite_leaves_flushed_data_even_while_it_is_moved() {
    for (blocking, frontier) in BLOCKINGS.iter().flat_map(|b| FRONTIERS.map(|f| (*b, f))) {
        for flushed in 70..90 {
            for step in 0..40 {
                let pause = Nanos::from_micros(step * 100);
                cut_after_an_overwrite(blocking, frontier, flushed, pause);
            }
        }
    }
}

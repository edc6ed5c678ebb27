//! Random operations of several clients against a plain array, and against blocks in memory.

use crate::page_ftl::content::Content;
use crate::page_ftl::rig::{BLOCKINGS, FRONTIERS, GEOMETRY, READ, Setup, VICTIMS, cells, config};
use base::{Nanos, Rng};
use clock::{Class, join_all};
use ftl::{PageFtl, PageFtlCounts, WriteAck};
use media::{Access, Blocks, MemoryBlocks};
use nand::{Cells, Geometry};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

const CLIENTS: u64 = 3;

/// A client with its own blocks.
struct Client {
    first: u64,
    blocks: Vec<Content>,
    /// Trimmed and not written since.
    trimmed: Vec<bool>,
    rng: Rng,
}

/// The client numbers what it writes.
impl Client {
    fn new(client: u64, blocks: u64) -> Self {
        let share = blocks / CLIENTS;
        let count = usize::try_from(share).expect("few blocks");
        let (blocks, trimmed) = (vec![Content::Zeros; count], vec![false; count]);
        Self { first: client * share, blocks, trimmed, rng: Rng::new(client) }
    }

    /// Draws a random range within the client's blocks.
    fn range(&mut self, longest: u64) -> (usize, usize) {
        let share = self.blocks.len() as u64;
        let start = self.rng.below(share);
        let len = 1 + self.rng.below(longest.min(share - start));
        let start = usize::try_from(start).expect("few blocks");
        (start, start + usize::try_from(len).expect("few blocks"))
    }

    async fn step(&mut self, all: &[Arc<dyn Blocks>]) {
        match self.rng.below(10) {
            0..5 => self.write(all).await,
            5..8 => self.read(all).await,
            8 => {
                let (start, end) = self.range(16);
                let first = self.first + start as u64;
                for blocks in all {
                    blocks
                        .trim(first, (end - start) as u64, Class::HostWrite)
                        .await
                        .expect("nothing fails");
                }
                self.blocks[start..end].fill(Content::Zeros);
                self.trimmed[start..end].fill(true);
            }
            _ => {
                for blocks in all {
                    blocks.flush().await.expect("nothing fails");
                }
            }
        }
    }

    async fn write(&mut self, all: &[Arc<dyn Blocks>]) {
        let longest = if self.rng.below(4) == 0 { 40 } else { 3 };
        let (start, end) = self.range(longest);
        let contents: Vec<Content> =
            (start..end).map(|_| Content::numbered(1 + self.rng.below(1 << 40))).collect();
        let data = Content::data(&contents, &mut self.rng);
        let first = self.first + start as u64;
        for blocks in all {
            blocks.write(first, data.clone(), Class::HostWrite).await.expect("nothing fails");
        }
        self.blocks[start..end].copy_from_slice(&contents);
        self.trimmed[start..end].fill(false);
    }

    async fn read(&mut self, all: &[Arc<dyn Blocks>]) {
        // Announced blocks may be written, trimmed or moved before they are read, or never be read.
        for _ in 0..self.rng.below(5) {
            let announced = self.first + self.range(1).0 as u64;
            for blocks in all {
                blocks.expect(announced, Access::Read);
            }
        }
        let (start, end) = self.range(30);
        let count = u32::try_from(end - start).expect("few blocks");
        for blocks in all {
            let data = blocks.read(self.first + start as u64, count, Class::HostRead).await;
            let found = Content::of_blocks(&data.expect("nothing fails"));
            assert_eq!(found, self.blocks[start..end], "blocks {start} of {}", self.first);
        }
    }

    /// Adopts the medium's content of trimmed blocks, and compares the others.
    async fn compare(&mut self, blocks: &PageFtl) {
        for at in 0..self.blocks.len() {
            let data = blocks
                .read(self.first + at as u64, 1, Class::HostRead)
                .await
                .expect("nothing fails");
            let found = Content::of_blocks(&data)[0];
            if self.trimmed[at] {
                self.blocks[at] = found;
            }
            assert_eq!(found, self.blocks[at], "block {at} of {}", self.first);
        }
    }
}

type Clients = Vec<Rc<RefCell<Client>>>;

#[expect(clippy::await_holding_refcell_ref, reason = "each client has a task of its own")]
async fn steps(clients: &Clients, all: Vec<Arc<dyn Blocks>>, count: u32) {
    let runs = clients.iter().cloned().map(|client| {
        let all = all.clone();
        async move {
            for _ in 0..count {
                client.borrow_mut().step(&all).await;
            }
        }
    });
    join_all(runs.collect()).await;
}

/// Formats, runs operations and restarts twice. Returns the counters before the first restart.
#[expect(clippy::await_holding_refcell_ref, reason = "no other task runs then")]
fn check(setup: &Setup, cells: &Arc<Cells>, count: u32) -> PageFtlCounts {
    let blocks = setup.config.blocks;
    let clients: Clients =
        (0..CLIENTS).map(|client| Rc::new(RefCell::new(Client::new(client, blocks)))).collect();
    let counts = setup.clone().on_blank(cells, async |ftl, _| {
        let memory = Arc::new(MemoryBlocks::new(ftl.shape()));
        steps(&clients, vec![ftl.clone(), memory], count).await;
        ftl.flush().await.expect("nothing fails");
        ftl.counts()
    });
    for _ in 0..2 {
        setup.clone().on_written(cells, async |ftl, _| {
            for client in &clients {
                client.borrow_mut().compare(&ftl).await;
            }
            steps(&clients, vec![ftl.clone()], count / 4).await;
            ftl.flush().await.expect("nothing fails");
        });
    }
    counts
}

#[test]
fn every_setup_behaves_as_an_array_also_after_starts() {
    let acks =
        [WriteAck::Program, WriteAck::Buffer { bytes: 4_096 }, WriteAck::Buffer { bytes: 100_000 }];
    let count = 300;
    let mut sum = PageFtlCounts::default();
    let mut seed = 0;
    for (victims, blocking, frontier, ack) in acks.into_iter().flat_map(|ack| {
        let of_blocking = move |blocking| FRONTIERS.map(|frontier| (blocking, frontier));
        let shapes = BLOCKINGS.into_iter().flat_map(of_blocking);
        shapes.flat_map(move |(blocking, frontier)| {
            VICTIMS.map(|victims| (victims, blocking, frontier, ack))
        })
    }) {
        seed += 1;
        let page_bytes = if seed % 2 == 0 { 4_096 } else { 16_384 };
        let cells = cells(Geometry { page_bytes, ..GEOMETRY });
        let mut setup = config(&cells);
        let gc_free_blocks = 1 + seed % 3;
        setup.config = ftl::PageFtlConfig {
            victims,
            blocking,
            frontier,
            ack,
            gc_free_blocks,
            wear_gap: seed % 4,
            seed: seed.into(),
            ..setup.config
        };
        setup.shuffle = (seed % 5 == 0).then_some(seed.into());
        // Some of the arrays read at once, with prefetching.
        setup.read = if seed % 3 == 0 { Nanos::ZERO } else { READ };
        sum = sum + check(&setup, &cells, count);
    }
    println!("{sum:?}");
    assert!(sum.victims > 1_000 && sum.moved_blocks > sum.victims, "cleaning had work: {sum:?}");
    assert!(sum.copybacks > 100 && sum.wear_moves > 10 && sum.trims > 1_000, "{sum:?}");
}

#[test]
fn bad_blocks_are_never_used() {
    let cells = Arc::new(Cells::new(GEOMETRY, 150_000, 0, 7));
    let setup = config(&cells);
    // The cells panic when a bad block is programmed or erased.
    let counts = check(&setup, &cells, 200);
    assert!(counts.victims > 0, "{counts:?}");
}

//! Crowds on the smallest devices there can be, all as full as they can be.

use crate::page_ftl::content::Content;
use crate::page_ftl::rig::{BLOCKINGS, FRONTIERS, GEOMETRY, Setup, VICTIMS, cells, config};
use base::Rng;
use clock::{Class, join_all};
use ftl::{PageFtl, PageFtlConfig, WriteAck};
use media::Blocks;
use nand::{Cells, Geometry};
use std::ops::Range;
use std::sync::Arc;

const STEPS: u64 = 1_500;

/// One of many clients, each with its own blocks.
struct Client {
    ftl: Arc<PageFtl>,
    first: u64,
    held: Vec<Content>,
    rng: Rng,
}

impl Client {
    fn new(ftl: Arc<PageFtl>, number: u64, clients: u64) -> Self {
        let share = ftl.shape().blocks / clients;
        let held = vec![Content::Zeros; usize::try_from(share).expect("few blocks")];
        Self { ftl, first: number * share, held, rng: Rng::new(number) }
    }

    /// Draws some of the client's blocks, and the number of the first one's content.
    fn range(&mut self) -> (Range<usize>, u64) {
        let share = self.held.len() as u64;
        let start = self.rng.below(share);
        let end = start + 1 + self.rng.below((share - start).min(12));
        let small = |n| usize::try_from(n).expect("few blocks");
        (small(start)..small(end), self.first + start)
    }

    async fn step(&mut self) {
        let (range, first) = self.range();
        let count = u32::try_from(range.len()).expect("few blocks");
        match self.rng.below(20) {
            0..13 => {
                let draw = |_| Content::numbered(1 + self.rng.below(1 << 40));
                let contents: Vec<Content> = range.clone().map(draw).collect();
                let data = Content::data(&contents, &mut self.rng);
                self.ftl.write(first, data, Class::HostWrite).await.expect("nothing fails");
                self.held[range].copy_from_slice(&contents);
            }
            13..18 => {
                let is_urgent = self.rng.below(2) == 0;
                let class = if is_urgent { Class::HostRead } else { Class::Wear };
                let data = self.ftl.read(first, count, class).await.expect("nothing fails");
                assert_eq!(Content::of_blocks(&data), self.held[range]);
            }
            18 => {
                let trim = self.ftl.trim(first, count.into(), Class::HostWrite);
                trim.await.expect("nothing fails");
                self.held[range].fill(Content::Zeros);
            }
            _ => self.ftl.flush().await.expect("nothing fails"),
        }
    }
}

fn check(setup: Setup, cells: &Arc<Cells>, clients: u64) {
    setup.on_blank(cells, async |ftl, _| {
        let all = (0..clients).map(|number| {
            let mut client = Client::new(ftl.clone(), number, clients);
            async move {
                for _ in 0..STEPS / clients {
                    client.step().await;
                }
            }
        });
        join_all(all.collect()).await;
    });
}

#[test]
fn every_task_ends_and_no_data_is_lost_on_the_smallest_devices() {
    let acks = [4_096, 20_480, 1 << 20].map(|bytes| WriteAck::Buffer { bytes });
    let acks = || acks.into_iter().chain([WriteAck::Program]);
    let shapes = BLOCKINGS.iter().flat_map(|b| FRONTIERS.map(|f| (*b, f)));
    let setups = shapes.flat_map(|shape| acks().map(move |ack| (shape, ack)));
    let setups = setups.flat_map(|setup| [1, 8, 64].map(|clients| (setup, clients)));
    for (seed, (((blocking, frontier), ack), clients)) in (1..).zip(setups) {
        let cells = cells(Geometry {
            page_bytes: 4_096 << (seed % 3),
            blocks_per_plane: 4 + seed % 7,
            pages_per_block: 2 + seed % 5,
            planes_per_die: 1 + seed % 2,
            ..GEOMETRY
        });
        let mut setup = config(&cells);
        setup.config = PageFtlConfig {
            blocking,
            frontier,
            ack,
            victims: VICTIMS[seed as usize % 5],
            gc_free_blocks: 1 + seed % 4 * 2,
            wear_gap: seed % 3,
            ..setup.config
        };
        setup.shuffle = (seed % 2 == 0).then_some(seed.into());
        if setup.config.blocks >= clients {
            check(setup, &cells, clients);
        }
    }
}

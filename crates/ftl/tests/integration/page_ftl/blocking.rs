//! What each way of cleaning moves, and whom it keeps waiting.

use crate::page_ftl::content::Content;
use crate::page_ftl::rig::{BLOCKINGS, ERASE, FRONTIERS, PROGRAM, READ, Setup, cells, config};
use base::{Nanos, Rng};
use clock::{Class, Stage, join_all, now, sleep};
use ftl::{Frontier, GcBlocking, PageFtl, PageFtlCounts, WriteAck};
use media::Blocks;
use nand::{Cells, Geometry};
use std::sync::Arc;

/// Two channels of one die with one plane.
const GEOMETRY: Geometry = Geometry {
    channels: 2,
    dies_per_channel: 1,
    planes_per_die: 1,
    blocks_per_plane: 64,
    pages_per_block: 32,
    page_bytes: 4_096,
    spare_bytes: 160,
};

/// Longer than the cleaning of a few blocks.
const REST: Nanos = Nanos::from_micros(500_000);

fn setup(cells: &Cells, blocking: GcBlocking, frontier: Frontier) -> Setup {
    let mut setup = config(cells);
    setup.config.blocking = blocking;
    setup.config.frontier = frontier;
    setup.config.blocks = 2 * 64 * 32 * 93 / 100;
    setup
}

async fn write(ftl: &PageFtl, block: u64) {
    let data = Content::data(&[Content::Phantom(block)], &mut Rng::new(1));
    ftl.write(block, data, Class::HostWrite).await.expect("nothing fails");
}

/// Fills the device and overwrites half of it at random, with a pause after each write.
fn counts(blocking: GcBlocking, frontier: Frontier) -> PageFtlCounts {
    let cells = cells(GEOMETRY);
    setup(&cells, blocking, frontier).on_blank(&cells, async |ftl, _| {
        let blocks = ftl.shape().blocks;
        let mut rng = Rng::new(3);
        let overwrites = (0..blocks / 2).map(|_| rng.below(blocks)).collect::<Vec<_>>();
        for block in (0..blocks).chain(overwrites) {
            write(&ftl, block).await;
            sleep(REST, Stage::Queue).await;
        }
        ftl.counts()
    })
}

#[test]
fn the_same_writes_move_the_same_blocks_however_cleaning_blocks() {
    for frontier in FRONTIERS {
        let nothing = counts(GcBlocking::Nothing, frontier);
        assert!(nothing.moved_blocks > 1_000 && nothing.copybacks == 0, "{nothing:?}");
        for blocking in &BLOCKINGS[1..] {
            let counts = counts(*blocking, frontier);
            let moved = (counts.host_blocks, counts.moved_blocks, counts.victims);
            assert_eq!(moved, (nothing.host_blocks, nothing.moved_blocks, nothing.victims));
            let is_plane = *blocking == GcBlocking::Plane;
            assert_eq!(counts.copybacks, if is_plane { counts.moved_blocks } else { 0 });
        }
    }
}

/// Returns the latencies of reads of random blocks during the cleaning of a block.
fn waits(blocking: GcBlocking) -> Vec<Nanos> {
    let cells = cells(GEOMETRY);
    setup(&cells, blocking, Frontier::Own).on_blank(&cells, async |ftl, nand| {
        let blocks = ftl.shape().blocks;
        let (mut rng, mut waits) = (Rng::new(3), Vec::new());
        for block in 0..blocks {
            write(&ftl, block).await;
        }
        sleep(REST, Stage::Queue).await;
        while waits.len() < 200 {
            let before = nand.counters();
            write(&ftl, rng.below(blocks)).await;
            sleep(PROGRAM + PROGRAM, Stage::Queue).await;
            let after = nand.counters();
            let cleans = after.reads + after.copybacks > before.reads + before.copybacks;
            if cleans && after.erases == before.erases {
                let start = now();
                ftl.read(rng.below(blocks), 1, Class::HostRead).await.expect("nothing fails");
                waits.push(now() - start);
            }
            sleep(REST, Stage::Queue).await;
        }
        waits
    })
}

#[test]
fn reads_wait_for_a_whole_cleaning_where_it_blocks_them() {
    let idle = READ + Nanos(4_096);
    // With 93 % full, nine tenths of a victim are live.
    let cleaning = Nanos(20 * (READ + PROGRAM).0) + ERASE;
    let long = |waits: &[Nanos]| waits.iter().filter(|wait| **wait > cleaning).count();
    let idles = |waits: &[Nanos]| waits.iter().filter(|wait| **wait == idle).count();
    let all = waits(GcBlocking::Controller);
    assert_eq!((long(&all), idles(&all)), (200, 0));
    let half = waits(GcBlocking::Channel);
    assert_eq!(long(&half) + idles(&half), 200, "either the channel's, or not at all");
    assert!((70..130).contains(&long(&half)), "{}", long(&half));
    for blocking in [GcBlocking::Nothing, GcBlocking::Plane] {
        let waits = waits(blocking);
        let most = *waits.iter().max().expect("200 of them");
        assert!(most < Nanos(2 * (READ + PROGRAM).0) + idle, "{most} with {blocking:?}");
        assert!((70..130).contains(&idles(&waits)), "{}", idles(&waits));
    }
}

/// Overwrites everything many times with many clients, and checks the final content.
async fn churn(ftl: Arc<PageFtl>, times: u64) -> PageFtlCounts {
    const CLIENTS: u64 = 24;
    let share = ftl.shape().blocks / CLIENTS;
    let clients = (0..CLIENTS).map(|client| {
        let ftl = ftl.clone();
        async move {
            let mut rng = Rng::new(client);
            let mut expected = vec![Content::Zeros; usize::try_from(share).expect("few blocks")];
            for step in 0..share * (1 + times) {
                let at = if step < share { step } else { rng.below(share) };
                let content = Content::Phantom(rng.next_u64());
                expected[usize::try_from(at).expect("few blocks")] = content;
                let data = Content::data(&[content], &mut Rng::new(2));
                ftl.write(client * share + at, data, Class::HostWrite)
                    .await
                    .expect("nothing fails");
            }
            let count = u32::try_from(share).expect("few blocks");
            let found =
                ftl.read(client * share, count, Class::HostRead).await.expect("nothing fails");
            assert_eq!(Content::of_blocks(&found), expected);
        }
    });
    join_all(clients.collect()).await;
    ftl.counts()
}

#[test]
fn a_full_device_is_overwritten_ten_times_with_a_fourteenth_to_spare() {
    let times = 10;
    for (blocking, frontier) in BLOCKINGS.iter().flat_map(|b| FRONTIERS.map(|f| (*b, f))) {
        let cells = cells(GEOMETRY);
        let setup = setup(&cells, blocking, frontier);
        let counts = setup.on_blank(&cells, async |ftl, _| churn(ftl, times).await);
        assert!(counts.victims > 64 * times, "{counts:?}");
    }
}

#[test]
fn the_fullest_possible_device_never_gets_stuck() {
    for frontier in FRONTIERS {
        for page_bytes in [4_096, 16_384] {
            let small =
                Geometry { page_bytes, blocks_per_plane: 8, pages_per_block: 8, ..GEOMETRY };
            let cells = cells(small);
            let mut setup = config(&cells);
            setup.config.frontier = frontier;
            setup.config.wear_gap = 1;
            let counts = setup.on_blank(&cells, async |ftl, _| churn(ftl, 40).await);
            assert!(counts.victims > 64 && counts.wear_moves > 0, "{counts:?}");
        }
    }
}

#[test]
fn writers_that_wait_for_the_buffer_fill_whole_pages() {
    const WRITERS: u64 = 40;
    let cells = cells(Geometry { page_bytes: 16_384, ..GEOMETRY });
    let mut setup = setup(&cells, GcBlocking::Nothing, Frontier::Own);
    setup.config.ack = WriteAck::Buffer { bytes: 13 * 4_096 };
    let programs = setup.on_blank(&cells, async |ftl, nand| {
        let writers = (0..WRITERS).map(|writer| {
            let ftl = ftl.clone();
            async move {
                for block in 0..8 {
                    write(&ftl, 8 * writer + block).await;
                }
            }
        });
        join_all(writers.collect()).await;
        ftl.flush().await.expect("nothing fails");
        nand.counters().programs
    });
    assert_eq!(programs, WRITERS * 8 / 4);
}

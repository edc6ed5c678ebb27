//! What a start continues.

use crate::page_ftl::content::Content;
use crate::page_ftl::rig::{cells, config, one_plane, region};
use base::{Nanos, Rng};
use clock::{Class, Stage, sleep};
use ftl::{PageFtl, Region};
use media::Blocks;
use nand::{BlockId, Cells, DieId, Geometry};
use std::sync::Arc;

/// Longer than the cleaning of a few blocks.
const REST: Nanos = Nanos::from_micros(500_000);

async fn write(ftl: &PageFtl, block: u64) {
    let data = Content::data(&[Content::Phantom(block)], &mut Rng::new(1));
    ftl.write(block, data, Class::HostWrite).await.expect("nothing fails");
    sleep(REST, Stage::Queue).await;
}

/// Returns the number of pages programmed in each block.
fn programmed(cells: &Cells) -> Vec<u32> {
    let blocks = 0..cells.geometry().blocks_per_plane;
    blocks.map(|block| cells.programmed(BlockId { die: DieId(0), block })).collect()
}

/// Returns the blocks with more pages than before.
fn grown(before: &[u32], after: &[u32]) -> Vec<usize> {
    (0..before.len()).filter(|at| after[*at] > before[*at]).collect()
}

#[test]
fn a_start_continues_the_open_blocks_of_host_and_collector() {
    let geometry = one_plane(12, 8);
    let mut resumed = 0;
    for overwrites in 0..40 {
        let cells = cells(geometry);
        let mut setup = config(&cells);
        setup.config.blocks = 64;
        let (host, moved) = setup.clone().on_blank(&cells, async |ftl, _| {
            let mut rng = Rng::new(2);
            for block in (0..64).chain((0..overwrites).map(|_| rng.below(64))) {
                write(&ftl, block).await;
            }
            let (before, moved) = (programmed(&cells), ftl.counts().moved_blocks);
            write(&ftl, 0).await;
            assert!(ftl.counts().moved_blocks >= moved);
            let is_quiet = ftl.counts().moved_blocks == moved;
            (is_quiet.then(|| grown(&before, &programmed(&cells))), moved)
        });
        let Some(host) = host else { continue };
        let before = programmed(&cells);
        if before[host[0]] == geometry.pages_per_block {
            continue;
        }
        let after = setup.on_written(&cells, async |ftl, _| {
            write(&ftl, 0).await;
            programmed(&cells)
        });
        assert_eq!(grown(&before, &after), host, "{overwrites} overwrites: {before:?} {after:?}");
        resumed += u32::from(moved > 0);
    }
    assert!(resumed > 10, "{resumed} starts found blocks of both");
}

#[test]
fn bad_blocks_reduce_the_capacity_for_hosts() {
    let geometry = Geometry { page_bytes: 16_384, ..one_plane(40, 6) };
    let cells = Cells::new(geometry, 150_000, 0, 7);
    let bad = (0..40).filter(|block| cells.is_bad(BlockId { die: DieId(0), block: *block }));
    let (bad, most) = (bad.count() as u64, PageFtl::blocks_max(&cells, region(&geometry)));
    assert!(bad > 0);
    assert_eq!(most, (40 - bad - 2) * 5 * 4);
    let half = Region { first: 20, count: 20 };
    assert!(PageFtl::blocks_max(&cells, half) < most);
    let all = PageFtl::blocks_max(&Arc::new(Cells::new(geometry, 0, 0, 7)), region(&geometry));
    assert_eq!(all, (40 - 2) * 5 * 4);
}

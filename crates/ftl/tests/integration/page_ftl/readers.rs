//! Reads that cleaning overtakes.

use crate::page_ftl::content::Content;
use crate::page_ftl::rig::{BLOCKINGS, FRONTIERS, GEOMETRY, cells, config, one_plane, region};
use base::{Nanos, Rng};
use clock::{Class, Group, Stage, sleep, spawn};
use ftl::{PageFtl, PageFtlConfig, WriteAck};
use media::{Blocks, Segments};
use nand::{
    Cells, Counters, FaultKind, FaultPlan, FaultRule, Model, Nand, Registers, Timing, When,
};
use reactor::Reactor;
use std::sync::Arc;

const READERS: u64 = 24;

/// Overwrites blocks, each with its own content.
async fn overwrite(ftl: Arc<PageFtl>, times: u64) {
    let mut rng = Rng::new(1);
    for _ in 0..times {
        let block = rng.below(ftl.shape().blocks);
        let data = Content::data(&[Content::Words(1 + block)], &mut rng);
        ftl.write(block, data, Class::HostWrite).await.expect("nothing fails");
    }
}

/// Reads with the lowest urgency, so that a victim's copies and its erase could overtake them.
async fn read(ftl: Arc<PageFtl>, reader: u64, times: u64) {
    let mut rng = Rng::fork(2, reader);
    for _ in 0..times {
        let block = rng.below(ftl.shape().blocks);
        let data = ftl.read(block, 1, Class::Wear).await.expect("nothing fails");
        assert_eq!(Content::of_blocks(&data), [Content::Words(1 + block)]);
    }
}

#[test]
fn no_block_is_erased_under_a_read_that_everything_else_overtakes() {
    for (blocking, frontier) in BLOCKINGS.iter().flat_map(|b| FRONTIERS.map(|f| (*b, f))) {
        let cells = cells(one_plane(8, 4));
        let mut setup = config(&cells);
        (setup.config.blocking, setup.config.frontier) = (blocking, frontier);
        let counts = setup.on_blank(&cells, async |ftl, _| {
            for block in 0..ftl.shape().blocks {
                let data = Content::data(&[Content::Words(1 + block)], &mut Rng::new(3));
                ftl.write(block, data, Class::HostWrite).await.expect("nothing fails");
            }
            for reader in 0..READERS {
                spawn(read(ftl.clone(), reader, 100));
            }
            overwrite(ftl.clone(), 300).await;
            ftl.counts()
        });
        assert!(counts.victims > 50, "{counts:?}");
    }
}

/// Returns flash without delays.
fn instant(cells: &Arc<Cells>, faults: FaultPlan, group: Group) -> Arc<Nand> {
    let [read, program, erase] = [Nanos::ZERO; 3];
    let timing = Timing::uniform(Model::Staged, Registers::Single, read, program, erase, 0);
    Arc::new(Nand::new(cells.clone(), timing, faults, group))
}

/// Reads so many blocks from each of these on, as far as nothing has to be waited for.
fn at_once<const N: usize>(ftl: &PageFtl, reads: [(u64, u32); N]) -> [Option<Segments>; N] {
    let mut contents = Vec::new();
    ftl.read_at_once(&reads, &mut contents);
    contents.try_into().expect("one for each read")
}

#[test]
fn reads_at_once_find_what_other_reads_find() {
    for ack in [WriteAck::Program, WriteAck::Buffer { bytes: 1 << 20 }] {
        let cells = cells(GEOMETRY);
        let mut config = PageFtlConfig { ack, ..config(&cells).config };
        Reactor::new(None).run(async {
            config.group = Group::new();
            let nand = instant(&cells, FaultPlan::default(), config.group);
            let ftl = PageFtl::format(nand.clone(), region(cells.geometry()), config);
            let mut rng = Rng::new(1);
            for number in 1..2_000_u64 {
                let count = 1 + rng.below(6);
                let block = rng.below(ftl.shape().blocks - count);
                let contents = vec![Content::numbered(number); usize::try_from(count).unwrap()];
                let data = Content::data(&contents, &mut rng);
                ftl.write(block, data, Class::HostWrite).await.expect("nothing fails");
                let at = rng.below(ftl.shape().blocks - 8);
                let reads = [(at, 8), (block, 1)];
                for (found, (first, count)) in at_once(&ftl, reads).into_iter().zip(reads) {
                    let found = found.expect("nothing takes time");
                    let expected = ftl.read(first, count, Class::HostRead).await;
                    let expected = expected.expect("nothing fails");
                    assert_eq!(Content::of_blocks(&found), Content::of_blocks(&expected));
                }
            }
            assert!(ftl.counts().victims > 0);
            // Cleaning ends.
            sleep(Nanos(1), Stage::Queue).await;
            for at in 0..ftl.shape().blocks - 8 {
                let before = nand.counters();
                assert!(at_once(&ftl, [(at, 8)])[0].is_some());
                let between = nand.counters();
                ftl.read(at, 8, Class::HostRead).await.expect("nothing fails");
                let of = |now: Counters, then: Counters| {
                    (now.reads - then.reads, now.bytes_read - then.bytes_read)
                };
                let again = of(nand.counters(), between);
                assert_eq!(of(between, before), again, "each page is counted");
            }
        });
    }
}

#[test]
fn reads_wait_where_flash_takes_time_or_may_fail() {
    let cells = cells(GEOMETRY);
    let blocks = async |ftl: Arc<PageFtl>| {
        let data = Content::data(&[Content::Words(1)], &mut Rng::new(3));
        ftl.write(7, data, Class::HostWrite).await.expect("nothing fails");
        at_once(&ftl, [(7, 1)])[0].is_some()
    };
    assert!(!config(&cells).on_blank(&cells, async |ftl, _| blocks(ftl).await));
    let rules = vec![FaultRule::new(FaultKind::UncorrectableRead, When::Ppm(1))];
    let faults = FaultPlan { seed: 1, rules };
    let cells = self::cells(GEOMETRY);
    let config = config(&cells).config;
    Reactor::new(None).run(async {
        let group = Group::new();
        let nand = instant(&cells, faults, group);
        let config = PageFtlConfig { group, ..config };
        assert!(!blocks(PageFtl::format(nand, region(cells.geometry()), config)).await);
    });
}

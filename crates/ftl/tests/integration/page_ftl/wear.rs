use crate::page_ftl::content::Content;
use crate::page_ftl::rig::{cells, config, one_plane};
use base::Rng;
use clock::Class;
use ftl::PageFtlCounts;
use media::Blocks;
use nand::{BlockId, DieId};

/// Writes everything once and then the first eighth repeatedly. Returns the difference in erases
/// between the most and the least worn block.
fn spread(wear_gap: u32, writes: u64) -> (u32, PageFtlCounts) {
    let geometry = one_plane(40, 32);
    let cells = cells(geometry);
    let mut setup = config(&cells);
    setup.config.blocks = 40 * 32 * 8 / 10;
    setup.config.wear_gap = wear_gap;
    let counts = setup.on_blank(&cells, async |ftl, _| {
        let blocks = ftl.shape().blocks;
        let mut rng = Rng::new(5);
        let overwrites = (0..writes).map(|_| None);
        for block in (0..blocks).map(Some).chain(overwrites) {
            let block = block.unwrap_or_else(|| rng.below(blocks / 8));
            let data = Content::data(&[Content::Phantom(block)], &mut rng);
            ftl.write(block, data, Class::HostWrite).await.expect("nothing fails");
        }
        ftl.counts()
    });
    let blocks = 0..geometry.blocks_per_plane;
    let erases = blocks.map(|block| cells.erase_count(BlockId { die: DieId(0), block }));
    let range = erases.fold((u32::MAX, 0), |(least, most), one| (one.min(least), one.max(most)));
    (range.1 - range.0, counts)
}

#[test]
fn wear_levelling_bounds_how_far_blocks_are_apart_under_a_skewed_load() {
    for (writes, apart) in [(30_000, 60), (120_000, 240)] {
        let (off, counts) = spread(0, writes);
        assert!(off > apart, "blocks that are never overwritten are never erased: {off}");
        assert_eq!(counts.wear_moves, 0);
        for gap in [4, 16] {
            let (on, counts) = spread(gap, writes);
            println!("{off} apart without, {on} with a gap of {gap}: {counts:?}");
            // A block moves for every eighth victim, so that half of a plane's blocks, the cold
            // ones, wait for as much as 160 victims, or 4 for each block, and are behind as long
            // again until they have caught up.
            assert!(on <= gap + 16, "{on} apart with a gap of {gap}");
            assert!(counts.wear_moves * 8 <= counts.victims && counts.wear_moves > 0, "{counts:?}");
        }
    }
}

//! Reads that cleaning overtakes.

use crate::page_ftl::content::Content;
use crate::page_ftl::rig::{BLOCKINGS, FRONTIERS, cells, config, one_plane};
use base::Rng;
use clock::{Class, spawn};
use ftl::PageFtl;
use media::Blocks;
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

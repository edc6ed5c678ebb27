use crate::append::AppendFtl;
use crate::blocks::{Blocks, SavedBlocks};
use crate::region::Region;
use crate::stripe::{Sets, Stripe};
use media::ExtentId;
use nand::Nand;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// The saved state of an idle medium.
#[derive(Debug, Serialize, Deserialize)]
pub struct SavedAppendFtl {
    blocks: SavedBlocks,
    starts: Vec<ExtentId>,
    has_gaps: bool,
    unreadable_blocks: u32,
}

impl AppendFtl {
    /// Saves the state. No operation may be in progress.
    pub fn save_state(&self) -> SavedAppendFtl {
        SavedAppendFtl {
            blocks: self.blocks().save(),
            starts: self.starts.save(),
            has_gaps: self.has_gaps.load(Relaxed),
            unreadable_blocks: self.unreadable_blocks,
        }
    }

    /// Restores the saved medium on a region of an array with the cells saved with it.
    pub fn restore_state(
        nand: Arc<Nand>,
        region: Region,
        stripe: Stripe,
        saved: SavedAppendFtl,
    ) -> Self {
        let geometry = *nand.cells().geometry();
        region.assert_fits(&geometry);
        let sets = Sets::new(stripe, &geometry);
        let blocks = Blocks::restored(sets, geometry.pages_per_block, saved.blocks);
        let ftl = Self::on(nand, sets, blocks, saved.unreadable_blocks);
        ftl.has_gaps.store(saved.has_gaps, Relaxed);
        ftl.starts.restore(&saved.starts);
        ftl
    }
}

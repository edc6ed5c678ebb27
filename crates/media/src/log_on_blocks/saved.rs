use super::{Extent, LogOnBlocks, shape};
use crate::blocks::Blocks;
use crate::extent::ExtentId;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// All that is known of a medium while nothing is under way, in a saved state.
#[derive(Debug, Serialize, Deserialize)]
pub struct SavedLogOnBlocks {
    extents: Vec<Extent>,
    starts: Vec<ExtentId>,
}

impl LogOnBlocks {
    /// For a saved state: nothing is under way.
    pub fn save_state(&self) -> SavedLogOnBlocks {
        SavedLogOnBlocks { extents: self.extents().clone(), starts: self.starts.save() }
    }

    /// The medium that was saved, on the blocks that were saved with it.
    pub fn restore_state(blocks: Arc<dyn Blocks>, saved: SavedLogOnBlocks) -> Self {
        let shape = shape(&*blocks);
        let medium = Self::on(blocks, shape, saved.extents);
        medium.starts.restore(&saved.starts);
        medium
    }
}

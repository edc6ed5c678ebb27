use serde::{Deserialize, Serialize};

/// Counters of the opening of a page-mapped layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageFtlRecovery {
    /// Pages read.
    pub pages_read: u64,
    /// Logical blocks that are known to be lost: their page can no longer be read.
    pub lost_blocks: u64,
    /// Unreadable pages of unknown content. Does not count the page at the end of the written ones
    /// that a loss of power leaves unreadable.
    pub lost_pages: u64,
}

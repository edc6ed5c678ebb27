use serde::{Deserialize, Serialize};

/// What it took to open a page-mapped layer from its flash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageFtlRecovery {
    /// Pages read to find out.
    pub pages_read: u64,
    /// Logical blocks that are known to be lost: their page can no longer be read.
    pub lost_blocks: u64,
    /// Pages that cannot be read and of which nothing says what they held. A loss of power leaves
    /// such a page at the end of what was written, which does not count.
    pub lost_pages: u64,
}

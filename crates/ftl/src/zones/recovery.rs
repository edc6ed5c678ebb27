use std::ops::Add;

/// Counters of the opening of zones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZonesRecovery {
    /// Zones that are not empty.
    pub zones: u32,
    /// Pages read.
    pub pages_read: u64,
    /// Pages restored from a save at a loss of power.
    pub restored_pages: u64,
    /// Pages rewritten because their extent takes no more pages.
    pub copied_pages: u64,
    /// Unreadable pages that were cut off: power failed during their write, or they were lost
    /// later.
    pub lost_pages: u64,
}

impl Add for ZonesRecovery {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            zones: self.zones + other.zones,
            pages_read: self.pages_read + other.pages_read,
            restored_pages: self.restored_pages + other.restored_pages,
            copied_pages: self.copied_pages + other.copied_pages,
            lost_pages: self.lost_pages + other.lost_pages,
        }
    }
}

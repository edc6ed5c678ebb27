use std::ops::Add;

/// What it took to open zones from their flash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZonesRecovery {
    /// Zones that hold something.
    pub zones: u32,
    /// Pages read to find out.
    pub pages_read: u64,
    /// Pages that were taken back from where they were saved when power was lost.
    pub restored_pages: u64,
    /// Pages written anew, because the extent they were in can take no more.
    pub copied_pages: u64,
    /// Pages that cannot be read and were cut off: without power for them when they were written,
    /// or else lost.
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

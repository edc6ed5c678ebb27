use std::ops::Add;

/// What became of the pages that were in protected memory when power went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Saved {
    /// Pages that are on the flash now.
    pub saved_pages: u64,
    /// Pages that are not: their data is lost with the power.
    pub lost_pages: u64,
}

impl Add for Saved {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            saved_pages: self.saved_pages + other.saved_pages,
            lost_pages: self.lost_pages + other.lost_pages,
        }
    }
}

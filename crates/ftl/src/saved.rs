use std::ops::Add;

/// The outcome of saving the pages in protected memory at a loss of power.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Saved {
    /// Pages that are on the flash.
    pub saved_pages: u64,
    /// Pages that are not: their data is lost.
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

use crate::address::Address;
use media::ExtentId;

/// Which records of a checkpoint can still be where it says: those in extents that have not been
/// reset since. An extent that was opened anew since then holds none of them.
#[derive(Clone, Debug)]
pub struct Survivors {
    by_extent: Vec<bool>,
    pages_per_extent: u32,
}

impl Survivors {
    pub(crate) fn new(extents: impl Iterator<Item = ExtentId>, pages_per_extent: u32) -> Self {
        let mut by_extent = Vec::new();
        for extent in extents {
            let at = extent.0 as usize;
            if by_extent.len() <= at {
                by_extent.resize(at + 1, false);
            }
            by_extent[at] = true;
        }
        Self { by_extent, pages_per_extent }
    }

    /// True when an entry that a checkpoint has at this address is one of a record that is there.
    #[inline]
    pub fn has(&self, address: Address) -> bool {
        let extent = address.page().id(self.pages_per_extent).extent.0 as usize;
        self.by_extent.get(extent).is_some_and(|survives| *survives)
    }
}

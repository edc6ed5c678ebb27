//! The listing of an extent's records.

use crate::format::address::Address;
use crate::format::record::OwnedHeader;
use media::{ExtentId, PageId};

/// A record of an extent, as its summary lists it.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) header: OwnedHeader,
    pub(crate) address: Address,
    /// Of the value in the page's data.
    pub(crate) value_start: u32,
    pub(crate) footprint: u64,
}

/// The records of an extent without a readable summary.
#[derive(Clone, Debug, Default)]
pub(crate) struct Listing {
    pub(crate) records: Vec<Record>,
    /// Pages that cannot be read.
    pub(crate) lost: Vec<PageId>,
}

impl Listing {
    /// Returns the memory that the records take.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.records.iter().map(|it| size_of::<Record>() + it.header.key.as_bytes().len()).sum()
    }
}

/// An extent with records to be found, from this page on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Replay {
    pub(crate) extent: ExtentId,
    pub(crate) from: u32,
}

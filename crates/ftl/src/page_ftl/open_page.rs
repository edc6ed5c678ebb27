use crate::block_sum::block_sum;
use crate::page_ftl::debt::Debt;
use crate::page_ftl::landing::Landing;
use base::limits::BLOCK_BYTES;
use media::{Segments, cut};
use smallvec::SmallVec;
use std::sync::Arc;

/// A page that is still being filled.
#[derive(Debug)]
pub(crate) struct OpenPage {
    pub(crate) page: u32,
    /// Slots taken.
    pub(crate) filled: u32,
    /// Of them, those that hosts wrote.
    pub(crate) host_slots: u32,
    /// 0 while hosts wrote none.
    pub(crate) ticket: u64,
    pub(crate) data: Segments,
    /// The checksum of each slot taken.
    pub(crate) sums: SmallVec<[u32; 8]>,
    /// Failed pages whose data is partly in this one.
    pub(crate) debts: Vec<Arc<Debt>>,
    /// Present when writes wait for it.
    pub(crate) landing: Option<Arc<Landing>>,
    /// True when a task closes it at this instant.
    pub(crate) closes: bool,
}

impl OpenPage {
    pub(crate) fn new(page: u32) -> Self {
        Self {
            page,
            filled: 0,
            host_slots: 0,
            ticket: 0,
            data: Segments::new(),
            sums: SmallVec::new(),
            debts: Vec::new(),
            landing: None,
            closes: false,
        }
    }

    /// Returns the content of `count` slots from `first`, or the index of the first lost one.
    pub(crate) fn content(&self, first: u32, count: u32) -> Result<Segments, u32> {
        for at in 0..count {
            let slot = cut(&self.data, (first + at) * BLOCK_BYTES, BLOCK_BYTES).ok_or(at)?;
            if block_sum(&slot) != self.sums[(first + at) as usize] {
                return Err(at);
            }
        }
        cut(&self.data, first * BLOCK_BYTES, count * BLOCK_BYTES).ok_or(0)
    }
}

use crate::block_sum::block_sum;
use crate::page_ftl::debt::Debt;
use crate::page_ftl::landing::Landing;
use crate::page_ftl::pieces::Pieces;
use crate::page_ftl::spare::{Spare, lost_sum};
use base::Buf;
use base::limits::BLOCK_BYTES;
use media::{Page, Segments, cut};
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
    /// False if the checksum of a slot may be wrong: of damaged or lost data.
    pub(crate) are_right: bool,
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
            are_right: true,
            debts: Vec::new(),
            landing: None,
            closes: false,
        }
    }

    /// Adds the data of a slot, which a host wrote.
    #[inline]
    pub(crate) fn write(&mut self, pieces: &mut Pieces) {
        let before = self.data.len();
        pieces.next_to(&mut self.data);
        self.sums.push(block_sum(&self.data[before..]));
    }

    /// Adds a copy of slot `within` of a page that has this spare content. It keeps its checksum,
    /// right or wrong. Returns whether the page has such a slot.
    pub(crate) fn copy(&mut self, page: &Page, spare: &Spare, within: u32) -> bool {
        let start = within * BLOCK_BYTES;
        let data = page.segments_at(start, BLOCK_BYTES);
        let Some((data, sum)) = data.zip(spare.sums.get(within as usize)) else { return false };
        self.data.extend(data);
        self.sums.push(*sum);
        self.are_right &= page.crc_at(start, BLOCK_BYTES) == Some(*sum);
        true
    }

    /// Adds a lost slot: one whose checksum is wrong.
    pub(crate) fn lose(&mut self) {
        let nothing = [Buf::phantom(BLOCK_BYTES, 0)];
        self.sums.push(lost_sum(&nothing));
        self.data.extend(nothing);
        self.are_right = false;
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

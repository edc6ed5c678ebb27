//! Which records of an extent were ever written: all but those that a loss of power has cut off,
//! with the batches that they belong to.
//!
//! Neighbours of a batch have consecutive numbers, and each says whether it has a neighbour before
//! and after. So a gap in a batch can be seen. A missing member was either cut off or has become
//! unreadable. If it was cut off, its page is a hole or beyond the end of the extent, and the batch
//! was never written. If it became unreadable, only its own key is damaged, and the other members
//! count as written.

use crate::clean::turn::Turn;
use crate::log::Log;
use crate::recover::listing::Record;
use crate::sabotage::Sabotage;
use crate::store::Store;
use media::ExtentId;
use std::ops::RangeInclusive;

/// The pages of an extent that were written.
struct WrittenPages {
    end: u32,
    /// Pages before the end that were not.
    holes: Vec<u32>,
}

impl WrittenPages {
    fn of(log: &Log, extent: ExtentId) -> Self {
        let mut state = log.whole();
        let extent = state.extents.get(extent);
        Self { end: extent.pages(), holes: extent.holes().to_vec() }
    }

    fn has_all(&self, range: &RangeInclusive<u32>) -> bool {
        *range.end() < self.end && !self.holes.iter().any(|hole| range.contains(hole))
    }
}

impl Store {
    /// Returns the records of an extent, in the order of writing, that were written with all their
    /// pages and all of their batch.
    /// Gives way to other tasks between batches.
    pub(crate) async fn written_records(
        &self,
        extent: ExtentId,
        records: Vec<Record>,
    ) -> Vec<Record> {
        let written = WrittenPages::of(&self.log, extent);
        let page = |record: &Record| self.log.page_id(record.address).page;
        let is_cut = |range: RangeInclusive<u32>| !written.has_all(&range);
        let is_next = |a: &Record, b: &Record| b.header.sequence.0 == a.header.sequence.0 + 1;
        let together =
            |a: &Record, b: &Record| a.header.batch.has_after && b.header.batch.has_before;
        let mut is_written = Vec::with_capacity(records.len());
        let (mut turn, mut are_all_written) = (Turn::default(), true);
        for batch in records.chunk_by(together) {
            let start = is_written.len();
            let (first, last) = (page(&batch[0]), page(&batch[batch.len() - 1]));
            let before = start.checked_sub(1).map_or(0, |at| page(&records[at]));
            let after = records.get(start + batch.len()).map_or(written.end, page);
            let is_torn = batch.iter().any(|record| !self.is_written(record, &written))
                || !Sabotage::TornBatches.is_on()
                    && (batch[0].header.batch.has_before && is_cut(before..=first)
                        || batch[batch.len() - 1].header.batch.has_after && is_cut(last..=after)
                        || batch.windows(2).any(|pair| {
                            !is_next(&pair[0], &pair[1]) && is_cut(page(&pair[0])..=page(&pair[1]))
                        }));
            is_written.resize(start + batch.len(), !is_torn);
            are_all_written &= !is_torn;
            turn.took(batch.len()).await;
        }
        if are_all_written {
            return records;
        }
        let mut whole = Vec::with_capacity(records.len());
        for (record, is_written) in records.into_iter().zip(is_written) {
            whole.extend(is_written.then_some(record));
            turn.took(1).await;
        }
        whole
    }

    /// Returns false when a page of the record was never programmed.
    pub(crate) fn is_complete(&self, record: &Record) -> bool {
        let extent = self.log.page_id(record.address).extent;
        self.is_written(record, &WrittenPages::of(&self.log, extent))
    }

    fn is_written(&self, record: &Record, pages: &WrittenPages) -> bool {
        let first = self.log.page_id(record.address).page;
        let header = &record.header;
        let rest = header.value_len.saturating_sub(record.part_len(self.log.layout.page_bytes));
        let more = rest.div_ceil(self.log.layout.bare_room());
        let one_page = self.log.layout.fits_page(header.len(), header.value_len);
        let last = if one_page { first } else { first + more };
        Sabotage::TornRecords.is_on() || pages.has_all(&(first..=last))
    }
}

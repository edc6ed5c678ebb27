use super::Counters;
use base::Buf;
use std::ops::Range;
use std::sync::Arc;

/// The longest copy: it also holds the headers between the data.
const COPY_BYTES_MAX: usize = 8 << 10;

/// A copy of a part of staging, of which the data of several capsules are parts: one allocation for
/// all of them.
#[derive(Debug, Default)]
pub(super) struct SharedCopy {
    bytes: Option<Arc<[u8]>>,
    /// Where it begins in staging.
    start: usize,
}

impl SharedCopy {
    /// The longest data that share a copy. The engine copies values of this length into a page at
    /// once, so they keep the copy for a short time. A logical block is longer: a device may keep
    /// it where it is.
    pub(super) const DATA_BYTES_MAX: usize = 511;

    /// Returns the data at `range` of staging, if others may follow them there: the next PDU begins
    /// at `next`, and may have come. Counts the copy when it makes one.
    #[inline]
    pub(super) fn data(
        &mut self,
        staging: &[u8],
        range: Range<usize>,
        next: usize,
        counters: &Counters,
    ) -> Option<Buf> {
        if self.bytes.is_none() && next == staging.len() {
            return None;
        }
        let has_all = |bytes: &&Arc<[u8]>| range.end <= self.start + bytes.len();
        if let Some(bytes) = self.bytes.as_ref().filter(has_all) {
            return Some(Buf::part_of(bytes, range.start - self.start..range.end - self.start));
        }
        self.start = range.start;
        let part = &staging[range.start..staging.len().min(range.start + COPY_BYTES_MAX)];
        counters.count_copy(part.len());
        Some(Buf::part_of(self.bytes.insert(Arc::from(part)), 0..range.len()))
    }

    /// Forgets the copy: staging changes.
    pub(super) fn clear(&mut self) {
        self.bytes = None;
    }
}

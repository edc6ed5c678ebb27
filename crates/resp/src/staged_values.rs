use crate::request::copied;
use base::{Buf, BufPool};
use std::ops::Range;
use std::sync::Arc;

/// The longest part of staging that values share a copy of: a copy also holds what is between them.
const SHARED_BYTES_MAX: usize = 8 << 10;

/// Where the values of SETs are until the next read.
pub(crate) struct StagedValues<'a> {
    staging: &'a [u8],
    /// A copy of a part of staging, and where that part begins.
    shared: Option<(Arc<[u8]>, usize)>,
}

impl<'a> StagedValues<'a> {
    /// Copies each value alone.
    pub(crate) const fn new(staging: &'a [u8]) -> Self {
        Self { staging, shared: None }
    }

    /// Copies the values at `ranges` at once, if they are several and near each other.
    pub(crate) fn share(&mut self, ranges: impl Iterator<Item = Range<usize>>) {
        let whole = |a: Range<usize>, b: Range<usize>| a.start.min(b.start)..a.end.max(b.end);
        let (mut count, mut all) = (0, None);
        for range in ranges {
            count += 1;
            all = Some(all.map_or(range.clone(), |all| whole(all, range)));
        }
        if let Some(all) = all.filter(|all| count > 1 && all.len() <= SHARED_BYTES_MAX) {
            let start = all.start;
            self.shared = Some((Arc::from(&self.staging[all]), start));
        }
    }

    /// The bytes of a value.
    pub(crate) fn bytes(&self, range: Range<usize>) -> &'a [u8] {
        &self.staging[range]
    }

    /// A value that outlives the next read. The bytes of a long one come from `pool`.
    #[inline]
    pub(crate) fn value(&self, range: Range<usize>, pool: &BufPool) -> Buf {
        match &self.shared {
            Some((bytes, start)) => Buf::part_of(bytes, range.start - start..range.end - start),
            None => copied(&self.staging[range], pool),
        }
    }
}

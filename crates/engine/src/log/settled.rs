//! Which pages have settled, for readers that do not lock the log.

use crate::sync::{Apart, AtomicU32};
use media::{ExtentId, PageId, Shape};
use std::sync::atomic::Ordering;

/// Of each extent, a page number before which every page has landed, with the batches of its
/// records.
///
/// It changes under the lock of the extent's writer, and grows until the extent is opened again. So
/// a reader that has locked the lane of a key, and whose index leads to an address, may read it
/// without a lock of the log: if it is late, the reader looks at the writer.
#[derive(Debug)]
pub(crate) struct Settled(Vec<Apart<AtomicU32>>);

impl Settled {
    /// For a medium of this shape, of which no page is known to have settled.
    pub(crate) fn new(shape: &Shape) -> Self {
        Self((0..shape.extents).map(|_| Apart(AtomicU32::new(0))).collect())
    }

    /// Returns true if a page has settled.
    #[inline]
    pub(crate) fn has(&self, at: PageId) -> bool {
        at.page < self.0[at.extent.0 as usize].load(Ordering::Relaxed)
    }

    /// All pages of `extent` before `page` have settled.
    pub(crate) fn set(&self, extent: ExtentId, page: u32) {
        self.0[extent.0 as usize].store(page, Ordering::Relaxed);
    }
}

//! Frontiers: the open extent and page of each stream.

use crate::extent::Extent;
use crate::format::page_builder::PageBuilder;
use crate::format::summary::Summary;
use crate::write::pending::Pending;
use media::{ExtentId, Stream};
use std::sync::Arc;

/// The frontier of a stream: its open extent and page.
pub(crate) struct Frontier {
    pub(crate) extent: ExtentId,
    /// The number of the page that `builder` fills.
    page: u32,
    /// The number of pages of an extent.
    end: u32,
    pub(crate) builder: PageBuilder,
    pub(crate) pending: Arc<Pending>,
    pub(crate) summary: Summary,
}

impl Frontier {
    /// Makes the frontier at an open page of `extent`, whose number of pages is `end`.
    pub(crate) fn new(
        (extent, page, end): (ExtentId, u32, u32),
        builder: PageBuilder,
        pending: Arc<Pending>,
        summary: Summary,
    ) -> Self {
        assert!(page < end, "a frontier begins in its extent");
        Self { extent, page, end, builder, pending, summary }
    }

    #[inline]
    pub(crate) const fn page(&self) -> u32 {
        self.page
    }

    /// Places the open page, which is empty, at number `page`.
    #[inline]
    pub(crate) fn place(&mut self, page: u32) {
        assert!(self.builder.is_empty(), "a page with records stays where it is");
        self.advance(page);
    }

    /// Begins the next page, `numbers` numbers after the present one.
    #[inline]
    pub(crate) fn next(&mut self, numbers: u32, pending: Arc<Pending>) {
        assert!(numbers > 0, "a page has at least one number");
        self.advance(self.page.saturating_add(numbers));
        self.pending = pending;
    }

    #[inline]
    fn advance(&mut self, page: u32) {
        assert!(page >= self.page, "the page of a frontier only grows");
        assert!(page < self.end, "the page of a frontier stays in its extent");
        self.page = page;
    }
}

/// The frontiers of all streams.
#[derive(Default)]
pub(crate) struct Frontiers([Option<Frontier>; Stream::COUNT]);

impl Frontiers {
    #[inline]
    pub(crate) fn of(&self, stream: Stream) -> Option<&Frontier> {
        self.0[stream as usize].as_ref()
    }

    #[inline]
    pub(crate) fn of_mut(&mut self, stream: Stream) -> Option<&mut Frontier> {
        self.0[stream as usize].as_mut()
    }

    /// Opens the frontier of a stream in `extent`.
    pub(crate) fn open(&mut self, stream: Stream, frontier: Frontier, extent: &Extent) {
        assert!(!extent.is_sealed(), "a frontier is opened in an extent that is not sealed");
        assert!(extent.label.stream == stream, "the extent of a frontier is of its stream");
        let before = self.0[stream as usize].replace(frontier);
        assert!(before.is_none(), "a stream has one open extent");
    }

    /// Takes the frontier of a stream, whose extent is about to be sealed.
    pub(crate) fn close(&mut self, stream: Stream) -> Frontier {
        self.0[stream as usize].take().expect("an open extent")
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Frontier> + Clone {
        self.0.iter().flatten()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Frontier> {
        self.0.iter_mut().flatten()
    }
}

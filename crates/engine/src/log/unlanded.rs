//! Pages and batches that have not landed.

use crate::format::address::{Address, PageNumber};
use crate::write::pending::{Pending, UnlandedBatch};
use media::{Ends, Page, PageId, Stream};
use std::collections::VecDeque;
use std::sync::Arc;

/// Pages whose memory is kept: those that land together after a write of 1 MiB, of 8 KiB each.
const EMPTIED_MAX: usize = 128;

/// A page that a disk had queued, and how that ended.
pub(crate) struct Ended {
    /// Its number in its extent.
    pub(crate) page: u32,
    pub(crate) pending: Arc<Pending>,
    pub(crate) result: Result<(), media::Error>,
    /// The stream of its extent.
    pub(crate) stream: Stream,
}

/// A closed page on its way to the medium.
pub(crate) struct Program {
    pub(crate) at: PageId,
    pub(crate) stream: Stream,
    pub(crate) page: Page,
    pub(crate) pending: Arc<Pending>,
}

/// Pages from the time that they are expected until they have landed.
pub(crate) struct UnlandedPages {
    pages_per_extent: u32,
    /// The extents that have some: those of the frontiers, and a few that were sealed lately.
    extents: Vec<UnlandedExtent>,
    /// Closed pages whose programs are about to begin, in the order of their closing.
    programs: VecDeque<(PageId, Stream)>,
    /// Batches of which some page has not landed.
    batches: Vec<UnlandedBatch>,
    /// The memory of pages that have landed, for later ones.
    pub(crate) emptied: Vec<Page>,
    /// Pages that were programmed with room left, because no announced store was to join them.
    pub(crate) padded: u64,
}

/// The pages of an extent that have not landed, at least one.
struct UnlandedExtent {
    /// The number of the extent's first page.
    first: PageNumber,
    stream: Stream,
    /// No page of the list has a lower number.
    from: PageNumber,
    /// In the order of their numbers. The last one may be open.
    pages: VecDeque<UnlandedPage>,
}

/// A page that has not landed.
pub(crate) struct UnlandedPage {
    number: PageNumber,
    /// `None` while it is open.
    pub(crate) page: Option<Page>,
    pub(crate) pending: Arc<Pending>,
    /// Why the disk did not take it.
    refused: Option<media::Error>,
    /// A task handles its failure.
    is_failing: bool,
}

impl UnlandedExtent {
    /// Returns whether page `number` is one of this extent, which has so many.
    #[inline]
    fn has(&self, number: PageNumber, pages_per_extent: u32) -> bool {
        number.0.wrapping_sub(self.first.0) < pages_per_extent
    }

    #[inline]
    fn find(&self, number: PageNumber) -> Option<usize> {
        self.pages.binary_search_by_key(&number, |page| page.number).ok()
    }
}

impl UnlandedPages {
    pub(crate) fn new(pages_per_extent: u32) -> Self {
        Self {
            pages_per_extent,
            extents: Vec::new(),
            programs: VecDeque::new(),
            batches: Vec::new(),
            emptied: Vec::new(),
            padded: 0,
        }
    }

    /// Returns how many there are, open pages included.
    pub(crate) fn len(&self) -> usize {
        self.extents.iter().map(|extent| extent.pages.len()).sum()
    }

    /// Returns the place of the extent that has page `number`, if it has pages that have not
    /// landed.
    #[inline]
    fn place(&self, number: PageNumber) -> Option<usize> {
        self.extents.iter().position(|extent| extent.has(number, self.pages_per_extent))
    }

    #[inline]
    pub(crate) fn get(&self, number: PageNumber) -> Option<&UnlandedPage> {
        let has = |extent: &&UnlandedExtent| {
            number >= extent.from && extent.has(number, self.pages_per_extent)
        };
        let extent = self.extents.iter().find(has)?;
        Some(&extent.pages[extent.find(number)?])
    }

    /// Returns true while the page, or another of the batch that has a record at `address`, has not
    /// landed.
    #[inline]
    pub(crate) fn has(&self, address: Address) -> bool {
        self.get(address.page()).is_some() || self.batch_of(address).is_some()
    }

    /// Returns the number of the first page of an extent that has not landed, or that has a record
    /// of a batch that has not. `first` is that of the extent's first page.
    pub(crate) fn first_unsettled(&self, first: PageNumber) -> Option<u32> {
        let has = |number: PageNumber| number.0.wrapping_sub(first.0) < self.pages_per_extent;
        let page = self.place(first).map(|at| self.extents[at].from);
        let batches = self.batches.iter().map(|batch| batch.first.page());
        let unsettled = page.into_iter().chain(batches.filter(|number| has(*number)));
        unsettled.min().map(|number| number.0 - first.0)
    }

    /// Adds an open page of an extent of a stream, whose first page is `first`.
    #[inline]
    pub(crate) fn expect(
        &mut self,
        stream: Stream,
        first: PageNumber,
        number: PageNumber,
        pending: Arc<Pending>,
    ) {
        let page = UnlandedPage { number, page: None, pending, refused: None, is_failing: false };
        let Some(at) = self.place(number) else {
            let pages = [page].into();
            self.extents.push(UnlandedExtent { first, stream, from: number, pages });
            return;
        };
        let pages = &mut self.extents[at].pages;
        let is_next = pages.back().is_none_or(|last| last.number < number);
        assert!(is_next, "pages of an extent are expected in the order of their numbers");
        pages.push_back(page);
    }

    /// Returns the page of this number, the last one that is expected of its extent.
    #[inline]
    fn last(&mut self, number: PageNumber) -> &mut UnlandedPage {
        let last = self.place(number).and_then(|at| self.extents[at].pages.back_mut());
        let last = last.filter(|last| last.number == number);
        last.expect("it was expected, and no page after it")
    }

    /// Gives an open page another number.
    #[inline]
    pub(crate) fn renumber(&mut self, before: PageNumber, number: PageNumber) {
        self.last(before).number = number;
    }

    /// Notes that an open page is closed, with this content.
    #[inline]
    pub(crate) fn close(&mut self, number: PageNumber, page: Page) {
        let last = self.last(number);
        assert!(last.page.is_none(), "a page is closed once");
        last.page = Some(page);
        last.pending.close();
    }

    /// Notes that the disk did not take the page that was closed last in its extent.
    pub(crate) fn refuse(&mut self, number: PageNumber, error: media::Error) {
        self.last(number).refused = Some(error);
    }

    /// Removes a page that has landed or is no longer expected. Returns its stream.
    #[inline]
    pub(crate) fn remove(&mut self, number: PageNumber) -> Stream {
        let place = self.place(number);
        let place = place.and_then(|at| Some((at, self.extents[at].find(number)?)));
        assert!(place.is_some(), "a page that lands was expected");
        let (at, page) = place.unwrap_or_default();
        let stream = self.extents[at].stream;
        self.extents[at].pages.remove(page);
        self.note_fewer(at);
        stream
    }

    /// Returns true if pages of the extent with this first page have not landed.
    #[inline]
    pub(crate) fn has_any_of(&self, first: PageNumber) -> bool {
        self.place(first).is_some()
    }

    /// Returns how the first page of an extent ended, if it has. Removes it if it has landed. One
    /// that has failed is returned once, and stays in the list until the caller has handled that:
    /// then the caller asks again.
    pub(crate) fn next_ended(&mut self, first: PageNumber, ends: &Ends) -> Option<Ended> {
        let at = self.place(first)?;
        let stream = self.extents[at].stream;
        let pages = &mut self.extents[at].pages;
        let next = pages.front_mut().filter(|next| next.page.is_some() && !next.is_failing)?;
        let page = next.number.0 - first.0;
        let result = next.refused.map_or_else(|| ends.of(page), |error| Some(Err(error)))?;
        if result.is_err() {
            next.is_failing = true;
            return Some(Ended { page, pending: next.pending.clone(), result, stream });
        }
        let UnlandedPage { pending, page: content, .. } = pages.pop_front()?;
        if self.emptied.len() < EMPTIED_MAX {
            self.emptied.extend(content.and_then(Page::emptied));
        }
        self.note_fewer(at);
        Some(Ended { page, pending, result, stream })
    }

    /// Notes that an extent has a page less. Forgets an extent without any.
    fn note_fewer(&mut self, at: usize) {
        match self.extents[at].pages.front() {
            Some(next) => self.extents[at].from = next.number,
            None => drop(self.extents.swap_remove(at)),
        }
    }

    /// Returns the closed pages in any order.
    pub(crate) fn closed(&self) -> impl Iterator<Item = (PageNumber, &Arc<Pending>)> {
        let pages = self.extents.iter().flat_map(|extent| &extent.pages);
        let closed = pages.filter(|page| page.page.is_some());
        closed.map(|page| (page.number, &page.pending))
    }

    /// Queues the program of a closed page. The caller starts a task, which takes one.
    pub(crate) fn push_program(&mut self, at: PageId, stream: Stream) {
        self.programs.push_back((at, stream));
    }

    pub(crate) fn take_program(&mut self) -> Program {
        let (at, stream) = self.programs.pop_front().expect("there is one for each task");
        let number = PageNumber::new(at, self.pages_per_extent);
        let UnlandedPage { page, pending, .. } = self.get(number).expect("it has not landed");
        let (page, pending) = (page.clone().expect("it is closed"), pending.clone());
        Program { at, stream, page, pending }
    }

    /// Notes a batch whose pages are on their way.
    pub(crate) fn add_batch(&mut self, batch: UnlandedBatch) {
        assert!(batch.first <= batch.last, "the records of a batch are in the log's order");
        self.batches.push(batch);
    }

    /// Forgets the batch that begins at `first`, which has landed or was undone.
    pub(crate) fn end_batch(&mut self, first: Address) {
        self.batches.retain(|batch| batch.first != first);
    }

    /// Returns all pages of the batch that has a record at `address`, unless all have landed.
    #[inline]
    pub(crate) fn batch_of(&self, address: Address) -> Option<Arc<[Arc<Pending>]>> {
        let is_in = |batch: &&UnlandedBatch| (batch.first..=batch.last).contains(&address);
        self.batches.iter().find(is_in).map(|batch| batch.pages.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reactor::Reactor;

    const FIRST: PageNumber = PageNumber(200);

    fn closed(pages: &mut UnlandedPages, page: u32) {
        let number = PageNumber(FIRST.0 + page);
        pages.expect(Stream::Host, FIRST, number, Arc::default());
        pages.close(number, Page::new(&[], []));
    }

    /// Returns the pages that end, until one has failed or none is left, and how they do.
    fn ended(
        pages: &mut UnlandedPages,
        landed: u32,
        failed: Option<u32>,
    ) -> Vec<(u32, Result<(), media::Error>)> {
        let ends = Ends { landed, failed: failed.map(|from| (from, media::Error::NotFlushed)) };
        let mut ended = Vec::new();
        while let Some(Ended { page, result, .. }) = pages.next_ended(FIRST, &ends) {
            ended.push((page, result));
            if result.is_err() {
                pages.remove(PageNumber(FIRST.0 + page));
            }
        }
        ended
    }

    #[test]
    fn pages_end_in_order_and_a_refused_one_after_those_before_it() {
        Reactor::new(None).run(async {
            let mut pages = UnlandedPages::new(100);
            (0..4).for_each(|page| closed(&mut pages, 2 * page));
            let refused = media::Error::ReadOnly;
            pages.refuse(PageNumber(FIRST.0 + 6), refused);
            pages.expect(Stream::Host, FIRST, PageNumber(FIRST.0 + 8), Arc::default());
            assert_eq!(ended(&mut pages, 0, None), []);
            assert_eq!(ended(&mut pages, 1, None), [(0, Ok(()))]);
            assert_eq!(ended(&mut pages, 1, None), []);
            assert!(pages.get(FIRST).is_none() && pages.get(PageNumber(FIRST.0 + 2)).is_some());
            let failed = Err(media::Error::NotFlushed);
            assert_eq!(
                ended(&mut pages, 3, Some(4)),
                [(2, Ok(())), (4, failed), (6, Err(refused))],
                "the open page has not ended"
            );
            assert_eq!(pages.len(), 1);
        });
    }
}

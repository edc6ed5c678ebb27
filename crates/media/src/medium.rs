use crate::error::Error;
use crate::extent::{ExtentId, ExtentInfo, Label, PageId, Shape, Span};
use crate::memory::Memory;
use crate::on_disk::OnDisk;
use crate::page::Page;
use crate::sweep::{Swept, SweptPage};
use clock::{Class, LocalFuture};
use std::future::ready;

/// Tells from a sensed page how many of its data bytes shall cross the bus.
pub type Select<'a> = &'a dyn Fn(&Page) -> u32;

/// Pages that a sweep reads at a time where each takes a read.
const SWEPT_PAGES: usize = 64;

/// Append-only extents. See the crate's documentation for who implements it.
///
/// Implementations must not panic for any page content. In exchange they may rely on the log:
/// appends to an extent come in page order, reads name written pages, and an extent is reset only
/// when no read of it is under way.
pub trait Media: Send + Sync {
    /// The sizes of the medium.
    fn shape(&self) -> Shape;

    /// Extents that [`Self::open`] can still hand out.
    fn free_extents(&self) -> u32;

    /// Returns the medium as host memory, if it is that: then its space can be used again without a
    /// reset, and a read takes no time on any clock.
    fn as_memory(&self) -> Option<&Memory> {
        None
    }

    /// Returns the medium as a drive on a disk, if it is one.
    fn as_disk(&self) -> Option<&dyn OnDisk> {
        None
    }

    /// Returns an error if every write would fail with it: the medium has failed, or is open for
    /// reading only.
    fn writable(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Takes a free, erased extent for `label`.
    fn open(&self, label: Label) -> Result<ExtentId, Error>;

    /// Writes page number `at.page`, the extent's next, at the place that it was given
    /// ([`OnDisk::place`]). Returns when it is durable, or when the medium was told to answer: see
    /// [`Self::flush`]. The data is padded to the whole page, or to a unit. Pages come in order of
    /// the first polls of futures.
    fn append(&self, at: PageId, page: Page, class: Class) -> LocalFuture<'_, Result<(), Error>>;

    /// Reads a page: senses it, asks `select` how many of its data bytes are wanted, and moves as
    /// many over the bus. Spare bytes come along for nothing: real buses carry them beside the
    /// data, with the error correction code, and their rate is given without them.
    ///
    /// The reader learns from the spare bytes what it wants, as firmware does from a page register,
    /// so an index needs to hold no lengths. What is returned may hold more data than was wanted.
    ///
    /// If a medium asks `select`, it asks last with the page that it returns. So a reader need not
    /// check again what `select` has checked.
    ///
    /// A disk has no such register. Where pages are frames `span` says how much is read, in one
    /// piece, and `select` is not asked.
    fn read<'a>(
        &'a self,
        span: Span,
        select: Select<'a>,
        class: Class,
    ) -> LocalFuture<'a, Result<Page, Error>>;

    /// Reads pages of one extent, in rising order, each as [`Self::read`] does with all its data: a
    /// disk reads in one piece what lies close together.
    fn read_all(
        &self,
        spans: Vec<Span>,
        class: Class,
    ) -> LocalFuture<'_, Vec<Result<Page, Error>>> {
        Box::pin(async move {
            let mut pages = Vec::with_capacity(spans.len());
            for span in spans {
                pages.push(self.read(span, &Page::data_bytes, class).await);
            }
            pages
        })
    }

    /// The numbers of the pages of `extent` that were written, in rising order. Where pages are not
    /// frames that is every number but the holes.
    fn pages(&self, extent: ExtentId) -> LocalFuture<'_, Result<Vec<u32>, Error>> {
        let info = self.extents().into_iter().find(|info| info.id == extent);
        let pages = info.map_or_else(Vec::new, |info| {
            (0..info.pages).filter(|page| !info.holes.contains(page)).collect()
        });
        Box::pin(ready(Ok(pages)))
    }

    /// Pages of `extent` from number `from` on with all their data, in few reads, as many as are
    /// quickly read: for whoever looks at all of them, page after page. Those that cannot be read
    /// are named too.
    fn sweep(
        &self,
        extent: ExtentId,
        from: u32,
        class: Class,
    ) -> LocalFuture<'_, Result<Swept, Error>> {
        Box::pin(async move {
            let mut numbers = self.pages(extent).await?;
            numbers.retain(|number| *number >= from);
            let next = numbers.get(SWEPT_PAGES).copied();
            let mut pages = Vec::new();
            for number in numbers.into_iter().take(SWEPT_PAGES) {
                let at = PageId { extent, page: number };
                let page = match self.read(Span::of(at), &Page::data_bytes, class).await {
                    Ok(page) => Some(page),
                    Err(Error::Unrecovered(_)) => None,
                    Err(error) => return Err(error),
                };
                pages.push(SweptPage {
                    number,
                    from: number,
                    is_whole: page.is_some(),
                    is_mended: false,
                    page,
                });
            }
            Ok(Swept { pages, next })
        })
    }

    /// Returns when all appends that have returned outlive a loss of power: at once, but on media
    /// that were told to answer before they do.
    fn flush(&self) -> LocalFuture<'_, Result<(), Error>> {
        Box::pin(ready(Ok(())))
    }

    /// Erases `extent` and frees it: a loss of power leaves all of it, or nothing.
    fn reset(&self, extent: ExtentId, class: Class) -> LocalFuture<'_, Result<(), Error>>;

    /// The extents in use, in no particular order.
    fn extents(&self) -> Vec<ExtentInfo>;

    /// Extents in use, in rising order, of which the medium wants to take blocks out of use that
    /// have failed: it does so when they are reset, so they are best cleaned soon.
    fn suspects(&self) -> Vec<ExtentId> {
        Vec::new()
    }

    /// Whether what is read is what was written, so that nobody need check it.
    fn vouches(&self) -> bool {
        false
    }

    /// The same of the headers in the spare bytes of a page, or of all: of frames the checksum of a
    /// head covers its spare bytes.
    fn vouches_for_headers(&self) -> bool {
        self.vouches()
    }
}

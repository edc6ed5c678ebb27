use crate::error::Error;
use crate::extent::{ExtentId, ExtentInfo, Label, PageId, Shape, Span};
use crate::page::Page;
use crate::sweep::{Swept, SweptPage};
use crate::traffic::Traffic;
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

    /// The error with which all that would write ends from here on, whatever is free: of media that
    /// cannot be trusted any more, or are only looked at.
    fn writable(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Takes a free, erased extent for `label`.
    fn open(&self, label: Label) -> Result<ExtentId, Error>;

    /// The number of an extent's next page, all before which end below `from`: that number, or one
    /// of the few behind it, up to the next that begins a block, where a disk would have to write a
    /// block again that it has written already. Asked for in the order of the pages, once for each,
    /// when it gets an address: its append will come. What was appended before may be held until
    /// then if `holds`, and else only what has to wait anyway.
    fn place(&self, from: PageId, _holds: bool) -> u32 {
        from.page
    }

    /// The page as this medium would best keep it, which holds the same: to be asked for before
    /// anybody else has it.
    fn gathered(&self, page: Page) -> Page {
        page
    }

    /// Writes page number `at.page`, the extent's next, at the place that it was given, and returns
    /// when it is durable, or when the medium was told to answer: see [`Self::flush`]. The data is
    /// padded to the whole page, or to a unit. Pages come in order of the first polls of futures.
    fn append(&self, at: PageId, page: Page, class: Class) -> LocalFuture<'_, Result<(), Error>>;

    /// Reads a page: senses it, asks `select` how many of its data bytes are wanted, and moves as
    /// many over the bus. Spare bytes come along for nothing: real buses carry them beside the
    /// data, with the error correction code, and their rate is given without them.
    ///
    /// The reader learns from the spare bytes what it wants, as firmware does from a page register,
    /// so an index needs to hold no lengths. What is returned may hold more data than was wanted.
    ///
    /// A disk has no such register. Where pages are frames `span` says how much is read, in one
    /// piece, and `select` is not asked.
    fn read<'a>(
        &'a self,
        span: Span,
        select: Select<'a>,
        class: Class,
    ) -> LocalFuture<'a, Result<Page, Error>>;

    /// What [`Self::read`] would return, if that takes no time on any clock.
    fn at_hand(&self, _span: Span) -> Option<Page> {
        None
    }

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

    /// Notes that `extent` is full and that its summary begins on page `summary`, once all its
    /// pages are durable: so it need not be looked through after a start. Where pages are frames.
    fn seal(&self, _extent: ExtentId, _summary: u32) -> LocalFuture<'_, Result<(), Error>> {
        Box::pin(ready(Ok(())))
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

    /// What was read and written since it was opened, if that is counted here: on a disk.
    fn traffic(&self) -> Option<Traffic> {
        None
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

    /// Extents in use, in rising order, that are known to have held more than they do, or something
    /// later: an old copy lies in their place. What is missing cannot be read.
    fn outdated(&self) -> Vec<ExtentId> {
        Vec::new()
    }

    /// Whether an extent of which nothing is needed is best reset at once, however many are free:
    /// where what it takes serves others meanwhile, as memory does.
    fn shares_space(&self) -> bool {
        false
    }

    /// Lets go of `len` bytes from `start` on of the data on the page at `at`, which nobody reads
    /// any more, if they are a segment of their own: where [`Self::shares_space`].
    fn release(&self, _at: PageId, _start: u32, _len: u32) {}

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

use crate::error::Error;
use crate::extent::{ExtentId, ExtentInfo, Label, PageId, Shape};
use crate::page::Page;
use clock::{Class, LocalFuture};

/// Tells from a sensed page how many of its data bytes shall cross the bus.
pub type Select<'a> = &'a dyn Fn(&Page) -> u32;

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

    /// Takes a free, erased extent for `label`.
    fn open(&self, label: Label) -> Result<ExtentId, Error>;

    /// Writes page number `at.page`, the extent's next, and returns when it is durable. The data is
    /// padded to the whole page. Pages are in order of the first polls of the futures.
    fn append(&self, at: PageId, page: Page, class: Class) -> LocalFuture<'_, Result<(), Error>>;

    /// Reads a page: senses it, asks `select` how many of its data bytes are wanted, and moves as
    /// many over the bus. Spare bytes come along for nothing: real buses carry them beside the
    /// data, with the error correction code, and their rate is given without them.
    ///
    /// The reader learns from the spare bytes what it wants, as firmware does from a page register,
    /// so an index needs to hold no lengths. What is returned may hold more data than was wanted.
    fn read<'a>(
        &'a self,
        at: PageId,
        select: Select<'a>,
        class: Class,
    ) -> LocalFuture<'a, Result<Page, Error>>;

    /// Erases `extent` and frees it: a loss of power leaves all of it, or nothing.
    fn reset(&self, extent: ExtentId, class: Class) -> LocalFuture<'_, Result<(), Error>>;

    /// The extents in use, in no particular order.
    fn extents(&self) -> Vec<ExtentInfo>;

    /// Extents in use, in rising order, of which the medium wants to take blocks out of use that
    /// have failed: it does so when they are reset, so they are best cleaned soon.
    fn suspects(&self) -> Vec<ExtentId> {
        Vec::new()
    }

    /// Whether an extent of which nothing is needed is best reset at once, however many are free:
    /// where what it takes serves others meanwhile, as memory does.
    fn shares_space(&self) -> bool {
        false
    }

    /// Whether what is read is what was written, so that nobody need check it.
    fn vouches(&self) -> bool {
        false
    }
}

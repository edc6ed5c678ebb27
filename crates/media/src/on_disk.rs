use crate::error::Error;
use crate::extent::{ExtentId, PageId};
use crate::page::Page;
use crate::traffic::Traffic;
use clock::{Class, LocalFuture};

/// What a drive on a disk does beside what all media do. Its pages are frames: see
/// [`Frames`](crate::Frames).
pub trait OnDisk {
    /// Returns the number of an extent's next page, before which all pages end below `from`: that
    /// number, or the next one that begins a block, if the disk would otherwise write a block
    /// twice. Called once for each page, in order, when the page gets an address; its append
    /// follows. With `holds` the disk may delay earlier pages until then.
    fn place(&self, from: PageId, holds: bool) -> u32;

    /// Notes that `extent` is full and that its summary begins on page `summary`, so that a start
    /// need not read all pages. Called once all its pages are durable.
    fn seal(&self, extent: ExtentId, summary: u32) -> LocalFuture<'_, Result<(), Error>>;

    /// Returns what was read and written since it was opened, if the blocks count that.
    fn traffic(&self) -> Option<Traffic>;

    /// Returns the extents in use that are known to have held more, or something later, in rising
    /// order: an old copy lies in their place. What is missing cannot be read.
    fn outdated(&self) -> Vec<ExtentId>;

    /// Takes a page as [`Media::append`](crate::Media::append) does, but does not wait until it is
    /// durable. Returns the number after its last one.
    fn queue(&self, at: PageId, page: Page, class: Class) -> Result<u32, Error>;

    /// Returns how the appends to `extent` below page `end` have ended: they end in order. If they
    /// have not, the current task is woken when they have.
    fn outcome_or_wait(&self, extent: ExtentId, end: u32) -> Option<Result<(), Error>>;
}

use crate::error::Error;
use crate::extent::{ExtentId, PageId};
use crate::traffic::Traffic;
use clock::LocalFuture;

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
}

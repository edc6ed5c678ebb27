use crate::error::Error;
use crate::extent::{ExtentId, PageId};
use crate::page::Page;
use crate::traffic::Traffic;
use clock::{Class, LocalFuture};
use std::sync::{Arc, Weak};

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

    /// Takes a page as [`Media::append`](crate::Media::append) does, and returns at once. The log
    /// is told when the page has landed or failed ([`Self::report_to`]).
    ///
    /// An error: an earlier page of the extent has failed, or the disk takes no more writes. The
    /// page is not written, and the log is told nothing of it.
    fn queue(&self, at: PageId, page: Page, class: Class) -> Result<(), Error>;

    /// Returns how the pages of `extent` have ended that were queued; of one that is full or not in
    /// use, all have landed.
    fn ends(&self, extent: ExtentId) -> Ends;

    /// Tells `log` whenever pages that are queued from now on have ended.
    fn report_to(&self, log: Weak<dyn Landings>);
}

/// The log that appends to a disk.
pub trait Landings: Send + Sync {
    /// Is called whenever the [`Ends`] of an extent's pages have changed, by a task of the disk
    /// that holds no lock of it, in any reactor. Must not wait. The extent may have been reset
    /// since: [`OnDisk::ends`] says how its pages have ended now.
    fn land(self: Arc<Self>, extent: ExtentId);
}

/// How the pages of an extent have ended that a disk has queued. They end in the order of their
/// numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ends {
    /// All pages before this number have landed.
    pub landed: u32,
    /// All pages from this number on have failed, and none of the extent is being written.
    pub failed: Option<(u32, Error)>,
}

impl Ends {
    /// Returns how page number `page` ended, if it has.
    #[inline]
    pub fn of(&self, page: u32) -> Option<Result<(), Error>> {
        if page < self.landed {
            return Some(Ok(()));
        }
        let (from, error) = self.failed?;
        (page >= from).then_some(Err(error))
    }
}

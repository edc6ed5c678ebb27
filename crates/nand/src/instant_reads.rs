use crate::array::Nand;
use crate::cells::Dies;
use crate::geometry::Ppa;
use media::Page;
use std::fmt;

/// Reads pages of an array without delays. Locks all dies until it is dropped: its owner uses
/// [`crate::Cells`] only through it.
pub struct InstantReads<'a> {
    nand: &'a Nand,
    dies: Dies<'a>,
    reads: u64,
    bytes: u64,
}

impl<'a> InstantReads<'a> {
    pub(crate) fn new(nand: &'a Nand) -> Self {
        Self { nand, dies: nand.cells().dies(), reads: 0, bytes: 0 }
    }

    /// Reads `bytes` of a page. Returns what `visit` makes of the page. `None`: it is unreadable.
    /// [`Nand::read`] counts that, so this does not.
    #[inline]
    pub fn read<T>(&mut self, ppa: Ppa, bytes: u32, visit: impl FnOnce(&Page) -> T) -> Option<T> {
        self.nand.assert_holds(ppa);
        let page = self.dies.page(ppa)?;
        self.reads += 1;
        self.bytes += u64::from(self.nand.whole_transfers(bytes));
        Some(visit(page))
    }
}

impl Drop for InstantReads<'_> {
    fn drop(&mut self) {
        self.nand.tally.reads(self.reads, self.bytes);
    }
}

impl fmt::Debug for InstantReads<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} reads of {:?}", self.reads, self.nand.cells())
    }
}

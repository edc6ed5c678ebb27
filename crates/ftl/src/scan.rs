use crate::region::Region;
use crate::stripe::Unit;
use crate::tag::Tag;
use clock::Class;
use nand::{BlockId, Nand, Ppa, ReadError};
use std::sync::Arc;

/// A block that holds pages of an extent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub(crate) block: BlockId,
    pub(crate) tag: Tag,
    /// Pages programmed, at least one.
    pub(crate) pages: u32,
    /// How many of its last pages are unreadable.
    pub(crate) torn: u32,
    /// True when an unreadable page cannot be the result of a loss of power.
    pub(crate) is_suspect: bool,
}

impl Found {
    /// Returns the number of pages up to the last readable one.
    pub(crate) const fn readable(&self) -> u32 {
        self.pages - self.torn
    }
}

/// The scan of one plane.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    pub(crate) found: Vec<Found>,
    /// Blocks that hold pages but no readable tag, each with its number of pages.
    pub(crate) lost: Vec<(BlockId, u32)>,
    /// Blocks without a readable or blank page: an erase was cut off, or failed.
    pub(crate) half_erased: Vec<BlockId>,
}

/// The class of the work of a start: all hosts of the drive wait for it.
const CLASS: Class = Class::HostRead;

/// Reads the tag of every good block of `unit` in `region`, and how far it was programmed.
pub(crate) async fn scan(nand: Arc<Nand>, region: Region, unit: Unit) -> Scan {
    let mut scan = Scan::default();
    for block in unit.blocks(region, nand.cells().geometry()) {
        if !nand.cells().is_bad(block) {
            scan_block(&nand, block, &mut scan).await;
        }
    }
    scan
}

async fn scan_block(nand: &Nand, block: BlockId, scan: &mut Scan) {
    let pages_per_block = nand.cells().geometry().pages_per_block;
    let mut first = 0;
    let tag = loop {
        if first == pages_per_block {
            scan.half_erased.push(block);
            return;
        }
        match nand.read_tag(Ppa { block, page: first }, CLASS).await {
            Ok(tag) => break tag,
            Err(ReadError::Uncorrectable) => first += 1,
        }
    };
    let Some(tag) = tag else {
        if first > 0 {
            scan.lost.push((block, first));
        }
        return;
    };
    let (pages, last) = extent(nand, block, first + 1).await;
    let Some(tag) = Tag::decode(&tag) else {
        scan.lost.push((block, pages));
        return;
    };
    let mut torn = u32::from(last.is_err());
    while (1..pages).contains(&torn) {
        match nand.probe(Ppa { block, page: pages - torn - 1 }, CLASS).await {
            Ok(_) => break,
            Err(ReadError::Uncorrectable) => torn += 1,
        }
    }
    scan.found.push(Found { block, tag, pages, torn, is_suspect: first > 0 || torn > 1 });
}

/// Returns how many pages of a block are programmed, given that the first is.
pub(crate) async fn programmed(nand: &Nand, block: BlockId) -> u32 {
    extent(nand, block, 1).await.0
}

/// Returns how many pages of a block are programmed, and whether the last is readable. The first
/// `programmed` pages are programmed, and the last of these is readable.
async fn extent(nand: &Nand, block: BlockId, programmed: u32) -> (u32, Result<(), ReadError>) {
    let (mut programmed, mut last) = (programmed, Ok(()));
    let mut blank = nand.cells().geometry().pages_per_block;
    while programmed < blank {
        let page = programmed.midpoint(blank);
        match nand.probe(Ppa { block, page }, CLASS).await {
            Ok(false) => blank = page,
            Ok(true) => (programmed, last) = (page + 1, Ok(())),
            Err(error) => (programmed, last) = (page + 1, Err(error)),
        }
    }
    (programmed, last)
}

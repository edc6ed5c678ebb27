use crate::region::Region;
use crate::stripe::Unit;
use crate::tag::Tag;
use clock::Class;
use nand::{BlockId, Nand, Ppa};
use std::sync::Arc;

/// A block that holds pages of an extent.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) block: BlockId,
    pub(crate) tag: Tag,
    /// Pages programmed, at least one.
    pub(crate) pages: u32,
}

/// What the flash of one plane tells.
#[derive(Debug)]
pub(crate) struct Scan {
    pub(crate) found: Vec<Found>,
    /// Blocks that held no readable tag, and were erased.
    pub(crate) unreadable: u32,
}

/// The class of the work of a start: whoever needs the drive waits for it.
const CLASS: Class = Class::HostRead;

/// Reads the tag of every good block of `unit` in `region`, erasing those that hold no readable
/// one.
pub(crate) async fn scan(nand: Arc<Nand>, region: Region, unit: Unit) -> Scan {
    let mut scan = Scan { found: Vec::new(), unreadable: 0 };
    for block in unit.blocks(region, nand.cells().geometry()) {
        if nand.cells().is_bad(block) {
            continue;
        }
        let Some(tag) = nand.read_tag(block, CLASS).await else { continue };
        if let Some(tag) = Tag::decode(&tag) {
            let pages = programmed(&nand, block).await;
            scan.found.push(Found { block, tag, pages });
        } else {
            nand.erase(block, CLASS).await;
            scan.unreadable += 1;
        }
    }
    scan
}

/// How many pages of a block are programmed, given that the first is.
pub(crate) async fn programmed(nand: &Nand, block: BlockId) -> u32 {
    let (mut programmed, mut blank) = (1, nand.cells().geometry().pages_per_block);
    while programmed < blank {
        let page = programmed.midpoint(blank);
        if nand.probe(Ppa { block, page }, CLASS).await {
            programmed = page + 1;
        } else {
            blank = page;
        }
    }
    programmed
}

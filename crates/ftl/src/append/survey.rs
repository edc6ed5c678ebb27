use crate::scan::{Found, Scan};
use crate::tag::Tag;
use media::ExtentId;
use nand::{BlockId, DieId};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The blocks that a scan found, sorted by their use.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    /// At most one block for each place of an extent.
    pub(crate) whole: Vec<Found>,
    /// Blocks that belong to no extent, of which `unreadable` have an unreadable tag.
    pub(crate) to_erase: Vec<BlockId>,
    pub(crate) unreadable: u32,
    /// Failed blocks whose pages were moved to another block.
    pub(crate) to_retire: Vec<BlockId>,
}

impl Survey {
    /// Sorts the blocks of `scans`. `first_die` returns the die on which an extent begins.
    pub(crate) fn new(scans: Vec<Scan>, first_die: impl Fn(ExtentId) -> DieId) -> Self {
        let mut survey = Self::default();
        let mut places: BTreeMap<(ExtentId, u32), Vec<Found>> = BTreeMap::new();
        let mut lost = BTreeMap::new();
        for scan in scans {
            for found in scan.found {
                places.entry((found.tag.extent, found.tag.position)).or_default().push(found);
            }
            lost.extend(scan.lost);
            survey.to_erase.extend(scan.half_erased);
        }
        let chosen: Vec<Found> = places.into_values().map(|each| survey.choose(each)).collect();
        let firsts: BTreeSet<ExtentId> =
            chosen.iter().filter(|found| found.tag.position == 0).map(|f| f.tag.extent).collect();
        for found in chosen {
            let tag = found.tag;
            if firsts.contains(&tag.extent) {
                survey.whole.push(found);
                continue;
            }
            // A first block with unreadable pages is no sign of a reset, which would have left it
            // blank or half erased. It stays in place, so that the next start sees the same.
            let first = BlockId { die: first_die(tag.extent), block: tag.first.into() };
            let is_lost = lost.remove(&first).map(|pages| {
                let tag = Tag { position: 0, ..tag };
                Found { block: first, tag, pages, torn: pages, is_suspect: true }
            });
            survey.whole.extend(is_lost);
            let is_first = |whole: &Found| whole.block == first && whole.tag.extent == tag.extent;
            let is_kept = survey.whole.iter().any(is_first);
            if is_kept { survey.whole.push(found) } else { survey.to_erase.push(found.block) }
        }
        survey.unreadable = u32::try_from(lost.len()).expect("no more than there are blocks");
        survey.to_erase.extend(lost.into_keys());
        survey
    }

    /// Returns the newest block of one place that has all pages of the block before it.
    fn choose(&mut self, mut blocks: Vec<Found>) -> Found {
        blocks.sort_by_key(|found| Reverse(found.tag.replaced));
        let is_complete = |pair: &[Found]| pair[0].readable() >= pair[1].pages;
        let at = blocks.windows(2).position(is_complete).unwrap_or(blocks.len() - 1);
        self.to_erase.extend(blocks[..at].iter().map(|found| found.block));
        self.to_retire.extend(blocks[at + 1..].iter().map(|found| found.block));
        blocks[at]
    }
}

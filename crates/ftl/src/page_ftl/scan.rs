//! Finding everything again.

use crate::page_ftl::PageFtl;
use crate::page_ftl::block::Phase;
use crate::page_ftl::block_tag::BlockTag;
use crate::page_ftl::layout::NONE;
use crate::page_ftl::spare::Spare;
use crate::page_ftl::state::State;
use crate::scan::programmed;
use clock::{Class, join_all};

/// The class of the work of a start: whoever needs the drive waits for it.
const CLASS: Class = Class::HostRead;

/// A block that holds pages.
struct Found {
    block: u32,
    /// `None` when it could not be read.
    tag: Option<BlockTag>,
    /// In order; `None` where the spare bytes could not be read.
    pages: Vec<Option<Spare>>,
}

/// Orders the blocks that may hold one page, a victim and those that it was copied to: a collector
/// fills one block after the other, and its victims are full before.
type Age = (usize, u64);

impl Found {
    fn age(&self) -> Age {
        self.tag.map_or((0, 0), |tag| (tag.frontier, tag.born))
    }
}

impl PageFtl {
    /// Reads the spare bytes of every page, units side by side, and takes up what they say.
    pub(crate) async fn scan(&self) {
        let units = (0..self.layout.units).map(|unit| {
            let ftl = self.me();
            async move { ftl.scan_unit(unit).await }
        });
        let found: Vec<Found> = join_all(units.collect()).await.into_iter().flatten().collect();
        let mut state = self.state();
        for found in &found {
            self.adopt(&mut state, found);
        }
        let mut pages: Vec<(&Spare, Age, u32)> = Vec::new();
        for found in &found {
            let (numbers, age) = (found.block * self.layout.pages.., found.age());
            let spares = found.pages.iter().zip(numbers);
            pages.extend(spares.filter_map(|(spare, page)| Some((spare.as_ref()?, age, page))));
        }
        pages.sort_by_key(|(spare, age, _)| (spare.sequence, *age));
        for (spare, _, page) in pages {
            state.sequence = state.sequence.max(spare.sequence);
            for (slot, number) in spare.held() {
                self.point(&mut state, number, page * self.layout.slots + slot);
            }
        }
    }

    async fn scan_unit(&self, unit: u32) -> Vec<Found> {
        let mut all = Vec::new();
        for block in self.layout.blocks_of(unit) {
            if self.state().blocks[block as usize].phase == Phase::Bad {
                continue;
            }
            let id = self.layout.block_id(block);
            let Some(tag) = self.nand.read_tag(id, CLASS).await else { continue };
            let mut pages = Vec::new();
            let first = block * self.layout.pages;
            for page in first..first + programmed(&self.nand, id).await {
                let content = self.nand.read(self.layout.ppa(page), &|_| 0, CLASS).await;
                pages.push(Spare::decode(content.spare(), self.layout.slots));
            }
            all.push(Found { block, tag: BlockTag::decode(&tag), pages });
        }
        all
    }

    /// Takes a block out of the free ones. One that is not full goes on being filled.
    fn adopt(&self, state: &mut State, found: &Found) {
        let unit = self.layout.unit_of(found.block);
        let of = &mut state.units[unit as usize];
        of.free.retain(|block| *block != found.block);
        let block = &mut state.blocks[found.block as usize];
        let pages = u32::try_from(found.pages.len()).expect("no more than a block has");
        for page in &found.pages {
            let slots = self.layout.slots as usize;
            match page {
                Some(spare) => block.blocks.extend_from_slice(&spare.blocks),
                None => block.blocks.extend(std::iter::repeat_n(NONE, slots)),
            }
        }
        block.born = found.tag.map_or(0, |tag| tag.born);
        state.sequence = state.sequence.max(block.born);
        block.landed = pages;
        let kind = found.tag.map_or(0, |tag| tag.frontier).min(self.collector());
        let frontier = &mut of.frontiers[kind];
        if pages < self.layout.pages && frontier.block == NONE {
            block.phase = Phase::Open;
            (frontier.block, frontier.taken) = (found.block, pages);
        } else {
            block.phase = Phase::Full;
            // It is never appended to again, so it counts as complete.
            block.landed = self.layout.pages;
            block.blocks.resize(self.layout.block_slots() as usize, NONE);
        }
    }

    /// A newer place of a logical block.
    fn point(&self, state: &mut State, number: u32, slot: u32) {
        if u64::from(number) >= self.config.blocks {
            return;
        }
        let before = state.map.set(number, slot);
        state.blocks[self.layout.block_of_slot(slot) as usize].live += 1;
        if before != NONE {
            state.blocks[self.layout.block_of_slot(before) as usize].live -= 1;
        }
    }
}

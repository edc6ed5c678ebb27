//! Finding everything again.

use crate::page_ftl::PageFtl;
use crate::page_ftl::block::Phase;
use crate::page_ftl::block_tag::BlockTag;
use crate::page_ftl::layout::NONE;
use crate::page_ftl::spare::{Name, Spare};
use crate::page_ftl::state::State;
use crate::scan::programmed;
use clock::{Class, join_all};
use media::Page;
use nand::Ppa;
use std::collections::{BTreeMap, BTreeSet};

/// The class of the work of a start: all hosts of the drive wait for it.
const CLASS: Class = Class::HostRead;

/// A block that holds pages.
pub(crate) struct Found {
    pub(crate) block: u32,
    /// `None` when it is unreadable.
    pub(crate) tag: Option<BlockTag>,
    /// In order; `None` where the spare bytes are unreadable.
    pub(crate) pages: Vec<Option<Spare>>,
}

/// Orders the blocks that may hold one page: a victim and the targets of its copies. A collector
/// fills one block after another, and its victims were full before.
pub(crate) type Age = (usize, u64);

impl Found {
    pub(crate) fn age(&self) -> Age {
        self.tag.map_or((0, 0), |tag| (tag.frontier, tag.born))
    }
}

impl PageFtl {
    /// Reads the spare bytes of every page, units side by side, and enters them into the tables.
    pub(crate) async fn scan(&self) {
        let units = (0..self.layout.units).map(|unit| {
            let ftl = self.me();
            async move { ftl.scan_unit(unit).await }
        });
        let found: Vec<Found> = join_all(units.collect()).await.into_iter().flatten().collect();
        let mut state = self.state();
        let lost = self.find_lost(&state, &found);
        for found in &found {
            self.adopt(&mut state, found, &lost);
        }
        let mut pages: Vec<(u64, bool, Age, u32, &[u32])> = Vec::new();
        for found in &found {
            let (numbers, age) = (found.block * self.layout.pages.., found.age());
            let spares = found.pages.iter().zip(numbers);
            pages.extend(spares.filter_map(|(spare, page)| {
                let spare = spare.as_ref()?;
                Some((spare.sequence, true, age, page, &spare.blocks[..]))
            }));
        }
        for (page, name) in &lost {
            // A readable copy of the page is as good.
            pages.push((name.sequence, false, Age::default(), *page, &name.blocks));
        }
        pages.sort_by_key(|(sequence, is_readable, age, ..)| (*sequence, *is_readable, *age));
        for (sequence, _, _, page, blocks) in pages {
            state.sequence = state.sequence.max(sequence);
            let held = (page * self.layout.slots..).zip(blocks);
            for (slot, number) in held.filter(|(_, number)| **number != NONE) {
                self.point(&mut state, *number, slot);
            }
        }
        self.undo_cut_off(&mut state, &found);
        self.note_found(&mut state, &found, &lost);
    }

    /// Returns the unreadable pages, with what other pages say of them.
    fn find_lost<'f>(&self, state: &State, found: &'f [Found]) -> BTreeMap<u32, &'f Name> {
        // A block whose erase was cut off has only unreadable pages, and none of them is missed.
        let by_block: BTreeMap<u32, &Found> = found
            .iter()
            .filter(|found| !self.is_half_erased(found))
            .map(|found| (found.block, found))
            .collect();
        let mut lost: BTreeMap<u32, &Name> = BTreeMap::new();
        for spare in found.iter().flat_map(|found| found.pages.iter().flatten()) {
            for name in &spare.names {
                let within = (name.page % self.layout.pages) as usize;
                let number = self.layout.block_of_page(name.page);
                let Some(of) = by_block.get(&number) else { continue };
                let is_lost = of.pages.get(within).is_some_and(Option::is_none);
                let is_of_this = state.blocks[number as usize].erases == name.erases;
                let is_newest =
                    lost.get(&name.page).is_none_or(|before| before.sequence < name.sequence);
                if is_lost && is_of_this && is_newest {
                    lost.insert(name.page, name);
                }
            }
        }
        lost
    }

    fn is_half_erased(&self, found: &Found) -> bool {
        let pages = found.pages.len() as u64;
        pages == u64::from(self.layout.pages) && found.pages.iter().all(Option::is_none)
    }

    /// Notes what is lost, and the pages whose content no other page names.
    fn note_found(&self, state: &mut State, found: &[Found], lost: &BTreeMap<u32, &Name>) {
        let spares = || found.iter().flat_map(|found| found.pages.iter().flatten());
        let named: BTreeSet<u32> =
            spares().flat_map(|spare| &spare.names).map(|name| name.page).collect();
        for found in found {
            let last = found.pages.len() - 1;
            if self.is_half_erased(found) {
                continue;
            }
            let unit = self.layout.unit_of(found.block);
            for (number, page) in found.pages.iter().enumerate() {
                let within = u32::try_from(number).expect("no more than a block has");
                let at = found.block * self.layout.pages + within;
                let is_named = named.contains(&at);
                match page {
                    Some(_) if !is_named => state.units[unit as usize].note_unnamed(at),
                    None if lost.contains_key(&at) => {
                        let live = self.live_slots(state, at).len() as u64;
                        state.recovery.lost_blocks += live;
                        if live > 0 {
                            self.doom(state, found.block);
                        }
                    }
                    None if number < last => state.recovery.lost_pages += 1,
                    _ => {}
                }
            }
            state.recovery.pages_read += found.pages.len() as u64;
        }
        self.count_capacity(state);
    }

    async fn scan_unit(&self, unit: u32) -> Vec<Found> {
        let mut all = Vec::new();
        for block in self.layout.blocks_of(unit) {
            if self.state().blocks[block as usize].phase == Phase::Bad {
                continue;
            }
            let id = self.layout.block_id(block);
            let first = self.nand.read_tag(Ppa { block: id, page: 0 }, CLASS).await;
            if first == Ok(None) {
                continue;
            }
            let mut tag = first.ok().flatten();
            let mut pages = Vec::new();
            for page in 0..programmed(&self.nand, id).await {
                let ppa = Ppa { block: id, page };
                let content = self.nand.read(ppa, &|_| 0, CLASS).await.ok();
                if tag.is_none() && content.is_some() {
                    tag = self.nand.read_tag(ppa, CLASS).await.ok().flatten();
                }
                let spare = |page: &Page| Spare::decode(page.spare(), self.layout.slots);
                pages.push(content.as_ref().and_then(spare));
            }
            all.push(Found { block, tag: tag.as_ref().and_then(BlockTag::decode), pages });
        }
        all
    }

    /// Takes a block out of the free ones. Writes continue in one that is not full.
    fn adopt(&self, state: &mut State, found: &Found, lost: &BTreeMap<u32, &Name>) {
        let unit = self.layout.unit_of(found.block);
        let of = &mut state.units[unit as usize];
        of.free.retain(|block| *block != found.block);
        let block = &mut state.blocks[found.block as usize];
        let pages = u32::try_from(found.pages.len()).expect("no more than a block has");
        for (page, number) in found.pages.iter().zip(found.block * self.layout.pages..) {
            let slots = self.layout.slots as usize;
            match (page, lost.get(&number)) {
                (Some(spare), _) => block.blocks.extend_from_slice(&spare.blocks),
                (None, Some(name)) => block.blocks.extend_from_slice(&name.blocks),
                (None, None) => block.blocks.extend(std::iter::repeat_n(NONE, slots)),
            }
            block.sequences.push(page.as_ref().map_or(0, |page| page.sequence));
        }
        block.end = self.layout.pages;
        block.born = found.tag.map_or(0, |tag| tag.born);
        state.sequence = state.sequence.max(block.born);
        block.landed = pages;
        let kind = found.tag.map_or(0, |tag| tag.frontier).min(self.collector());
        let frontier = &mut of.frontiers[kind];
        let continues = found.tag.is_some() && pages < self.layout.pages;
        if continues && frontier.block == NONE {
            block.phase = Phase::Open;
            (frontier.block, frontier.taken) = (found.block, pages);
        } else {
            block.phase = Phase::Full;
            // It is never appended to again, so it counts as complete.
            block.landed = self.layout.pages;
            block.blocks.resize(self.layout.block_slots() as usize, NONE);
        }
    }

    /// Points a logical block to its newer place.
    fn point(&self, state: &mut State, number: u32, slot: u32) {
        if u64::from(number) >= self.config.blocks {
            return;
        }
        let before = state.map.set(number, slot);
        state.blocks[self.layout.block_of_slot(slot) as usize].live += 1;
        if before == NONE {
            state.live += 1;
        } else {
            state.blocks[self.layout.block_of_slot(before) as usize].live -= 1;
        }
    }
}

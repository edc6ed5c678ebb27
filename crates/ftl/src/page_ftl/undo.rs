//! Cleaning that a loss of power cut off, undone where it could not go on.

use crate::page_ftl::block::Phase;
use crate::page_ftl::layout::NONE;
use crate::page_ftl::scan::Found;
use crate::page_ftl::state::State;
use crate::page_ftl::unit::HOST;
use crate::page_ftl::{Frontier, PageFtl};
use std::collections::BTreeMap;

impl PageFtl {
    /// Undoes an unfinished copy by the collector in units without a free block. A loss of power
    /// spoils the page that is being written, so the block of the copies may lack room for the
    /// rest. That block was the last free one, so it was opened for the present victim, which still
    /// has all the data.
    pub(crate) fn undo_cut_off(&self, state: &mut State, found: &[Found]) {
        if self.config.frontier == Frontier::Shared {
            return;
        }
        for unit in 0..self.layout.units {
            let of_unit = || found.iter().filter(|found| self.layout.unit_of(found.block) == unit);
            let copies = of_unit().filter(|found| found.tag.is_some_and(|tag| tag.frontier > HOST));
            let mut copies: Vec<&Found> = copies.collect();
            copies.sort_by_key(|found| std::cmp::Reverse(found.age()));
            if state.units[unit as usize].free.is_empty() {
                copies.into_iter().find(|copies| self.undo(state, copies, of_unit()));
            }
        }
    }

    /// Makes live data of the block of `copies` live in `others` again, if all of it is there.
    /// Returns true if so.
    fn undo<'f>(
        &self,
        state: &mut State,
        copies: &Found,
        others: impl Iterator<Item = &'f Found>,
    ) -> bool {
        let mut twins: BTreeMap<u32, (u64, u32, u32)> = BTreeMap::new();
        for other in others.filter(|other| other.block != copies.block) {
            for (number, slot, sequence, sum) in self.slots_of(other) {
                let twin = (sequence, slot, sum);
                let known = twins.entry(number).or_insert(twin);
                *known = (*known).max(twin);
            }
        }
        let live = self.slots_of(copies).filter(|(number, slot, ..)| {
            u64::from(*number) < self.config.blocks && state.map.get(*number) == *slot
        });
        let moves: Vec<_> = live
            .map(|(number, _, sequence, sum)| {
                let (before, slot, same) = *twins.get(&number)?;
                (before <= sequence && sum == same).then_some((number, slot))
            })
            .collect();
        let is_whole = moves.len() == state.blocks[copies.block as usize].live as usize;
        let Some(moves) = moves.into_iter().collect::<Option<Vec<_>>>().filter(|_| is_whole) else {
            return false;
        };
        for (number, slot) in moves {
            let before = state.map.set(number, slot);
            state.blocks[self.layout.block_of_slot(before) as usize].live -= 1;
            state.blocks[self.layout.block_of_slot(slot) as usize].live += 1;
        }
        let block = &mut state.blocks[copies.block as usize];
        block.phase = Phase::Full;
        block.landed = self.layout.pages;
        block.blocks.resize(self.layout.block_slots() as usize, NONE);
        let unit = self.layout.unit_of(copies.block);
        for frontier in &mut state.units[unit as usize].frontiers {
            if frontier.block == copies.block {
                (frontier.block, frontier.taken) = (NONE, 0);
            }
        }
        true
    }

    /// Returns logical block, slot, sequence number and checksum of all slots of a block, dead or
    /// alive.
    fn slots_of<'f>(&self, found: &'f Found) -> impl Iterator<Item = (u32, u32, u64, u32)> + 'f {
        let (first, slots) = (found.block * self.layout.pages, self.layout.slots);
        let pages = (first..).zip(&found.pages);
        let readable = pages.filter_map(|(page, spare)| Some((page, spare.as_ref()?)));
        readable.flat_map(move |(page, spare)| {
            let held = (page * slots..).zip(spare.blocks.iter().zip(&spare.sums));
            held.filter(|(_, (number, _))| **number != NONE)
                .map(|(slot, (number, sum))| (*number, slot, spare.sequence, *sum))
        })
    }
}

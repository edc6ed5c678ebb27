//! From the open page to the flash.

use crate::page_ftl::PageFtl;
use crate::page_ftl::block::Phase;
use crate::page_ftl::block_tag::BlockTag;
use crate::page_ftl::debt::Owed;
use crate::page_ftl::layout::NONE;
use crate::page_ftl::open_page::OpenPage;
use crate::page_ftl::spare::{Name, Spare};
use crate::page_ftl::state::State;
use crate::page_ftl::unit::HOST;
use clock::Class;
use media::Page;
use nand::ProgramError;
use smallvec::SmallVec;

/// A closed page whose program is in flight.
struct Program {
    page: u32,
    unit: u32,
    frontier: usize,
    class: Class,
    content: Page,
    owed: Owed,
    /// True for a page of the collector that has host data of a failed page.
    rescues: bool,
}

impl PageFtl {
    /// Takes the next page of a frontier, with a new block if it has none. `None` when there is no
    /// such block.
    pub(crate) fn take_page(&self, state: &mut State, unit: u32, frontier: usize) -> Option<u32> {
        if state.units[unit as usize].frontiers[frontier].left(self.layout.pages) == 0 {
            self.take_block(state, unit, frontier)?;
        }
        let at = &mut state.units[unit as usize].frontiers[frontier];
        let page = at.block * self.layout.pages + at.taken;
        at.taken += 1;
        if at.taken == self.layout.pages {
            state.blocks[at.block as usize].phase = Phase::Full;
        }
        Some(page)
    }

    /// Gives a frontier the least worn free block.
    fn take_block(&self, state: &mut State, unit: u32, frontier: usize) -> Option<()> {
        let State { units, blocks, sequence, .. } = state;
        let of = &mut units[unit as usize];
        let erases = |at: &usize| blocks[of.free[*at] as usize].erases;
        let least = (0..of.free.len()).min_by_key(erases)?;
        let number = of.free.remove(least);
        let block = &mut blocks[number as usize];
        block.phase = Phase::Open;
        block.born = *sequence;
        block.end = self.layout.pages;
        let at = &mut of.frontiers[frontier];
        (at.block, at.taken) = (number, 0);
        self.clean_when_low(state, unit);
        Some(())
    }

    /// Closes an open page and starts its program.
    pub(crate) fn close_page(&self, state: &mut State, unit: u32, frontier: usize) {
        let open = state.units[unit as usize].frontiers[frontier].open.take();
        let open = open.expect("only an open page is closed");
        let OpenPage { page, host_slots, ticket, data, landing, sums, are_right, debts, .. } = open;
        let spare = self.seal(state, unit, frontier, page, sums.clone());
        let has_crcs = are_right && data.len() == sums.len();
        let mut content = Page::new(&spare.encode(self.names), data);
        if has_crcs {
            // A checksum of one segment is its CRC.
            content = content.with_crcs(&sums);
        }
        let of = &mut state.units[unit as usize];
        let at = &mut of.frontiers[frontier];
        if at.unlanded.is_empty() {
            at.class = if frontier == HOST { Class::HostWrite } else { of.class };
        }
        let class = at.class;
        at.unlanded.push_back((page, content.clone()));
        state.under_way += 1;
        state.host_pages += u64::from(frontier == HOST);
        let ftl = self.me();
        let owed = Owed { host_slots, ticket, landing, debts, waits: None };
        let rescues = frontier != HOST && owed.is_to_hosts();
        state.rescuing_pages += u64::from(rescues);
        let program = Program { page, unit, frontier, class, content, owed, rescues };
        clock::spawn(async move { ftl.program(program).await });
    }

    /// Ends the taking of slots of `page` and returns its spare content.
    fn seal(
        &self,
        state: &mut State,
        unit: u32,
        frontier: usize,
        page: u32,
        mut sums: SmallVec<[u32; 8]>,
    ) -> Spare {
        let names = self.name_others(state, unit);
        state.sequence += 1;
        let State { units, blocks, map, sequence, .. } = state;
        let block = &mut blocks[self.layout.block_of_page(page) as usize];
        let first = (page % self.layout.pages * self.layout.slots) as usize;
        block.blocks.resize(first + self.layout.slots as usize, NONE);
        block.sequences.resize((page % self.layout.pages) as usize, 0);
        block.sequences.push(*sequence);
        let mut is_whole = true;
        // A dead slot's newer version may be in a page that is closed before this one.
        for (slot, number) in (page * self.layout.slots..).zip(&mut block.blocks[first..]) {
            if *number != NONE && map.get(*number) != slot {
                (*number, is_whole) = (NONE, false);
            }
        }
        // Data of a collector's page that the page does not name is still in a victim. The victim
        // is erased only after the newer version has landed.
        if frontier == self.collector() && !is_whole {
            let last = &mut units[unit as usize].died_on_the_way;
            *last = block.superseded.max(*last);
        }
        let held = SmallVec::from(&block.blocks[first..]);
        sums.resize(self.layout.slots as usize, 0);
        Spare { sequence: *sequence, blocks: held, sums, names }
    }

    /// Returns the names of some landed pages for the next page of `unit`.
    fn name_others(&self, state: &mut State, unit: u32) -> Vec<Name> {
        let mut names = Vec::new();
        while names.len() < self.names as usize {
            let Some(page) = state.units[unit as usize].unnamed.pop_front() else { break };
            let block = &state.blocks[self.layout.block_of_page(page) as usize];
            let within = page % self.layout.pages;
            let is_there =
                !matches!(block.phase, Phase::Free | Phase::Bad) && within < block.landed;
            let sequence = block.sequences.get(within as usize).copied().unwrap_or(0);
            if !is_there || sequence == 0 {
                continue;
            }
            let first = (within * self.layout.slots) as usize;
            let blocks = SmallVec::from(&block.blocks[first..first + self.layout.slots as usize]);
            names.push(Name { page, erases: block.erases, sequence, blocks });
        }
        names
    }

    async fn program(&self, program: Program) {
        let Program { page, unit, frontier, class, content, mut owed, rescues } = program;
        let closed_at = clock::now();
        let (ppa, tag) = (self.layout.ppa(page), self.tag(page, frontier));
        let programmed = self.nand.program(ppa, content.clone(), tag, class).await;
        let mut state = self.state();
        state.rescuing_pages -= u64::from(rescues);
        if programmed == Err(ProgramError::PowerLost) {
            state.lost_host_pages += u64::from(frontier == HOST);
            Self::end_program(&mut state, frontier);
            return;
        }
        let first = state.units[unit as usize].frontiers[frontier].unlanded.pop_front();
        assert!(first.is_some_and(|(first, _)| first == page), "pages land in their order");
        owed.debts.extend(state.heirs.remove(&page).unwrap_or_default());
        if programmed.is_ok() {
            state.units[unit as usize].note_unnamed(page);
            self.land(&mut state, page, unit, frontier);
            Self::finish(&mut state, owed, closed_at);
        } else {
            if frontier == self.collector() {
                state.units[unit as usize].rescues += 1;
                owed.waits = Some(unit);
            }
            self.doom(&mut state, self.layout.block_of_page(page));
            self.land(&mut state, page, unit, frontier);
            self.rescue(&mut state, (page, &content), owed, closed_at);
        }
        Self::end_program(&mut state, frontier);
    }

    /// Counts a page that is not in flight any longer.
    fn end_program(state: &mut State, frontier: usize) {
        state.under_way -= 1;
        state.host_pages -= u64::from(frontier == HOST);
        if state.host_pages == 0
            && let Some(saver) = state.saver.take()
        {
            clock::wake(saver);
        }
        state.settle();
    }

    /// Returns the tag for `page` if it is the first of its block.
    pub(crate) fn tag(&self, page: u32, frontier: usize) -> Option<nand::Tag> {
        let tag = || {
            let block = self.layout.block_of_page(page);
            BlockTag { frontier, born: self.state().blocks[block as usize].born }.encode()
        };
        page.is_multiple_of(self.layout.pages).then(tag)
    }

    /// Marks `page` as done: it is on the flash, or its program failed.
    pub(crate) fn land(&self, state: &mut State, page: u32, unit: u32, frontier: usize) {
        let number = self.layout.block_of_page(page);
        state.blocks[number as usize].landed += 1;
        let is_complete = self.complete(state, number);
        let of = &mut state.units[unit as usize];
        if let Some((_, task)) = of.frontiers[frontier].waiter.take_if(|(last, _)| *last == page) {
            clock::wake(task);
        }
        let is_doomed = state.blocks[number as usize].doomed;
        if is_complete && is_doomed {
            self.start_cleaning(state, unit);
        } else if is_complete && of.barren {
            self.reconsider(state, number);
        }
    }
}

//! From the open page to the flash.

use crate::page_ftl::PageFtl;
use crate::page_ftl::block::Phase;
use crate::page_ftl::block_tag::BlockTag;
use crate::page_ftl::landing::Landing;
use crate::page_ftl::layout::NONE;
use crate::page_ftl::open_page::OpenPage;
use crate::page_ftl::spare::Spare;
use crate::page_ftl::state::State;
use crate::page_ftl::unit::HOST;
use clock::Class;
use media::Page;
use std::sync::Arc;

/// A closed page on its way.
struct Program {
    page: u32,
    unit: u32,
    frontier: usize,
    class: Class,
    content: Arc<Page>,
    host_slots: u32,
    ticket: u64,
    landing: Option<Arc<Landing>>,
}

impl PageFtl {
    /// Takes the next page of a frontier, and a block for it when it has none.
    pub(crate) fn take_page(&self, state: &mut State, unit: u32, frontier: usize) -> u32 {
        if state.units[unit as usize].frontiers[frontier].left(self.layout.pages) == 0 {
            self.take_block(state, unit, frontier);
        }
        let at = &mut state.units[unit as usize].frontiers[frontier];
        let page = at.block * self.layout.pages + at.taken;
        at.taken += 1;
        if at.taken == self.layout.pages {
            state.blocks[at.block as usize].phase = Phase::Full;
        }
        page
    }

    /// Gives a frontier the least worn free block.
    fn take_block(&self, state: &mut State, unit: u32, frontier: usize) {
        let State { units, blocks, sequence, .. } = state;
        let of = &mut units[unit as usize];
        let erases = |at: &usize| blocks[of.free[*at] as usize].erases;
        let least = (0..of.free.len()).min_by_key(erases);
        let number = of.free.remove(least.expect("the collector keeps a block for itself"));
        let block = &mut blocks[number as usize];
        block.phase = Phase::Open;
        block.born = *sequence;
        let at = &mut of.frontiers[frontier];
        (at.block, at.taken) = (number, 0);
        self.clean_when_low(state, unit);
    }

    /// Ends the filling of an open page and starts its program.
    pub(crate) fn close_page(&self, state: &mut State, unit: u32, frontier: usize) {
        let open = state.units[unit as usize].frontiers[frontier].open.take();
        let open = open.expect("only an open page is closed");
        let OpenPage { page, host_slots, ticket, data, landing, .. } = open;
        let spare = self.seal(state, page);
        if frontier == self.collector() {
            self.note_dead(state, unit, &spare, page);
        }
        let content = Arc::new(Page::new(&spare.encode(), data));
        let class =
            if frontier == HOST { Class::HostWrite } else { state.units[unit as usize].class };
        let unlanded = &mut state.units[unit as usize].frontiers[frontier].unlanded;
        unlanded.push_back((page, content.clone()));
        if let Some(landing) = &landing {
            landing.close();
        }
        let ftl = self.me();
        let program = Program { page, unit, frontier, class, content, host_slots, ticket, landing };
        clock::spawn(async move { ftl.program(program).await });
    }

    /// Ends the taking of slots of `page`, and says what is in them.
    fn seal(&self, state: &mut State, page: u32) -> Spare {
        state.sequence += 1;
        let State { blocks, map, sequence, .. } = state;
        let number = self.layout.block_of_page(page);
        let block = &mut blocks[number as usize].blocks;
        let first = (page % self.layout.pages * self.layout.slots) as usize;
        block.resize(first + self.layout.slots as usize, NONE);
        let slots = (page * self.layout.slots..).zip(&block[first..]);
        // A slot that is dead by now was overwritten in a page that may be closed before this one.
        let held = slots.map(|(slot, number)| {
            let is_live = *number != NONE && map.get(*number) == slot;
            if is_live { *number } else { NONE }
        });
        Spare { sequence: *sequence, blocks: held.collect() }
    }

    /// A page of the collector was sealed as `spare` says. What it does not name lies in a victim,
    /// which is not erased before its successor has landed.
    fn note_dead(&self, state: &mut State, unit: u32, spare: &Spare, page: u32) {
        let block = &state.blocks[self.layout.block_of_page(page) as usize];
        let first = (page % self.layout.pages * self.layout.slots) as usize;
        if block.blocks[first..] != spare.blocks[..] {
            let last = &mut state.units[unit as usize].died_on_the_way;
            *last = block.superseded.max(*last);
        }
    }

    async fn program(&self, program: Program) {
        let ppa = self.layout.ppa(program.page);
        let tag = self.tag(program.page, program.frontier);
        self.nand.program(ppa, program.content.clone(), tag, program.class).await;
        let Program { page, unit, frontier, host_slots, ticket, landing, .. } = program;
        let mut state = self.state();
        let first = state.units[unit as usize].frontiers[frontier].unlanded.pop_front();
        assert!(first.is_some_and(|(first, _)| first == page), "pages land in their order");
        self.land(&mut state, page, unit, frontier);
        if host_slots > 0 {
            state.credit.give_back(host_slots);
            state.tickets.land(ticket);
        }
        if let Some(landing) = landing {
            landing.land(clock::stages());
        }
    }

    /// What goes with `page` if it is the first of its block.
    pub(crate) fn tag(&self, page: u32, frontier: usize) -> Option<nand::Tag> {
        let tag = || {
            let block = self.layout.block_of_page(page);
            BlockTag { frontier, born: self.state().blocks[block as usize].born }.encode()
        };
        page.is_multiple_of(self.layout.pages).then(tag)
    }

    /// `page` is on the flash.
    pub(crate) fn land(&self, state: &mut State, page: u32, unit: u32, frontier: usize) {
        let number = self.layout.block_of_page(page);
        let block = &mut state.blocks[number as usize];
        block.landed += 1;
        let is_complete = block.landed == self.layout.pages;
        let of = &mut state.units[unit as usize];
        if let Some((_, task)) = of.frontiers[frontier].waiter.take_if(|(last, _)| *last == page) {
            clock::wake(task);
        }
        if is_complete && of.barren {
            self.reconsider(state, number);
        }
    }
}

//! Cleaning a block of flash: what lives in it moves to another of its unit, then it is erased.
//!
//! 1. A unit's task begins when its free blocks run low and goes on until there are enough of them,
//!    or nothing is worth cleaning.
//! 2. Pages that hold something live are read and what lives joins the collector's open page; or
//!    whole pages are copied within the plane.
//! 3. When the copies have landed, and what hosts wrote in place of the rest has too, and the last
//!    reader has left, the block is erased.

use crate::page_ftl::block::{Block, Phase};
use crate::page_ftl::layout::NONE;
use crate::page_ftl::state::State;
use crate::page_ftl::unit::HOST;
use crate::page_ftl::{Frontier, GcBlocking, PageFtl, RESERVED_BLOCKS};
use base::limits::BLOCK_BYTES;
use clock::{Class, Rank, Stage};
use media::Candidate;
use smallvec::SmallVec;

impl PageFtl {
    /// Starts to clean where free blocks are low.
    pub(crate) fn clean_where_low(&self, state: &mut State) {
        for unit in 0..self.layout.units {
            if !state.units[unit as usize].barren {
                self.clean_when_low(state, unit);
            }
        }
    }

    #[inline]
    pub(crate) fn clean_when_low(&self, state: &mut State, unit: u32) {
        let of = &mut state.units[unit as usize];
        if of.free.len() > self.config.gc_free_blocks.max(1) as usize || of.cleaning {
            return;
        }
        of.cleaning = true;
        of.barren = false;
        let ftl = self.me();
        clock::spawn(async move { ftl.clean_unit(unit).await });
    }

    /// Something of `block` died, or its last page landed, in a unit where nothing was worth
    /// cleaning.
    pub(crate) fn reconsider(&self, state: &mut State, block: u32) {
        let unit = self.layout.unit_of(block);
        if self.candidate(state, unit, block).is_some() {
            state.units[unit as usize].barren = false;
            self.clean_when_low(state, unit);
        }
    }

    async fn clean_unit(&self, unit: u32) {
        while let Some(victim) = self.choose_victim(unit) {
            self.clean(unit, victim, Class::Gc).await;
            if let Some(cold) = self.choose_cold(unit) {
                self.clean(unit, cold, Class::Wear).await;
            }
        }
    }

    /// What to clean next in a unit; without it, its task ends.
    fn choose_victim(&self, unit: u32) -> Option<u32> {
        let mut state = self.state();
        let free = state.units[unit as usize].free.len();
        state.units[unit as usize].promotion.want(free <= RESERVED_BLOCKS);
        let mut chosen = None;
        if free <= self.config.gc_free_blocks.max(1) as usize {
            let mut candidates = std::mem::take(&mut state.candidates);
            let blocks = self.layout.blocks_of(unit);
            candidates.extend(blocks.filter_map(|block| self.candidate(&state, unit, block)));
            let now = state.sequence;
            chosen = self.config.victims.choose(&candidates, now, &mut state.rng);
            candidates.clear();
            state.candidates = candidates;
            state.units[unit as usize].barren = chosen.is_none();
        }
        if chosen.is_none() {
            state.units[unit as usize].promotion.want(false);
            state.units[unit as usize].cleaning = false;
        }
        chosen
    }

    /// A block of `unit`, if cleaning it would win something and its copies have room.
    #[inline]
    fn candidate(&self, state: &State, unit: u32, number: u32) -> Option<Candidate> {
        let Block { phase, live, landed, born, .. } = state.blocks[number as usize];
        if phase != Phase::Full || landed < self.layout.pages {
            return None;
        }
        let of = &state.units[unit as usize];
        let in_need = of.free.len() <= RESERVED_BLOCKS;
        let worth = if in_need { self.layout.slots } else { state.worth };
        let slots = self.layout.block_slots();
        let room = of.room(self.collector(), self.layout.pages);
        let wins = live + worth <= slots && self.layout.pages_for(live) <= room;
        wins.then_some(Candidate { id: number, born, live: live.into(), written: slots.into() })
    }

    /// The frontier that the collector writes to.
    pub(crate) const fn collector(&self) -> usize {
        match self.config.frontier {
            Frontier::Own => HOST + 1,
            Frontier::Shared => HOST,
        }
    }

    async fn clean(&self, unit: u32, victim: u32, class: Class) {
        let (gate, whole_pages) = {
            let mut state = self.state();
            state.blocks[victim as usize].phase = Phase::Victim;
            state.units[unit as usize].class = class;
            let gate = self.block(&mut state, unit);
            let whole_pages = self.config.blocking == GcBlocking::Plane
                && self.copyback_wins(&state, unit, victim, class);
            (gate, whole_pages)
        };
        self.take_turn().await;
        if whole_pages {
            self.copies_landed(unit).await;
        }
        for page in victim * self.layout.pages..(victim + 1) * self.layout.pages {
            let live = self.live_slots(&self.state(), page);
            match (live.is_empty(), whole_pages) {
                (true, _) => {}
                (false, true) => self.copy_page(unit, page, class).await,
                (false, false) => self.move_slots(unit, page, &live, class).await,
            }
        }
        self.copies_landed(unit).await;
        self.superseding_pages_landed(unit, victim).await;
        self.last_reader_left(victim).await;
        self.nand.erase(self.layout.block_id(victim), class).await;
        let mut state = self.state();
        self.free(&mut state, unit, victim, class);
        self.unblock(&mut state, unit);
        self.hand_turn_on();
        drop(gate);
        state.wake_waiters();
    }

    /// True when copying whole pages frees some, or need not, and they have room: of a block that a
    /// loss of power left half copied there may be less than dead slots would take.
    fn copyback_wins(&self, state: &State, unit: u32, victim: u32, class: Class) -> bool {
        let room = state.units[unit as usize].room(self.collector(), self.layout.pages);
        let live_pages = self.live_pages(state, victim);
        live_pages <= room && (class == Class::Wear || live_pages < self.layout.pages)
    }

    fn live_pages(&self, state: &State, block: u32) -> u32 {
        let pages = block * self.layout.pages..(block + 1) * self.layout.pages;
        let live = pages.filter(|page| !self.live_slots(state, *page).is_empty());
        u32::try_from(live.count()).expect("no more than the pages of a block")
    }

    /// The slots of `page` that live, with their logical blocks.
    fn live_slots(&self, state: &State, page: u32) -> SmallVec<[(u32, u32); 4]> {
        let block = &state.blocks[self.layout.block_of_page(page) as usize];
        let (first, slots) = (page % self.layout.pages * self.layout.slots, self.layout.slots);
        let rest = &block.blocks[first as usize..];
        // Those of the next few pages, which will be asked for next.
        rest.iter().skip(4 * slots as usize).take(slots as usize).for_each(|number| {
            state.map.prefetch(*number);
        });
        let numbers = rest[..slots as usize].iter().copied();
        let slots = (page * self.layout.slots..).zip(numbers);
        slots.filter(|(slot, number)| *number != NONE && state.map.get(*number) == *slot).collect()
    }

    /// Moves what lives in a page by way of the controller.
    async fn move_slots(&self, unit: u32, page: u32, live: &[(u32, u32)], class: Class) {
        let ppa = self.layout.ppa(page);
        let slots = u32::try_from(live.len()).expect("a page has few slots");
        let content = self.nand.read(ppa, &|_| slots * BLOCK_BYTES, class).await;
        let mut state = self.state();
        let frontier = self.collector();
        for (slot, number) in live {
            if state.map.get(*number) != *slot {
                continue;
            }
            let start = slot % self.layout.slots * BLOCK_BYTES;
            let data = content.segments_at(start, BLOCK_BYTES);
            if state.units[unit as usize].frontiers[frontier].open.is_none() {
                self.open_page(&mut state, unit, frontier);
            }
            let of = &mut state.units[unit as usize];
            let open = of.frontiers[frontier].open.as_mut().expect("opened above");
            open.data.extend(data.expect("a page holds the data that was put into it"));
            of.claimed -= 1;
            state.counts.moved_blocks += 1;
            self.place(&mut state, unit, frontier, *number);
        }
    }

    /// Copies a page to the next one of the collector's frontier, without the controller seeing it.
    async fn copy_page(&self, unit: u32, page: u32, class: Class) {
        let frontier = self.collector();
        let to = {
            let mut state = self.state();
            let to = self.take_page(&mut state, unit, frontier);
            let first = (page % self.layout.pages * self.layout.slots) as usize;
            let from = &state.blocks[self.layout.block_of_page(page) as usize].blocks;
            let numbers: SmallVec<[u32; 4]> =
                from[first..first + self.layout.slots as usize].into();
            let to_block = self.layout.block_of_page(to) as usize;
            state.blocks[to_block].blocks.extend_from_slice(&numbers);
            to
        };
        let (from_ppa, to_ppa) = (self.layout.ppa(page), self.layout.ppa(to));
        self.nand.copyback(from_ppa, to_ppa, self.tag(to, frontier), class).await;
        let mut state = self.state();
        state.counts.copybacks += 1;
        for (slot, number) in self.live_slots(&state, page) {
            let to_slot = to * self.layout.slots + slot % self.layout.slots;
            state.map.set(number, to_slot);
            self.kill(&mut state, slot, 0);
            state.blocks[self.layout.block_of_page(to) as usize].live += 1;
            state.counts.moved_blocks += 1;
        }
        self.land(&mut state, to, unit, frontier);
    }

    /// Closes the collector's page and waits until all of its frontier has landed.
    async fn copies_landed(&self, unit: u32) {
        {
            let mut state = self.state();
            let frontier = self.collector();
            if state.units[unit as usize].frontiers[frontier].open.is_some() {
                self.close_page(&mut state, unit, frontier);
            }
            let at = &mut state.units[unit as usize].frontiers[frontier];
            let Some((last, _)) = at.unlanded.back() else { return };
            at.waiter = Some((*last, clock::current()));
        }
        clock::park(Rank::Free, Stage::Gc).await;
    }

    /// Waits for the pages that hold newer versions of what was in `victim`, be it by now in a page
    /// of the collector: a loss of power leaves one of them.
    async fn superseding_pages_landed(&self, unit: u32, victim: u32) {
        {
            let mut state = self.state();
            let of_copies = state.units[unit as usize].died_on_the_way;
            let ticket = state.blocks[victim as usize].superseded.max(of_copies);
            if state.tickets.have_landed(ticket) {
                return;
            }
            if ticket == state.tickets.last() {
                self.close_host_page(&mut state);
            }
            state.tickets.wake_when_landed(ticket, clock::current());
        }
        clock::park(Rank::Free, Stage::Gc).await;
    }

    async fn last_reader_left(&self, victim: u32) {
        {
            let block = &mut self.state().blocks[victim as usize];
            assert!(block.live == 0, "nothing lives in a block that was cleaned");
            if block.pins == 0 {
                return;
            }
            block.last_reader = Some(clock::current());
        }
        clock::park(Rank::Free, Stage::Gc).await;
    }

    /// `victim` is erased.
    fn free(&self, state: &mut State, unit: u32, victim: u32, class: Class) {
        let block = &mut state.blocks[victim as usize];
        block.phase = Phase::Free;
        block.erases += 1;
        block.landed = 0;
        block.superseded = 0;
        block.blocks.clear();
        let of = &mut state.units[unit as usize];
        of.free.push(victim);
        of.claimed = self.layout.block_slots();
        if class == Class::Wear {
            of.since_wear = 0;
            state.counts.wear_moves += 1;
        } else {
            of.since_wear += 1;
            state.counts.victims += 1;
        }
    }
}

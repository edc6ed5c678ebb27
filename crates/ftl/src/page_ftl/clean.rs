//! Cleans a block of flash: moves its live data to another block of its unit, then erases it.
//!
//! 1. A unit's task starts when its free blocks run low. It runs until there are enough of them, or
//!    no block is worth cleaning.
//! 2. It reads pages with live data and adds the live data to the collector's open page; or it
//!    copies whole pages within the plane.
//! 3. It waits until the copies and the hosts' overwrites of the other data have landed, and the
//!    last reader has left. Then it erases the block, or marks it as bad if it has failed.
//! 4. What can no longer be read is copied as lost.

use crate::page_ftl::block::{Block, Phase};
use crate::page_ftl::layout::NONE;
use crate::page_ftl::open_page::OpenPage;
use crate::page_ftl::spare::Spare;
use crate::page_ftl::state::State;
use crate::page_ftl::unit::HOST;
use crate::page_ftl::{Frontier, GcBlocking, PageFtl, RESERVED_BLOCKS};
use base::limits::BLOCK_BYTES;
use clock::{Class, Rank, Stage};
use media::{Candidate, Page};
use nand::CopyError;
use smallvec::SmallVec;

impl PageFtl {
    /// Starts the cleaning of units with few free blocks.
    pub(crate) fn clean_where_low(&self, state: &mut State) {
        for unit in 0..self.layout.units {
            if !state.units[unit as usize].barren {
                self.clean_when_low(state, unit);
            }
        }
    }

    #[inline]
    pub(crate) fn clean_when_low(&self, state: &mut State, unit: u32) {
        let of = &state.units[unit as usize];
        if of.free.len() <= self.config.gc_free_blocks.max(1) as usize {
            self.start_cleaning(state, unit);
        }
    }

    /// Starts the task that cleans in `unit`, unless it runs already.
    pub(crate) fn start_cleaning(&self, state: &mut State, unit: u32) {
        let of = &mut state.units[unit as usize];
        if of.cleaning || state.exhausted {
            return;
        }
        of.cleaning = true;
        of.barren = false;
        let ftl = self.me();
        clock::spawn(async move { ftl.clean_unit(unit).await });
    }

    /// Restarts cleaning of a unit that had no block worth it, after data of `block` died or its
    /// last page landed.
    pub(crate) fn reconsider(&self, state: &mut State, block: u32) {
        let unit = self.layout.unit_of(block);
        if self.candidate(state, unit, block).is_some_and(|candidate| candidate.is_worth) {
            state.units[unit as usize].barren = false;
            self.clean_when_low(state, unit);
        }
    }

    async fn clean_unit(&self, unit: u32) {
        let mut fruitless = 0;
        while let Some(victim) = self.choose_victim(unit, &mut fruitless) {
            let mut is_clean = self.clean(unit, victim, Class::Gc).await;
            if let Some(cold) = self.choose_cold(unit).filter(|_| is_clean) {
                is_clean = self.clean(unit, cold, Class::Wear).await;
            }
            if !is_clean {
                let mut state = self.state();
                state.units[unit as usize].barren = true;
                Self::stop_cleaning(&mut state, unit);
                return;
            }
        }
    }

    fn stop_cleaning(state: &mut State, unit: u32) {
        let of = &mut state.units[unit as usize];
        of.promotion.want(false);
        of.cleaning = false;
        state.settle();
    }

    /// Returns the next victim of a unit; without one, ends the unit's task. `fruitless` counts
    /// consecutive victims that won too little.
    fn choose_victim(&self, unit: u32, fruitless: &mut u32) -> Option<u32> {
        let mut state = self.state();
        let free = state.units[unit as usize].free.len();
        state.units[unit as usize].promotion.want(free <= RESERVED_BLOCKS);
        let mut chosen = self.choose_doomed(&state, unit);
        if chosen.is_none() && free <= self.config.gc_free_blocks.max(1) as usize {
            let mut candidates = std::mem::take(&mut state.candidates);
            let blocks = self.layout.blocks_of(unit);
            candidates.extend(blocks.filter_map(|block| self.candidate(&state, unit, block)));
            let now = state.sequence;
            chosen = self.config.victims.choose(&candidates, now, fruitless, &mut state.rng);
            candidates.clear();
            state.candidates = candidates;
            state.units[unit as usize].barren = chosen.is_none();
        }
        if chosen.is_none() {
            Self::stop_cleaning(&mut state, unit);
        }
        chosen
    }

    /// Returns a failed block of `unit`, if the unit still has a free block after moving its data.
    fn choose_doomed(&self, state: &State, unit: u32) -> Option<u32> {
        if state.exhausted {
            return None;
        }
        let room = state.units[unit as usize].room(self.collector(), self.layout.pages);
        let has_room =
            |live: u32| live == 0 || self.layout.pages_for(live) + self.layout.pages <= room;
        let mut blocks = self.layout.blocks_of(unit);
        blocks.find(|number| {
            let Block { phase, live, landed, doomed, .. } = state.blocks[*number as usize];
            doomed && phase == Phase::Full && landed == self.layout.pages && has_room(live)
        })
    }

    /// Checks whether a full block of `unit` can be a victim: its copies must have room. Returns
    /// the block and whether cleaning it wins enough.
    #[inline]
    fn candidate(&self, state: &State, unit: u32, number: u32) -> Option<Candidate> {
        let Block { phase, live, landed, born, doomed, .. } = state.blocks[number as usize];
        if phase != Phase::Full || landed < self.layout.pages || doomed || state.exhausted {
            return None;
        }
        let of = &state.units[unit as usize];
        let in_need = of.free.len() <= RESERVED_BLOCKS;
        let worth = if in_need { self.layout.slots } else { state.worth };
        let slots = self.layout.block_slots();
        let room = of.room(self.collector(), self.layout.pages);
        let (is_worth, written) = (live + worth <= slots, slots.into());
        let candidate = Candidate { id: number, born, live: live.into(), written, is_worth };
        (self.layout.pages_for(live) <= room).then_some(candidate)
    }

    /// Returns the frontier that the collector writes to.
    pub(crate) const fn collector(&self) -> usize {
        match self.config.frontier {
            Frontier::Own => HOST + 1,
            Frontier::Shared => HOST,
        }
    }

    /// Returns false when there was no room for all live data of `victim`.
    async fn clean(&self, unit: u32, victim: u32, class: Class) -> bool {
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
        let is_moved = self.move_all(unit, victim, whole_pages, class).await;
        let has_landed = self.copies_landed(unit).await;
        let is_clean = is_moved && has_landed && self.superseding_pages_landed(unit, victim).await;
        let mut is_good = false;
        if is_clean {
            self.last_reader_left(victim).await;
            is_good = self.erase(victim, class).await;
        }
        let mut state = self.state();
        match (is_clean, is_good) {
            (false, _) => {
                state.blocks[victim as usize].phase = Phase::Full;
                state.units[unit as usize].claimed = self.layout.block_slots();
            }
            (true, true) => self.free(&mut state, unit, victim, class),
            (true, false) => self.drop_bad(&mut state, unit, victim),
        }
        self.unblock(&mut state, unit);
        self.hand_turn_on();
        drop(gate);
        state.wake_waiters();
        is_clean
    }

    /// Erases `victim`, or marks it as bad if it has failed or fails now. Returns true when it is
    /// erased.
    async fn erase(&self, victim: u32, class: Class) -> bool {
        let id = self.layout.block_id(victim);
        let is_doomed = self.state().blocks[victim as usize].doomed;
        let is_erased = !is_doomed && self.nand.erase(id, class).await.is_ok();
        if !is_erased {
            // Without power for the mark, the next start tries again.
            self.nand.retire(id, class).await.unwrap_or_default();
        }
        is_erased
    }

    /// Moves all live data of `victim`. Returns false when there is no room for it.
    async fn move_all(&self, unit: u32, victim: u32, whole_pages: bool, class: Class) -> bool {
        for page in victim * self.layout.pages..(victim + 1) * self.layout.pages {
            let live = self.live_slots(&self.state(), page);
            let is_moved = match (live.is_empty(), whole_pages) {
                (true, _) => true,
                (false, true) => self.copy_page(unit, page, class).await,
                (false, false) => self.move_slots(unit, page, &live, class).await,
            };
            if !is_moved {
                return false;
            }
        }
        true
    }

    /// True when whole-page copies have room and either free pages or need not. After a loss of
    /// power the collector's block can be half used, with less room than the live pages take.
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

    /// Returns the live slots of `page` with their logical blocks.
    pub(crate) fn live_slots(&self, state: &State, page: u32) -> SmallVec<[(u32, u32); 4]> {
        let block = &state.blocks[self.layout.block_of_page(page) as usize];
        let (first, slots) = (page % self.layout.pages * self.layout.slots, self.layout.slots);
        let rest = &block.blocks[first as usize..];
        // Prefetches map entries of the next few pages.
        rest.iter().skip(4 * slots as usize).take(slots as usize).for_each(|number| {
            state.map.prefetch(*number);
        });
        let numbers = rest[..slots as usize].iter().copied();
        let slots = (page * self.layout.slots..).zip(numbers);
        slots.filter(|(slot, number)| *number != NONE && state.map.get(*number) == *slot).collect()
    }

    /// Moves live data of a page through the controller. Returns false when there is no room for
    /// it.
    async fn move_slots(&self, unit: u32, page: u32, live: &[(u32, u32)], class: Class) -> bool {
        let ppa = self.layout.ppa(page);
        let slots = u32::try_from(live.len()).expect("a page has few slots");
        let content = self.nand.read(ppa, &|_| slots * BLOCK_BYTES, class).await.ok();
        let mut state = self.state();
        if content.is_none() {
            self.doom(&mut state, self.layout.block_of_page(page));
        }
        self.place_copies(&mut state, unit, live, content.as_ref())
    }

    /// Puts live data of a page into pages of the collector; without `content` it is lost. Returns
    /// false when there is no room for it.
    fn place_copies(
        &self,
        state: &mut State,
        unit: u32,
        live: &[(u32, u32)],
        content: Option<&Page>,
    ) -> bool {
        let frontier = self.collector();
        let spare = content.and_then(|page| Spare::decode(page.spare(), self.layout.slots));
        for (slot, number) in live {
            if state.map.get(*number) != *slot {
                continue;
            }
            let within = slot % self.layout.slots;
            let Some(open) = self.open_page(state, unit, frontier) else { return false };
            let known = content.zip(spare.as_ref());
            if !known.is_some_and(|(page, spare)| open.copy(page, spare, within)) {
                open.lose();
            }
            let of = &mut state.units[unit as usize];
            of.claimed = of.claimed.saturating_sub(1);
            state.counts.moved_blocks += 1;
            self.place(state, unit, frontier, *number);
        }
        true
    }

    /// Copies a page to the next one of the collector's frontier by copyback. Returns false when
    /// there is none.
    async fn copy_page(&self, unit: u32, page: u32, class: Class) -> bool {
        let frontier = self.collector();
        let is_moved = loop {
            let Some(to) = self.take_copy(unit, page) else { return false };
            let (from_ppa, to_ppa) = (self.layout.ppa(page), self.layout.ppa(to));
            let copied = self.nand.copyback(from_ppa, to_ppa, self.tag(to, frontier), class).await;
            let mut state = self.state();
            match copied {
                Ok(()) => {
                    self.end_copy(&mut state, unit, page, to);
                    return true;
                }
                Err(CopyError::Uncorrectable) => {
                    let is_moved = self.replace_copy(&mut state, unit, page, to);
                    drop(state);
                    break is_moved;
                }
                Err(CopyError::Failed) => {
                    self.doom(&mut state, self.layout.block_of_page(to));
                    self.land(&mut state, to, unit, frontier);
                }
                Err(CopyError::PowerLost) => return false,
            }
        };
        self.copies_landed(unit).await && is_moved
    }

    /// Handles a failed copy of `page` to `to`, which is still blank: writes `to` through the
    /// controller, with lost blocks marked.
    fn replace_copy(&self, state: &mut State, unit: u32, page: u32, to: u32) -> bool {
        self.doom(state, self.layout.block_of_page(page));
        let block = &mut state.blocks[self.layout.block_of_page(to) as usize];
        block.blocks.truncate((to % self.layout.pages * self.layout.slots) as usize);
        let live = self.live_slots(state, page);
        let at = &mut state.units[unit as usize].frontiers[self.collector()];
        at.open = Some(OpenPage::new(to));
        self.place_copies(state, unit, &live, None)
    }

    /// Takes the target of the copy of `page` and notes its slots.
    fn take_copy(&self, unit: u32, page: u32) -> Option<u32> {
        let mut state = self.state();
        let to = self.take_page(&mut state, unit, self.collector())?;
        let first = (page % self.layout.pages * self.layout.slots) as usize;
        let from = &state.blocks[self.layout.block_of_page(page) as usize];
        let numbers: SmallVec<[u32; 4]> =
            from.blocks[first..first + self.layout.slots as usize].into();
        let sequence = from.sequences.get((page % self.layout.pages) as usize).copied();
        let block = &mut state.blocks[self.layout.block_of_page(to) as usize];
        block.blocks.extend_from_slice(&numbers);
        block.sequences.resize((to % self.layout.pages) as usize, 0);
        block.sequences.push(sequence.unwrap_or(0));
        Some(to)
    }

    /// Ends the copy of `page` to `to`.
    fn end_copy(&self, state: &mut State, unit: u32, page: u32, to: u32) {
        state.counts.copybacks += 1;
        for (slot, number) in self.live_slots(state, page) {
            let to_slot = to * self.layout.slots + slot % self.layout.slots;
            state.map.set(number, to_slot);
            self.kill(state, slot, 0);
            state.blocks[self.layout.block_of_page(to) as usize].live += 1;
            state.counts.moved_blocks += 1;
        }
        state.units[unit as usize].note_unnamed(to);
        self.land(state, to, unit, self.collector());
    }

    /// Closes the collector's page and waits until all pages of its frontier have landed. Returns
    /// false when some never will.
    async fn copies_landed(&self, unit: u32) -> bool {
        if self.has_copies(unit) {
            clock::park(Rank::Free, Stage::Gc).await;
        }
        while self.has_rescues(unit) {
            clock::park(Rank::Free, Stage::Gc).await;
        }
        self.state().units[unit as usize].rescues == 0
    }

    /// Closes the collector's page. Returns true when some pages are in flight; the last one that
    /// lands wakes the current task.
    fn has_copies(&self, unit: u32) -> bool {
        let mut state = self.state();
        let frontier = self.collector();
        if state.units[unit as usize].frontiers[frontier].open.is_some() {
            self.close_page(&mut state, unit, frontier);
        }
        let at = &mut state.units[unit as usize].frontiers[frontier];
        let last = at.unlanded.back().map(|(last, _)| *last);
        at.waiter = last.map(|last| (last, clock::current()));
        last.is_some()
    }

    /// True when failed pages of the collector may still land elsewhere; then the last one wakes
    /// the current task.
    fn has_rescues(&self, unit: u32) -> bool {
        let mut state = self.state();
        let waits = state.units[unit as usize].rescues > 0 && !state.exhausted;
        if waits {
            state.units[unit as usize].rescue_waiter = Some(clock::current());
        }
        waits
    }

    /// Waits for the pages with newer versions of data in `victim`, even those of the collector:
    /// one version must survive a loss of power. Returns false when they never land.
    async fn superseding_pages_landed(&self, unit: u32, victim: u32) -> bool {
        let ticket = {
            let mut state = self.state();
            let of_copies = state.units[unit as usize].died_on_the_way;
            let ticket = state.blocks[victim as usize].superseded.max(of_copies);
            if state.tickets.have_landed(ticket) {
                return true;
            }
            if state.exhausted {
                return false;
            }
            if ticket == state.tickets.last() {
                self.close_host_page(&mut state);
            }
            state.tickets.wake_when_landed(ticket, clock::current());
            ticket
        };
        clock::park(Rank::Free, Stage::Gc).await;
        self.state().tickets.have_landed(ticket)
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

    /// Takes `victim` out of use after it was marked as bad.
    fn drop_bad(&self, state: &mut State, unit: u32, victim: u32) {
        let block = &mut state.blocks[victim as usize];
        block.phase = Phase::Bad;
        block.blocks = Vec::new();
        block.sequences = Vec::new();
        state.units[unit as usize].claimed = self.layout.block_slots();
        state.counts.retired_blocks += 1;
        self.count_capacity(state);
    }

    /// Frees the erased `victim`.
    fn free(&self, state: &mut State, unit: u32, victim: u32, class: Class) {
        let block = &mut state.blocks[victim as usize];
        block.phase = Phase::Free;
        block.erases += 1;
        block.landed = 0;
        block.superseded = 0;
        block.blocks.clear();
        block.sequences.clear();
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

//! Moves the data of a page whose program failed to another page, and gives up the failed block of
//! flash.

use crate::page_ftl::block::Phase;
use crate::page_ftl::debt::{Debt, Owed};
use crate::page_ftl::layout::NONE;
use crate::page_ftl::open_page::OpenPage;
use crate::page_ftl::spare::Spare;
use crate::page_ftl::state::State;
use crate::page_ftl::unit::HOST;
use crate::page_ftl::{GcBlocking, PageFtl};
use base::Nanos;
use media::Page;
use std::collections::BTreeSet;
use std::sync::Arc;

impl PageFtl {
    /// Finishes a page, closed at `closed_at`, whose data is all on the flash.
    pub(crate) fn finish(state: &mut State, owed: Owed, closed_at: Nanos) {
        if owed.host_slots > 0 {
            state.credit.give_back(owed.host_slots);
            state.tickets.land(owed.ticket);
        }
        if let Some(landing) = owed.landing {
            landing.land(closed_at, clock::stages(), true);
        }
        if let Some(unit) = owed.waits {
            state.units[unit as usize].end_rescue();
        }
        for debt in owed.debts {
            if let Some(owed) = debt.pay() {
                Self::finish(state, owed, closed_at);
            }
        }
    }

    /// Moves live data of `page`, closed at `closed_at`, to other pages after its program failed.
    pub(crate) fn rescue(
        &self,
        state: &mut State,
        (page, content): (u32, &Page),
        owed: Owed,
        closed_at: Nanos,
    ) {
        state.stranded.insert(page, content.clone());
        let debt = Arc::new(Debt::new(owed));
        self.wait_for_heirs(state, page, content, &debt);
        if self.move_stranded(state, page, content, &debt).is_some() {
            state.stranded.remove(&page);
            if let Some(owed) = debt.pay() {
                Self::finish(state, owed, closed_at);
            }
            return;
        }
        Self::exhaust(state);
        Self::default_on(state, &debt, closed_at);
    }

    /// Gives up what `debt` owes, and all that waits for it.
    fn default_on(state: &mut State, debt: &Debt, closed_at: Nanos) {
        let Some(owed) = debt.default_on() else { return };
        state.credit.give_back(owed.host_slots);
        if let Some(landing) = owed.landing {
            landing.land(closed_at, clock::stages(), false);
        }
        for debt in owed.debts {
            Self::default_on(state, &debt, closed_at);
        }
    }

    /// What is dead in a page that failed has newer versions in others. As long as one of these is
    /// on its way neither is on the flash, so that the writer of the older waits for it too.
    fn wait_for_heirs(&self, state: &mut State, page: u32, content: &Page, debt: &Arc<Debt>) {
        let spare = Spare::decode(content.spare(), self.layout.slots);
        let numbers = spare.expect("it was made so").blocks.into_iter();
        let held = (page * self.layout.slots..).zip(numbers).filter(|(_, of)| *of != NONE);
        let newer = held.map(|(slot, number)| (slot, state.map.get(number)));
        let newer = newer.filter(|(slot, newer)| newer != slot && *newer != NONE);
        let heirs: BTreeSet<u32> = newer.map(|(_, newer)| newer / self.layout.slots).collect();
        for heir in heirs.into_iter().filter(|heir| *heir != page) {
            let unit = &state.units[self.layout.unit_of(self.layout.block_of_page(heir)) as usize];
            if unit.frontiers.iter().any(|frontier| frontier.has_on_its_way(heir)) {
                debt.add_page();
                state.heirs.entry(heir).or_default().push(debt.clone());
            }
        }
    }

    /// Moves live data of a failed page to other pages and closes these. `None` when there are
    /// none.
    fn move_stranded(
        &self,
        state: &mut State,
        page: u32,
        content: &Page,
        debt: &Arc<Debt>,
    ) -> Option<()> {
        let home = self.layout.unit_of(self.layout.block_of_page(page));
        let spare = Spare::decode(content.spare(), self.layout.slots);
        let spare = spare.expect("it was made so");
        let mut is_moved = Some(());
        for (slot, number) in self.live_slots(state, page) {
            let Some((unit, frontier)) = self.rescue_place(state, home) else {
                is_moved = None;
                break;
            };
            let within = slot % self.layout.slots;
            let open = self.open_page(state, unit, frontier).expect("the place has a page");
            let is_copied = open.copy(content, &spare, within);
            assert!(is_copied, "a page holds the data that was put into it");
            if !open.debts.iter().any(|of| Arc::ptr_eq(of, debt)) {
                debt.add_page();
                open.debts.push(debt.clone());
            }
            self.place(state, unit, frontier, number);
        }
        for unit in 0..self.layout.units {
            for frontier in 0..2 {
                let open = state.units[unit as usize].frontiers[frontier].open.as_ref();
                let is_of_debt =
                    |open: &OpenPage| open.debts.iter().any(|of| Arc::ptr_eq(of, debt));
                if open.is_some_and(is_of_debt) {
                    self.close_page(state, unit, frontier);
                }
            }
        }
        is_moved
    }

    /// Returns the place for a slot of a failed page: the hosts' frontier, otherwise any open page
    /// nearest to `home`, even one that the collector counts on.
    fn rescue_place(&self, state: &State, home: u32) -> Option<(u32, usize)> {
        if let Some(unit) = self.host_unit(state) {
            return Some((unit, HOST));
        }
        let near = (home..self.layout.units).chain(0..home);
        let mut places = near.flat_map(|unit| [(unit, self.collector()), (unit, HOST)]);
        places.find(|(unit, frontier)| {
            let of = &state.units[*unit as usize];
            let at = &of.frontiers[*frontier];
            let is_copied_to = self.config.blocking == GcBlocking::Plane && of.blocked > 0;
            let has_page =
                at.open.is_some() || at.left(self.layout.pages) > 0 || !of.free.is_empty();
            has_page && !is_copied_to
        })
    }

    /// Ends all writing and cleaning: no page is left.
    fn exhaust(state: &mut State) {
        state.exhausted = true;
        state.wake_waiters();
        state.credit.wake_all();
        state.tickets.give_up();
        for unit in &mut state.units {
            if let Some(task) = unit.rescue_waiter.take() {
                clock::wake(task);
            }
        }
    }

    /// Ends all writing to `block`. It is marked as bad once nothing lives in it.
    pub(crate) fn doom(&self, state: &mut State, number: u32) {
        let block = &mut state.blocks[number as usize];
        if block.doomed || block.phase == Phase::Bad {
            return;
        }
        block.doomed = true;
        let unit = self.layout.unit_of(number);
        if block.phase == Phase::Open {
            block.phase = Phase::Full;
            let frontiers = &mut state.units[unit as usize].frontiers;
            let at = frontiers.iter_mut().find(|frontier| frontier.block == number);
            let at = at.expect("a frontier fills an open block");
            block.end = at.taken;
            (at.block, at.taken) = (NONE, 0);
            self.complete(state, number);
        }
        self.count_capacity(state);
        self.start_cleaning(state, unit);
    }

    /// Checks whether all taken pages of `block` have landed, and notes it if so.
    pub(crate) fn complete(&self, state: &mut State, number: u32) -> bool {
        let block = &mut state.blocks[number as usize];
        if block.landed < block.end {
            return false;
        }
        block.landed = self.layout.pages;
        block.blocks.resize(self.layout.block_slots() as usize, NONE);
        true
    }

    /// Computes for how many logical blocks there is room: see [`Self::blocks_max`].
    pub(crate) fn count_capacity(&self, state: &mut State) {
        let live_max = u64::from((self.layout.pages - 1) * self.layout.slots);
        let of_unit = |unit| {
            let blocks = self.layout.blocks_of(unit).map(|block| &state.blocks[block as usize]);
            let good = blocks.filter(|block| block.phase != Phase::Bad && !block.doomed);
            (good.count() as u64).saturating_sub(2) * live_max
        };
        state.capacity = (0..self.layout.units).map(of_unit).sum();
        if state.is_full(0) {
            state.wake_waiters();
        }
    }
}

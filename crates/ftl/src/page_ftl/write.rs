//! From a host's data to the open page.

use crate::page_ftl::landing::{Landing, landed};
use crate::page_ftl::layout::NONE;
use crate::page_ftl::open_page::OpenPage;
use crate::page_ftl::pieces::Pieces;
use crate::page_ftl::state::State;
use crate::page_ftl::unit::HOST;
use crate::page_ftl::{Frontier, PageFtl, RESERVED_BLOCKS, WriteAck};
use clock::{Rank, Stage};
use media::{Error, Segments};
use smallvec::SmallVec;
use std::sync::Arc;

/// A write whose data joins open pages.
struct Write {
    next: u32,
    end: u32,
    pieces: Pieces,
    /// Pages whose landing it waits for.
    pages: SmallVec<[Arc<Landing>; 2]>,
}

impl PageFtl {
    pub(crate) async fn write_blocks(
        &self,
        first: u32,
        count: u32,
        data: Segments,
    ) -> Result<(), Error> {
        let (pieces, pages) = (Pieces::new(data), SmallVec::new());
        let mut write = Write { next: first, end: first + count, pieces, pages };
        while let Some(wait) = self.join(&mut write)? {
            clock::park(Rank::Credit, wait).await;
        }
        if landed(&write.pages).await { Ok(()) } else { Err(Error::ReadOnly) }
    }

    /// Puts as much of a write into pages as there is room for. Returns the stage to wait in before
    /// the rest. Fails when no operation will free more room.
    fn join(&self, write: &mut Write) -> Result<Option<Stage>, Error> {
        let mut state = self.state();
        while write.next < write.end {
            if state.is_full(u64::from(state.map.get(write.next) == NONE)) {
                self.close_joined(&mut state);
                return Err(Error::ReadOnly);
            }
            let Some(unit) = self.host_unit(&state) else {
                self.clean_where_low(&mut state);
                if state.is_still() {
                    return Err(Error::ReadOnly);
                }
                state.waiters.push(clock::current());
                return Ok(Some(Stage::Gc));
            };
            if !state.credit.take() {
                state.credit.wait(clock::current());
                self.relieve_credit(&mut state);
                return Ok(Some(Stage::Queue));
            }
            self.join_unit(&mut state, unit, write);
        }
        self.close_joined(&mut state);
        Ok(None)
    }

    /// Has the open page closed if a write that has joined it must not wait for others.
    fn close_joined(&self, state: &mut State) {
        match self.config.ack {
            WriteAck::Program => self.close_soon(state),
            WriteAck::Buffer { .. } => self.relieve_credit(state),
        }
    }

    /// Puts the next logical block of a write into the open page of `unit`.
    #[inline]
    fn join_unit(&self, state: &mut State, unit: u32, write: &mut Write) {
        state.host = unit;
        self.open_page(state, unit, HOST).expect("the unit was chosen for its room");
        let State { units, tickets, counts, .. } = state;
        let open = units[unit as usize].frontiers[HOST].open.as_mut().expect("opened above");
        if open.ticket == 0 {
            open.ticket = tickets.issue();
        }
        open.host_slots += 1;
        counts.host_blocks += 1;
        if self.config.ack == WriteAck::Program {
            let landing = open.landing.get_or_insert_default();
            if !write.pages.last().is_some_and(|last| Arc::ptr_eq(last, landing)) {
                write.pages.push(landing.clone());
            }
        }
        open.write(&mut write.pieces);
        self.place(state, unit, HOST, write.next);
        write.next += 1;
    }

    /// Gives the next slot of the open page, whose data was added, to a logical block. Closes the
    /// page when it is full.
    #[inline]
    pub(crate) fn place(&self, state: &mut State, unit: u32, frontier: usize, number: u32) {
        let open = state.units[unit as usize].frontiers[frontier].open.as_mut();
        let open = open.expect("a page is open where something is placed");
        let slot = open.page * self.layout.slots + open.filled;
        open.filled += 1;
        let (is_full, ticket) = (open.filled == self.layout.slots, open.ticket);
        let block = &mut state.blocks[self.layout.block_of_slot(slot) as usize];
        block.live += 1;
        block.blocks.push(number);
        let before = state.map.set(number, slot);
        if before == NONE {
            state.live += 1;
        } else {
            self.kill(state, before, ticket);
        }
        if is_full {
            self.close_page(state, unit, frontier);
        }
    }

    /// Counts what is in `slot` as dead. `ticket` is that of the page with its successor.
    #[inline]
    pub(crate) fn kill(&self, state: &mut State, slot: u32, ticket: u64) {
        let number = self.layout.block_of_slot(slot);
        let block = &mut state.blocks[number as usize];
        block.live -= 1;
        block.superseded = block.superseded.max(ticket);
        let unit = self.layout.unit_of(number);
        if state.units[unit as usize].barren {
            self.reconsider(state, number);
        }
    }

    /// Returns the unit whose open page hosts write to: the present one until its page is full,
    /// then the next that has room.
    #[inline]
    pub(crate) fn host_unit(&self, state: &State) -> Option<u32> {
        let open = &state.units[state.host as usize].frontiers[HOST].open;
        if open.as_ref().is_some_and(|open| open.host_slots > 0) {
            return Some(state.host);
        }
        let units = self.layout.units;
        let after = (state.host + 1..units).chain(0..=state.host);
        after.into_iter().find(|unit| self.takes_host_page(state, *unit))
    }

    /// True when hosts may write to a page of `unit` and the collector still has room.
    #[inline]
    fn takes_host_page(&self, state: &State, unit: u32) -> bool {
        let unit = &state.units[unit as usize];
        if unit.blocked > 0 {
            return false;
        }
        let pages = self.layout.pages;
        match self.config.frontier {
            Frontier::Own => {
                unit.frontiers[HOST].left(pages) > 0 || unit.free.len() > RESERVED_BLOCKS
            }
            Frontier::Shared => {
                let claimed = self.layout.pages_for(unit.claimed);
                let opened = u32::from(unit.frontiers[HOST].open.is_none());
                unit.room(HOST, pages) >= claimed + opened
            }
        }
    }

    /// Returns the open page of a frontier. Opens its next page if none is open, in a new block if
    /// need be. `None` when there is no such block.
    #[inline]
    pub(crate) fn open_page<'s>(
        &self,
        state: &'s mut State,
        unit: u32,
        frontier: usize,
    ) -> Option<&'s mut OpenPage> {
        if state.units[unit as usize].frontiers[frontier].open.is_none() {
            let page = self.take_page(state, unit, frontier)?;
            state.units[unit as usize].frontiers[frontier].open = Some(OpenPage::new(page));
        }
        state.units[unit as usize].frontiers[frontier].open.as_mut()
    }

    /// Closes the open page when a task waits for credit and nothing under way will give it back.
    fn relieve_credit(&self, state: &mut State) {
        if state.credit.is_wanted() {
            let open = state.units[state.host as usize].frontiers[HOST].open.as_ref();
            let open_slots = open.map_or(0, |open| open.host_slots);
            if state.credit.taken() == u64::from(open_slots) {
                self.close_host_page(state);
            }
        }
    }

    /// Closes the page that hosts are filling, if there is one.
    pub(crate) fn close_host_page(&self, state: &mut State) {
        let open = &state.units[state.host as usize].frontiers[HOST].open;
        if open.as_ref().is_some_and(|open| open.host_slots > 0) {
            self.close_page(state, state.host, HOST);
        }
    }

    /// Has the page that hosts are filling closed after the tasks that are ready now.
    fn close_soon(&self, state: &mut State) {
        let open = state.units[state.host as usize].frontiers[HOST].open.as_mut();
        let Some(open) = open.filter(|open| open.host_slots > 0 && !open.closes) else { return };
        open.closes = true;
        let (ftl, ticket) = (self.me(), open.ticket);
        clock::spawn(async move {
            let mut state = ftl.state();
            let open = state.units[state.host as usize].frontiers[HOST].open.as_ref();
            if open.is_some_and(|open| open.ticket == ticket) {
                ftl.close_host_page(&mut state);
            }
        });
    }
}

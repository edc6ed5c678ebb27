//! When to clean, and what to tell those who wait for space.

use crate::error::Error;
use crate::extent::Extent;
use crate::log::RESERVED_EXTENTS;
use crate::record::{Kind, Sequence};
use crate::store::{Ack, Store};
use base::Rng;
use clock::{Rank, Stage, TaskId};
use media::{Candidate, ExtentId, Victims};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An extent is cleaned ahead of need when an eighth of it is dead, as FEMU has it (its unforced
/// collection passes over lines with less than that invalid).
const WORTH_CLEANING: u64 = 8;

/// The state of cleaning.
#[derive(Debug)]
pub(crate) struct Cleaner(Mutex<State>);

#[derive(Debug)]
struct State {
    /// The cleaner's task while it has nothing to do.
    idle: Option<TaskId>,
    /// Stores that wait for space, and what they are told when they are woken.
    waiters: VecDeque<TaskId>,
    full: bool,
    rng: Rng,
}

impl Cleaner {
    pub(crate) fn new(seed: u64) -> Self {
        let rng = Rng::fork(seed, 0x636C_6561_6E65_7221);
        Self(Mutex::new(State { idle: None, waiters: VecDeque::new(), full: false, rng }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        if let Some(task) = self.state().idle.take() {
            clock::wake(task);
        }
    }

    /// Lets everybody who waits for space look again, or fail.
    fn release(&self, full: bool) {
        let mut state = self.state();
        state.full = full;
        for waiter in state.waiters.drain(..) {
            clock::wake(waiter);
        }
    }
}

impl Store {
    /// Free extents below which cleaning goes on: the reserve, and some for hosts to write
    /// meanwhile.
    fn extents_low(&self) -> u32 {
        RESERVED_EXTENTS + (self.log.shape.extents / 64).max(1)
    }

    #[inline]
    pub(crate) fn wake_cleaner_when_low(&self) {
        if self.log.media.free_extents() <= self.extents_low() {
            self.cleaner.wake();
        }
    }

    /// Waits for an extent to become free for a record of this kind; an error when cleaning cannot
    /// free one.
    pub(crate) async fn cleaner_makes_room(&self, kind: Kind) -> Result<(), Error> {
        self.cleaner.wake();
        self.cleaner.state().waiters.push_back(clock::current());
        clock::park(Rank::Credit, Stage::Gc).await;
        let short = self.log.shortage(Ack::Program, kind, 0).is_some();
        if self.cleaner.state().full && short {
            return Err(Error::CapacityExceeded);
        }
        Ok(())
    }

    /// The background task of a store.
    pub(crate) async fn clean_forever(self: Arc<Self>) {
        let mut round = Round::first(self.log.state().sequence);
        let promotion = self.config.group.promotion();
        loop {
            let free = self.log.media.free_extents();
            promotion.want(free <= RESERVED_EXTENTS);
            if free > RESERVED_EXTENTS {
                round = Round::first(self.log.state().sequence);
                self.cleaner.release(false);
            }
            let hosts_wait = !self.cleaner.state().waiters.is_empty();
            let goes_on = match self.choose_victim(free, round) {
                Some(victim) => self.clean(victim).await.is_ok(),
                None if hosts_wait && self.wait_for_landings().await => true,
                None => hosts_wait && round.next(self.log.state().sequence),
            };
            if !goes_on {
                self.cleaner.release(true);
                let rested = self.log.state().sequence;
                self.cleaner.state().idle = Some(clock::current());
                clock::park(Rank::Free, Stage::Gc).await;
                // What was written since may have left something to win.
                let now = self.log.state().sequence;
                if now > rested {
                    round = Round::first(now);
                }
            }
        }
    }

    /// Extents whose last pages are on their way cannot be cleaned before those land. False when
    /// none are.
    async fn wait_for_landings(self: &Arc<Self>) -> bool {
        let pages = self.log.close_all();
        // A program that failed is the business of whoever waits for its records.
        let _ = crate::pending::durable(&pages).await;
        !pages.is_empty()
    }

    /// A victim, if extents are running out and there is something to win.
    fn choose_victim(&self, free: u32, round: Round) -> Option<ExtentId> {
        if free > self.extents_low() {
            return None;
        }
        let page_bytes = self.log.shape.page_bytes;
        let extent_bytes = self.log.shape.extent_bytes();
        let forced = free <= RESERVED_EXTENTS;
        let worth = if forced { u64::from(page_bytes) } else { extent_bytes / WORTH_CLEANING };
        let state = self.log.state();
        let of_round = || state.extents.iter().filter(|(_, extent)| round.is_for(extent));
        let spare = extent_bytes * u64::from(self.log.shape.extents);
        let spare = spare.saturating_sub(self.config.capacity_bytes);
        if free >= RESERVED_EXTENTS && state.tombstones.bytes > spare / 4 {
            // Tombstones go when every extent older than they are has been reset.
            let cleanable = of_round().filter(|(_, extent)| extent.is_cleanable());
            return cleanable.min_by_key(|(_, extent)| extent.label.epoch).map(|(id, _)| id);
        }
        let candidate = |(id, extent)| candidate(id, extent, page_bytes, worth);
        let candidates: Vec<Candidate> = of_round().filter_map(candidate).collect();
        let now = state.sequence.0;
        drop(state);
        // On the reserve, what takes least of it.
        let victims = if free < RESERVED_EXTENTS { Victims::Greedy } else { self.config.victims };
        victims.choose(&candidates, now, &mut self.cleaner.state().rng).map(ExtentId)
    }
}

/// `None` when there is too little to win: no more than `worth` dead bytes, and something alive.
fn candidate(id: ExtentId, extent: &Extent, page_bytes: u32, worth: u64) -> Option<Candidate> {
    let written = u64::from(extent.pages) * u64::from(page_bytes);
    let live = extent.live_bytes();
    let wins = live == 0 || live + worth < written;
    let born = extent.label.epoch;
    (extent.is_cleanable() && wins).then_some(Candidate { id: id.0, born, live, written })
}

/// Cleaning without winning an extent for hosts. Each extent is cleaned once in a round, and not
/// what the round itself has filled; so a round ends.
#[derive(Clone, Copy, Debug)]
struct Round {
    number: u32,
    began: Sequence,
}

impl Round {
    /// One moves everything; tombstones may need a second to get old enough, and a third to go.
    const MAX: u32 = 3;

    fn first(now: Sequence) -> Self {
        Self { number: 1, began: now }
    }

    /// Begins the next round; false when there have been enough to know that there is nothing to
    /// win.
    fn next(&mut self, now: Sequence) -> bool {
        self.number += 1;
        self.began = now;
        self.number <= Self::MAX
    }

    fn is_for(self, extent: &Extent) -> bool {
        Sequence(extent.label.epoch) <= self.began
    }
}

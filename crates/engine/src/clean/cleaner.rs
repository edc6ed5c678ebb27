//! The state of cleaning, and the tasks that wait for it.

use crate::clean::room_queue::{Place, RoomQueue};
use crate::extent::Extent;
use crate::format::record::Sequence;
use crate::sync::Apart;
use base::Rng;
use clock::{Group, Guard, Lock, Order, Promotion, Rank, Stage, TaskId};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Waiting stores that are woken at once when space is free. Each wakes the next one after it has
/// taken its space, so that not all of them search for space at the same time.
const TURNS: usize = 64;

/// The first state of a store's background tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begins {
    /// They look for work.
    AtWork,
    /// They rest, as the saved tasks did.
    Resting,
}

/// The state of cleaning.
#[derive(Debug)]
pub(crate) struct Cleaner {
    state: Apart<Lock<State>>,
    /// It was woken since it last began to look for work. It changes under the lock of the state.
    is_wanted: AtomicBool,
    /// The writers whose stores wait for space, by bit: a copy of the state for new stores to
    /// read.
    awaiting: AtomicU64,
    pub(crate) promotion: Promotion,
}

#[derive(Debug)]
pub(crate) struct State {
    /// The cleaner's task while it has nothing to do.
    idle: Option<TaskId>,
    /// Stores that wait for space.
    waiters: RoomQueue,
    /// Stores that waited when the cleaner found no space to free, and have not run since.
    refused: Vec<TaskId>,
    /// Stores that wait until expired values are cleaned away. They need capacity, not free
    /// extents, so they take no turn.
    pub(crate) expiry_waiters: Vec<TaskId>,
    /// A store waits until expired values are cleaned away, and some are left.
    pub(crate) wants_expired: bool,
    pub(crate) rng: Rng,
    pub(crate) round: Round,
    /// The log's sequence number when the task last had nothing to do.
    pub(crate) rested: Sequence,
    /// The cleaner takes no further victim.
    pub(crate) is_ending: bool,
    /// Tasks that wait for its end.
    enders: Vec<TaskId>,
}

/// A cleaner that has nothing to do, in a saved state.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SavedCleaner {
    wants_expired: bool,
    rng: Rng,
    round: Round,
    rested: Sequence,
    is_promoted: bool,
}

impl State {
    /// Returns whether a task waits for the cleaner.
    pub(crate) fn is_awaited(&self) -> bool {
        !self.waiters.is_empty() || !self.expiry_waiters.is_empty()
    }
}

impl Cleaner {
    pub(crate) fn new(seed: u64, group: Group) -> Self {
        let state = State {
            idle: None,
            waiters: RoomQueue::default(),
            refused: Vec::new(),
            expiry_waiters: Vec::new(),
            wants_expired: false,
            rng: Rng::fork(seed, 0x636C_6561_6E65_7221),
            round: Round::first(Sequence::default()),
            rested: Sequence::default(),
            is_ending: false,
            enders: Vec::new(),
        };
        Self {
            state: Apart(Lock::new(Order::Cleaner, state)),
            is_wanted: AtomicBool::new(false),
            awaiting: AtomicU64::new(0),
            promotion: group.promotion(),
        }
    }

    /// `None` while it is at work, or a task waits for it.
    pub(crate) fn save(&self) -> Option<SavedCleaner> {
        let state = self.state();
        let is_quiet = state.idle.is_some() && !state.is_awaited();
        is_quiet.then(|| SavedCleaner {
            wants_expired: state.wants_expired,
            rng: state.rng.clone(),
            round: state.round,
            rested: state.rested,
            is_promoted: self.promotion.is_wanted(),
        })
    }

    /// Restores what [`Self::save`] returned. The cleaner's task is about to rest.
    pub(crate) fn restore(&self, saved: SavedCleaner) {
        self.promotion.want(saved.is_promoted);
        let mut state = self.state();
        (state.wants_expired, state.rng) = (saved.wants_expired, saved.rng);
        (state.round, state.rested) = (saved.round, saved.rested);
    }

    #[track_caller]
    pub(crate) fn state(&self) -> Guard<'_, State> {
        self.state.lock()
    }

    /// Has the cleaner look for work, once more if it does already.
    pub(crate) fn wake(&self) {
        let mut state = self.state();
        self.is_wanted.store(true, Ordering::Release);
        if let Some(task) = state.idle.take() {
            clock::wake(task);
        }
    }

    /// Returns whether the cleaner was woken since it last began to look for work.
    #[inline]
    pub(crate) fn is_wanted(&self) -> bool {
        self.is_wanted.load(Ordering::Acquire)
    }

    /// Waits until the cleaner, which is the current task, is wanted.
    pub(crate) async fn rest(&self) {
        {
            let mut state = self.state();
            state.enders.drain(..).for_each(clock::wake);
            if self.is_wanted() && !state.is_ending {
                return;
            }
            state.idle = Some(clock::current());
        }
        clock::park(Rank::Free, Stage::Gc).await;
    }

    /// Begins a look for work. Returns false when the cleaner takes no further victim.
    pub(crate) fn look(&self) -> bool {
        let state = self.state();
        self.is_wanted.store(false, Ordering::Release);
        !state.is_ending
    }

    /// Returns the round, and whether a task waits for the cleaner.
    pub(crate) fn round(&self) -> (Round, bool) {
        let state = self.state();
        (state.round, state.is_awaited())
    }

    /// Lets the cleaner take no further victim, and waits until it rests.
    pub(crate) async fn end(&self) {
        {
            let mut state = self.state();
            state.is_ending = true;
            if state.idle.is_some() {
                return;
            }
            state.enders.push(clock::current());
        }
        clock::park(Rank::Free, Stage::Gc).await;
    }

    /// Wakes the first [`TURNS`] stores of a writer for each of so many free extents; its others
    /// follow one by one. `open` has the bits of the writers with an open extent.
    pub(crate) fn release(&self, extents: u32, open: u64) {
        let next = {
            let mut state = self.state();
            let next = state.waiters.next(extents, open, TURNS);
            self.note_waiters(&state);
            next
        };
        // Each store that is woken takes this lock first.
        next.into_iter().for_each(clock::wake);
    }

    /// Wakes all stores that wait for space: each fails if it finds none. Returns false and wakes
    /// none if the cleaner was woken since it began to look: there may be room by now, or a store
    /// that came later.
    pub(crate) fn refuse(&self, were_awaited: bool) -> bool {
        let mut state = self.state();
        let is_awaited_anew = self.is_wanted() || !were_awaited && state.is_awaited();
        if is_awaited_anew && !state.is_ending {
            return false;
        }
        let State { waiters, refused, .. } = &mut *state;
        let all = waiters.take_all();
        refused.extend(&all);
        self.note_waiters(&state);
        drop(state);
        all.into_iter().for_each(clock::wake);
        true
    }

    /// Returns whether a store of `writer` waits for space.
    #[inline]
    pub(crate) fn has_waiters(&self, writer: usize) -> bool {
        self.awaiting.load(Ordering::Relaxed) >> writer & 1 == 1
    }

    fn note_waiters(&self, state: &State) {
        self.awaiting.store(state.waiters.writers(), Ordering::Relaxed);
    }

    /// Wakes the next store of `writer` that waits for space.
    pub(crate) fn release_one(&self, writer: usize) {
        let next = {
            let mut state = self.state();
            let next = state.waiters.next_of(writer);
            self.note_waiters(&state);
            next
        };
        next.into_iter().for_each(clock::wake);
    }

    /// Puts the current task, a store of `writer`, into the queue of those that wait for space, if
    /// it `is_short` of it or has to queue behind others: not if it `had` a place before. Returns
    /// its place, and whether it waits there.
    pub(crate) fn queue(&self, writer: usize, had: Option<Place>, is_short: bool) -> (Place, bool) {
        let mut state = self.state();
        let queues_behind = had.is_none() && state.waiters.has_any_of(writer);
        if !is_short && !queues_behind {
            return (had.unwrap_or_else(|| state.waiters.last()), false);
        }
        let place = state.waiters.add(writer, clock::current(), had);
        self.note_waiters(&state);
        (place, true)
    }

    /// Returns whether the current task, which has waited for space, was woken because the cleaner
    /// found none to free.
    pub(crate) fn was_refused(&self) -> bool {
        let (mut state, task) = (self.state(), clock::current());
        let at = state.refused.iter().position(|refused| *refused == task);
        at.is_some_and(|at| state.refused.swap_remove(at) == task)
    }

    /// Puts the current task among those that wait until an expired value is cleaned away. False if
    /// none will be: there is none, as `is_any` says, or the cleaner takes no further victim.
    pub(crate) fn queue_for_expired(&self, is_any: bool) -> bool {
        let mut state = self.state();
        if state.is_ending || !is_any && !state.wants_expired {
            return false;
        }
        state.wants_expired = true;
        state.expiry_waiters.push(clock::current());
        true
    }

    /// Wakes the stores that wait for expired values to go: a victim was cleaned, or there is none.
    pub(crate) fn has_looked(&self) {
        self.state().expiry_waiters.drain(..).for_each(clock::wake);
    }
}

/// Cleaning without winning an extent for hosts. Each extent is cleaned once in a round, and not
/// what the round itself has filled; so a round ends.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Round {
    number: u32,
    began: Sequence,
}

impl Round {
    /// One round copies all live records. Tombstones may need a second round to get old enough, and
    /// a third to be dropped.
    const MAX: u32 = 3;

    pub(crate) fn first(now: Sequence) -> Self {
        Self { number: 1, began: now }
    }

    /// Begins the next round. False after [`Self::MAX`] rounds: then cleaning cannot free an
    /// extent.
    pub(crate) fn next(&mut self, now: Sequence) -> bool {
        self.number += 1;
        self.began = now;
        self.number <= Self::MAX
    }

    pub(crate) fn is_for(self, extent: &Extent) -> bool {
        Sequence(extent.label.epoch) <= self.began
    }
}

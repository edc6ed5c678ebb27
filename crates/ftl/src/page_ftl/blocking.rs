//! What is blocked for hosts while a block is cleaned.

use crate::page_ftl::state::State;
use crate::page_ftl::{GcBlocking, PageFtl};
use clock::{Closed, Gate, Rank, Stage, TaskId};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// One gate for each channel.
#[derive(Debug)]
pub(crate) struct Gates(Box<[Gate]>);

impl Gates {
    pub(crate) fn new(channels: u32) -> Self {
        Self((0..channels).map(|_| Gate::new()).collect())
    }
}

/// A queue of units for a controller that cleans one block at a time.
#[derive(Debug, Default)]
pub(crate) struct Turns(Mutex<Queue>);

#[derive(Debug, Default)]
struct Queue {
    is_taken: bool,
    waiters: VecDeque<TaskId>,
}

impl Turns {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn take(&self) {
        let waits = {
            let mut queue = self.queue();
            let waits = std::mem::replace(&mut queue.is_taken, true);
            if waits {
                queue.waiters.push_back(clock::current());
            }
            waits
        };
        if waits {
            // The task that had the turn hands it on.
            clock::park(Rank::Free, Stage::Gc).await;
        }
    }

    fn hand_on(&self) {
        let mut queue = self.queue();
        match queue.waiters.pop_front() {
            Some(next) => clock::wake(next),
            None => queue.is_taken = false,
        }
    }
}

impl PageFtl {
    /// Where cleaning blocks the controller, waits until nothing else is cleaned: its firmware does
    /// one thing at a time.
    pub(crate) async fn take_turn(&self) {
        if self.config.blocking == GcBlocking::Controller {
            self.turns.take().await;
        }
    }

    pub(crate) fn hand_turn_on(&self) {
        if self.config.blocking == GcBlocking::Controller {
            self.turns.hand_on();
        }
    }

    /// Blocks hosts from what `unit` shares with them, until [`Self::unblock`] and the drop of the
    /// returned guard.
    pub(crate) fn block(&self, state: &mut State, unit: u32) -> Option<Closed<'_>> {
        self.each_blocked(unit, |blocked| state.units[blocked as usize].blocked += 1);
        match self.config.blocking {
            GcBlocking::Nothing | GcBlocking::Plane => None,
            GcBlocking::Controller => Some(self.config.gate.close()),
            GcBlocking::Channel => {
                let channel = self.layout.channel_of(unit);
                Some(self.gates.0[channel as usize].close())
            }
        }
    }

    pub(crate) fn unblock(&self, state: &mut State, unit: u32) {
        self.each_blocked(unit, |blocked| state.units[blocked as usize].blocked -= 1);
    }

    /// Calls `each` with the units that take no host pages while `unit` is cleaned.
    fn each_blocked(&self, unit: u32, mut each: impl FnMut(u32)) {
        match self.config.blocking {
            GcBlocking::Nothing | GcBlocking::Controller => {}
            GcBlocking::Plane => each(unit),
            GcBlocking::Channel => {
                let channel = self.layout.channel_of(unit);
                let units = 0..self.layout.units;
                units.filter(|unit| self.layout.channel_of(*unit) == channel).for_each(each);
            }
        }
    }

    /// Passes the gate of the channel on which logical block `number` lies, if it is on flash.
    pub(crate) async fn pass_channel(&self, number: u32) {
        let channel = || {
            let state = self.state();
            let slot = self.landed_slot(&state, number)?;
            Some(self.layout.channel_of(self.layout.unit_of(self.layout.block_of_slot(slot))))
        };
        let mut next = channel();
        while let Some(on) = next {
            self.gates.0[on as usize].pass().await;
            let now = channel();
            // It may have moved during the wait.
            next = now.filter(|now| *now != on);
        }
    }
}

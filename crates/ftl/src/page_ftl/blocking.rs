//! What is blocked for hosts while a block is cleaned.

use crate::page_ftl::state::State;
use crate::page_ftl::{GcBlocking, PageFtl};
use clock::Closed;

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
                Some(self.gates.of(channel).close())
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
            self.gates.of(on).pass().await;
            let now = channel();
            // It may have moved during the wait.
            next = now.filter(|now| *now != on);
        }
    }
}

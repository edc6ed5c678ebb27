use crate::zones::error::ZoneError;
use crate::zones::state::{ZoneAction, ZoneState};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The states of all zones, how much of each is written, and the limits on open and active ones.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct States {
    /// Blocks of a zone that can be written.
    capacity: u64,
    max_open: u32,
    max_active: u32,
    zones: Box<[Zone]>,
    open: u32,
    active: u32,
    /// Implicitly opened zones, by the number of their opening.
    implicit: BTreeMap<u64, u32>,
    openings: u64,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Zone {
    state: ZoneState,
    /// Blocks.
    written: u64,
    /// Of an implicitly opened zone: its key in `implicit`.
    opening: u64,
}

impl States {
    /// Returns empty zones. A limit of 0 is none.
    pub(crate) fn new(zones: u32, capacity: u64, max_open: u32, max_active: u32) -> Self {
        let zone = Zone { state: ZoneState::Empty, written: 0, opening: 0 };
        let limit = |max: u32| if max == 0 { u32::MAX } else { max };
        Self {
            capacity,
            max_open: limit(max_open),
            max_active: limit(max_active),
            zones: vec![zone; zones as usize].into(),
            open: 0,
            active: 0,
            implicit: BTreeMap::new(),
            openings: 0,
        }
    }

    /// Returns the limits on open and on active zones; `None` for no limit.
    pub(crate) fn limits(&self) -> [Option<u32>; 2] {
        [self.max_open, self.max_active].map(|max| (max != u32::MAX).then_some(max))
    }

    /// Sets the state in which a start found `zone`.
    pub(crate) fn restore(&mut self, zone: u32, state: ZoneState, written: u64) {
        self.zones[zone as usize].written = written;
        self.set(zone, state);
    }

    #[inline]
    pub(crate) fn state(&self, zone: u32) -> ZoneState {
        self.zones[zone as usize].state
    }

    /// Returns the blocks written to the zone since it was empty.
    #[inline]
    pub(crate) fn written(&self, zone: u32) -> u64 {
        self.zones[zone as usize].written
    }

    /// The zones whose state `is`.
    pub(crate) fn which(&self, is: impl Fn(ZoneState) -> bool) -> Vec<u32> {
        let zones = (0..).zip(&self.zones);
        zones.filter(|(_, zone)| is(zone.state)).map(|(number, _)| number).collect()
    }

    /// Takes a write of `count` blocks, at `offset` or at the write pointer, and
    /// returns where it goes.
    pub(crate) fn write(
        &mut self,
        zone: u32,
        offset: Option<u64>,
        count: u64,
    ) -> Result<u64, ZoneError> {
        match self.state(zone) {
            ZoneState::Full => return Err(ZoneError::Full),
            ZoneState::ReadOnly => return Err(ZoneError::ReadOnly),
            ZoneState::Offline => return Err(ZoneError::Offline),
            _ => {}
        }
        let at = self.written(zone);
        if offset.is_some_and(|offset| offset != at) {
            return Err(ZoneError::InvalidWrite);
        }
        if at + count > self.capacity {
            return Err(ZoneError::Boundary);
        }
        self.take_place(zone, ZoneState::ImplicitlyOpen)?;
        self.zones[zone as usize].written += count;
        if at + count == self.capacity {
            self.set(zone, ZoneState::Full);
        }
        Ok(at)
    }

    /// Applies `action` to one zone.
    pub(crate) fn change(&mut self, zone: u32, action: ZoneAction) -> Result<(), ZoneError> {
        let state = self.state(zone);
        let is_allowed = match action {
            ZoneAction::Open => state.is_active() || state == ZoneState::Empty,
            ZoneAction::Close => state.is_active(),
            ZoneAction::Finish | ZoneAction::Reset => {
                !matches!(state, ZoneState::ReadOnly | ZoneState::Offline)
            }
        };
        if !is_allowed {
            return Err(ZoneError::InvalidTransition);
        }
        match action {
            ZoneAction::Open => self.take_place(zone, ZoneState::ExplicitlyOpen)?,
            ZoneAction::Close => self.set(zone, ZoneState::Closed),
            ZoneAction::Finish => self.set(zone, ZoneState::Full),
            ZoneAction::Reset => {
                self.set(zone, ZoneState::Empty);
                self.zones[zone as usize].written = 0;
            }
        }
        Ok(())
    }

    /// Opens all closed zones explicitly; opens none if the limit does not allow all.
    pub(crate) fn open_all(&mut self) -> Result<(), ZoneError> {
        let closed = self.which(|state| state == ZoneState::Closed);
        let explicit = self.which(|state| state == ZoneState::ExplicitlyOpen).len();
        if closed.len() + explicit > self.max_open as usize {
            return Err(ZoneError::TooManyOpen);
        }
        closed.into_iter().try_for_each(|zone| self.take_place(zone, ZoneState::ExplicitlyOpen))
    }

    /// Marks the zone as read only or offline after a failure of the medium.
    pub(crate) fn fail(&mut self, zone: u32, state: ZoneState) {
        self.set(zone, state);
    }

    /// Opens a zone, counting it as open and active. At the limit, closes the zone that was
    /// implicitly opened first.
    #[inline]
    fn take_place(&mut self, zone: u32, state: ZoneState) -> Result<(), ZoneError> {
        let before = self.state(zone);
        if before.is_open() {
            if state == ZoneState::ExplicitlyOpen {
                self.set(zone, state);
            }
            return Ok(());
        }
        if !before.is_active() && self.active >= self.max_active {
            return Err(ZoneError::TooManyActive);
        }
        if self.open >= self.max_open {
            let (_, first) = self.implicit.first_key_value().ok_or(ZoneError::TooManyOpen)?;
            self.set(*first, ZoneState::Closed);
        }
        self.set(zone, state);
        Ok(())
    }

    fn set(&mut self, number: u32, state: ZoneState) {
        let zone = &mut self.zones[number as usize];
        let before = std::mem::replace(&mut zone.state, state);
        if before == ZoneState::ImplicitlyOpen {
            self.implicit.remove(&zone.opening);
        }
        if state == ZoneState::ImplicitlyOpen {
            self.openings += 1;
            zone.opening = self.openings;
            self.implicit.insert(self.openings, number);
        }
        self.open = self.open + u32::from(state.is_open()) - u32::from(before.is_open());
        self.active = self.active + u32::from(state.is_active()) - u32::from(before.is_active());
    }
}

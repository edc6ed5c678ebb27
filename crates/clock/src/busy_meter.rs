use crate::busy_stage::{BusyStage, BusyTimes};
use crate::schedule::{with, with_installed};
use base::Nanos;
use std::cell::Cell;

/// Attributes all time of a thread to the [`BusyStage`] that it is in. Instants are those of the
/// schedule's wall.
#[derive(Debug)]
pub struct BusyMeter {
    stage: Cell<BusyStage>,
    /// The time up to this instant is in `times`.
    at: Cell<Nanos>,
    times: [Cell<Nanos>; BusyStage::ALL.len()],
}

impl BusyMeter {
    /// Returns a meter that begins at `wall` in [`BusyStage::Background`].
    pub fn new(wall: Nanos) -> Self {
        Self { stage: Cell::default(), at: Cell::new(wall), times: Default::default() }
    }

    /// Begins `stage` at `wall`. Returns the stage that ends.
    #[inline]
    pub fn switch(&self, stage: BusyStage, wall: Nanos) -> BusyStage {
        let before = self.stage.replace(stage);
        let time = &self.times[before as usize];
        time.set(time.get() + (wall - self.at.replace(wall)));
        before
    }

    /// Returns the time of each stage since the last call, up to `wall`. Their sum is the time
    /// between the two calls.
    #[inline]
    pub fn take(&self, wall: Nanos) -> BusyTimes {
        self.switch(self.stage.get(), wall);
        BusyTimes::new(self.times.each_ref().map(Cell::take))
    }

    #[inline]
    pub(crate) fn stage(&self) -> BusyStage {
        self.stage.get()
    }

    /// Counts the time since the last switch for `stage` too.
    #[inline]
    fn set(&self, stage: BusyStage) {
        self.stage.set(stage);
    }
}

/// Declares the stage of the current task from the beginning of its poll, without reading the wall.
/// Other tasks begin in the stage of the poll that spawns them.
#[inline]
pub fn set_busy_stage(stage: BusyStage) {
    with(|schedule| {
        let current = schedule.current;
        schedule.task(current).busy_stage = stage;
        if let Some(meter) = &schedule.busy_meter {
            meter.set(stage);
        }
    });
}

/// Switches the current task to `stage`, in its later polls too. Reads the wall if the stage
/// changes and the schedule has a meter.
#[inline]
pub fn switch_busy_stage(stage: BusyStage) {
    with(|schedule| {
        let current = schedule.current;
        schedule.task(current).busy_stage = stage;
        schedule.switch_busy_stage(stage);
    });
}

/// Returns the stage in which the current task begins its next poll.
#[inline]
pub fn busy_stage() -> BusyStage {
    with(|schedule| {
        let current = schedule.current;
        schedule.task(current).busy_stage
    })
}

/// Switches to `stage` until the scope is dropped, which is in the same poll. Reads the wall at
/// both ends if the stage changes and the schedule has a meter. Does nothing without a schedule.
#[inline]
pub fn enter_busy_stage(stage: BusyStage) -> BusyScope {
    let mut before = None;
    with_installed(|schedule| before = schedule.switch_busy_stage(stage));
    BusyScope { before }
}

/// See [`enter_busy_stage`].
#[must_use = "the stage ends with its scope"]
#[derive(Debug)]
pub struct BusyScope {
    /// The stage to return to. `None` if the stage did not change.
    before: Option<BusyStage>,
}

impl Drop for BusyScope {
    #[inline]
    fn drop(&mut self) {
        if let Some(before) = self.before {
            with_installed(|schedule| _ = schedule.switch_busy_stage(before));
        }
    }
}

use crate::ledger::Excuses;
use crate::power::{Loss, Power};
use crate::tally::Tally;
use base::Rng;
use clock::LocalFuture;
use node::{Device, Profile};
use std::rc::Rc;

/// What is asked of a device, and what it answered. It outlives the devices.
pub(crate) trait Load {
    /// The device.
    fn profile(&self) -> &Profile;

    /// Whether the device answers before what it was given is on the flash.
    fn is_buffered(&self) -> bool;

    /// About how many answers a life has.
    fn operations_in_life(&self) -> u64;

    /// Of how many subjects a page of flash holds content, at most.
    fn subjects_on_page(&self) -> usize;

    /// Works on a device that is just open, for as long as there is work and power.
    fn live(self: Rc<Self>, device: Rc<Device>, life: Life) -> LocalFuture<'static, ()>;

    /// Answers so far.
    fn operations(&self) -> u64;

    /// The device is gone.
    fn cut_off(&self, loss: Loss);

    /// Holds all answers to what can be, and counts them.
    ///
    /// # Panics
    /// When they can not be, unless the faults that are to be excused explain it.
    fn check(&self, excuses: Excuses) -> Tally;
}

/// The life of a device from when it is open until its power is cut.
#[derive(Clone, Debug)]
pub(crate) struct Life {
    /// How many there were before.
    pub(crate) number: u64,
    /// Whether nothing comes after.
    pub(crate) is_last: bool,
    /// Whether all is to be answered at the end of the work.
    pub(crate) finishes: bool,
    pub(crate) power: Power,
    /// Whether faults of the flash may have cut off the end of what the device held.
    pub(crate) may_be_cut: bool,
    pub(crate) rng: Rng,
}

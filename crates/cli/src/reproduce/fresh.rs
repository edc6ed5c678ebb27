//! A new device at the start of an experiment.

use crate::output::Failure;
use crate::rig::device_failure;
use node::{Device, FaultPlan, Profile};
use reactor::Reactor;

/// Returns a new, empty device of `profile`, and its reactor.
pub(super) fn fresh(profile: &Profile, seed: u64) -> Result<(Reactor, Device), Failure> {
    let mut reactor = Reactor::new(None);
    let cells = Device::manufacture(profile, seed);
    let device = reactor
        .run(Device::format(profile, cells, seed, FaultPlan::default()))
        .map_err(device_failure)?;
    Ok((reactor, device))
}

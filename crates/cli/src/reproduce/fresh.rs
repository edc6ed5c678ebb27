//! A device that an experiment starts from.

use crate::output::Failure;
use crate::rig::device_failure;
use node::{Device, FaultPlan, Profile};
use reactor::Reactor;

/// A new device as `profile` describes it, with nothing on it, and the reactor that it lives on.
pub(super) fn fresh(profile: &Profile, seed: u64) -> Result<(Reactor, Device), Failure> {
    let mut reactor = Reactor::new(None);
    let cells = Device::manufacture(profile, seed);
    let device = reactor
        .run(Device::format(profile, cells, seed, FaultPlan::default()))
        .map_err(device_failure)?;
    Ok((reactor, device))
}

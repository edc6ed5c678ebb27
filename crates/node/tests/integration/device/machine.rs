//! Profiles and what runs on them.

use nand::Cells;
use node::profile::Log;
use node::{Device, DeviceError, FaultPlan, Profile};
use reactor::Reactor;
use std::sync::Arc;

/// The profile `moke` with the values of some keys changed.
pub(crate) fn moke(changes: &[(&str, &str)]) -> Profile {
    changed("moke", changes)
}

/// The built-in profile `name` with the values of some keys changed in its text.
pub(crate) fn changed(name: &str, changes: &[(&str, &str)]) -> Profile {
    let mut text = Profile::text(name).expect("a built-in profile").into_owned();
    for (key, value) in changes {
        let begin = format!("{key} = ");
        let line = text.lines().filter(|line| line.starts_with(&begin));
        let line = line.collect::<Vec<_>>();
        assert_eq!(line.len(), 1, "{key} stands in {name} once");
        text = text.replace(&format!("\n{}\n", line[0]), &format!("\n{begin}{value}\n"));
    }
    Profile::parse(name, &text).unwrap_or_else(|error| panic!("{error}"))
}

/// The log of a device of keys and values.
pub(crate) fn log(profile: &mut Profile) -> &mut Log {
    profile.log.as_mut().expect("a device of keys and values has a log")
}

/// The extents of its log, if no block is bad, and the data bytes of each.
pub(crate) fn extents(profile: &Profile) -> (u64, u64) {
    let (log, nand) = (profile.log.as_ref(), &profile.nand);
    let stripe = log.and_then(Log::stripe).expect("its log is on blocks of flash");
    (stripe.log_extents(nand, nand.blocks_per_plane), stripe.extent_bytes(nand))
}

/// Runs `work` on a new device of `profile`.
pub(crate) fn on<T>(profile: &Profile, work: impl AsyncFnOnce(&Device) -> T) -> T {
    Reactor::new(None).run(async {
        let cells = Device::manufacture(profile, 1);
        let device = Device::format(profile, cells, 1, FaultPlan::default())
            .await
            .expect("the device is large enough");
        work(&device).await
    })
}

/// Runs `work` on the device that `cells` hold.
pub(crate) fn again<T>(
    profile: &Profile,
    cells: &Arc<Cells>,
    work: impl AsyncFnOnce(&Device) -> T,
) -> T {
    try_again(profile, cells, work).unwrap_or_else(|error| panic!("{error}"))
}

/// The same, if the device can be opened.
pub(crate) fn try_again<T>(
    profile: &Profile,
    cells: &Arc<Cells>,
    work: impl AsyncFnOnce(&Device) -> T,
) -> Result<T, DeviceError> {
    Reactor::new(None).run(async {
        let (device, _) = Device::open(profile, cells.clone(), 1, FaultPlan::default()).await?;
        Ok(work(&device).await)
    })
}

use super::{Measured, Rig, device_failure};
use crate::flash::Window;
use crate::output::Failure;
use crate::progress::Unit;
use base::Nanos;
use node::{Device, FaultReport, Opened, PowerLoss};
use reactor::Reactor;
use std::time::Instant;
use workload::{Findings, Plan};

/// A device after a power loss under a load, and its acknowledged data.
#[derive(Debug)]
pub(crate) struct Cut {
    /// Time of the power loss, from the start of the measurement.
    pub(crate) at: Nanos,
    /// Work of the device after the power loss.
    pub(crate) loss: PowerLoss,
    /// Work of reopening the device.
    pub(crate) opened: Opened,
    /// Wall time of reopening it.
    pub(crate) opening_wall_seconds: f64,
    /// Result of the check.
    pub(crate) findings: Findings,
    /// Faults since the device was reopened.
    pub(crate) faults: FaultReport,
}

impl Rig<'_> {
    /// Measures `plan`, for which the device was filled, until a power loss after `time`. Then
    /// reopens the device and checks all its data.
    pub(crate) fn measure_until_cut(
        mut self,
        plan: &Plan,
        time: Nanos,
    ) -> Result<(Measured, Cut), Failure> {
        self.flush()?;
        let before = self.device.figures();
        let timeline = self.start_timeline()?;
        let mut bar = self.setup.progress.bar("measuring", Unit::Time);
        let queue = self.device.controller().queue_pair();
        let started = Instant::now();
        let (outcome, aftermath) = self.reactor.run(async {
            workload::run_until(&queue, plan, time, |done, total| bar.set(done, total)).await
        });
        let wall_seconds = started.elapsed().as_secs_f64();
        let window = Window { before, after: self.device.figures() };
        let flash = self.loaded_flash(plan.space, &window);
        let faults = self.faults();
        let loss = self.reactor.run(self.device.lose_power());
        let untraced = self.finish_timeline(timeline);
        let lateness = None;
        let measured =
            Measured { outcome, window, flash, wall_seconds, lateness, faults, untraced };
        let Self { setup, reactor, device, .. } = self;
        let cells = device.cells().clone();
        drop((queue, reactor, device));

        let mut reactor = Reactor::new(setup.shuffle.then_some(setup.seed));
        let started = Instant::now();
        let opened = Device::open(setup.profile, cells, setup.seed, setup.fault_plan());
        let (device, opened) = reactor.run(opened).map_err(device_failure)?;
        let opening_wall_seconds = started.elapsed().as_secs_f64();
        let mut bar = setup.progress.bar("checking", Unit::Count);
        let queue = device.controller().queue_pair();
        let findings = reactor
            .run(async { aftermath.check(&queue, |done, total| bar.set(done, total)).await });
        let faults = device.faults();
        Ok((measured, Cut { at: time, loss, opened, opening_wall_seconds, findings, faults }))
    }
}

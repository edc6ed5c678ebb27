use super::{Measured, Rig, device_failure};
use crate::flash::Window;
use crate::output::Failure;
use crate::progress::Unit;
use base::Nanos;
use node::{Device, FaultReport, Opened, PowerLoss};
use reactor::Reactor;
use std::time::Instant;
use workload::{Findings, Plan};

/// What became of a device that lost its power under a load, and of what it had acknowledged.
#[derive(Debug)]
pub(crate) struct Cut {
    /// When it was, counted from the start of what was measured.
    pub(crate) at: Nanos,
    /// What the device still did.
    pub(crate) loss: PowerLoss,
    /// What opening it again took.
    pub(crate) opened: Opened,
    /// The same here.
    pub(crate) opening_wall_seconds: f64,
    /// What was found then.
    pub(crate) findings: Findings,
    /// Faults since the device was opened again.
    pub(crate) faults: FaultReport,
}

impl Rig<'_> {
    /// Measures `plan`, for which the device was filled, until its power goes after `time`. Then
    /// opens what is left and checks all that it holds.
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

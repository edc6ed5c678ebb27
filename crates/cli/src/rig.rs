//! Builds a device, fills or ages it, and measures it.

mod cut;
mod precondition;
mod stop;

pub(crate) use cut::Cut;
pub(crate) use precondition::{CAPACITIES_MAX, FillLevel, Precondition};
pub(crate) use stop::{PausedRun, check_savable, load, open, sentence};

use crate::args::Clock;
use crate::flash::{BlockFlash, Flash, LoadedFlash, Window};
use crate::output::Failure;
use crate::path::shown;
use crate::perfetto::Timeline;
use crate::progress::{Bar, Progress, Unit};
use base::Nanos;
use controller::QueuePair;
use node::profile::{Model, Namespace};
use node::{Device, DeviceError, FaultPlan, FaultReport, Figures, Profile};
use reactor::{Lateness, Reactor};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;
use std::time::Instant;
use workload::{Fill, FillError, Outcome, Plan, Space};

/// Description of a device, and of what is recorded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup<'a> {
    pub(crate) profile: &'a Profile,
    /// The device's seed.
    pub(crate) seed: u64,
    /// Whether the seed orders timers that are due at the same instant.
    pub(crate) shuffle: bool,
    /// Plan of flash faults.
    pub(crate) faults: Option<&'a FaultPlan>,
    /// Clock of the measurement. All other work runs in virtual time.
    pub(crate) clock: Clock,
    /// File for a timeline of the measurement.
    pub(crate) timeline: Option<&'a Path>,
    pub(crate) progress: Progress,
}

impl Setup<'_> {
    fn fault_plan(&self) -> FaultPlan {
        self.faults.cloned().unwrap_or_default()
    }
}

/// A device with its reactor.
pub(crate) struct Rig<'a> {
    setup: Setup<'a>,
    reactor: Reactor,
    device: Device,
    /// Empty except for the store's own records.
    empty: Empty,
    /// Whether its flash has faults.
    has_faults: bool,
}

/// Contents of an empty device.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Empty {
    figures: Figures,
    records: u64,
}

/// Result of a load.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) outcome: Outcome,
    pub(crate) window: Window,
    pub(crate) flash: LoadedFlash,
    pub(crate) wall_seconds: f64,
    /// Lateness of the device's events, in real time.
    pub(crate) lateness: Option<Lateness>,
    /// Flash faults so far, if there is a plan of them.
    pub(crate) faults: Option<FaultReport>,
    /// Why the timeline could not be written, if that failed.
    pub(crate) untraced: Option<String>,
}

impl<'a> Rig<'a> {
    /// Returns a new device.
    pub(crate) fn new(setup: Setup<'a>) -> Result<Self, Failure> {
        let Setup { profile, seed, .. } = setup;
        if setup.timeline.is_some() && profile.nand.model == Model::Scalar {
            return Err(Failure::refused(
                "a timeline is of dies and channels that are waited for, which a device with \
                 model = \"scalar\" does not have",
            ));
        }
        let mut reactor = Reactor::new(setup.shuffle.then_some(seed));
        let cells = Device::manufacture(profile, seed);
        let device = reactor
            .run(Device::format(profile, cells, seed, setup.fault_plan()))
            .map_err(device_failure)?;
        let records = device.kv().map_or(0, |store| store.usage().values.records);
        let empty = Empty { figures: device.figures(), records };
        let has_faults = has_faults(&setup.fault_plan());
        Ok(Self { setup, reactor, device, empty, has_faults })
    }

    /// The device.
    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    /// Returns the namespace of this id, which the profile must have.
    pub(crate) fn namespace(&self, nsid: u32) -> &Namespace {
        &self.setup.profile.namespaces[nsid as usize - 1]
    }

    pub(crate) fn now(&mut self) -> Nanos {
        self.reactor.run(async { clock::now() })
    }

    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        self.reactor.run(flush(&self.device))
    }

    /// Stores the keys of `plan`, in virtual time.
    pub(crate) fn fill(&mut self, plan: &Plan) -> Result<Fill, Failure> {
        self.fill_by(async |queue, bar| {
            workload::fill(queue, plan, |done, total| bar.set(done, total)).await
        })
    }

    /// Measures `plan`, for which the device was filled. Can be repeated after a plan that only
    /// reads, or that stores each key once.
    pub(crate) fn measure(&mut self, plan: &Plan) -> Result<Measured, Failure> {
        self.measure_in(plan.space, Unit::of(plan), async |queue, bar| {
            workload::run(queue, plan, |done, total| bar.set(done, total)).await
        })
    }

    /// Stores keys by `fill`, in virtual time.
    pub(crate) fn fill_by(
        &mut self,
        fill: impl AsyncFnOnce(&QueuePair, &mut Bar) -> Result<Fill, FillError>,
    ) -> Result<Fill, Failure> {
        let mut bar = self.setup.progress.bar("storing", Unit::Count);
        let queue = self.device.controller().queue_pair();
        let filled = self.reactor.run(fill(&queue, &mut bar));
        filled.map_err(|error| Failure::Broken(error.to_string()))
    }

    /// Measures `load` on pairs, on the clock of the setup.
    pub(crate) fn measure_by(
        &mut self,
        load: impl AsyncFnOnce(&QueuePair, &mut Bar) -> Outcome,
    ) -> Result<Measured, Failure> {
        self.measure_in(Space::Pairs, Unit::Count, load)
    }

    fn measure_in(
        &mut self,
        space: Space,
        unit: Unit,
        load: impl AsyncFnOnce(&QueuePair, &mut Bar) -> Outcome,
    ) -> Result<Measured, Failure> {
        // Otherwise buffered data would be programmed, and read from memory, in the window.
        self.flush()?;
        let before = self.device.figures();
        self.measure_since(before, space, unit, load)
    }

    fn measure_since(
        &mut self,
        before: Figures,
        space: Space,
        unit: Unit,
        load: impl AsyncFnOnce(&QueuePair, &mut Bar) -> Outcome,
    ) -> Result<Measured, Failure> {
        let timeline = self.start_timeline()?;
        let mut bar = self.setup.progress.bar("measuring", unit);
        let queue = self.device.controller().queue_pair();
        let started = Instant::now();
        let (outcome, lateness) = match self.setup.clock {
            Clock::Virtual => (self.reactor.run(load(&queue, &mut bar)), None),
            Clock::Real => {
                let (outcome, lateness) = self.reactor.run_in_real_time(load(&queue, &mut bar));
                (outcome, Some(lateness))
            }
        };
        let wall_seconds = started.elapsed().as_secs_f64();
        let untraced = self.finish_timeline(timeline);
        // Programs caused by the window's stores count, even if the stores were answered earlier.
        self.flush()?;
        let window = Window { before, after: self.device.figures() };
        let flash = self.loaded_flash(space, &window);
        let faults = self.faults();
        Ok(Measured { outcome, window, flash, wall_seconds, lateness, faults, untraced })
    }

    fn faults(&self) -> Option<FaultReport> {
        self.has_faults.then(|| self.device.faults())
    }

    fn loaded_flash(&self, space: Space, window: &Window) -> LoadedFlash {
        match space {
            Space::Pairs => LoadedFlash::Pairs(self.flash(window)),
            Space::Blocks | Space::Zones(_) => LoadedFlash::Blocks(BlockFlash::new(window)),
        }
    }

    fn flash(&self, window: &Window) -> Flash {
        let pairs = self.device.store().usage().values.records - self.empty.records;
        let bytes = |figures: &Figures| figures.store.host_bytes - figures.store.dropped_bytes;
        let stored_bytes = bytes(&window.after) - bytes(&self.empty.figures);
        Flash::new(&self.device, window, pairs, stored_bytes)
    }

    fn start_timeline(&mut self) -> Result<Option<Timeline>, Failure> {
        let Some(path) = self.setup.timeline else { return Ok(None) };
        let (resources, now) = self.reactor.run(async { (clock::resources(), clock::now()) });
        let timeline = Timeline::create(path, &resources, now);
        let timeline = timeline.map_err(|error| Failure::Broken(self.untraced(&error)))?;
        self.reactor.set_trace(Some(timeline.sink()));
        Ok(Some(timeline))
    }

    /// Ends `timeline`. Returns an error sentence if it could not be written.
    fn finish_timeline(&mut self, timeline: Option<Timeline>) -> Option<String> {
        self.reactor.set_trace(None);
        let error = timeline?.finish().err()?;
        Some(self.untraced(&error))
    }

    fn untraced(&self, error: &io::Error) -> String {
        let path = self.setup.timeline.map(shown).unwrap_or_default();
        format!("the timeline {path} cannot be written: {error}")
    }
}

fn has_faults(plan: &FaultPlan) -> bool {
    !plan.rules.is_empty()
}

/// Flushes all acknowledged data to flash.
pub(crate) async fn flush(device: &Device) -> Result<(), Failure> {
    let flushed = device.flush().await;
    flushed.map_err(|error| Failure::Broken(format!("the device cannot be flushed: {error}")))
}

/// Turns the error of a device that cannot be built into a user's error.
pub(crate) fn device_failure(error: DeviceError) -> Failure {
    match error {
        DeviceError::Store(_) => Failure::Broken(error.to_string()),
        _ => Failure::refused(error),
    }
}

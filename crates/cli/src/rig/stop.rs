//! Pauses a rig, and saves or restores its device.

use super::{Empty, Measured, Rig, Setup, flush, has_faults};
use crate::output::Failure;
use crate::path::shown;
use crate::progress::{Bar, Unit};
use node::state::{Origin, Problem, StateFile};
use node::{Device, Figures, SavedDevice};
use reactor::Reactor;
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::Instant;
use workload::{Contents, Paused, Plan};

/// A paused run, on a device without work in flight.
#[derive(Debug)]
pub(crate) struct PausedRun {
    pub(crate) run: Paused,
    /// Figures of the device before the pause.
    pub(crate) before: Figures,
    /// Wall time so far.
    pub(crate) wall_seconds: f64,
}

impl<'a> Setup<'a> {
    pub(crate) const fn origin(&self) -> Origin<'a> {
        Origin { profile: self.profile, seed: self.seed, shuffle: self.shuffle }
    }
}

impl<'a> Rig<'a> {
    /// Returns the device of `saved`; when new it contained only `empty`.
    pub(crate) fn restored(
        setup: Setup<'a>,
        saved: SavedDevice,
        empty: Empty,
    ) -> Result<Self, Failure> {
        let mut reactor = Reactor::new(setup.shuffle.then_some(setup.seed));
        let has_faults = has_faults(&saved.fault_plan());
        let origin = setup.origin();
        let device = reactor.run(async { Device::restore(origin, saved) });
        let device = device.ok_or_else(|| {
            Failure::refused("the parts of the saved device are not of one device")
        })?;
        reactor.settle();
        Ok(Self { setup, reactor, device, empty, has_faults })
    }

    /// Returns the contents of the device when it was new.
    pub(crate) const fn empty(&self) -> Empty {
        self.empty
    }

    /// Waits until the device has no command and no background work in flight.
    fn settle(&mut self) -> Result<(), Failure> {
        self.reactor.run(flush(&self.device))?;
        self.reactor.settle();
        Ok(())
    }

    /// Measures the first `operations` of `plan`, on keys with `contents`, and pauses.
    pub(crate) fn measure_to_pause(
        &mut self,
        plan: &Plan,
        contents: Option<Contents>,
        operations: u64,
    ) -> Result<PausedRun, Failure> {
        self.flush()?;
        let before = self.device.figures();
        let mut bar = self.setup.progress.bar("measuring", Unit::of(plan));
        let queue = self.device.controller().queue_pair();
        let started = Instant::now();
        let run = self.reactor.run(async {
            let progress = |done, total| bar.set(done, total);
            workload::run_to_pause(&queue, plan, contents, operations, progress).await
        });
        self.settle()?;
        Ok(PausedRun { run, before, wall_seconds: started.elapsed().as_secs_f64() })
    }

    /// Measures the rest of `plan`.
    pub(crate) fn finish(
        &mut self,
        plan: &Plan,
        paused: PausedRun,
    ) -> Result<(Measured, Contents), Failure> {
        let PausedRun { run, before, wall_seconds } = paused;
        let mut contents = None;
        let measured =
            self.measure_since(before, plan.space, Unit::of(plan), async |queue, bar| {
                let progress = |done, total| bar.set(done, total);
                let finished = workload::finish(queue, plan, run, progress).await;
                contents = Some(finished.contents);
                finished.outcome
            })?;
        let wall_seconds = wall_seconds + measured.wall_seconds;
        let contents = contents.expect("the run was carried out");
        Ok((Measured { wall_seconds, ..measured }, contents))
    }

    /// Measures `plan` on keys with `contents`, or on keys that a fill stored.
    pub(crate) fn measure_on(
        &mut self,
        plan: &Plan,
        contents: Option<Contents>,
    ) -> Result<(Measured, Contents), Failure> {
        let mut left = None;
        let measured = self.measure_in(plan.space, Unit::of(plan), async |queue, bar| {
            let progress = |done, total| bar.set(done, total);
            let finished = workload::run_on(queue, plan, contents, progress).await;
            left = Some(finished.contents);
            finished.outcome
        })?;
        Ok((measured, left.expect("the run was carried out")))
    }

    /// Saves the device, and `load`, which describes its run, in `file`.
    pub(crate) fn save(&mut self, file: StateFile, load: &[u8]) -> Result<(), Problem> {
        let mut bar = self.setup.progress.bar("saving", Unit::Bytes);
        file.replace(|inner| {
            self.write(load, &mut Watched { inner, bar: &mut bar, done: 0, total: 0 })
        })
    }

    fn write(&mut self, load: &[u8], out: &mut dyn Write) -> Result<(), Problem> {
        self.reactor.run(self.device.flush()).map_err(|error| Problem::Io {
            done: "written",
            reason: format!("the device cannot be flushed: {error}"),
        })?;
        self.reactor.settle();
        let (device, origin) = (&self.device, self.setup.origin());
        self.reactor.run(async { device.save(origin, 0, load, out) })
    }
}

/// Refuses a device that could not be saved.
pub(crate) fn check_savable(path: &Path, setup: Setup<'_>) -> Result<(), Failure> {
    let setup = Setup { timeline: None, ..setup };
    let saved = Rig::new(setup)?.write(&[], &mut io::sink());
    saved.map_err(|problem| Failure::Refused(sentence(path, &problem)))
}

/// A reader or writer with a progress bar.
struct Watched<'a, T> {
    inner: T,
    bar: &'a mut Bar,
    done: u64,
    /// Bytes of the file, or 0 if unknown.
    total: u64,
}

impl<T> Watched<'_, T> {
    fn moved(&mut self, bytes: usize) -> usize {
        self.done += bytes as u64;
        self.bar.set(self.done, self.total);
        bytes
    }
}

impl<T: Read> Read for Watched<'_, T> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.inner.read(buffer)?;
        Ok(self.moved(bytes))
    }
}

impl<T: Write> Write for Watched<'_, T> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let bytes = self.inner.write(buffer)?;
        Ok(self.moved(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Returns the error of the state file at `path`.
pub(crate) fn sentence(path: &Path, problem: &dyn std::fmt::Display) -> String {
    format!("the state {} {problem}", shown(path))
}

/// The file at `path`, for a state.
pub(crate) fn open(path: &Path) -> Result<StateFile, Failure> {
    StateFile::open(path).map_err(|problem| Failure::Refused(sentence(path, &problem)))
}

/// Reads the device saved in `file`, which is at `path`, if it has one.
pub(crate) fn load(
    path: &Path,
    file: &StateFile,
    setup: Setup<'_>,
) -> Result<Option<SavedDevice>, Failure> {
    let read = || -> Result<_, Problem> {
        let Some((inner, total)) = file.reader()? else { return Ok(None) };
        let mut bar = setup.progress.bar("loading", Unit::Bytes);
        let mut input = Watched { inner, bar: &mut bar, done: 0, total };
        SavedDevice::read(setup.origin(), &mut input).map(Some)
    };
    read().map_err(|problem| Failure::Refused(sentence(path, &problem)))
}

//! State files, which keep devices while their server does not run.

use super::drive::{Drive, origin};
use super::error::ServerError;
use crate::state::{Problem, StateFile};
use crate::{Profile, SavedDevice};
use reactor::Reactor;
use std::io::{self, Write};
use std::path::PathBuf;

/// How a device with a state file started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Began {
    /// There was no file.
    New,
    /// The device continues from its saved state.
    Resumed,
    /// The previous server was killed, so its content is lost: the device starts empty.
    Lost,
}

/// The start of a device with a state file.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeviceStart {
    pub(super) began: Began,
    /// How often the content was lost, this start included.
    pub(super) incarnation: u64,
}

/// The state file of a served device.
pub(super) struct ServedState {
    path: PathBuf,
    file: StateFile,
    seed: u64,
    pub(super) start: DeviceStart,
}

impl ServedState {
    /// Opens the file at `path` and reads the device of `profile` and `seed` from it, or starts
    /// with a new one. Fails if the device cannot be saved.
    pub(super) fn open(
        path: PathBuf,
        (profile, seed): (Box<Profile>, u64),
        reactor: &mut Reactor,
    ) -> Result<(Self, Drive), ServerError> {
        match Self::try_open(&path, &profile, seed) {
            Err(problem) => Err(ServerError::State { path, problem }),
            Ok((file, start, None)) => {
                let drive = reactor.run(Drive::format(profile, seed))?;
                match save(reactor, &drive, (seed, start.incarnation), &mut io::sink()) {
                    Ok(()) => Ok((Self { path, file, seed, start }, drive)),
                    Err(problem) => Err(ServerError::State { path, problem }),
                }
            }
            Ok((file, start, Some(saved))) => {
                let drive = reactor.run(async { Drive::restore(profile, seed, saved) });
                reactor.settle();
                match drive {
                    Some(drive) => Ok((Self { path, file, seed, start }, drive)),
                    None => Err(ServerError::State { path, problem: Problem::Mixed }),
                }
            }
        }
    }

    fn try_open(
        path: &std::path::Path,
        profile: &Profile,
        seed: u64,
    ) -> Result<(StateFile, DeviceStart, Option<SavedDevice>), Problem> {
        let file = StateFile::open(path)?;
        if let Some(before) = file.lost() {
            let incarnation = before.saturating_add(1);
            return Ok((file, DeviceStart { began: Began::Lost, incarnation }, None));
        }
        let Some((mut input, _)) = file.reader()? else {
            return Ok((file, DeviceStart { began: Began::New, incarnation: 0 }, None));
        };
        let saved = SavedDevice::read(origin(profile, seed), &mut input)?;
        let start = DeviceStart { began: Began::Resumed, incarnation: saved.incarnation() };
        Ok((file, start, Some(saved)))
    }

    /// Marks the file as in use, before hosts use the device: they change it, so the saved state
    /// is out of date.
    pub(super) fn mark(&mut self) -> Result<(), ServerError> {
        let marked = self.file.mark_in_use(self.start.incarnation);
        marked.map_err(|problem| ServerError::State { path: self.path.clone(), problem })
    }

    /// Saves the device. No host uses it at this point.
    pub(super) fn save(self, reactor: &mut Reactor, drive: &Drive) -> Result<(), ServerError> {
        let Self { path, file, seed, start } = self;
        let saved = file.replace(|out| save(reactor, drive, (seed, start.incarnation), out));
        saved.map_err(|problem| ServerError::Unsaved { path, problem })
    }
}

/// Waits until no timer is pending on the reactor's clock, and writes `drive`, which has this seed
/// and incarnation, to `out`.
fn save(
    reactor: &mut Reactor,
    drive: &Drive,
    (seed, incarnation): (u64, u64),
    out: &mut dyn Write,
) -> Result<(), Problem> {
    reactor.settle();
    reactor.run(drive.close()).map_err(|error| Problem::Io {
        done: "written",
        reason: format!("the device cannot be flushed: {error}"),
    })?;
    reactor.settle();
    reactor.run(async { drive.save(seed, incarnation, out) })
}

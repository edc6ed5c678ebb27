//! Devices that are kept in files while their server is not there.

use super::ServerError;
use super::drive::{Drive, origin};
use crate::state::{Problem, StateFile};
use crate::{Profile, SavedDevice};
use reactor::Reactor;
use std::io::{self, Write};
use std::path::PathBuf;

/// What a device that is kept in a file was when its server started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Began {
    /// There was no file.
    New,
    /// It goes on as it was saved.
    Resumed,
    /// Its server was killed, and with it went what it held: it is new.
    Lost,
}

/// The file of a device that is served.
pub(super) struct Kept {
    path: PathBuf,
    file: StateFile,
    seed: u64,
    pub(super) began: Began,
}

impl Kept {
    /// The file at `path`, and the device of `profile` and `seed` that is in it: a new one where
    /// there is none. It is one that can be saved.
    pub(super) fn open(
        path: PathBuf,
        (profile, seed): (Box<Profile>, u64),
        reactor: &mut Reactor,
    ) -> Result<(Self, Drive), ServerError> {
        match Self::try_open(&path, &profile, seed) {
            Err(problem) => Err(ServerError::State { path, problem }),
            Ok((file, began, None)) => {
                let drive = reactor.run(Drive::format(profile, seed))?;
                match save(reactor, &drive, seed, &mut io::sink()) {
                    Ok(()) => Ok((Self { path, file, seed, began }, drive)),
                    Err(problem) => Err(ServerError::State { path, problem }),
                }
            }
            Ok((file, began, Some(saved))) => {
                let drive = reactor.run(async { Drive::restore(profile, seed, saved) });
                reactor.settle();
                match drive {
                    Some(drive) => Ok((Self { path, file, seed, began }, drive)),
                    None => Err(ServerError::State { path, problem: Problem::Mixed }),
                }
            }
        }
    }

    fn try_open(
        path: &std::path::Path,
        profile: &Profile,
        seed: u64,
    ) -> Result<(StateFile, Began, Option<SavedDevice>), Problem> {
        let file = StateFile::open(path)?;
        if file.is_lost() {
            return Ok((file, Began::Lost, None));
        }
        let Some((mut input, _)) = file.reader()? else { return Ok((file, Began::New, None)) };
        let saved = SavedDevice::read(origin(profile, seed), &mut input)?;
        Ok((file, Began::Resumed, Some(saved)))
    }

    /// Hosts may use the device from here on: what is in the file is not what they are told.
    pub(super) fn mark(&mut self) -> Result<(), ServerError> {
        let marked = self.file.mark_in_use();
        marked.map_err(|problem| ServerError::State { path: self.path.clone(), problem })
    }

    /// Saves the device, which nobody uses any more.
    pub(super) fn save(self, reactor: &mut Reactor, drive: &Drive) -> Result<(), ServerError> {
        let Self { path, file, seed, .. } = self;
        let saved = file.replace(|out| save(reactor, drive, seed, out));
        saved.map_err(|problem| ServerError::Unsaved { path, problem })
    }
}

/// Brings everything on the reactor's clock to rest, and writes `drive` to `out`.
fn save(
    reactor: &mut Reactor,
    drive: &Drive,
    seed: u64,
    out: &mut dyn Write,
) -> Result<(), Problem> {
    reactor.settle();
    reactor.run(drive.close()).map_err(|error| Problem::Io {
        done: "written",
        reason: format!("the device cannot be flushed: {error}"),
    })?;
    reactor.settle();
    reactor.run(async { drive.save(seed, out) })
}

//! `kvasir drive`: makes, shows and checks a drive on a file or a block device, which `bench` and
//! `serve` use.

mod check;
mod content;
mod fill;
mod format;
mod inspect;
mod look;
mod report;
mod shares;

pub(crate) use check::run as check;
pub(crate) use format::run as format;
pub(crate) use inspect::run as inspect;

use crate::output::Failure;
use disk::{Access, File};
use drive::Durability;
use node::DURABILITIES;
use reactor::{Peer, Reactor, Remote, peers};
use std::fmt::Display;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Opens the file or block device at `path`, which contains a drive, for use.
pub(crate) fn open(path: &Path) -> Result<Arc<File>, Failure> {
    File::open_drive(path, Access::Write).map(Arc::new).map_err(Failure::refused)
}

/// Runs `act` in a reactor of its own, in real time.
pub(crate) fn serve<T>(act: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    serve_among(1, async |_, _| act.await)
}

/// The same, for this many `reactors`, with the remote ends of all and the places of the others.
pub(crate) fn serve_among<T>(
    reactors: u8,
    act: impl AsyncFnOnce(&[Remote], Vec<(Peer, Remote)>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let broken = |error: &dyn Display| {
        Failure::Broken(format!("the event loop (io_uring) cannot start: {error}"))
    };
    let remotes: io::Result<Vec<_>> = (0..reactors).map(|_| Remote::new()).collect();
    let remotes = remotes.map_err(|error| broken(&error))?;
    let mut places = peers(&remotes).into_iter().zip(remotes.clone());
    let (here, remote) = places.next().expect("there is one at least");
    let act = act(&remotes, places.collect());
    let (done, _) =
        Reactor::among(here, None).serve(&remote, act).map_err(|error| broken(&error))?;
    done
}

/// Returns the failure of the drive on `file`, with the disk's error if the disk failed.
pub(crate) fn failure(path: &Path, file: &File, error: &dyn Display) -> Failure {
    let of = path.display();
    match file.failure() {
        Some(failure) => Failure::Broken(format!("{of}: {error}: {failure}")),
        None => Failure::Refused(format!("{of}: {error}")),
    }
}

/// Returns the durability of this name.
pub(crate) fn durability(name: &str) -> Result<Durability, Failure> {
    node::durability(name).ok_or_else(|| Failure::Refused(node::no_durability(name)))
}

pub(crate) fn durability_name(durability: Durability) -> &'static str {
    let named = DURABILITIES.iter().find(|(_, known)| *known == durability);
    named.map(|(name, _)| *name).expect("all have names")
}

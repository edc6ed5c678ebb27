mod content;
mod disk;
mod found;
mod mounts;
mod partitions;
mod signature;
mod usage;

pub use found::Found;
pub use usage::Usage;
pub(crate) use usage::{is_read_only, other_usage, usage};

use reactor::retry_busy;
use std::io;
use std::path::{Path, PathBuf};

/// Why a probe failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot tell what {} holds: {source}", path.display())]
pub struct ProbeError {
    /// The path.
    pub path: PathBuf,
    /// The system's error.
    pub source: io::Error,
}

/// Returns what is at `path`: its user if there is one, otherwise its content, of which the first
/// on the disk counts. Only reads, and tries the lock.
pub fn probe(path: &Path) -> Result<Found, ProbeError> {
    look(path).map_err(|source| ProbeError { path: path.into(), source })
}

/// Returns the content of another system on the file or block device at `path`, which is to be used
/// as a drive.
pub(crate) fn foreign(path: &Path) -> io::Result<Option<Found>> {
    content::foreign(&std::fs::File::open(path)?)
}

fn look(path: &Path) -> io::Result<Found> {
    use std::os::unix::fs::FileTypeExt;
    let kind = match std::fs::metadata(path) {
        Ok(metadata) => metadata.file_type(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Absent),
        Err(error) => return Err(error),
    };
    if !kind.is_file() && !kind.is_block_device() {
        return Ok(Found::NotADisk);
    }
    let is_taken =
        |usage: &io::Result<_>| matches!(usage, Ok(Some(Usage::Locked(_) | Usage::Exclusive)));
    if let Some(usage) = retry_busy(|| usage(path), is_taken)? {
        return Ok(Found::Used(usage));
    }
    content::content(&std::fs::File::open(path)?)
}

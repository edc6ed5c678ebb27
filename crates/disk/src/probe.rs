mod content;
mod mounts;
mod partitions;
mod signature;
mod usage;

pub use content::{KVASIR_MAGIC, KVASIR_MAGIC_AT};
pub use usage::Usage;
pub(crate) use usage::{is_read_only, other_usage, usage};

use reactor::patiently;
use std::path::{Path, PathBuf};
use std::{fmt, io};

/// What there is at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// No file.
    Absent,
    /// Something that is neither a file nor a block device.
    NotADisk,
    /// Somebody uses it; what it holds was not looked at.
    Used(Usage),
    /// A drive of Kvasir's.
    Kvasir,
    /// A table of partitions, by its name.
    Partitions(&'static str),
    /// Something that begins as this does: "an xfs file system".
    Known(&'static str),
    /// Data, and nothing that says whose.
    Unknown,
    /// Nothing but zeros where anything known begins and in the first MiB.
    Empty,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.write_str("does not exist"),
            Self::NotADisk => f.write_str("is neither a file nor a block device"),
            Self::Used(usage) => usage.fmt(f),
            Self::Kvasir => f.write_str("holds a Kvasir drive"),
            Self::Partitions(table) => write!(f, "holds a partition table ({table})"),
            Self::Known(what) => write!(f, "holds {what}"),
            Self::Unknown => f.write_str("holds data of an unknown format"),
            Self::Empty => f.write_str("is empty"),
        }
    }
}

/// What a path holds cannot be told.
#[derive(Debug, thiserror::Error)]
#[error("cannot tell what {} holds: {source}", path.display())]
pub struct ProbeError {
    /// What was looked at.
    pub path: PathBuf,
    /// What the system says.
    pub source: io::Error,
}

/// Says what is at `path`, in the order in which it matters: who uses it, and then what it holds,
/// of which the first on the disk counts. It is only read, and its lock is tried.
pub fn probe(path: &Path) -> Result<Found, ProbeError> {
    look(path).map_err(|source| ProbeError { path: path.into(), source })
}

/// What others have made of the file or block device at `path`, which is to be used as a drive.
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
    if let Some(usage) = patiently(|| usage(path), is_taken)? {
        return Ok(Found::Used(usage));
    }
    content::content(&std::fs::File::open(path)?)
}

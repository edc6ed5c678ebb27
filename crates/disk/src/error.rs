use crate::probe::{Found, Usage};
use std::io;
use std::path::PathBuf;

/// Why a path cannot be a drive's disk.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The system does not open it, or says nothing of it.
    #[error("cannot open {}: {source}", path.display())]
    Failed {
        /// What was to be opened.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A folder, a terminal and so on.
    #[error("{} is neither a file nor a block device: name one of them", path.display())]
    NotADisk {
        /// What was to be opened.
        path: PathBuf,
    },
    /// Its file system has nothing but cached I/O.
    #[error(
        "the file system of {} has no direct I/O, so a flush of the file cannot be relied on: use \
         ext4, xfs or btrfs, or name a block device",
        path.display()
    )]
    NoDirect {
        /// What was to be opened.
        path: PathBuf,
    },
    /// Somebody else has it.
    #[error(
        "{} is in use{}: stop that program, or use another disk",
        path.display(),
        by(usage.as_ref())
    )]
    InUse {
        /// What was to be opened.
        path: PathBuf,
        /// Who has it, if that can be known.
        usage: Option<Usage>,
    },
    /// It is no drive, or none any more.
    #[error("{} {found}: it is not a Kvasir drive", path.display())]
    Foreign {
        /// What was to be opened.
        path: PathBuf,
        /// What others have made of it.
        found: Found,
    },
    /// The system lets nobody write to it.
    #[error(
        "{} is read-only: make it writable (blockdev --setrw), or use another",
        path.display()
    )]
    ReadOnly {
        /// What was to be opened.
        path: PathBuf,
    },
    /// Its sectors are larger than the blocks asked for, or than any that there are.
    #[error(
        "{} has sectors of {sector} bytes, so its blocks cannot have {asked} bytes: {}",
        path.display(),
        instead(*sector)
    )]
    BlockBytes {
        /// What was to be opened.
        path: PathBuf,
        /// Bytes of its sectors.
        sector: u32,
        /// Bytes that a block was to have.
        asked: u32,
    },
    /// It has no block at all.
    #[error(
        "{} has {bytes} bytes, less than one block: use a larger file or device",
        path.display()
    )]
    TooSmall {
        /// What was to be opened.
        path: PathBuf,
        /// Its size.
        bytes: u64,
    },
}

fn by(usage: Option<&Usage>) -> String {
    usage.map_or_else(|| " by another program".into(), |usage| format!(": it {usage}"))
}

fn instead(sector: u32) -> String {
    match sector {
        0..=512 => "ask for 512 or 4096".into(),
        513..=4_096 => "ask for 4096".into(),
        _ => "use another disk".into(),
    }
}

use crate::probe::{Found, Usage};
use std::io;
use std::path::PathBuf;

/// Why a path cannot be used as a disk.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The system does not open it, or returns an error about it.
    #[error("cannot open {}: {source}", path.display())]
    Failed {
        /// The path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// It is a folder, a terminal or the like.
    #[error("{} is neither a file nor a block device: name one of them", path.display())]
    NotADisk {
        /// The path.
        path: PathBuf,
    },
    /// The file system supports only cached I/O.
    #[error(
        "the file system of {} has no direct I/O, so a flush of the file cannot be relied on: use \
         ext4, xfs or btrfs, or name a block device",
        path.display()
    )]
    NoDirect {
        /// The path.
        path: PathBuf,
    },
    /// Another user of the disk has it.
    #[error(
        "{} is in use{}: stop that program, or use another disk",
        path.display(),
        by(usage.as_ref())
    )]
    InUse {
        /// The path.
        path: PathBuf,
        /// The user, if the kernel names it.
        usage: Option<Usage>,
    },
    /// It is not a Kvasir drive, or was overwritten by another system.
    #[error("{} {found}: it is not a Kvasir drive", path.display())]
    Foreign {
        /// The path.
        path: PathBuf,
        /// Its present content.
        found: Found,
    },
    /// The system allows no writes to it.
    #[error(
        "{} is read-only: make it writable (blockdev --setrw), or use another",
        path.display()
    )]
    ReadOnly {
        /// The path.
        path: PathBuf,
    },
    /// Its sectors exceed the requested block size, or every supported one.
    #[error(
        "{} has sectors of {sector} bytes, so its blocks cannot have {asked} bytes: {}",
        path.display(),
        instead(*sector)
    )]
    BlockBytes {
        /// The path.
        path: PathBuf,
        /// Bytes of its sectors.
        sector: u32,
        /// The requested bytes of a block.
        asked: u32,
    },
    /// It is smaller than one block.
    #[error(
        "{} has {bytes} bytes, less than one block: use a larger file or device",
        path.display()
    )]
    TooSmall {
        /// The path.
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

use rustix::fs::{FallocateFlags, Mode, OFlags, fallocate, fsync, open};
use rustix::io::Errno;
use std::io;
use std::path::{Path, PathBuf};

/// Why there is no new file.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// There is something by this name.
    #[error("{} is there already: choose another name, or remove it first", path.display())]
    Exists {
        /// What was to be made.
        path: PathBuf,
    },
    /// Its file system has no room for it.
    #[error(
        "the file system of {} has less than {bytes} bytes left: make the file smaller",
        path.display()
    )]
    NoSpace {
        /// What was to be made.
        path: PathBuf,
        /// How large.
        bytes: u64,
    },
    /// The system does not make it.
    #[error("cannot make {}: {source}", path.display())]
    Failed {
        /// What was to be made.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// Makes a file of `bytes` zeros that only its owner may open, in whose place nothing was. Its
/// space is taken now, so that a drive on it does not find its file system full, and its name
/// outlives a loss of power. After an error nothing is there.
pub fn create(path: &Path, bytes: u64) -> Result<(), CreateError> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
    let fd = match open(path, flags, Mode::RUSR | Mode::WUSR) {
        Ok(fd) => fd,
        Err(Errno::EXIST) => return Err(CreateError::Exists { path: path.into() }),
        Err(error) => return Err(CreateError::Failed { path: path.into(), source: error.into() }),
    };
    let made = fallocate(&fd, FallocateFlags::empty(), 0, bytes)
        .and_then(|()| fsync(&fd))
        .and_then(|()| sync_folder(path));
    made.map_err(|error| {
        // It is ours: it was not there before.
        let _ = std::fs::remove_file(path);
        match error {
            Errno::NOSPC | Errno::DQUOT | Errno::FBIG => {
                CreateError::NoSpace { path: path.into(), bytes }
            }
            error => CreateError::Failed { path: path.into(), source: error.into() },
        }
    })
}

/// The name of a file is an entry of its folder, which has to be flushed by itself (fsync(2)).
fn sync_folder(path: &Path) -> rustix::io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    fsync(open(folder, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

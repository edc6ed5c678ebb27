use crate::lock::lock;
use crate::open::Access;
use rustix::fs::{FallocateFlags, Mode, OFlags, fallocate, fstat, fsync, ftruncate, open};
use rustix::io::Errno;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// Why there is no new file.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// There is something by this name.
    #[error("{} already exists: choose another name, or remove it", path.display())]
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
    /// The system does not resize it.
    #[error("cannot resize {}: {source}", path.display())]
    Unresized {
        /// What was to be resized.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
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

/// Gives the file at `path`, whose content is not needed, `bytes` bytes, and takes their space now.
/// After an error it has the size and content that it had.
pub fn resize(path: &Path, bytes: u64) -> Result<(), CreateError> {
    let failed = |error: Errno| CreateError::Unresized { path: path.into(), source: error.into() };
    let fd = open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).map_err(failed)?;
    let is_locked = lock(fd.as_fd(), Access::Write);
    if !is_locked.map_err(|source| CreateError::Unresized { path: path.into(), source })? {
        return Err(failed(Errno::BUSY));
    }
    let before = fstat(&fd).map_err(failed)?.st_size;
    let before = u64::try_from(before).expect("a file has no negative size");
    if let Err(error) = fallocate(&fd, FallocateFlags::empty(), 0, bytes) {
        if bytes > before {
            // Some file systems leave it longer; its old content is there.
            let _ = ftruncate(&fd, before);
        }
        return Err(match error {
            Errno::NOSPC | Errno::DQUOT | Errno::FBIG => {
                CreateError::NoSpace { path: path.into(), bytes }
            }
            error => failed(error),
        });
    }
    ftruncate(&fd, bytes).and_then(|()| fsync(&fd)).map_err(failed)
}

/// The name of a file is an entry of its folder, which has to be flushed by itself (fsync(2)).
fn sync_folder(path: &Path) -> rustix::io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    fsync(open(folder, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

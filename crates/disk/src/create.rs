use crate::access::Access;
use crate::lock::lock;
use rustix::fs::{FallocateFlags, Mode, OFlags, fallocate, fstat, fsync, ftruncate, open};
use rustix::io::Errno;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// Why a file was not created or resized.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// The name exists already.
    #[error("{} already exists: choose another name, or remove it", path.display())]
    Exists {
        /// The path.
        path: PathBuf,
    },
    /// The file system has too little space.
    #[error(
        "the file system of {} has less than {bytes} bytes left: make the file smaller",
        path.display()
    )]
    NoSpace {
        /// The path.
        path: PathBuf,
        /// The size in bytes.
        bytes: u64,
    },
    /// The system refused to resize it.
    #[error("cannot resize {}: {source}", path.display())]
    Unresized {
        /// The path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The system refused to create it.
    #[error("cannot make {}: {source}", path.display())]
    Failed {
        /// The path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// Creates a new file of `bytes` zeros that only its owner may open. Allocates its space, so that a
/// drive on it never finds its file system full, and makes its name durable. Leaves nothing after
/// an error.
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
        // This call created the file, so it may remove it.
        let _ = std::fs::remove_file(path);
        match error {
            Errno::NOSPC | Errno::DQUOT | Errno::FBIG => {
                CreateError::NoSpace { path: path.into(), bytes }
            }
            error => CreateError::Failed { path: path.into(), source: error.into() },
        }
    })
}

/// Resizes the file at `path` to `bytes` bytes and allocates their space. Its content may be lost.
/// After an error it has its former size and content.
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
            // Some file systems leave the file longer; its old content is intact.
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

/// Flushes the folder of a file, because the name is an entry there (fsync(2)).
fn sync_folder(path: &Path) -> rustix::io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    fsync(open(folder, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

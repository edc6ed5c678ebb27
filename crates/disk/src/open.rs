use crate::access::Access;
use crate::error::OpenError;
use crate::lock::{holder, lock};
use crate::probe::{Usage, foreign, is_read_only, other_usage, usage};
use crate::sectors::Sectors;
use reactor::retry_busy;
use rustix::fs::{FileType, Mode, OFlags, SeekFrom, fstat, ioctl_blkpbszget, open, seek};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// An open and locked disk.
pub(crate) struct Opened {
    pub(crate) fd: OwnedFd,
    pub(crate) sectors: Sectors,
    /// Bytes of a block of the drive.
    pub(crate) block_bytes: u32,
    pub(crate) blocks: u64,
}

/// The block sizes in bytes that NVMe hosts and Linux support.
const BLOCK_BYTES: [u32; 2] = [512, 4_096];

/// Opens `path` for direct I/O and locks it.
pub(crate) fn open_disk(
    path: &Path,
    access: Access,
    block_bytes: Option<u32>,
) -> Result<Opened, OpenError> {
    let failed = |source: io::Error| OpenError::Failed { path: path.into(), source };
    let is_taken = |result: &Result<_, _>| matches!(result, Err(OpenError::InUse { .. }));
    let fd = retry_busy(|| open_locked(path, access), is_taken)?;
    let sectors = Sectors::of(fd.as_fd()).map_err(failed)?;
    let sectors = sectors.ok_or_else(|| OpenError::NoDirect { path: path.into() })?;
    let best = best_block_bytes(fd.as_fd()).map_err(failed)?;
    let block_bytes = choose(sectors.bytes, best, block_bytes).map_err(|asked| {
        OpenError::BlockBytes { path: path.into(), sector: sectors.bytes, asked }
    })?;
    let bytes = seek(&fd, SeekFrom::End(0)).map_err(|error| failed(error.into()))?;
    let blocks = bytes / u64::from(block_bytes);
    if blocks == 0 {
        return Err(OpenError::TooSmall { path: path.into(), bytes });
    }
    Ok(Opened { fd, sectors, block_bytes, blocks })
}

fn open_locked(path: &Path, access: Access) -> Result<OwnedFd, OpenError> {
    let failed = |source: io::Error| OpenError::Failed { path: path.into(), source };
    let kind = std::fs::metadata(path).map_err(failed)?.file_type();
    if !kind.is_file() && !kind.is_block_device() {
        return Err(OpenError::NotADisk { path: path.into() });
    }
    let in_use = |usage| OpenError::InUse { path: path.into(), usage };
    // If the system cannot tell, no other user is known.
    if let Ok(Some(usage)) = other_usage(path, access) {
        return Err(in_use(Some(usage)));
    }
    if access == Access::Write && kind.is_block_device() && is_read_only(path).map_err(failed)? {
        return Err(OpenError::ReadOnly { path: path.into() });
    }
    let fd = match open(path, flags(access, kind.is_block_device()), Mode::empty()) {
        Ok(fd) => fd,
        Err(Errno::INVAL) => return Err(OpenError::NoDirect { path: path.into() }),
        // The disk is in use even if the kernel does not name the user.
        Err(Errno::BUSY) => return Err(in_use(usage(path).ok().flatten())),
        // Some kernels return this for a mounted device.
        Err(error @ Errno::PERM) => match usage(path).ok().flatten() {
            Some(usage) => return Err(in_use(Some(usage))),
            None => return Err(failed(error.into())),
        },
        Err(error) => return Err(failed(error.into())),
    };
    if lock(fd.as_fd(), access).map_err(failed)? {
        return Ok(fd);
    }
    Err(in_use(holder(fd.as_fd()).map(Usage::Locked)))
}

/// Fails if another system has overwritten the drive at `path`.
pub(crate) fn still_ours(path: &Path) -> Result<(), OpenError> {
    match foreign(path) {
        Ok(None) => Ok(()),
        Ok(Some(found)) => Err(OpenError::Foreign { path: path.into(), found }),
        Err(source) => Err(OpenError::Failed { path: path.into(), source }),
    }
}

/// Returns the flags of open(2). With `O_EXCL` a block device cannot be mounted, become swap or a
/// part of another device, and opening fails if it is one of these.
fn flags(access: Access, is_device: bool) -> OFlags {
    let flags = OFlags::DIRECT | OFlags::CLOEXEC;
    match access {
        Access::Read => flags | OFlags::RDONLY,
        Access::Write if is_device => flags | OFlags::RDWR | OFlags::EXCL,
        Access::Write => flags | OFlags::RDWR,
    }
}

/// Returns the best block size of a disk, 512 or 4096 bytes: its internal one, or that of its file
/// system. Smaller blocks may be possible, but would cost the disk a read-modify-write.
fn best_block_bytes(fd: BorrowedFd<'_>) -> io::Result<u32> {
    let known = fstat(fd)?;
    let bytes = if FileType::from_raw_mode(known.st_mode) == FileType::BlockDevice {
        i64::from(ioctl_blkpbszget(fd)?)
    } else {
        known.st_blksize
    };
    Ok(if bytes <= i64::from(BLOCK_BYTES[0]) { BLOCK_BYTES[0] } else { BLOCK_BYTES[1] })
}

/// Returns the block size: the requested one, or the best that fits these sectors.
fn choose(sector: u32, best: u32, asked: Option<u32>) -> Result<u32, u32> {
    let fits = |bytes: &u32| sector > 0 && bytes.is_multiple_of(sector);
    match asked {
        Some(bytes) if BLOCK_BYTES.contains(&bytes) && fits(&bytes) => Ok(bytes),
        Some(bytes) => Err(bytes),
        None => {
            let mut large = BLOCK_BYTES.into_iter().filter(|bytes| *bytes >= best);
            large.find(fits).ok_or(BLOCK_BYTES[1])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_the_best_that_sectors_allow_and_never_smaller() {
        let of = [(512, 512), (1_024, 4_096), (4_096, 4_096), (1, 512)];
        assert!(of.into_iter().all(|(sector, bytes)| choose(sector, 512, None) == Ok(bytes)));
        assert!(of.into_iter().all(|(sector, _)| choose(sector, 4_096, None) == Ok(4_096)));
        assert_eq!(choose(8_192, 512, None), Err(4_096));
        assert_eq!(choose(512, 512, Some(4_096)), Ok(4_096));
        assert_eq!(choose(512, 4_096, Some(512)), Ok(512));
        assert_eq!(choose(4_096, 4_096, Some(512)), Err(512));
        assert_eq!(choose(512, 512, Some(1_024)), Err(1_024), "hosts know no such blocks");
    }

    /// A file of procfs is a regular file to stat(2), and no kernel gives it direct I/O.
    #[test]
    fn a_file_system_without_direct_io_is_named() {
        let error = open_disk(Path::new("/proc/self/comm"), Access::Write, None).err().unwrap();
        let sentence = error.to_string();
        assert!(sentence.starts_with("the file system of /proc/self/comm has no"), "{sentence}");
    }
}

use crate::memory::mapping::Mapping;
use crate::wire::DmaMap;
use rustix::fs::{FileType, OFlags, SealFlags, fcntl_get_seals, fcntl_getfl, fstat, fstatfs};
use rustix::io::{Errno, pread, pwrite};
use std::os::fd::OwnedFd;

/// Where the bytes of a DMA region are.
#[derive(Debug)]
pub(super) enum Backing {
    /// Mapped pages of a memfd that cannot shrink.
    Mapped(Mapping),
    /// A file that the client can truncate. An access to mapped pages behind its new end would
    /// kill the process by SIGBUS, so each access is a system call.
    File {
        fd: OwnedFd,
        /// Where the region begins in the file.
        start: u64,
    },
    /// The client shares no file. QEMU maps ROM so.
    Unshared,
}

/// `HUGETLBFS_MAGIC` of `linux/magic.h`.
const HUGETLBFS: u64 = 0x9584_58f6;

impl Backing {
    /// Checks `file` and maps it if it cannot shrink.
    pub(super) fn new(file: Option<OwnedFd>, map: &DmaMap) -> Result<Self, Errno> {
        let Some(fd) = file else {
            return Ok(Self::Unshared);
        };
        check_mode(&fd, map)?;
        // The seal comes first: after it the size can only grow.
        let cannot_shrink =
            fcntl_get_seals(&fd).is_ok_and(|seals| seals.contains(SealFlags::SHRINK));
        let end = map.offset.checked_add(map.size).ok_or(Errno::INVAL)?;
        if !has_bytes(&fd, end)? {
            return Err(Errno::INVAL);
        }
        if !cannot_shrink {
            return Ok(Self::File { fd, start: map.offset });
        }
        let len = usize::try_from(map.size).map_err(|_| Errno::NOMEM)?;
        let is_readable = map.flags & DmaMap::READABLE != 0;
        let is_writable = map.flags & DmaMap::WRITABLE != 0;
        Mapping::new(&fd, map.offset, len, is_readable, is_writable).map(Self::Mapped)
    }

    /// True if the bytes are there. A file may have been truncated.
    pub(super) fn has(&self, offset: u64, len: usize) -> bool {
        match self {
            Self::Mapped(_) => true,
            Self::File { fd, start } => has_bytes(fd, start + offset + len as u64).unwrap_or(false),
            Self::Unshared => false,
        }
    }

    #[inline]
    pub(super) fn read(&self, offset: u64, into: &mut [u8]) -> Option<()> {
        match self {
            Self::Mapped(mapping) => mapping.read(offset, into),
            Self::File { fd, start } => return read_exactly(fd, start + offset, into),
            Self::Unshared => return None,
        }
        Some(())
    }

    #[inline]
    pub(super) fn write(&self, offset: u64, bytes: &[u8]) -> Option<()> {
        match self {
            Self::Mapped(mapping) => mapping.write(offset, bytes),
            Self::File { fd, start } => return write_all(fd, start + offset, bytes),
            Self::Unshared => return None,
        }
        Some(())
    }

    /// Copies entries, the last 4 bytes of each after all before them.
    #[inline]
    pub(super) fn post(&self, offset: u64, entries: &[[u8; 16]]) -> Option<()> {
        if let Self::Mapped(mapping) = self {
            mapping.post(offset, entries);
            return Some(());
        }
        for (at, entry) in (offset..).step_by(16).zip(entries) {
            let (before, last) = entry.split_last_chunk::<4>()?;
            self.write(at, before)?;
            self.write(at + before.len() as u64, last)?;
        }
        Some(())
    }

    #[inline]
    pub(super) fn load(&self, offset: u64) -> Option<u32> {
        match self {
            Self::Mapped(mapping) => Some(mapping.load(offset)),
            Self::File { .. } | Self::Unshared => {
                let mut word = [0; 4];
                self.read(offset, &mut word)?;
                Some(u32::from_ne_bytes(word))
            }
        }
    }

    #[inline]
    pub(super) fn store(&self, offset: u64, value: u32) -> Option<()> {
        match self {
            Self::Mapped(mapping) => mapping.store(offset, value),
            Self::File { .. } | Self::Unshared => self.write(offset, &value.to_ne_bytes())?,
        }
        Some(())
    }
}

/// Fails unless `fd` is open for the accesses of `map`. Writes to a file that is open for appending
/// would all go to its end.
fn check_mode(fd: &OwnedFd, map: &DmaMap) -> Result<(), Errno> {
    let flags = fcntl_getfl(fd)?;
    let mode = flags & OFlags::ACCMODE;
    let reads = mode == OFlags::RDONLY || mode == OFlags::RDWR;
    let writes = mode == OFlags::WRONLY || mode == OFlags::RDWR;
    if (map.flags & DmaMap::READABLE != 0 && !reads)
        || (map.flags & DmaMap::WRITABLE != 0 && !writes)
        || flags.intersects(OFlags::PATH)
    {
        return Err(Errno::ACCESS);
    }
    if flags.contains(OFlags::APPEND) {
        return Err(Errno::INVAL);
    }
    // Punching a hole into huge pages can make later accesses raise SIGBUS, and there is no
    // pwrite to them.
    if fstatfs(fd)?.f_type.cast_unsigned() == HUGETLBFS {
        return Err(Errno::OPNOTSUPP);
    }
    Ok(())
}

/// True if `fd` is a regular file of at least `end` bytes.
fn has_bytes(fd: &OwnedFd, end: u64) -> Result<bool, Errno> {
    let file = fstat(fd)?;
    let is_regular = FileType::from_raw_mode(file.st_mode) == FileType::RegularFile;
    Ok(is_regular && u64::try_from(file.st_size).is_ok_and(|size| size >= end))
}

fn read_exactly(fd: &OwnedFd, mut at: u64, mut into: &mut [u8]) -> Option<()> {
    while !into.is_empty() {
        match pread(fd, &mut *into, at) {
            Ok(0) => return None,
            Ok(read) => {
                into = &mut into[read..];
                at += read as u64;
            }
            Err(Errno::INTR) => {}
            Err(_) => return None,
        }
    }
    Some(())
}

fn write_all(fd: &OwnedFd, mut at: u64, mut bytes: &[u8]) -> Option<()> {
    while !bytes.is_empty() {
        match pwrite(fd, bytes, at) {
            Ok(0) => return None,
            Ok(written) => {
                bytes = &bytes[written..];
                at += written as u64;
            }
            Err(Errno::INTR) => {}
            Err(_) => return None,
        }
    }
    Some(())
}

use rustix::fs::{AtFlags, FileType, StatxFlags, fstat, ioctl_blksszget, statx};
use std::io;
use std::os::fd::BorrowedFd;

/// The alignment of direct I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sectors {
    /// Bytes that the position and length of a transfer are multiples of.
    pub(crate) bytes: u32,
    /// Bytes that the address of its memory is a multiple of.
    pub(crate) memory: u32,
}

/// An alignment that every disk under Linux accepts, for file systems that report none.
const SAFE: Sectors = Sectors { bytes: 4_096, memory: 4_096 };

impl Sectors {
    /// Returns the alignment of an open file or block device; `None` without direct I/O.
    pub(crate) fn of(fd: BorrowedFd<'_>) -> io::Result<Option<Self>> {
        if FileType::from_raw_mode(fstat(fd)?.st_mode) == FileType::BlockDevice {
            let bytes = ioctl_blksszget(fd)?;
            return Ok(Some(Self { bytes, memory: bytes }));
        }
        let known = statx(fd, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN)?;
        if known.stx_mask & StatxFlags::DIOALIGN.bits() == 0 {
            return Ok(Some(SAFE));
        }
        let (bytes, memory) = (known.stx_dio_offset_align, known.stx_dio_mem_align);
        Ok((bytes > 0 && memory > 0).then_some(Self { bytes, memory }))
    }
}

use rustix::fs::{AtFlags, FileType, StatxFlags, fstat, ioctl_blksszget, statx};
use std::io;
use std::os::fd::BorrowedFd;

/// What direct I/O asks of reads and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sectors {
    /// Where they start and how long they are, is a multiple of this. Bytes.
    pub(crate) bytes: u32,
    /// And where their memory starts, of this.
    pub(crate) memory: u32,
}

/// What every disk that Linux knows takes: asked of a file system that does not say more.
const SAFE: Sectors = Sectors { bytes: 4_096, memory: 4_096 };

impl Sectors {
    /// Those of an open file or block device; `None` where there is no direct I/O.
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

use crate::memory::Mapping;
use pcie::DoorbellPage;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The page of doorbells of BAR 0, which a client maps: it writes them without a message.
///
/// A session has a page of its own: an earlier client may have its page mapped still.
#[derive(Debug)]
pub struct MappedDoorbells {
    /// As long as BAR 0 up to the end of the page. Only the page is used.
    file: OwnedFd,
    page: Mapping,
}

impl MappedDoorbells {
    /// Creates a page of zeros. Fails if the process has no descriptor or no memory left.
    pub fn new() -> Result<Self, Errno> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create("kvasir-doorbells", flags)?;
        ftruncate(&file, pcie::DOORBELLS.end)?;
        // The client cannot make an access to the page raise SIGBUS.
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let len = usize::try_from(pcie::DOORBELLS.end - pcie::DOORBELLS.start);
        let len = len.map_err(|_| Errno::NOMEM)?;
        let page = Mapping::new(&file, pcie::DOORBELLS.start, len, true, true)?;
        Ok(Self { file, page })
    }

    /// Returns the file that the client maps, in which BAR 0 begins at 0.
    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl DoorbellPage for MappedDoorbells {
    #[inline]
    fn load(&self, offset: u64) -> u32 {
        u32::from_le(self.page.load(offset))
    }

    #[inline]
    fn read(&self, into: &mut [u8]) {
        self.page.read(0, into);
    }

    #[inline]
    fn store(&self, offset: u64, value: u32) {
        self.page.store(offset, value.to_le());
    }
}

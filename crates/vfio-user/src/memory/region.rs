use crate::memory::backing::Backing;
use crate::wire::DmaMap;

/// A DMA region: what the device may do with it, and where its bytes are. Offsets are inside.
#[derive(Debug)]
pub(super) struct MemoryRegion {
    size: u64,
    is_readable: bool,
    is_writable: bool,
    backing: Backing,
}

impl MemoryRegion {
    pub(super) fn new(map: &DmaMap, backing: Backing) -> Self {
        Self {
            size: map.size,
            is_readable: map.flags & DmaMap::READABLE != 0,
            is_writable: map.flags & DmaMap::WRITABLE != 0,
            backing,
        }
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// True if these bytes are inside.
    #[inline]
    pub(super) fn has(&self, offset: u64, len: usize) -> bool {
        self.size - offset >= len as u64
    }

    pub(super) fn is_mapped(&self) -> bool {
        matches!(self.backing, Backing::Mapped(_))
    }

    pub(super) fn is_file(&self) -> bool {
        matches!(self.backing, Backing::File { .. })
    }

    /// True for memory of the guest that the client does not share. ROM is not writable.
    pub(super) fn is_unshared_memory(&self) -> bool {
        self.is_writable && matches!(self.backing, Backing::Unshared)
    }

    /// Copies from the region. `None`: it cannot be read there.
    #[inline]
    pub(super) fn read(&self, offset: u64, into: &mut [u8]) -> Option<()> {
        self.is_readable.then(|| self.backing.read(offset, into))?
    }

    /// True if [`Self::write`] of `len` bytes can succeed.
    #[inline]
    pub(super) fn takes_write(&self, offset: u64, len: usize) -> bool {
        self.is_writable && self.backing.has(offset, len)
    }

    /// Copies to the region. `None`: it cannot be written there.
    #[inline]
    pub(super) fn write(&self, offset: u64, bytes: &[u8]) -> Option<()> {
        self.takes_write(offset, bytes.len()).then(|| self.backing.write(offset, bytes))?
    }

    /// Copies entries to the region, the last 4 bytes of each after all before them. `None`: they
    /// cannot be written there.
    #[inline]
    pub(super) fn post(&self, offset: u64, entries: &[[u8; 16]]) -> Option<()> {
        let len = size_of_val(entries);
        let takes = self.has(offset, len) && self.takes_write(offset, len);
        takes.then(|| self.backing.post(offset, entries))?
    }

    #[inline]
    pub(super) fn load(&self, offset: u64) -> Option<u32> {
        self.is_readable.then(|| self.backing.load(offset))?
    }

    #[inline]
    pub(super) fn store(&self, offset: u64, value: u32) -> Option<()> {
        self.takes_write(offset, 4).then(|| self.backing.store(offset, value))?
    }
}

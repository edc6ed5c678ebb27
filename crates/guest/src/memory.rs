use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use std::fs::File;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use vm_memory::{Bytes, FileOffset, MmapRegion, VolatileMemory, VolatileSlice};

/// Memory that a guest shares with a device, as QEMU does: a sealed memfd. Addresses are offsets.
#[derive(Debug)]
pub struct GuestMemory {
    region: MmapRegion,
    next: AtomicUsize,
}

const PAGE: usize = 4_096;

impl GuestMemory {
    /// Allocates so many bytes of zeros.
    pub fn new(bytes: usize) -> Self {
        let fd = memfd_create("guest", MemfdFlags::ALLOW_SEALING).expect("a memfd");
        ftruncate(&fd, bytes as u64).expect("there is memory");
        fcntl_add_seals(&fd, SealFlags::SHRINK).expect("it can be sealed");
        let file = FileOffset::new(File::from(fd), 0);
        let region = MmapRegion::from_file(file, bytes).expect("there are addresses");
        // No queue begins at address 0.
        Self { region, next: AtomicUsize::new(PAGE) }
    }

    /// Returns the file that a device maps.
    pub fn file(&self) -> &File {
        self.region.file_offset().expect("it has a file").file()
    }

    /// Returns the size in bytes.
    pub fn bytes(&self) -> usize {
        self.region.size()
    }

    /// Allocates whole pages. Returns the address of the first.
    pub fn allocate(&self, bytes: usize) -> usize {
        let bytes = bytes.next_multiple_of(PAGE);
        let address = self.next.fetch_add(bytes, Relaxed);
        assert!(address + bytes <= self.bytes(), "the guest has enough memory");
        address
    }

    fn slice(&self) -> VolatileSlice<'_> {
        self.region.as_volatile_slice()
    }

    /// Loads 4 bytes before later accesses.
    #[inline]
    pub fn load(&self, address: usize) -> u32 {
        self.slice().load(address, Acquire).expect("it is inside")
    }

    /// Stores 4 bytes after earlier accesses.
    #[inline]
    pub fn store(&self, address: usize, value: u32) {
        self.slice().store(value, address, Release).expect("it is inside");
    }

    /// Copies `bytes` into guest memory, starting at `address`.
    #[inline]
    pub fn write(&self, address: usize, bytes: &[u8]) {
        self.slice().write_slice(bytes, address).expect("it is inside");
    }

    /// Copies bytes from `address` on.
    #[inline]
    pub fn read(&self, address: usize, into: &mut [u8]) {
        self.slice().read_slice(into, address).expect("it is inside");
    }
}

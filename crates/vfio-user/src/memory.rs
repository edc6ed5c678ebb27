//! The memory that a client shares with the device.

mod backing;
mod mapping;
mod region;
mod region_map;

use crate::wire::{DmaMap, DmaUnmap, PAGE};
use backing::Backing;
pub(crate) use mapping::Mapping;
use pcie::{HostMemory, OutsideMemory};
use region::MemoryRegion;
use region_map::RegionMap;
use rustix::io::Errno;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::rc::Rc;

/// The DMA regions of a client.
pub(crate) struct GuestMemory {
    regions: RefCell<RegionMap>,
    /// Told of the first access to writable memory of which the client shares no file.
    tell: Box<dyn Fn(UnsharedMemory)>,
    has_told: Cell<bool>,
}

/// The function did not reach writable memory at this address, because the client shares no file of
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnsharedMemory(pub u64);

impl fmt::Display for UnsharedMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the device does not reach the guest's memory at {:#x}, which came without a file \
             descriptor: give the guest shared memory (QEMU: `-object \
             memory-backend-memfd,share=on`)",
            self.0
        )
    }
}

impl GuestMemory {
    /// Returns no memory.
    pub(crate) fn new(tell: impl Fn(UnsharedMemory) + 'static) -> Self {
        Self { regions: RefCell::default(), tell: Box::new(tell), has_told: Cell::new(false) }
    }

    /// Adds a region, with the file that the client shares, if any.
    pub(crate) fn map(&self, map: &DmaMap, file: Option<OwnedFd>) -> Result<(), Errno> {
        let is_known = map.flags & !(DmaMap::READABLE | DmaMap::WRITABLE) == 0;
        let is_aligned = (map.address | map.size | map.offset).is_multiple_of(PAGE);
        let last = map.size.checked_sub(1).and_then(|rest| map.address.checked_add(rest));
        let (true, true, true, Some(last)) = (is_known, map.flags != 0, is_aligned, last) else {
            return Err(Errno::INVAL);
        };
        let mut regions = self.regions.borrow_mut();
        regions.check_room(map.address, last, file.is_some())?;
        let backing = Backing::new(file, map)?;
        regions.insert(map.address, MemoryRegion::new(map, backing));
        Ok(())
    }

    /// Removes a region, which the message names exactly, or all.
    pub(crate) fn unmap(&self, unmap: &DmaUnmap) -> Result<(), Errno> {
        let mut regions = self.regions.borrow_mut();
        match (unmap.flags, unmap.address, unmap.size) {
            (DmaUnmap::ALL, 0, 0) => {
                regions.clear();
                Ok(())
            }
            (0, _, 1..) => {
                let last = unmap.address.checked_add(unmap.size - 1).ok_or(Errno::INVAL)?;
                match regions.remove(unmap.address, unmap.size) {
                    Some(()) => Ok(()),
                    None if regions.is_any_in(unmap.address, last) => Err(Errno::INVAL),
                    None => Err(Errno::NOENT),
                }
            }
            _ => Err(Errno::INVAL),
        }
    }

    /// Removes all regions.
    pub(crate) fn clear(&self) {
        self.regions.borrow_mut().clear();
    }

    /// Calls `access` for each region that `len` bytes from `address` on are in, with the offset in
    /// the region and the range of those bytes. Stops at the first part outside.
    fn each_part(
        &self,
        address: u64,
        len: usize,
        mut access: impl FnMut(&MemoryRegion, u64, Range<usize>) -> Option<()>,
    ) -> Result<(), OutsideMemory> {
        let mut done = 0;
        while done < len {
            let at = address.checked_add(done as u64).ok_or(OutsideMemory(address))?;
            let (start, region) = self.find(at)?;
            let offset = at - start;
            let rest = usize::try_from(region.size() - offset).unwrap_or(usize::MAX);
            let part = done..done + rest.min(len - done);
            done = part.end;
            if access(&region, offset, part).is_none() {
                return Err(self.failed(&region, at));
            }
        }
        Ok(())
    }

    /// Calls `access` for some bytes at `address`, a multiple of how many they are. They are in one
    /// region: regions begin and end between pages.
    #[inline]
    fn unit<T, const BYTES: u64>(
        &self,
        address: u64,
        access: impl FnOnce(&MemoryRegion, u64) -> Option<T>,
    ) -> Result<T, OutsideMemory> {
        const { assert!(BYTES.is_power_of_two() && BYTES < PAGE) };
        if !address.is_multiple_of(BYTES) {
            return Err(OutsideMemory(address));
        }
        let (start, region) = self.find(address)?;
        access(&region, address - start).ok_or_else(|| self.failed(&region, address))
    }

    /// Returns the region of `address` and where it begins.
    #[inline]
    fn find(&self, address: u64) -> Result<(u64, Rc<MemoryRegion>), OutsideMemory> {
        self.regions.borrow_mut().find(address).ok_or(OutsideMemory(address))
    }

    /// Notes that an access to this address of a region failed.
    #[cold]
    fn failed(&self, region: &MemoryRegion, address: u64) -> OutsideMemory {
        if region.is_unshared_memory() && !self.has_told.replace(true) {
            (self.tell)(UnsharedMemory(address));
        }
        OutsideMemory(address)
    }
}

impl HostMemory for GuestMemory {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), OutsideMemory> {
        let len = into.len();
        self.each_part(address, len, |region, offset, part| region.read(offset, &mut into[part]))
    }

    fn write(&self, address: u64, bytes: &[u8]) -> Result<(), OutsideMemory> {
        // Nearly all writes are to one region: that is found once.
        if !bytes.is_empty()
            && let Ok((start, region)) = self.find(address)
            && region.has(address - start, bytes.len())
        {
            let written = region.write(address - start, bytes);
            return written.ok_or_else(|| self.failed(&region, address));
        }
        self.each_part(address, bytes.len(), |region, offset, part| {
            region.takes_write(offset, part.len()).then_some(())
        })?;
        self.each_part(address, bytes.len(), |region, offset, part| {
            region.write(offset, &bytes[part])
        })
    }

    fn load(&self, address: u64) -> Result<u32, OutsideMemory> {
        self.unit::<_, 4>(address, MemoryRegion::load)
    }

    fn store(&self, address: u64, value: u32) -> Result<(), OutsideMemory> {
        self.unit::<_, 4>(address, |region, offset| region.store(offset, value))
    }

    fn post(&self, address: u64, entries: &[[u8; 16]]) -> Result<(), OutsideMemory> {
        self.unit::<_, 16>(address, |region, offset| region.post(offset, entries))
    }
}

use crate::memory::region::MemoryRegion;
use crate::wire::DMA_REGIONS_MAX;
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The DMA regions of a client by address, which do not overlap, and what they use.
#[derive(Debug, Default)]
pub(super) struct RegionMap {
    by_address: BTreeMap<u64, Rc<MemoryRegion>>,
    /// The region that was found last, and where it begins. Most accesses are to it again.
    recent: Option<(u64, Rc<MemoryRegion>)>,
    /// Regions that keep a file open.
    files: usize,
    /// Bytes of mapped regions.
    mapped: u64,
}

/// The most regions that keep a file descriptor open, so that a client leaves descriptors for
/// others. Mapped regions keep none.
const FILES_MAX: usize = 256;

/// The most bytes that a client maps into the address space of the process, which is 128 TiB.
const MAPPED_MAX: u64 = 1 << 44;

impl RegionMap {
    /// Fails if there is no room for a region from `first` to `last`, the last of its addresses.
    pub(super) fn check_room(&self, first: u64, last: u64, has_file: bool) -> Result<(), Errno> {
        if self.is_any_in(first, last) {
            return Err(Errno::EXIST);
        }
        if self.by_address.len() >= DMA_REGIONS_MAX {
            return Err(Errno::NOSPC);
        }
        if has_file && MAPPED_MAX.saturating_sub(self.mapped) <= last - first {
            return Err(Errno::NOMEM);
        }
        if has_file && self.files >= FILES_MAX {
            return Err(Errno::MFILE);
        }
        Ok(())
    }

    /// Adds a region, for which there is room.
    pub(super) fn insert(&mut self, address: u64, region: MemoryRegion) {
        self.files += usize::from(region.is_file());
        self.mapped += if region.is_mapped() { region.size() } else { 0 };
        let before = self.by_address.insert(address, Rc::new(region));
        assert!(before.is_none(), "a new region overlaps no other, which `check_room` checks");
    }

    /// Removes the region of exactly this address and size.
    pub(super) fn remove(&mut self, address: u64, size: u64) -> Option<()> {
        let is_same = self.by_address.get(&address)?.size() == size;
        self.recent = None;
        let region = is_same.then(|| self.by_address.remove(&address))??;
        self.files -= usize::from(region.is_file());
        self.mapped -= if region.is_mapped() { size } else { 0 };
        Some(())
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Returns the region of `address` and where it begins. The caller drops it before the map
    /// changes, so that it is unmapped when the client asks for that.
    #[inline]
    pub(super) fn find(&mut self, address: u64) -> Option<(u64, Rc<MemoryRegion>)> {
        let is_in = |start: u64, region: &MemoryRegion| {
            address.checked_sub(start).is_some_and(|offset| offset < region.size())
        };
        if self.recent.as_ref().is_none_or(|(start, region)| !is_in(*start, region)) {
            self.recent = Some(self.search(address)?);
        }
        self.recent.clone()
    }

    fn search(&self, address: u64) -> Option<(u64, Rc<MemoryRegion>)> {
        let (&start, region) = self.by_address.range(..=address).next_back()?;
        (address - start < region.size()).then(|| (start, region.clone()))
    }

    /// True if a region has an address from `first` to `last`.
    pub(super) fn is_any_in(&self, first: u64, last: u64) -> bool {
        self.search(first).is_some() || self.by_address.range(first..=last).next().is_some()
    }
}

use crate::bus::{HostMemory, OutsideMemory};
use crate::segments::{PAGE, PAGE_BYTES};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Range;

/// The memory of a simulated host: pages of 4 KiB that it has allocated. All else is not mapped.
#[derive(Debug, Default)]
pub struct HostRam {
    pages: RefCell<BTreeMap<u64, Box<[u8; PAGE_BYTES]>>>,
    last: Cell<u64>,
    writes: Cell<u64>,
}

impl HostRam {
    /// Allocates adjacent pages of zeros, with a page before them that is not mapped. Returns the
    /// address of the first.
    pub fn allocate(&self, pages: u64) -> u64 {
        let first = self.last.get() + 2;
        self.last.set(first + pages - 1);
        self.map(first * PAGE, pages);
        first * PAGE
    }

    /// Maps pages of zeros from `address` on, in place of those that are mapped there.
    pub fn map(&self, address: u64, pages: u64) {
        let first = address / PAGE;
        let new = (first..first + pages).map(|page| (page, Box::new([0; PAGE_BYTES])));
        self.pages.borrow_mut().extend(new);
    }

    /// Unmaps pages from `address` on.
    pub fn unmap(&self, address: u64, pages: u64) {
        let first = address / PAGE;
        let unmapped = first..first + pages;
        self.pages.borrow_mut().retain(|page, _| !unmapped.contains(page));
    }

    /// Writes as the host does.
    ///
    /// # Panics
    /// If a part is not mapped.
    pub fn put(&self, address: u64, bytes: &[u8]) {
        let put = self.access(address, bytes.len(), |page, at, range| {
            page[at..at + range.len()].copy_from_slice(&bytes[range]);
        });
        put.expect("a host writes to its own memory");
    }

    /// Reads as the host does.
    ///
    /// # Panics
    /// If a part is not mapped.
    pub fn get(&self, address: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.read(address, &mut bytes).expect("a host reads its own memory");
        bytes
    }

    /// Returns how often a function has written.
    pub fn writes(&self) -> u64 {
        self.writes.get()
    }

    /// Calls `each` with the parts of a range: a page, the offset in it, and which bytes they are.
    fn access(
        &self,
        address: u64,
        len: usize,
        mut each: impl FnMut(&mut [u8; PAGE_BYTES], usize, Range<usize>),
    ) -> Result<(), OutsideMemory> {
        let pages = &mut *self.pages.borrow_mut();
        let mut done = 0;
        while done < len {
            let here = address.checked_add(done as u64).ok_or(OutsideMemory(address))?;
            let at = usize::try_from(here % PAGE).expect("it is in a page");
            let count = (len - done).min(PAGE_BYTES - at);
            let page = pages.get_mut(&(here / PAGE)).ok_or(OutsideMemory(here))?;
            each(page, at, done..done + count);
            done += count;
        }
        Ok(())
    }
}

impl HostMemory for HostRam {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), OutsideMemory> {
        self.access(address, into.len(), |page, at, range| {
            into[range.clone()].copy_from_slice(&page[at..at + range.len()]);
        })
    }

    fn write(&self, address: u64, bytes: &[u8]) -> Result<(), OutsideMemory> {
        self.writes.set(self.writes.get() + 1);
        self.access(address, bytes.len(), |_, _, _| ())?;
        self.put(address, bytes);
        Ok(())
    }

    fn load(&self, address: u64) -> Result<u32, OutsideMemory> {
        assert!(address.is_multiple_of(4), "a load is aligned");
        let mut bytes = [0; 4];
        self.read(address, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn store(&self, address: u64, value: u32) -> Result<(), OutsideMemory> {
        assert!(address.is_multiple_of(4), "a store is aligned");
        self.write(address, &value.to_le_bytes())
    }
}

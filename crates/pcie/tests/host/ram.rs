use pcie::{HostMemory, OutsideMemory};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

pub(crate) const PAGE_BYTES: usize = 4_096;
pub(crate) const PAGE: u64 = PAGE_BYTES as u64;

/// The memory of a host: pages that it has allocated. All else is not mapped.
#[derive(Default)]
pub(crate) struct Ram {
    pages: RefCell<BTreeMap<u64, Vec<u8>>>,
    next: Cell<u64>,
    /// How often it was written.
    pub(crate) writes: Cell<u64>,
}

impl Ram {
    /// Allocates pages that follow each other, and none before them.
    pub(crate) fn allocate(&self, pages: u64) -> u64 {
        let first = self.next.get() + 2;
        self.next.set(first + pages);
        for page in first..first + pages {
            self.pages.borrow_mut().insert(page, vec![0; PAGE_BYTES]);
        }
        first * PAGE
    }

    /// Takes pages away.
    pub(crate) fn unmap(&self, address: u64, pages: u64) {
        for page in address / PAGE..address / PAGE + pages {
            self.pages.borrow_mut().remove(&page).expect("the page was there");
        }
    }

    /// Allocates what the bytes need, with the first one at `offset` of its page.
    pub(crate) fn place(&self, offset: u64, bytes: &[u8]) -> u64 {
        let pages = (offset + bytes.len() as u64).div_ceil(PAGE).max(1);
        let address = self.allocate(pages) + offset;
        self.put(address, bytes);
        address
    }

    pub(crate) fn put(&self, address: u64, bytes: &[u8]) {
        self.access(address, bytes.len(), |page, at, range| {
            page[at..at + range.len()].copy_from_slice(&bytes[range]);
        })
        .expect("the host writes to its own memory");
    }

    pub(crate) fn get(&self, address: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.read(address, &mut bytes).expect("the host reads its own memory");
        bytes
    }

    fn access(
        &self,
        address: u64,
        len: usize,
        mut each: impl FnMut(&mut [u8], usize, std::ops::Range<usize>),
    ) -> Result<(), OutsideMemory> {
        let pages = &mut *self.pages.borrow_mut();
        let mut done = 0;
        while done < len {
            let address = address + done as u64;
            let at = usize::try_from(address % PAGE).expect("it is in a page");
            let count = (len - done).min(PAGE_BYTES - at);
            let page = pages.get_mut(&(address / PAGE)).ok_or(OutsideMemory(address))?;
            each(page, at, done..done + count);
            done += count;
        }
        Ok(())
    }
}

impl HostMemory for Ram {
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
        assert!(address.is_multiple_of(4));
        let mut bytes = [0; 4];
        self.read(address, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn store(&self, address: u64, value: u32) -> Result<(), OutsideMemory> {
        assert!(address.is_multiple_of(4));
        self.write(address, &value.to_le_bytes())
    }
}

use pcie::HostRam;

pub(crate) const PAGE_BYTES: usize = 4_096;
pub(crate) const PAGE: u64 = PAGE_BYTES as u64;

/// Allocates what the bytes need, with the first one at `offset` of its page.
pub(crate) fn place(ram: &HostRam, offset: u64, bytes: &[u8]) -> u64 {
    let pages = (offset + bytes.len() as u64).div_ceil(PAGE).max(1);
    let address = ram.allocate(pages) + offset;
    ram.put(address, bytes);
    address
}

//! Messages as bytes ("Protocol Specification" of the vfio-user specification in QEMU's
//! `docs/interop/vfio-user.rst`). Numbers are in the byte order of the machine.

mod access;
mod dma;
mod header;
mod info;
mod irqs;
mod version;

pub(crate) use access::{Access, PostedWrite, WriteCount};
pub(crate) use dma::{DmaMap, DmaUnmap};
pub(crate) use header::{Command, HEADER_BYTES, Header, flags};
pub(crate) use info::{DeviceInfo, IrqInfo, RegionInfo, SparseMap};
pub(crate) use irqs::SetIrqs;
pub(crate) use version::{Proposal, Version, answer};

/// The most data of a message in bytes, which is also the protocol's default.
pub(crate) const DATA_MAX: u32 = 1 << 20;

/// The most bytes of a message: a write of as much data as is allowed.
pub(crate) const MESSAGE_MAX: usize = HEADER_BYTES + size_of::<Access>() + DATA_MAX as usize;

/// The most DMA regions of a client, which is also the protocol's default.
pub(crate) const DMA_REGIONS_MAX: usize = 65_535;

/// The only page size of DMA regions in bytes.
pub(crate) const PAGE: u64 = 4_096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_have_the_sizes_of_the_specification() {
        let sizes = [
            size_of::<Header>(),
            size_of::<Version>(),
            size_of::<DmaMap>(),
            size_of::<DmaUnmap>(),
            size_of::<DeviceInfo>(),
            size_of::<RegionInfo>(),
            size_of::<SparseMap>(),
            size_of::<IrqInfo>(),
            size_of::<SetIrqs>(),
            size_of::<Access>(),
            size_of::<WriteCount>(),
            size_of::<PostedWrite>(),
        ];
        assert_eq!(sizes, [16, 4, 32, 24, 16, 32, 32, 16, 20, 16, 8, 24]);
    }
}

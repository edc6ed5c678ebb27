use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `VFIO_USER_DEVICE_GET_INFO`.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct DeviceInfo {
    pub(crate) argsz: u32,
    pub(crate) flags: u32,
    pub(crate) num_regions: u32,
    pub(crate) num_irqs: u32,
}

impl DeviceInfo {
    /// The device can be reset.
    pub(crate) const RESET: u32 = 1 << 0;
    /// The device is a PCI device.
    pub(crate) const PCI: u32 = 1 << 1;
}

/// `VFIO_USER_DEVICE_GET_REGION_INFO`, before capabilities.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct RegionInfo {
    pub(crate) argsz: u32,
    pub(crate) flags: u32,
    pub(crate) index: u32,
    /// Where the first capability begins in the structure; 0 if none follows.
    pub(crate) cap_offset: u32,
    pub(crate) size: u64,
    /// Where the region begins in the file of a region that can be mapped.
    pub(crate) offset: u64,
}

impl RegionInfo {
    /// The client can read the region.
    pub(crate) const READ: u32 = 1 << 0;
    /// The client can write the region.
    pub(crate) const WRITE: u32 = 1 << 1;
    /// The client can map the region, or areas of it: the reply comes with its file.
    pub(crate) const MAP: u32 = 1 << 2;
    /// Capabilities follow.
    pub(crate) const CAPABILITIES: u32 = 1 << 3;
}

/// A capability after a [`RegionInfo`]: `vfio_region_info_cap_sparse_mmap` of `linux/vfio.h` with
/// the only area that the client can map.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct SparseMap {
    /// [`Self::ID`].
    pub(crate) id: u16,
    /// [`Self::VERSION`].
    pub(crate) version: u16,
    /// Where the next capability begins; 0 if this is the last.
    pub(crate) next: u32,
    pub(crate) areas: u32,
    pub(crate) reserved: u32,
    /// Where the area begins in the region.
    pub(crate) offset: u64,
    pub(crate) size: u64,
}

impl SparseMap {
    /// `VFIO_REGION_INFO_CAP_SPARSE_MMAP`.
    pub(crate) const ID: u16 = 1;
    pub(crate) const VERSION: u16 = 1;
}

/// `VFIO_USER_DEVICE_GET_IRQ_INFO`.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct IrqInfo {
    pub(crate) argsz: u32,
    pub(crate) flags: u32,
    pub(crate) index: u32,
    pub(crate) count: u32,
}

impl IrqInfo {
    /// The server raises the interrupts by eventfds.
    pub(crate) const EVENTFD: u32 = 1 << 0;
}

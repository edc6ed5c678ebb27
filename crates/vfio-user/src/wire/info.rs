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

/// `VFIO_USER_DEVICE_GET_REGION_INFO`, without capabilities.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct RegionInfo {
    pub(crate) argsz: u32,
    pub(crate) flags: u32,
    pub(crate) index: u32,
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

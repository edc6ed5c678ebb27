use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `VFIO_USER_DMA_MAP`.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct DmaMap {
    pub(crate) argsz: u32,
    pub(crate) flags: u32,
    /// Where the region begins in its file.
    pub(crate) offset: u64,
    pub(crate) address: u64,
    pub(crate) size: u64,
}

impl DmaMap {
    /// The device may read the region.
    pub(crate) const READABLE: u32 = 1 << 0;
    /// The device may write the region.
    pub(crate) const WRITABLE: u32 = 1 << 1;
}

/// `VFIO_USER_DMA_UNMAP`. The reply repeats it.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct DmaUnmap {
    pub(crate) argsz: u32,
    pub(crate) flags: u32,
    pub(crate) address: u64,
    pub(crate) size: u64,
}

impl DmaUnmap {
    /// Removes all regions: `VFIO_DMA_UNMAP_FLAG_ALL` of `linux/vfio.h`. Address and size are 0.
    pub(crate) const ALL: u32 = 1 << 1;
}

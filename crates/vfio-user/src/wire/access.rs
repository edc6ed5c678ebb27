use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// What `VFIO_USER_REGION_READ` and `VFIO_USER_REGION_WRITE` begin with, before the data.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Access {
    pub(crate) offset: u64,
    pub(crate) region: u32,
    /// Bytes of data.
    pub(crate) count: u32,
}

/// What `VFIO_USER_REGION_WRITE_MULTI` begins with, before the writes, and its reply.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct WriteCount(pub(crate) u64);

/// A write of `VFIO_USER_REGION_WRITE_MULTI`.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct PostedWrite {
    pub(crate) access: Access,
    /// The first `count` bytes of it are written.
    pub(crate) data: [u8; 8],
}

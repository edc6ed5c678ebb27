use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// What `VFIO_USER_DEVICE_SET_IRQS` begins with, before the data.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct SetIrqs {
    pub(crate) argsz: u32,
    /// One of the `DATA` bits and one of the `ACTION` bits.
    pub(crate) flags: u32,
    pub(crate) index: u32,
    pub(crate) start: u32,
    pub(crate) count: u32,
}

impl SetIrqs {
    pub(crate) const DATA_NONE: u32 = 1 << 0;
    /// A byte for each interrupt says whether the action is for it.
    pub(crate) const DATA_BOOL: u32 = 1 << 1;
    /// The message comes with an eventfd for each interrupt, or with none to remove them.
    pub(crate) const DATA_EVENTFD: u32 = 1 << 2;
    pub(crate) const DATA: u32 = Self::DATA_NONE | Self::DATA_BOOL | Self::DATA_EVENTFD;
    pub(crate) const ACTION_MASK: u32 = 1 << 3;
    pub(crate) const ACTION_UNMASK: u32 = 1 << 4;
    pub(crate) const ACTION_TRIGGER: u32 = 1 << 5;
}

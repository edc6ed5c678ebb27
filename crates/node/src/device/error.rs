use engine::SPARE_EXTENTS_MIN;

/// Why a device cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// Too little is left for cleaning.
    #[error(
        "{place}: the good blocks make {extents} extents of {extent_bytes} bytes, which leaves \
         less than {SPARE_EXTENTS_MIN} of them beside the {size_bytes} bytes that hosts see; \
         lower factory_bad_ppm, raise over_provisioning or choose a narrower stripe"
    )]
    TooSmall {
        /// The profile, and the line of the size of the first namespace of keys and values.
        place: String,
        /// Extents that the good blocks make.
        extents: u32,
        /// Data bytes of each.
        extent_bytes: u64,
        /// Bytes that hosts see in all namespaces of keys and values.
        size_bytes: u64,
    },
    /// More blocks are bad than a namespace can spare.
    #[error(
        "{place}: namespace {nsid} has {size_bytes} bytes, but its good blocks hold no more than \
         {room_bytes} beside what cleaning needs; lower factory_bad_ppm or raise over_provisioning"
    )]
    TooManyBad {
        /// The profile, and the line of the namespace's size.
        place: String,
        /// The namespace, from 1.
        nsid: u32,
        /// Its size in bytes for hosts.
        size_bytes: u64,
        /// Bytes for which its good blocks have room.
        room_bytes: u64,
    },
    /// The store failed, or the content of the flash is damaged.
    #[error("the device cannot be opened: {0}")]
    Store(#[from] engine::Error),
}

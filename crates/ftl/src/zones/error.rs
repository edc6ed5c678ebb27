/// Why a zoned device refused, or failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ZoneError {
    /// The blocks lie in more than one zone, or a write would pass the zone's capacity: Zone
    /// Boundary Error.
    #[error("the blocks cross the end of their zone")]
    Boundary,
    /// A write to a full zone: Zone Is Full.
    #[error("the zone is full")]
    Full,
    /// A write to a zone that can only be read: Zone Is Read Only.
    #[error("the zone is read only")]
    ReadOnly,
    /// The zone is lost: Zone Is Offline.
    #[error("the zone is offline")]
    Offline,
    /// A write that does not begin at the write pointer: Zone Invalid Write.
    #[error("the write does not begin at the zone's write pointer")]
    InvalidWrite,
    /// No more zones may be active: Too Many Active Zones.
    #[error("too many zones are active")]
    TooManyActive,
    /// No more zones may be open, and all that are were opened explicitly: Too Many Open Zones.
    #[error("too many zones are open")]
    TooManyOpen,
    /// The zone's state does not allow the action: Invalid Zone State Transition.
    #[error("the zone's state does not allow this")]
    InvalidTransition,
    /// An append that names a block other than the first of a zone: Invalid Field in Command.
    #[error("an append names the first block of a zone, not this one")]
    NotAStart,
    /// Blocks, or a zone, that the device does not have: LBA Out of Range.
    #[error("there is no such zone")]
    OutOfRange,
    /// The medium failed.
    #[error(transparent)]
    Media(#[from] media::Error),
}

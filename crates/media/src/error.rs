use crate::extent::PageId;

/// Why a medium could not do what it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Every extent is in use.
    #[error("no extent is free")]
    NoFreeExtent,
    /// The page could not be read back as it was written.
    #[error("{0} could not be read")]
    Unrecovered(PageId),
    /// Power was lost before the page was written.
    #[error("power is lost")]
    PowerLost,
    /// The logical block could not be read back as it was written.
    #[error("logical block {0} could not be read")]
    UnrecoveredBlock(u64),
    /// Too many blocks of flash have failed: what is there can be read, and that is all.
    #[error("too many blocks of flash have failed to write any more")]
    ReadOnly,
}

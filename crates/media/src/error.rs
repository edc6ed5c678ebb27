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
}

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
    /// The logical block could not be written: what it holds is not known.
    #[error("logical block {0} could not be written")]
    UnwrittenBlock(u64),
    /// The file system on which the medium is has no space left.
    #[error("the file system under the medium is full")]
    NoSpace,
    /// What was written may be gone after a loss of power, and no later flush can tell.
    #[error("what was written may not outlive a loss of power")]
    NotFlushed,
    /// Too many blocks of flash have failed: what is there can be read, and that is all.
    #[error("too many blocks of flash have failed to write any more")]
    ReadOnly,
}

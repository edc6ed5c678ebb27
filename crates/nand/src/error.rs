/// Why a page could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// It has more errors than can be corrected, until its block is erased.
    #[error("the page cannot be read")]
    Uncorrectable,
}

/// Why a page could not be programmed, or a block not be marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    /// The program failed. Its page is used up and cannot be read.
    #[error("the page could not be programmed")]
    Failed,
    /// The power is gone and the capacitors are empty. Nothing has changed.
    #[error("the power is gone")]
    PowerLost,
}

/// Why a page could not be copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CopyError {
    /// The page to copy cannot be read. Nothing was programmed.
    #[error("the page to copy cannot be read")]
    Uncorrectable,
    /// The program failed. The target is used up and cannot be read.
    #[error("the copy could not be programmed")]
    Failed,
    /// The power is gone and the capacitors are empty. Nothing has changed.
    #[error("the power is gone")]
    PowerLost,
}

/// Why a block could not be erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EraseError {
    /// The erase failed. No page of the block can be read or programmed.
    #[error("the block could not be erased")]
    Failed,
}

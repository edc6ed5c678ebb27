/// Why a page could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// More errors than can be corrected, until the block is erased.
    #[error("the page cannot be read")]
    Uncorrectable,
}

/// Why a program or a mark failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    /// The program failed. Its page is used up and unreadable.
    #[error("the page could not be programmed")]
    Failed,
    /// The power is gone and the capacitors are empty. Nothing has changed.
    #[error("the power is gone")]
    PowerLost,
}

/// Why a copy failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CopyError {
    /// The source page is unreadable. Nothing was programmed.
    #[error("the page to copy cannot be read")]
    Uncorrectable,
    /// The program failed. The target is used up and unreadable.
    #[error("the copy could not be programmed")]
    Failed,
    /// The power is gone and the capacitors are empty. Nothing has changed.
    #[error("the power is gone")]
    PowerLost,
}

/// Why an erase failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EraseError {
    /// The erase failed. No page of the block is readable or programmable.
    #[error("the block could not be erased")]
    Failed,
}

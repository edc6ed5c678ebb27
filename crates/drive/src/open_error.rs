use media::Error;

/// Why blocks could not be formatted or opened as a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// There is no superblock.
    #[error("there is no Kvasir drive: format it first")]
    NotADrive,
    /// The format is of a later version.
    #[error(
        "the drive has format {found}, and this version knows {known}: use a version that knows it"
    )]
    Newer {
        /// The drive's format.
        found: u32,
        /// The last that is known here.
        known: u32,
    },
    /// The drive uses features of a later version.
    #[error(
        "the drive uses features that this version does not know (bits {features:#010x}): use a \
         version that knows them"
    )]
    Unknown {
        /// The bits of these features.
        features: u32,
    },
    /// There are fewer blocks, or more, than when the drive was formatted.
    #[error(
        "the drive was formatted on {formatted} bytes and is on {found} now: {}",
        resized(*formatted, *found)
    )]
    OtherSize {
        /// Bytes as the superblock says.
        formatted: u64,
        /// Bytes of the blocks.
        found: u64,
    },
    /// Neither superblock is whole.
    #[error("both superblocks of the drive are damaged: restore it from a copy")]
    Damaged,
    /// A superblock that is whole says what no drive can be.
    #[error("the superblock tells of a drive that cannot be: restore it from a copy")]
    Impossible,
    /// The two superblocks are of different drives.
    #[error(
        "its two superblocks are of different drives: one was copied over the other; restore it \
         from a copy"
    )]
    TwoDrives,
    /// There is no room for as many extents as it has at least.
    #[error("{found} bytes are too few for a drive: it needs {needed}")]
    TooSmall {
        /// Bytes of the blocks.
        found: u64,
        /// The least that would do.
        needed: u64,
    },
    /// The sizes asked for cannot be had.
    #[error(
        "a drive has blocks of 512 to 4096 bytes, a power of two, and extents of whole 4 KiB, from \
         32 KiB to 1 GiB"
    )]
    Sizes,
    /// The blocks failed.
    #[error(transparent)]
    Media(#[from] Error),
}

/// What to do about a drive that has another size than it had.
const fn resized(formatted: u64, found: u64) -> &'static str {
    if found < formatted {
        "its end is missing; copy it again, or restore it from a copy"
    } else {
        "cut it to the size that it had, or use a partition of that size: nothing is lost by that"
    }
}

use super::usage::Usage;
use std::fmt;

/// The content of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// No file.
    Absent,
    /// Something that is neither a file nor a block device.
    NotADisk,
    /// In use; its content was not read.
    Used(Usage),
    /// A Kvasir drive.
    Kvasir,
    /// A partition table, by its name.
    Partitions(&'static str),
    /// A known format, by its first bytes: "an xfs file system".
    Known(&'static str),
    /// Data of an unknown format.
    Unknown,
    /// Zeros in the first MiB and wherever a known format begins.
    Empty,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.write_str("does not exist"),
            Self::NotADisk => f.write_str("is neither a file nor a block device"),
            Self::Used(usage) => usage.fmt(f),
            Self::Kvasir => f.write_str("holds a Kvasir drive"),
            Self::Partitions(table) => write!(f, "holds a partition table ({table})"),
            Self::Known(what) => write!(f, "holds {what}"),
            Self::Unknown => f.write_str("holds data of an unknown format"),
            Self::Empty => f.write_str("is empty"),
        }
    }
}

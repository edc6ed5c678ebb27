use crate::extent::Live;
use base::Key;
use media::ExtentId;
use std::fmt;

/// A fault, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The extent, unless it is about all of them.
    pub extent: Option<ExtentId>,
    /// The page, if it is about one.
    pub page: Option<u32>,
    /// The key, if it is about one that is known.
    pub key: Option<Key>,
    /// The kind of fault.
    pub wrong: Wrong,
}

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// A page with live pairs cannot be read. Its other records are not known.
    Page {
        /// Live pairs by the index.
        live: u64,
    },
    /// A page cannot be read, and nothing on it is needed.
    DeadPage,
    /// One bit of the headers of a page with live pairs was flipped.
    Flipped {
        /// Live pairs by the index.
        live: u64,
    },
    /// Headers of a page are damaged.
    Headers,
    /// A live value is not what was stored.
    Value,
    /// A live value was lost before it could be moved.
    Lost,
    /// A value that was overwritten or deleted is not what was stored.
    DeadValue,
    /// Bytes of a page are damaged that belong to no value.
    Filling,
    /// A page of the newest checkpoint is damaged.
    Table,
    /// A table page that no checkpoint and no index needs is damaged.
    DeadTable,
    /// A summary cannot be read.
    Summary,
    /// A summary lists other records than there are.
    SummaryDiffers,
    /// The newest record of a key is not in the index.
    NotIndexed,
    /// The index points to an older record of a key.
    Stale,
    /// A key was deleted and is in the index.
    Deleted,
    /// Entries of the index do not point to a record of their key.
    Astray {
        /// How many.
        entries: u64,
    },
    /// The index counts more or fewer entries than it has.
    Entries {
        /// The number that it counts.
        counted: u64,
        /// The number that it has.
        found: u64,
    },
    /// Live pairs are counted wrong.
    Values {
        /// The count.
        counted: Live,
        /// The number that the records add up to.
        found: Live,
    },
    /// Tombstones are counted wrong.
    Tombstones {
        /// The count.
        counted: Live,
        /// The number that the records add up to.
        found: Live,
    },
    /// The extent has an old content. Its newer records cannot be read.
    Outdated {
        /// Missing pairs to which the index points.
        live: u64,
    },
    /// The checkpoint has a later content of the extent, or had erased it.
    OldCopy,
    /// The extent has fewer pages than the checkpoint knows.
    CutShort,
}

impl Wrong {
    /// Returns true for damage to data that no read will ask for.
    pub const fn is_harmless(self) -> bool {
        matches!(self, Self::DeadPage | Self::DeadValue | Self::DeadTable | Self::Filling)
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sentence = match self {
            Self::Page { live: 0 } => "the page cannot be read, and what was on it is not known",
            Self::Page { live } => {
                return write!(f, "the page cannot be read: live pairs on it are {live}");
            }
            Self::Flipped { live } => {
                return write!(
                    f,
                    "a bit of the page's head is turned over, which reading mends: live pairs on \
                     it are {live}"
                );
            }
            Self::DeadPage => "the page cannot be read, and nothing on it is needed",
            Self::Headers => "headers of the page are damaged",
            Self::Value => "the value is not what was stored: reading it fails",
            Self::Lost => "the value was lost before it could be moved: reading it fails",
            Self::DeadValue => "a value that is no longer needed is damaged",
            Self::Filling => "bytes between values are damaged",
            Self::Table => "a page of the checkpoint is damaged: the drive opens by its log",
            Self::DeadTable => "a page of an earlier checkpoint is damaged",
            Self::Summary => {
                "the summary cannot be read: the extent is read page by page in its place"
            }
            Self::SummaryDiffers => "the summary lists other records than the extent has",
            Self::NotIndexed => "the newest record of the key is not in the index",
            Self::Stale => "the index has an older record of the key",
            Self::Deleted => "the key was deleted and is in the index",
            Self::Astray { entries } => {
                return write!(f, "entries of the index that lead to no record here: {entries}");
            }
            Self::Entries { counted, found } => {
                return write!(f, "the index counts {counted} entries and has {found}");
            }
            Self::Values { counted, found } => return miscounted(f, "live pairs", counted, found),
            Self::Tombstones { counted, found } => {
                return miscounted(f, "tombstones", counted, found);
            }
            Self::Outdated { live } => {
                return write!(
                    f,
                    "an old copy of the extent, or its end is gone: live pairs that came later, \
                     and cannot be read, are {live} of those that the checkpoint knows"
                );
            }
            Self::OldCopy => {
                "an old copy of the extent: the checkpoint knows later records, which are lost"
            }
            Self::CutShort => "the extent ends before what the checkpoint knows to be there",
        };
        f.write_str(sentence)
    }
}

fn miscounted(f: &mut fmt::Formatter<'_>, what: &str, counted: &Live, found: &Live) -> fmt::Result {
    write!(
        f,
        "{what} are counted as {} of {} bytes, and there are {} of {} bytes",
        counted.records, counted.bytes, found.records, found.bytes
    )?;
    if counted.long_keys == found.long_keys {
        return Ok(());
    }
    let (counted, found) = (counted.long_keys, found.long_keys);
    write!(f, "; long keys are counted as {counted}, and there are {found}")
}

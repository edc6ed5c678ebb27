//! The progress of scrubbing, and its findings.

use media::{ExtentId, Label, PageId};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The progress of a store's scrubbing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scrubbed {
    /// Number of complete passes, in this life of the store and in earlier ones, as checkpoints
    /// keep it.
    pub passes: u64,
    /// Bytes read in this life.
    pub bytes: u64,
    /// Damaged pages found in this life.
    pub damaged: u64,
    /// The extent that is read, or that is next.
    pub extent: u32,
}

/// A page that is not as it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScrubFinding {
    /// Which.
    pub at: PageId,
    /// The damaged part.
    pub part: ScrubbedPart,
}

/// The damaged part of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScrubbedPart {
    /// The page cannot be read.
    Page,
    /// It can, or can be mended, and its headers are damaged.
    Headers,
    /// Its data are damaged: a value, or the bytes between values.
    Data,
}

impl fmt::Display for ScrubFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.part {
            ScrubbedPart::Page => "it cannot be read",
            ScrubbedPart::Headers => "its headers are damaged",
            ScrubbedPart::Data => "its data are damaged",
        };
        write!(f, "extent {}, page {}: {what}", self.at.extent.0, self.at.page)
    }
}

/// Where scrubbing is.
#[derive(Debug, Default)]
pub(crate) struct Scrubber(Mutex<Progress>);

#[derive(Debug, Default)]
pub(crate) struct Progress {
    pub(crate) scrubbed: Scrubbed,
    /// The label of the extent that was read in part, and the next page to read.
    pub(crate) within: Option<(Label, u32)>,
    pub(crate) known: BTreeSet<(ExtentId, u64, u32)>,
    pub(crate) is_ending: bool,
}

impl Scrubber {
    pub(crate) fn progress(&self) -> MutexGuard<'_, Progress> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the part that a checkpoint keeps: the next extent and the number of passes. After a
    /// start that extent is read from its first page: its content may have changed.
    pub(crate) fn place(&self) -> (u32, u64) {
        let progress = self.progress();
        (progress.scrubbed.extent, progress.scrubbed.passes)
    }

    pub(crate) fn go_on_at(&self, (extent, passes): (u32, u64)) {
        let scrubbed = &mut self.progress().scrubbed;
        (scrubbed.extent, scrubbed.passes) = (extent, passes);
    }
}

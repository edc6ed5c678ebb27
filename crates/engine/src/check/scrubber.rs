//! How far scrubbing is, and what it found.

use media::{ExtentId, Label, PageId};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What the scrubbing of a store has come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scrubbed {
    /// How often all was read, in this life of the store and before, as checkpoints have it.
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
    /// What of it.
    pub part: ScrubbedPart,
}

/// What of a page is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScrubbedPart {
    /// The page cannot be read.
    Page,
    /// It can, or can be mended, and its headers are damaged.
    Headers,
    /// Its data are damaged: a value, or what lies between.
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
    /// The opening of the extent of which some was read, and how far.
    pub(crate) within: Option<(Label, u32)>,
    pub(crate) known: BTreeSet<(ExtentId, u64, u32)>,
    pub(crate) is_ending: bool,
}

impl Scrubber {
    pub(crate) fn progress(&self) -> MutexGuard<'_, Progress> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a checkpoint keeps: the extent that is next, and passes. What was read of it is read
    /// again after a start: nobody knows what is there then.
    pub(crate) fn place(&self) -> (u32, u64) {
        let progress = self.progress();
        (progress.scrubbed.extent, progress.scrubbed.passes)
    }

    pub(crate) fn go_on_at(&self, (extent, passes): (u32, u64)) {
        let scrubbed = &mut self.progress().scrubbed;
        (scrubbed.extent, scrubbed.passes) = (extent, passes);
    }
}

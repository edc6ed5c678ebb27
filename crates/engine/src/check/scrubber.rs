//! The progress of scrubbing, and its findings.

use media::{ExtentId, Label, PageId};
use std::collections::{BTreeMap, BTreeSet};
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
    /// The first extent that is read, or that is next.
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
    /// The extents that this pass has begun and not read to their ends: their labels, and the next
    /// pages to read.
    pub(crate) begun: BTreeMap<ExtentId, (Label, u32)>,
    /// The first extent that this pass has not begun.
    pub(crate) next: u32,
    pub(crate) known: BTreeSet<(ExtentId, u64, u32)>,
    pub(crate) is_ending: bool,
}

impl Progress {
    /// Notes that an extent was read up to page `next`, or to its end.
    pub(crate) fn go_behind(&mut self, extent: ExtentId, label: Label, next: Option<u32>) {
        match next {
            Some(next) => drop(self.begun.insert(extent, (label, next))),
            None => drop(self.begun.remove(&extent)),
        }
        self.note_place();
    }

    /// All extents of the pass that are before its place have been read to their ends.
    pub(crate) fn note_place(&mut self) {
        self.scrubbed.extent = self.begun.keys().next().map_or(self.next, |first| first.0);
    }
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
        let mut progress = self.progress();
        progress.next = extent;
        (progress.scrubbed.extent, progress.scrubbed.passes) = (extent, passes);
    }
}

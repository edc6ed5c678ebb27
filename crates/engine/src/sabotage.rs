//! Mistakes on purpose: a test that would not find them proves nothing. They exist only in builds
//! with debug assertions, which the profile `dist` of installed programs does not have. Only tests
//! choose one.

#[cfg(debug_assertions)]
use std::sync::atomic::{AtomicU8, Ordering};

/// A mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Sabotage {
    /// A store is answered before its page is programmed.
    AnswerBeforeData = 1,
    /// A command that finds a record in the index is answered before the record's page is
    /// programmed.
    IndexBeforeData,
    /// Deletes are not known after opening.
    NoTombstones,
    /// After opening the record that was found last counts, not the newest.
    NoSequences,
    /// Batches of which the end is missing count.
    TornBatches,
    /// Values of which a page is missing count.
    TornRecords,
    /// What cannot be read counts as not there.
    LostIsAbsent,
    /// A checkpoint fixes the index lane by lane, and then the extents.
    CheckpointByLanes,
    /// A write gives its locks back between the look at the keys' records and the append.
    AppendsLate,
}

#[cfg(debug_assertions)]
static CHOSEN: AtomicU8 = AtomicU8::new(0);

impl Sabotage {
    /// All mistakes.
    #[cfg(debug_assertions)]
    pub const ALL: [Self; 9] = [
        Self::AnswerBeforeData,
        Self::IndexBeforeData,
        Self::NoTombstones,
        Self::NoSequences,
        Self::TornBatches,
        Self::TornRecords,
        Self::LostIsAbsent,
        Self::CheckpointByLanes,
        Self::AppendsLate,
    ];

    /// After this call each store of this process makes this mistake alone.
    #[cfg(debug_assertions)]
    pub fn choose(mistake: Option<Self>) {
        CHOSEN.store(mistake.map_or(0, |mistake| mistake as u8), Ordering::Relaxed);
    }

    #[cfg(debug_assertions)]
    pub(crate) fn is_on(self) -> bool {
        CHOSEN.load(Ordering::Relaxed) == self as u8
    }

    #[cfg(not(debug_assertions))]
    #[expect(clippy::unused_self, reason = "as with debug assertions, where it decides")]
    #[inline]
    pub(crate) const fn is_on(self) -> bool {
        false
    }
}

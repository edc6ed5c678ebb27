//! Mistakes on purpose, in builds with the feature `sabotage` only: a test that would not find them
//! proves nothing. In other builds nothing can choose one.

#[cfg(feature = "sabotage")]
use std::sync::atomic::{AtomicU8, Ordering};

/// A mistake of a drive on blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Sabotage {
    /// Appends return before what they have written is flushed.
    AnswerBeforeFlush = 1,
    /// Frames that an extent had in an earlier life count after a start.
    FormerFrames,
}

#[cfg(feature = "sabotage")]
static CHOSEN: AtomicU8 = AtomicU8::new(0);

impl Sabotage {
    /// Every drive of this process makes this mistake from here on, and no other.
    #[cfg(feature = "sabotage")]
    pub fn choose(mistake: Option<Self>) {
        CHOSEN.store(mistake.map_or(0, |mistake| mistake as u8), Ordering::Relaxed);
    }

    #[cfg(feature = "sabotage")]
    pub(crate) fn is_on(self) -> bool {
        CHOSEN.load(Ordering::Relaxed) == self as u8
    }

    #[cfg(not(feature = "sabotage"))]
    #[expect(clippy::unused_self, reason = "as with the feature, where it decides")]
    #[inline]
    pub(crate) const fn is_on(self) -> bool {
        false
    }
}

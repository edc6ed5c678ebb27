//! Mistakes on purpose: a test that would not find them proves nothing. They exist only in builds
//! with debug assertions, which the profile `dist` of installed programs does not have. Only tests
//! choose one.

#[cfg(debug_assertions)]
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

#[cfg(debug_assertions)]
static CHOSEN: AtomicU8 = AtomicU8::new(0);

impl Sabotage {
    /// Every drive of this process makes this mistake from here on, and no other.
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

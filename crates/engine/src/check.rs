//! Checks of a store: verification of a closed one, scrubbing of a running one, and inspection of
//! its pages.

pub(crate) mod inspect;
pub(crate) mod scrub;
pub(crate) mod scrubber;
pub(crate) mod verify;

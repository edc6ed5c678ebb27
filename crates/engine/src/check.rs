//! Checks of a store: of one that is not in use, of one that is, and page by page.

pub(crate) mod inspect;
pub(crate) mod scrub;
pub(crate) mod scrubber;
pub(crate) mod verify;

//! Cleaning: which extents are reset, what of them is moved, and what has expired.

pub(crate) mod cleaner;
pub(crate) mod cleaning;
pub(crate) mod copy;
pub(crate) mod count_expiring;
pub(crate) mod expiring;
pub(crate) mod expiry;

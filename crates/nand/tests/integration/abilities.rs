//! What an array can do beyond reading, programming and erasing, against formulas in the tests, to
//! the nanosecond.

mod cache;
mod copyback;
mod levels;
mod planes;
mod priority;
mod rig;
mod saturation;
mod sums;
mod suspend;
mod wear;

//! The flash array: what its cells hold, what they allow, and how long each step takes.
//!
//! # How it works
//! 1. [`Cells`] is the array's content, block by block: the part of a drive that a power cut
//!    leaves.
//! 2. [`Nand`] reads, programs and erases cells through the die's page register, the die's array
//!    and the channel that it shares with other dies, each for the time that [`Timing`] gives.
//! 3. An operation is one `async fn`:
//!
//! | operation | holds a register during | cells are touched at the end of |
//! |---|---|---|
//! | read | array (`read`), channel | array |
//! | program | channel (a whole page), array (`program`) | array |
//! | erase | array (`erase`) | array |
//!
//! 4. [`Model::Staged`] awaits each step in the order in which dies and channels get free.
//!    [`Model::Scalar`] is the model of the published emulators, to compare with: it computes all
//!    steps when the operation arrives.
//!
//! # Guarantees
//! - In every build: a page is programmed once between erases, in page order, on a good block; a
//!   page that was not programmed is never read. Anything else panics with a sentence.
//! - A program or an erase that a power cut stops before the end of its array stage changed
//!   nothing.
//! - An operation's stages add up to its latency in both models.
//! - Within one class, programs of a die reach its cells in the order of their first polls.
//!
//! # Trusts
//! - Programs of one block that are under way together are of one class; otherwise the more urgent
//!   one may go first, which is out of order.
//! - A page is read only after its program has ended.
//!
//! # Not here
//! Which block holds what (`ftl`), what the bytes mean (`engine`), operations that use several
//! planes of a die at once.

mod array;
mod cells;
mod counters;
mod geometry;
mod scalar;
mod staged;
mod timing;

pub use array::Nand;
pub use cells::{Cells, TAG_BYTES, Tag};
pub use counters::Counters;
pub use geometry::{BlockId, DieId, Geometry, Ppa};
pub use timing::{Model, Registers, Timing};

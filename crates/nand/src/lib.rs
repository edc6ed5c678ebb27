//! The flash array: what its cells hold, what they allow, and how long each step takes.
//!
//! # How it works
//! 1. [`Cells`] is the array's content, block by block: the part of a drive that a power cut
//!    leaves.
//! 2. [`Nand`] reads, programs, copies and erases cells through a page register, an array of cells
//!    and the channel that dies share, each for the time that [`Timing`] gives.
//! 3. An operation is one `async fn`:
//!
//! | operation | holds a register during | cells are touched at the end of |
//! |---|---|---|
//! | read | array (`read`, again for each retry), channel | array |
//! | program | channel (a whole page), array (`program`) | array |
//! | copyback | array (`read` and `program`) | array |
//! | erase | array (`erase`) | array |
//!
//! 4. A page's times are those of its level ([`Levels`]), off by what its die and its address draw
//!    from the seed; how often a read senses again comes from the block's erases.
//! 5. [`Planes`] says whether the planes of a die take turns, do the same together, or are on
//!    their own. A die that can suspend interrupts a program or an erase for a host's read.
//! 6. A [`FaultPlan`] says which steps fail, flip a bit or take longer; [`Nand::faults`] what did.
//!    Without rules nothing is asked or counted. See `docs/internals/faults.md`.
//! 7. [`Model::Staged`] awaits each step in the order in which planes and channels get free.
//!    [`Model::Scalar`] is the model of the published emulators, to compare with: it computes all
//!    steps when the operation arrives.
//!
//! # Guarantees
//! - In every build: a page is programmed once between erases, in page order, on a good block; a
//!   page that was not programmed is never read. Anything else panics with a sentence.
//! - A step that a power cut stops before its array stage changed nothing. In that stage a program
//!   or a copy leaves its page torn and an erase the block half erased: used up and unreadable.
//! - An operation's stages add up to its latency in both models.
//! - Within one class, programs of a plane reach its cells in the order of their first polls.
//! - How fast a page is, and how often it is sensed again, is a pure function of the seed, its
//!   address and the erases of its block.
//!
//! # Trusts
//! - Programs of one block that are under way together are of one class; otherwise the more urgent
//!   one may go first, which is out of order. Copies into a block and programs of it are not under
//!   way together: a copy has no data to wait for.
//! - A page is read only after its program has ended.
//!
//! # Not here
//! Which block holds what (`ftl`), what the bytes mean (`engine`), how errors are corrected.

mod array;
mod cell_array;
mod cells;
mod counters;
mod error;
mod fault;
mod faults;
mod geometry;
mod levels;
mod pace;
mod page_map;
mod power;
mod saved;
mod scalar;
mod staged;
mod timing;
mod torn;

pub use array::Nand;
pub use cells::{Cells, TAG_BYTES, Tag};
pub use counters::Counters;
pub use error::{CopyError, EraseError, ProgramError, ReadError};
pub use fault::{Fault, FaultCounts, FaultKind, FaultPlan, FaultReport, FaultRule, When};
pub use geometry::{BlockId, DieId, Geometry, Ppa};
pub use levels::{Level, Levels};
pub use page_map::{PageMap, PageMapError};
pub use saved::{SavedDie, SavedNand};
pub use timing::{Model, Order, Planes, Registers, Retries, Timing};

//! The flash array: the content of its cells, the operations that they allow, and their times.
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
//! 4. A page's times are those of its level ([`Levels`]), with a deviation drawn from the seed for
//!    its die and address. The number of retries comes from the block's erases.
//! 5. [`Planes`] says whether the planes of a die work one at a time, do the same together, or work
//!    independently. A die that can suspend interrupts a program or an erase for a host's read.
//! 6. A [`FaultPlan`] says which steps fail, flip a bit or take longer; [`Nand::faults`] reports
//!    them. Without rules the array checks and counts nothing. See `docs/internals/faults.md`.
//! 7. [`Model::Staged`] awaits each step in the order in which planes and channels become free.
//!    [`Model::Scalar`] is the model of the published emulators, for comparison: it computes all
//!    steps when the operation arrives.
//!
//! | to follow | read, in this order |
//! |---|---|
//! | an operation | `array`, `timing`, `pace`, `staged`, `cells` |
//! | a read without delays | `instant_reads`, `cells` |
//! | a fault | `fault`, `faults`, `array` |
//! | a loss of power | `power`, `torn` |
//!
//! # Guarantees
//! - In every build: a page is programmed once between erases, in page order, on a good block; only
//!   programmed pages are read. Any other use panics with a message.
//! - A step that a power cut stops before its array stage changed nothing. A cut in that stage
//!   leaves the page of a program or a copy torn and the block of an erase half erased: used up and
//!   unreadable.
//! - An operation's stages add up to its latency in both models.
//! - Within one class, programs of a plane reach its cells in the order of their first polls.
//! - The times and retries of a page are a pure function of the seed, its address and the erases of
//!   its block.
//!
//! # Trusts
//! - Concurrent programs of one block have the same class: otherwise the more urgent one would go
//!   first, out of order. Copies into a block and programs of it are not concurrent: a copy has no
//!   data to wait for.
//! - A page is read only after its program has ended.
//!
//! # Not here
//! The use of blocks (`ftl`), the meaning of bytes (`engine`), error correction itself.

mod array;
mod cell_array;
mod cells;
mod counters;
mod error;
mod fault;
mod faults;
mod geometry;
mod instant_reads;
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
pub use instant_reads::InstantReads;
pub use levels::{Level, Levels};
pub use page_map::{PageMap, PageMapError};
pub use saved::{SavedDie, SavedNand};
pub use timing::{Model, Order, Planes, Registers, Retries, Timing};

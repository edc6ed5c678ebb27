//! What is written to: extents of pages for a log, which are appended to and reset as a whole, and
//! blocks for whoever overwrites in place.
//!
//! # How it works
//! 1. [`Media::open`] takes a free extent and labels it; [`Media::append`] writes its pages in
//!    order; [`Media::reset`] frees it with all its content.
//! 2. A [`Page`] has data (values; long ones by reference) and spare bytes (record headers and
//!    keys), which a medium without spare area offers none of.
//! 3. After a start, [`Media::extents`] lists what was written, with the labels.
//! 4. [`Blocks`] are read and written in any order; [`MemoryBlocks`] are such in memory.
//! 5. [`Victims`] says which of several full extents or blocks of flash is cleaned first.
//!
//! | medium | where | spare area | time |
//! |---|---|---|---|
//! | append FTL on emulated NAND | `ftl::AppendFtl` | as the profile says | that of the NAND |
//! | memory | [`Memory`] | as asked | none |
//! | any [`Blocks`] | [`LogOnBlocks`] | most of a block for each page | that of the blocks |
//! | those of a disk | `drive::Medium` | as much as is used | that of the blocks |
//!
//! | to follow | read, in this order |
//! |---|---|
//! | a log | `medium`, `on_disk`, `extent` |
//! | a page in one piece of memory | `page`, `flat`, `packed` |
//! | a log in memory | `memory` |
//! | a log on blocks of flash | `blocks`, `log_on_blocks` |
//! | the choice of a victim | `victim` |
//!
//! # Guarantees
//! A page that was appended reads back as it was until its extent is reset, or the read fails: but
//! for what the log let go of ([`Memory::release`]).
//!
//! # Trusts
//! The log appends to an extent in order and reads only what it appended; anything else panics.
//!
//! # Not here
//! What the bytes mean (`engine`), flash timing (`nand`), which block an extent uses (`ftl`), the
//! drive on a disk (`drive`).

mod blocks;
mod error;
mod extent;
mod flat;
mod log_on_blocks;
mod medium;
mod memory;
mod memory_blocks;
mod on_disk;
mod packed;
mod page;
mod starts;
mod sweep;
mod sync;
mod traffic;
mod victim;

pub use blocks::{Access, Blocks, BlocksShape, Segments, cut, cut_out};
pub use error::Error;
pub use extent::{ExtentId, ExtentInfo, Frames, Label, PageId, Shape, Span, Stream};
pub use log_on_blocks::{LogOnBlocks, SavedLogOnBlocks};
pub use medium::{Media, Select};
pub use memory::Memory;
pub use memory_blocks::MemoryBlocks;
pub use on_disk::{Ends, Landings, OnDisk};
pub use page::Page;
pub use starts::Starts;
pub use sweep::{Swept, SweptPage};
pub use traffic::Traffic;
pub use victim::{Candidate, Victims};

//! What a log is written to: extents of pages that are appended to and reset as a whole.
//!
//! # How it works
//! 1. [`Media::open`] takes a free extent and labels it; [`Media::append`] writes its pages in
//!    order; [`Media::reset`] frees it with all its content.
//! 2. A [`Page`] has data (values, by reference) and spare bytes (record headers and keys), which a
//!    medium without spare area offers none of.
//! 3. After a start, [`Media::extents`] lists what was written, with the labels.
//!
//! | medium | where | spare area | time |
//! |---|---|---|---|
//! | append FTL on emulated NAND | `ftl::AppendFtl` | as the profile says | that of the NAND |
//! | memory | [`Memory`] | as asked | none |
//!
//! # Guarantees
//! A page that was appended reads back as it was until its extent is reset, or the read fails.
//!
//! # Trusts
//! The log appends to an extent in order and reads only what it appended; anything else panics.
//!
//! # Not here
//! What the bytes mean (`engine`), flash timing (`nand`), which block an extent uses (`ftl`).

mod error;
mod extent;
mod medium;
mod memory;
mod page;

pub use error::Error;
pub use extent::{ExtentId, ExtentInfo, Label, PageId, Shape, Stream};
pub use medium::{Media, Select};
pub use memory::Memory;
pub use page::Page;

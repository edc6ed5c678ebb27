//! The append translation layer: extents of the log on blocks of flash.
//!
//! # How it works
//! 1. Dies form stripe sets ([`Stripe`]); an extent is one block on each die of a set. Page `p` of
//!    an extent lies on die `p % width` of its set, so neighbours are written and read side by
//!    side.
//! 2. [`AppendFtl`] is [`media::Media`]: opening an extent takes the least worn free block of each
//!    die; appending programs the next page; resetting erases the blocks that hold any.
//! 3. The first page of each block carries a tag in its spare area: which extent, which place in
//!    the stripe, which label. There is no other table on the flash.
//! 4. [`AppendFtl::open`] reads the tag of every block, then finds by bisection how far each was
//!    programmed. Dies are scanned side by side.
//!
//! # Guarantees
//! - What was programmed before a power cut is found again by `open`; what was not is a hole.
//! - An extent whose reset was cut off is gone as a whole: `open` erases what is left of it.
//! - A bad block is never touched. A block whose tag cannot be read is erased by `open` and
//!   counted.
//! - [`AppendFtl::table_bytes`]: 2 bytes for each block and 16 for each extent.
//!
//! # Trusts
//! - An array is opened with the stripe it was formatted with; another one panics.
//! - Appends to an extent that are under way together are of one class.
//! - An extent that was found with holes is read and reset, never appended to.
//!
//! # Not here
//! When a step of an operation takes place (`nand`), what is live in an extent and which one is
//! cleaned next (`engine`).

mod append;
mod blocks;
mod scan;
mod starts;
mod stripe;
mod tag;

pub use append::AppendFtl;
pub use stripe::Stripe;

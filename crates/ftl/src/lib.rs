//! Translation layers: extents of a log, zones and logical blocks on blocks of flash.
//!
//! # How it works
//! 1. Each layer has a [`Region`] of the array: the same blocks of every plane. Dies form stripe
//!    sets ([`Stripe`]); an extent is one block on each plane of each die of a set. Its pages go
//!    round over these, all dies before their second planes: neighbours are written and read side
//!    by side.
//! 2. [`AppendFtl`] is [`media::Media`]: opening an extent takes the least worn free block of each
//!    plane; appending programs the next page; resetting erases the blocks that hold any.
//! 3. Each block carries a tag in its pages' spare area: its extent, its place in the stripe and
//!    its label. The flash holds no other table.
//! 4. [`AppendFtl::open`] reads the tag of every block, then finds the end of each by bisection.
//!    Planes are scanned side by side. A failed block is replaced by a free one of its plane and
//!    retired: see `docs/internals/faults.md`.
//! 5. [`Zones`] are those of an NVMe zoned namespace, each an extent of any medium. Writes gather
//!    in protected memory until they fill a page; a loss of power saves it.
//! 6. [`PageFtl`] is [`media::Blocks`]: see there.
//!
//! | to follow | read, in this order |
//! |---|---|
//! | an append to a log | `append`, `region`, `stripe`, `blocks`, `tag` |
//! | its failed program | `append/repair`, `append/repairs` |
//! | a write of blocks | `page_ftl`, `page_ftl/write`, `page_ftl/map`, `page_ftl/program` |
//! | a read of blocks | `page_ftl/read`, `page_ftl/map` |
//! | cleaning of blocks | `page_ftl/clean`, `page_ftl/blocking` |
//! | a failed program of blocks | `page_ftl/rescue` |
//! | a zone | `zones`, `zones/states`, `zones/content`, `zones/buffer` |
//! | opening | `scan`, `append/survey`, `page_ftl/scan`, `zones/open` |
//!
//! # Guarantees
//! - `open` finds every page programmed before a power cut. A page that was not is a hole.
//! - An extent whose reset was cut off is gone as a whole: `open` erases the rest of it.
//! - A bad block is never programmed or erased. A block without a readable tag is erased by `open`
//!   and counted.
//! - No fault of the flash panics. A page whose program fails moves elsewhere; an unreadable page
//!   is an error of that page alone.
//! - [`AppendFtl::table_bytes`]: 2 bytes for each block and 16 for each extent.
//! - No layer touches a block outside its region.
//!
//! # Trusts
//! - An array is opened with the stripe it was formatted with; another stripe panics.
//! - Concurrent appends to one extent have the same class.
//! - An extent found with holes is read and reset, never appended to.
//!
//! # Not here
//! The timing of each step (`nand`), which data of an extent is live and the choice of the next
//! victim (`engine`), the layout of commands (`spec`).

mod append;
mod block_sum;
mod blocks;
mod page_ftl;
mod region;
mod saved;
mod scan;
mod stripe;
mod tag;
mod zones;

pub use append::{AppendFtl, SavedAppendFtl};
pub use page_ftl::{
    Frontier, GcBlocking, PageFtl, PageFtlConfig, PageFtlCounts, PageFtlRecovery, SavedPageFtl,
    WriteAck,
};
pub use region::Region;
pub use saved::Saved;
pub use stripe::Stripe;
pub use zones::{
    SavedZones, ZoneAction, ZoneError, ZoneInfo, ZoneState, Zones, ZonesConfig, ZonesRecovery,
    ZonesShape,
};

//! Translation layers: extents of a log, zones and logical blocks on blocks of flash.
//!
//! # How it works
//! 1. Each layer has a [`Region`] of the array: the same blocks of every plane. Dies form stripe
//!    sets ([`Stripe`]); an extent is one block on each plane of each die of a set. Its pages go
//!    round over these, all dies before their second planes: neighbours are written and read side
//!    by side.
//! 2. [`AppendFtl`] is [`media::Media`]: opening an extent takes the least worn free block of each
//!    plane; appending programs the next page; resetting erases the blocks that hold any.
//! 3. Each block carries a tag in its pages' spare area: which extent, which place in the stripe,
//!    which label. There is no other table on the flash.
//! 4. [`AppendFtl::open`] reads the tag of every block, then finds by bisection how far each was
//!    programmed. Planes are scanned side by side. A block that fails is replaced by a free one of
//!    its plane and retired: see `docs/internals/faults.md`.
//! 5. [`Zones`] are those of an NVMe zoned namespace, each an extent of any medium. Writes gather
//!    in protected memory until they fill a page; it is saved when power is lost.
//! 6. [`PageFtl`] is [`media::Blocks`]: see there.
//!
//! # Guarantees
//! - What was programmed before a power cut is found again by `open`; what was not is a hole.
//! - An extent whose reset was cut off is gone as a whole: `open` erases what is left of it.
//! - A bad block is never programmed or erased. A block without a readable tag is erased by `open`
//!   and counted.
//! - Nothing that the flash does panics: a page that fails goes elsewhere, a page that cannot be
//!   read is an error of that page alone.
//! - [`AppendFtl::table_bytes`]: 2 bytes for each block and 16 for each extent.
//! - No layer touches a block outside its region.
//!
//! # Trusts
//! - An array is opened with the stripe it was formatted with; another one panics.
//! - Appends to an extent that are under way together are of one class.
//! - An extent that was found with holes is read and reset, never appended to.
//!
//! # Not here
//! When a step of an operation takes place (`nand`), what is live in an extent and which one is
//! cleaned next (`engine`), how commands look (`spec`).

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

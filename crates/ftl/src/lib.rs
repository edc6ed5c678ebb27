//! Translation layers: extents of a log, zones and logical blocks on blocks of flash.
//!
//! # How it works
//! 1. Each layer has a [`Region`] of the array: the same blocks of every plane. Dies form stripe
//!    sets ([`Stripe`]); an extent is one block on each plane of each die of a set. Its pages go
//!    round over these, all dies before their second planes: neighbours are written and read side
//!    by side.
//! 2. [`AppendFtl`] is [`media::Media`]: opening an extent takes the least worn free block of each
//!    plane; appending programs the next page; resetting erases the blocks that hold any.
//! 3. The first page of each block carries a tag in its spare area: which extent, which place in
//!    the stripe, which label. There is no other table on the flash.
//! 4. [`AppendFtl::open`] reads the tag of every block, then finds by bisection how far each was
//!    programmed. Planes are scanned side by side.
//! 5. [`Zones`] are those of an NVMe zoned namespace, each an extent of any medium. Writes gather
//!    in protected memory until they fill a page.
//! 6. [`PageFtl`] is [`media::Blocks`]: see there.
//!
//! # Guarantees
//! - What was programmed before a power cut is found again by `open`; what was not is a hole.
//! - An extent whose reset was cut off is gone as a whole: `open` erases what is left of it.
//! - A bad block is never touched. A block whose tag cannot be read is erased by `open` and
//!   counted.
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
//! cleaned next (`engine`), how commands look (`spec`). Zones are not opened from flash: they begin
//! empty.

mod append;
mod blocks;
mod page_ftl;
mod region;
mod scan;
mod stripe;
mod tag;
mod zones;

pub use append::AppendFtl;
pub use page_ftl::{Frontier, GcBlocking, PageFtl, PageFtlConfig, PageFtlCounts, WriteAck};
pub use region::Region;
pub use stripe::Stripe;
pub use zones::{ZoneAction, ZoneError, ZoneInfo, ZoneState, Zones, ZonesConfig, ZonesShape};

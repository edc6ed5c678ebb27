//! The drive on a disk: what Kvasir writes to the blocks of a file or of a block device, and how it
//! finds that again. [`Medium`] is the [`media::Media`] of it.
//!
//! # How it works
//! 1. [`Medium::format`] divides all blocks into extents and writes marks, an empty ledger and both
//!    superblocks. `docs/internals/drive-format.md` says where each of them lies.
//! 2. [`Medium::open`] reads the superblocks, the ledger, and the ends of each extent. It reads all
//!    frames only of extents that were open when the drive was last used.
//! 3. A page becomes a frame: a head with checksums, spare bytes, data. A tail for each open extent
//!    gathers frames into long writes. Extents share flushes.
//! 4. [`Medium::close`] writes a footer for each open extent, so that the next start is fast.
//! 5. [`Medium::probe`] reads the superblocks only. [`Medium::look`] opens without a write.
//!    [`Medium::damage`] reports damaged superblocks, marks, footers and ledger entries.
//!
//! | to follow | read, in this order |
//! |---|---|
//! | the bytes on the disk | `layout`, `superblock`, `origin`, `frame`, `note`, `ledger` |
//! | a format | `format` |
//! | an append | `medium`, `writer`, `tail`, `flusher`, `ending` |
//! | a read | `read`, `sweep` |
//! | a start | `medium`, `ledger_copies`, `find`, `walk`, `extents` |
//! | a check | `damage` |
//!
//! # Guarantees
//! - An append that returned survives a loss of power as [`Durability`] says.
//! - Pages of an extent land in order, so a loss of power leaves the first ones.
//! - Damage of one block is found by a checksum and costs at most the pages in that block.
//! - Bytes that a host stored never pass for a part of the drive.
//!
//! # Trusts
//! The blocks, as [`media::Blocks`] says, and that only one process writes to them: a lock of the
//! file or the device (`disk`) ensures that.
//!
//! # Not here
//! Files, devices and their other content (`disk`), the meaning of pages (`engine`), and the drive
//! together with its store and its controller (`node`).

mod damage;
mod drive;
mod durability;
mod ending;
mod extents;
mod find;
mod flusher;
mod format;
mod frame;
mod layout;
mod ledger;
mod ledger_copies;
mod medium;
mod note;
mod open_error;
mod origin;
mod read;
mod sabotage;
mod superblock;
mod sweep;
mod tail;
mod walk;
mod workers;
mod writer;

pub use damage::{Damage, DamagedPart};
pub use durability::Durability;
pub use format::{DriveInfo, Format};
pub use medium::Medium;
pub use open_error::OpenError;
pub use sabotage::Sabotage;
pub use superblock::{MAGIC, MAGIC_AT};

//! NVMe command sets as bytes: Key Value, NVM (blocks) and Zoned Namespace commands, completions,
//! status codes, and the data structures that commands move.
//!
//! # How it works
//! 1. A host builds a [`Command`], the 64-byte submission queue entry, with [`Command::store`],
//!    [`Command::write`], [`Command::zone_append`] and their siblings.
//! 2. A controller knows from the namespace which set a command is of, reads it by the accessors of
//!    that set, and answers with a [`Completion`] that carries a [`Status`].
//! 3. The data of a List reply is written by [`ListWriter`] and read by [`ListReader`], that of a
//!    report of zones by [`ZoneReportWriter`] and [`ZoneReport`]. A Dataset Management brings
//!    [`BlockRange`]s, a Copy brings [`CopyRange`]s.
//!
//! # Guarantees
//! Every type has the byte layout of the specification, little-endian on every machine, and every
//! bit pattern of the right length is a value of it: decoding never fails and never panics.
//! Nothing here allocates or needs an operating system.
//!
//! # Trusts
//! Builders and writers are given what fits the field (a key of at most 255 bytes, 1 to 65,536
//! blocks), and assert it. Everything read from a command is what the other side wrote: its meaning
//! is checked by the controller.
//!
//! # Not here
//! What a command does (`controller`), keys and values as such (`base`), admin commands.
//!
//! Sources, named by command or data structure: NVM Express Base Specification 2.1 ("Base 2.1"),
//! and the command set specifications Key Value 1.0d ("KV 1.0d"), NVM 1.1 ("NVM 1.1") and Zoned
//! Namespace 1.1a ("ZNS 1.1a").

#![no_std]

#[cfg(test)]
extern crate std;

mod command;
mod completion;
mod kv;
mod list;
mod nvm;
mod opcode;
mod options;
mod status;
mod zns;

pub use command::Command;
pub use completion::Completion;
pub use kv::KEY_BYTES_INLINE;
pub use list::{ListError, ListReader, ListWriter};
pub use nvm::{BLOCK_RANGE_BYTES, BlockRange, COPY_RANGE_BYTES, CopyRange};
pub use opcode::Opcode;
pub use options::{RetrieveOptions, StoreOptions};
pub use status::Status;
pub use zns::{
    ReportedZones, ZONE_DESCRIPTOR_BYTES, ZoneDescriptor, ZoneReport, ZoneReportWriter,
    ZoneSendAction, ZoneState,
};

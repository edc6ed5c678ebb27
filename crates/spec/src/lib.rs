//! The NVMe Key Value command set as bytes: commands, completions, status codes and the List reply.
//!
//! # How it works
//! 1. A host builds a [`Command`], the 64-byte submission queue entry, with [`Command::store`] and
//!    its siblings.
//! 2. A controller reads it by its accessors and answers with a [`Completion`] that carries a
//!    [`Status`].
//! 3. The data of a List reply is written by [`ListWriter`] and read by [`ListReader`].
//!
//! # Guarantees
//! Every type has the byte layout of the specification, little-endian on every machine, and every
//! bit pattern of the right length is a value of it: decoding never fails and never panics.
//! Nothing here allocates or needs an operating system.
//!
//! # Trusts
//! Builders and [`ListWriter`] are given keys of at most 255 bytes, and assert it. Everything read
//! from a command is what the other side wrote: its meaning is checked by the controller.
//!
//! # Not here
//! What a command does (`controller`), keys and values as such (`base`).
//!
//! Sources: NVM Express Key Value Command Set Specification 1.0d ("KV 1.0d") and NVM Express Base
//! Specification 2.1 ("Base 2.1"), named by command or data structure.

#![no_std]

#[cfg(test)]
extern crate std;

mod command;
mod completion;
mod list;
mod opcode;
mod options;
mod status;

pub use command::{Command, KEY_BYTES_INLINE};
pub use completion::Completion;
pub use list::{ListError, ListReader, ListWriter};
pub use opcode::Opcode;
pub use options::{RetrieveOptions, StoreOptions};
pub use status::Status;

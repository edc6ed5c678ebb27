//! Files and raw block devices as the logical blocks of a drive.
//!
//! # How it works
//! 1. [`probe`] reports the content and the users of a path, so that a user does not format a disk
//!    in use. [`create`] makes a file of a size, [`resize`] changes the size.
//! 2. [`File::open`] locks the path for this process and queries the alignment of its reads and
//!    writes. It bypasses the cache (`O_DIRECT`): flushed writes are on the flash.
//! 3. [`File`] is [`media::Blocks`]: reads, gathered writes, zeros for trims, and flushes, by the
//!    ring of the reactor that the task runs in. Aligned memory is written directly; other memory
//!    is copied first, and counted.
//!
//! # Guarantees
//! - A drive has one writer: the error of a second one names the first.
//! - Writes before a successful flush survive a loss of power, as far as the disk keeps that
//!   promise. After a failed flush all flushes fail until the drive is opened again, because the
//!   kernel reports lost writes only once.
//! - After another program shortens a file, its writes and flushes fail. Its remaining blocks can
//!   be read. [`File::loss`] reports that, and whether its name was removed.
//! - A probe reports unrecognized content as unknown, never as free. Probing writes nothing.
//!
//! # Trusts
//! The kernel and the disk. Other programs ask for the lock of a file before they write to it.
//!
//! # Not here
//! The meaning of blocks (`drive`, `media::LogOnBlocks`); the kernel's interface (`reactor`).

mod access;
mod align;
mod counters;
mod create;
mod error;
mod file;
mod lock;
mod loss;
mod open;
mod probe;
mod sectors;

pub use access::Access;
pub use counters::Counters;
pub use create::{CreateError, create, resize};
pub use error::OpenError;
pub use file::File;
pub use lock::Holder;
pub use loss::Loss;
pub use probe::{Found, ProbeError, Usage, probe};

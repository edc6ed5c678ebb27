//! Files and raw block devices as the logical blocks of a drive.
//!
//! # How it works
//! 1. [`probe`] says what a path holds and who uses it, so that nobody formats what is wanted.
//!    [`create`] makes a file of a size, [`resize`] gives one another size.
//! 2. [`File::open`] takes the path for this process alone and asks what its reads and writes must
//!    be aligned to. There is no cache in between (`O_DIRECT`): what is written and flushed is on
//!    the flash.
//! 3. [`File`] is [`media::Blocks`]: reads, gathered writes, zeros in place of what is trimmed, and
//!    flushes, by the ring of whichever reactor the task is in. Data that lies in memory as the
//!    disk wants it goes from there; the rest is copied first, and counted.
//!
//! # Guarantees
//! - A drive has one writer: a second is told who the first is.
//! - What was written before a flush that succeeds outlives a loss of power, as far as the disk
//!   keeps that promise. After a flush has failed none succeeds until the drive is opened again:
//!   the kernel reports lost writes only once.
//! - A file that another program shortens takes no more writes, and no flush of it succeeds. Its
//!   remaining blocks can be read. [`File::loss`] says so, and whether its name was removed.
//! - What a probe does not know it calls unknown, never free. Probing writes nothing.
//!
//! # Trusts
//! The kernel and the disk. That nobody else writes to a file without asking for its lock.
//!
//! # Not here
//! What the blocks mean (`media::LogOnBlocks`, `engine`); how the kernel is asked (`reactor`).

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

pub use counters::Counters;
pub use create::{CreateError, create, resize};
pub use error::OpenError;
pub use file::File;
pub use lock::Holder;
pub use loss::Loss;
pub use open::Access;
pub use probe::{Found, KVASIR_MAGIC, KVASIR_MAGIC_AT, ProbeError, Usage, probe};

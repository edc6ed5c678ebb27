//! A namespace that the kernel has: commands through `/dev/ngXnY`.
//!
//! # How it works
//! 1. [`Namespace::open`] opens the character device that Linux makes for each namespace, also for
//!    those of command sets that it does not know, and asks for its id.
//! 2. [`Namespace::execute`] hands a command over as the kernel takes it: a `nvme_passthru_cmd64`
//!    with the address of the data, and an ioctl that returns when the command has ended.
//! 3. [`PassthroughQueue`] is that as a `controller::Queue`: a submission returns when its
//!    completion is there.
//!
//! # Guarantees
//! - The kernel is given no address but that of a buffer which outlives the call, and no more bytes
//!   than it has.
//! - What the kernel does not do completes with [`spec::Status::HOST_PATHING_ERROR`], and
//!   [`PassthroughQueue::failure`] says why.
//!
//! # Trusts
//! The kernel: it moves data the way that bits 1:0 of the opcode say.
//!
//! # Not here
//! Commands (`spec`), sockets (`client`).

mod error;
mod ioctl;
mod namespace;
mod queue;

pub use error::{KernelError, OpenError};
pub use namespace::{Data, Ended, Namespace};
pub use queue::PassthroughQueue;

//! A namespace of the kernel: commands through `/dev/ngXnY`.
//!
//! # How it works
//! 1. [`Namespace::open`] opens the character device that Linux makes for each namespace, even for
//!    those of unknown command sets, and queries its id.
//! 2. [`Namespace::execute`] passes a command to the kernel: a `nvme_passthru_cmd64` with the
//!    address of the data, in an ioctl that returns when the command has ended.
//! 3. [`PassthroughQueue`] makes it a `controller::Queue`: a submission returns after its
//!    completion.
//!
//! # Guarantees
//! - The kernel gets only addresses of buffers that outlive the call, and at most their length.
//! - A command that the kernel does not execute completes with
//!   [`spec::Status::HOST_PATHING_ERROR`], and [`PassthroughQueue::failure`] says why.
//!
//! # Trusts
//! The kernel: it moves data in the direction of bits 1:0 of the opcode.
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

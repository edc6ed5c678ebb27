//! vfio-user: a PCIe function for a virtual machine in another process.
//!
//! # How it works
//! 1. A client, such as QEMU's `vfio-user-pci`, connects to a Unix socket. [`serve`] runs its
//!    session: it receives a message with its file descriptors, executes it, and sends the reply.
//! 2. A [`Session`] is the protocol without the socket: bytes and descriptors in, a reply out. It
//!    carries accesses to regions to a [`pcie::PciFunction`], one message at a time.
//! 3. `memory` is what the function sees as [`pcie::HostMemory`]: the DMA regions of the client. A
//!    memfd that is sealed against shrinking is mapped. The client could truncate any other file,
//!    and an access to mapped pages behind the new end would kill the process. So such a file is
//!    read and written by system calls.
//! 4. [`MappedDoorbells`] are a page of BAR 0 that a client may map, to write doorbells without
//!    messages. The function sees it as [`pcie::DoorbellPage`].
//! 5. `interrupts` is what the function sees as [`pcie::Interrupts`]: an eventfd for each vector.
//!
//! | to follow | read, in this order |
//! |---|---|
//! | a message | `serve`, `session`, `wire` |
//! | an access to memory | `memory`, `memory/region`, `memory/backing`, `memory/mapping` |
//! | an interrupt | `interrupts` |
//! | a mapped doorbell | `regions`, `doorbells` |
//!
//! # Guarantees
//! - No input of a client panics or raises a signal. A wrong message is answered with an error and
//!   changes nothing. A header whose size no message has ends its own connection.
//! - A session holds at most a message and a reply of 1 MiB, 65,535 DMA regions, 256 files of
//!   them, 16 TiB of mapped addresses, and an eventfd for each interrupt.
//! - After an unmap is answered, the function does not reach the region. After [`serve`] returns,
//!   it reaches nothing of the client, also if it keeps its handles.
//! - No reference to memory of a client exists: see `memory/mapping`.
//! - A client that sends without pause does not keep other tasks from running.
//!
//! # Trusts
//! The user who can open the socket. Such a client can share a file of a slow file system, of which
//! an access blocks the thread, and it can exhaust the memory that its own memfd uses. A function
//! handles each access before it returns, and checks what the guest writes.
//!
//! # Not here
//! The function (`pcie`), sockets and listeners (`reactor`), which clients there are (`node`).
//! Migration, dirty pages, I/O descriptors of regions, and DMA by messages, which QEMU does not
//! need: such commands are answered with `EOPNOTSUPP`.

mod doorbells;
mod interrupts;
mod memory;
mod regions;
mod serve;
mod session;
mod wire;

pub use doorbells::MappedDoorbells;
pub use memory::UnsharedMemory;
pub use serve::{Ended, serve};
pub use session::{Reply, Session};

//! An NVMe controller as a PCIe function, for hosts that reach it by registers and by queues in
//! their own memory.
//!
//! # How it works
//! 1. A transport, such as vfio-user, carries the accesses of a host to the regions of a function
//!    ([`PciFunction`]), and gives the function the host's memory and interrupts (`bus`).
//! 2. [`NvmeFunction`] has a configuration space (`config_space`) and BAR 0 (`bar0`): properties go
//!    to the controller ([`controller::PcieController`]), doorbells to the queues. It reaches
//!    memory and interrupts only while the host lets it (`bus_master`).
//! 3. When the host enables the controller, the function opens the admin queues
//!    (`admin_registers`). The admin commands about queues are its own (`manage`).
//! 4. A doorbell wakes the task of the function (`function`). It fetches commands from each
//!    submission queue in turn (`submission_queue`), finds their data by PRP entries or SGLs
//!    (`segments`), copies data of the host, and submits them as capsules: from there on they take
//!    the path of the commands of a fabric.
//! 5. A response is copied to host memory and posted to the completion queue
//!    (`completion_queue`), its phase bit last: together with those of its line of the cache, or
//!    when the task has nothing else to do for now. The task raises one interrupt for all
//!    completions of a queue that were posted since it ran.
//! 6. Doorbells may be in memory that the function reads (`polled_doorbells`). A host may write
//!    those of I/O queues to its own memory: the function reads them while it has something to do,
//!    and asks for real doorbells before it waits. Or the transport lets the host map the page of
//!    BAR 0 that has them all ([`DoorbellPage`]): then the function is polled without end.
//! 7. In virtual time a simulated host drives the same function ([`host`]): its memory is a
//!    [`HostRam`].
//!
//! # Guarantees
//! - Nothing that a host writes to registers, queues or memory panics. A broken rule of queues ends
//!   in the fatal status (`CSTS.CFS`) of its own controller, a wrong command in a status.
//! - A function keeps at most 64 MiB of data, also of commands that run after their queue ended,
//!   and as many commands as its queues have entries.
//! - It fetches 32 commands, or 256 KiB, and then other tasks have their turn.
//! - A disabled or reset controller touches neither host memory nor interrupts.
//!
//! # Trusts
//! The transport checks that accesses are inside their region, and that memory is mapped.
//!
//! # Not here
//! The protocol between host and function (`vfio-user`), commands (`controller`). `INTx` and MSI:
//! the function has MSI-X only. The transport keeps the MSI-X table.

mod admin_registers;
mod bar0;
mod budget;
mod bus;
mod bus_master;
mod completion_queue;
mod config_space;
mod function;
pub mod host;
mod host_ram;
mod manage;
mod pending;
mod polled_doorbells;
mod queue_fault;
mod queue_set;
mod queues;
mod ring;
mod segments;
mod submission_queue;
mod tails;
mod turn;
mod work;

pub use bar0::DOORBELLS;
pub use bus::{DoorbellPage, HostMemory, Interrupts, OutsideMemory, PciFunction, Region};
pub use function::NvmeFunction;
pub use host_ram::HostRam;

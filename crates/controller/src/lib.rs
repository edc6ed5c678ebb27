//! The NVMe side of the device: takes commands, spends what link and firmware cost, asks the
//! namespace, posts completions.
//!
//! # How it works
//! 1. A host submits a 64-byte command to a [`QueuePair`]; the command becomes a task of its own
//!    and always runs to its end. A fabric's queue needs no task for what is answered at once
//!    (`quick`). On an emulated device an [`Emulation`] delays each step: gate, link, handlers and
//!    cores.
//! 2. [`Controller::namespace`] has what the command's namespace is, and so which command set it is
//!    of: `kv` asks an `engine::Store`, `block` a `media::Blocks`, `zoned` an `ftl::Zones`. Each
//!    decodes and checks the command. An [`Emulation`] moves its data over the link and holds a
//!    request handler: for `t_read` to read, for `t_delete` or `t_exist` on keys, for `t_write`
//!    otherwise. For values of keys each KiB may take longer, and overwriting one too.
//! 3. A Read's data is gathered into one buffer for the host.
//! 4. Two commands side by side in a queue may be one fused operation (`fused_order`, `fused`,
//!    `compare_and_write`):
//!    blocks that it compares and writes are locked for others that write (`span_locks`).
//! 5. The completion carries the status, the result, the data and the account of the command's
//!    time.
//! 6. Hosts from outside come by a fabric: a door asks an [`Entrance`] for a [`HostQueue`] for each
//!    connection and gives it [`Capsule`]s. `fabrics` knows whose the queue is, and `admin` answers
//!    what is asked of the controller itself; I/O commands go the way above.
//! 7. Which namespaces there are is in `inventory`; `provision` makes, ends and empties them, and
//!    `attachments` knows which hosts have them.
//!
//! # Guarantees
//! - No command panics, whatever its bytes; each gets a status. A command of another set than its
//!   namespace's is an Invalid Command Opcode, unless its number is of both.
//! - A command moves at most 2 MiB over the link, and a Copy as many inside the device.
//! - A command's stages add up to its latency, to the nanosecond; asserted for each.
//! - A command of a fabric is answered once, or never when its queue is gone, and runs to its end
//!   all the same. What hosts can make a [`Subsystem`] keep is bounded.
//!
//! # Trusts
//! A submission's data buffer is what its command says it is in length; anything else is an Invalid
//! Field. A door brings the data of a capsule whole, and closes its queue when the connection is
//! gone.
//!
//! # Not here
//! Transports, what a namespace does with its data.

mod admin;
mod attachments;
mod block;
mod block_run;
mod commit_queue;
mod compare_and_write;
mod completion;
mod completions;
mod controller;
mod copy;
mod emulation;
mod fabrics;
mod firmware;
mod fused;
mod fused_order;
mod gather;
mod host_queue;
mod inventory;
mod io_command;
mod kv;
mod kv_key;
mod link;
mod logical_blocks;
mod namespace;
mod nvm;
mod provision;
mod queue;
mod quick;
mod sanitizing;
mod span;
mod span_locks;
mod status;
mod submission;
mod zoned;

pub use admin::{EngineFigures, KeyCounts};
pub use completion::Completion;
pub use completions::Completions;
pub use controller::{Config, Controller};
pub use emulation::Emulation;
pub use fabrics::{
    AssociationCensus, Entrance, FabricQueue, FlashFigures, Lease, LeasedQueue, Limits,
    QueueCensus, Rules, Subsystem, SubsystemConfig, Subsystems, Tenant, TransportAddress, Work,
};
pub use firmware::FirmwareCosts;
pub use fused_order::{FusedOrder, Ordered};
pub use host_queue::{Capsule, HostQueue, IN_CAPSULE_BYTES_MAX, Port, Response, Responses};
pub use inventory::SavedNamespaces;
pub use link::LinkTiming;
pub use namespace::{NAMESPACES_MAX, Namespace, NamespaceInUse};
pub use queue::{Queue, QueuePair};
pub use submission::Submission;

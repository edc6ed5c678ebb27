//! The NVMe side of the device: takes commands, spends what link and firmware cost, asks the
//! namespace, posts completions.
//!
//! # How it works
//! 1. A host submits a 64-byte command to a [`QueuePair`] or to the queue of a fabric. The command
//!    becomes a task of its own and always runs to its end. On a drive without emulation, Stores
//!    and Retrieves are first executed together, as far as they need no wait (`quick`); Stores in
//!    the log are answered by the task of a `commit_queue`. Reads of a fabric, of blocks where
//!    nothing takes time, need no task either. Else an [`Emulation`] delays each step: gate,
//!    link, handlers and cores.
//! 2. [`Controller::namespace`] returns the command's namespace, which decides the command set:
//!    `kv` asks an `engine::Store`, `block` a `media::Blocks`, `zoned` an `ftl::Zones`. Each
//!    decodes and checks the command. An [`Emulation`] moves its data over the link and holds a
//!    request handler: for `t_read` to read, for `t_delete` or `t_exist` on keys, for `t_write`
//!    otherwise. A profile may add time for each KiB of a value, and for overwriting a value.
//! 3. A Read's data is gathered into one buffer for the host.
//! 4. Two adjacent commands of a queue may be one fused operation (`fused_order`, `fused`,
//!    `compare_and_write`). Blocks that it compares and writes are locked for other writers
//!    (`span_locks`).
//! 5. The completion carries the status, the result, the data and the account of the command's
//!    time.
//! 6. Hosts outside of the process use a fabric: its transport asks an [`Entrance`] for a
//!    [`HostQueue`] for each connection and gives it [`Capsule`]s. `fabrics` assigns the queue to a
//!    host's association, and `admin` executes admin commands; I/O commands are executed as above.
//! 7. `inventory` lists the namespaces; `provision` creates, deletes and formats them, and
//!    `attachments` lists the hosts to which they are attached.
//!
//! # Guarantees
//! - No command panics, whatever its bytes; each gets a status. A command of another set than its
//!   namespace's is an Invalid Command Opcode, unless its number is of both.
//! - A command moves at most 2 MiB over the link, and a Copy as many inside the device.
//! - The stages of a command with a task add up to its latency, to the nanosecond; asserted.
//! - A command of a fabric is answered once, or never when its queue is gone, and runs to its end
//!   all the same. What hosts can make a [`Subsystem`] keep is bounded.
//!
//! # Trusts
//! A submission's data buffer has the length that its command states; anything else is an Invalid
//! Field. A transport gives the data of a capsule whole, and closes its queue when the connection
//! has ended.
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
mod shared;
mod span;
mod span_locks;
mod status;
mod submission;
mod sync;
mod zoned;

pub use admin::{EngineFigures, KeyCounts};
pub use completion::Completion;
pub use completions::Completions;
pub use controller::{Config, Controller};
pub use emulation::Emulation;
pub use fabrics::{
    Answer, AssociationCensus, DetachedQueue, DivertedCommand, DivertedOutcome, DivertedQueue,
    Entrance, FabricQueue, FlashFigures, Limits, PCI_VENDOR_ID, PcieController, Placement,
    QueueCensus, Rules, Subsystem, SubsystemConfig, Subsystems, TransportAddress, Work,
};
pub use firmware::FirmwareCosts;
pub use fused_order::{FusedOrder, Ordered};
pub use host_queue::{Capsule, HostQueue, IN_CAPSULE_BYTES_MAX, Port, Response, Responses};
pub use inventory::SavedNamespaces;
pub use link::LinkTiming;
pub use namespace::{NAMESPACES_MAX, Namespace, NamespaceInUse};
pub use queue::{Queue, QueuePair};
pub use submission::Submission;

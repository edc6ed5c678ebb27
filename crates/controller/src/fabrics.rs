//! The controller as hosts of a fabric see it: subsystems that they connect to, and queues that
//! carry their commands (Base 2.1, message-based controllers).
//!
//! # How it works
//! 1. A transport asks an [`Entrance`] for a queue for each connection. The queue is unbound until
//!    a Connect (`connect`) binds it: an admin queue creates an association (`association`), an
//!    I/O queue joins one.
//! 2. A command that arrives (`fabric_queue`) takes a slot of its queue (`slots`, `pair`). An I/O
//!    command goes to a task (`workers`) that has the device execute it (`io`); others become tasks
//!    of their own and go to `admin`. Stores and Retrieves of a drive without emulation, and Reads
//!    of blocks where nothing takes time (`held_read`), are `held` first: those that need no wait
//!    are answered without a slot and a task.
//! 3. A host controls its association through properties (`property`). The association ends with
//!    its admin queue, or when the Keep Alive timer expires (`keep_alive`).
//! 4. Each response adds to the counters of its host (`work`). `census` returns them with the rest
//!    of the state to the server's operator.
//! 5. Each reactor executes the commands of its own connections, and all share the subsystems and
//!    associations. A queue is reached from other reactors by its `queue_link`: to end it, to abort
//!    a command, to complete an Asynchronous Event Request.
//! 6. An I/O queue on which no command is in flight can move to another reactor with its connection
//!    (`detach`, `detached_queue`). Requests of its association wait in its link until it has
//!    arrived.
//! 7. A host on PCIe has no Connect: a function creates its controller and queues (`pcie`). From
//!    there on its commands take the same path.
//! 8. The discovery subsystem (`discovery`) lists the others to hosts. Access rights and limits of
//!    hosts are rules that can change at any time (`rules`).
//!
//! # Guarantees
//! - Each command gets one response, or none if its queue is closed. A started command always runs
//!   to its end.
//! - No input of a host panics, and a host's use of memory is bounded: queues, commands on them,
//!   associations, entries of logs.
//! - An association sees nothing of another one except the data that it stores.
//! - Discovery lists only subsystems that the host may connect to.

mod association;
mod census;
mod connect;
mod count;
mod detach;
mod detached_queue;
mod discovery;
mod diverted;
mod error_log;
mod fabric_queue;
mod held;
mod held_read;
mod io;
mod io_context;
mod job;
mod keep_alive;
#[cfg(test)]
#[cfg(loom)]
mod loom_tests;
mod pair;
mod pcie;
mod placement;
mod port;
mod property;
mod queue_link;
mod registers;
mod rules;
mod slots;
mod subsystem;
mod tally;
mod terms;
mod transfer;
mod transport_address;
mod work;
mod workers;

pub(crate) use association::{Association, Service, TransportModel};
pub use census::{AssociationCensus, QueueCensus};
pub use detached_queue::DetachedQueue;
pub use diverted::DivertedQueue;
pub(crate) use error_log::ERRORS_KEPT;
pub use fabric_queue::FabricQueue;
pub(crate) use keep_alive::GRANULARITY as KEEP_ALIVE_GRANULARITY;
pub(crate) use pair::Pair;
pub use pcie::{PCI_VENDOR_ID, PcieController};
pub use placement::{Answer, DivertedCommand, DivertedOutcome, Placement};
pub use port::{Entrance, Subsystems};
pub(crate) use property::VERSION;
pub(crate) use queue_link::{Abort, QueueLink};
pub use rules::{Limits, Rules};
pub(crate) use slots::Ticket;
pub use subsystem::{FlashFigures, Subsystem, SubsystemConfig};
pub(crate) use transfer::{brought, room};
pub use transport_address::TransportAddress;
pub use work::Work;

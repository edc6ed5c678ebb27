//! The controller as hosts of a fabric see it: subsystems that they connect to, and queues that
//! carry their commands (Base 2.1, message-based controllers).
//!
//! # How it works
//! 1. A door asks an [`Entrance`] for a queue for each connection. The queue is nobody's until a
//!    Connect (`connect`) binds it: as an admin queue it makes an association (`association`), as
//!    an I/O queue it joins one.
//! 2. A command that arrives takes a slot of its queue (`slots`, `pair`). An I/O command goes to a
//!    task (`workers`) that has the device execute it (`io`); others become tasks of their own
//!    (`queue`) and go to `admin`.
//! 3. What an association is to its host, its properties say (`property`). It ends with its admin
//!    queue, or when the host was silent for too long (`keep_alive`).
//! 4. What each host has had done is counted as it is answered (`work`), and told with all else
//!    that there is to whoever serves it (`census`).
//! 5. Where a queue's connection is in another reactor that can use the device too, its I/O
//!    commands are executed there, by a `lease`, in the same way; `lent` is what is left here.
//! 6. The discovery subsystem (`discovery`) tells hosts of the others. Who may connect to which,
//!    and how much a host may have, are rules that change at any time (`rules`).
//!
//! # Guarantees
//! - Each command is answered once, unless its queue is gone: then never. A command that was
//!   started runs to its end whoever still awaits it.
//! - Nothing that a host sends panics, and what it can make the controller keep is bounded: queues,
//!   commands on them, associations, entries of logs.
//! - No association sees anything of another one but what they store.
//! - A host that may not connect to a subsystem is not told of it either.

mod association;
mod census;
mod connect;
mod count;
mod discovery;
mod error_log;
mod io;
mod keep_alive;
mod lease;
mod lent;
mod member;
mod pair;
mod port;
mod property;
mod queue;
mod rules;
mod slots;
mod standing;
mod subsystem;
mod tally;
mod work;
mod workers;

pub(crate) use association::{Association, Service};
pub use census::{AssociationCensus, QueueCensus};
pub use discovery::TransportAddress;
pub(crate) use discovery::discovery_log;
pub(crate) use error_log::ERRORS_KEPT;
pub(crate) use io::{brought, room};
pub(crate) use keep_alive::GRANULARITY as KEEP_ALIVE_GRANULARITY;
pub use lease::{Lease, LeasedQueue, Tenant};
pub use port::{Entrance, Subsystems};
pub(crate) use property::VERSION;
pub use queue::FabricQueue;
pub(crate) use queue::{Bound, Queue};
pub use rules::{Limits, Rules};
pub(crate) use slots::Ticket;
pub use subsystem::{FlashFigures, Subsystem, SubsystemConfig};
pub use work::Work;

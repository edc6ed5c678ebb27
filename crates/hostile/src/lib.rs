//! Attackers whose behaviour is derived from arbitrary bytes, and checks that they do no harm.
//!
//! # How it works
//! 1. A target is a function of bytes: [`stream`], [`capsule`], [`admin`], [`io`], [`pointer`],
//!    [`pcie`], [`vfio_user`] and [`resp`]. The bytes are choices (`input`), which determine a list
//!    of actions: commands (`entry`, `fit`), PDUs (`peer`), registers and memory, pauses,
//!    disconnects. A client of [`resp`] sends the bytes as they are.
//! 2. A run (`world`) has a device in memory with namespaces of each kind (`device`), reached by
//!    NVMe/TCP on a simulated network and in the process, all in virtual time.
//! 3. A client of [`vfio_user`] gives messages and file descriptors to a session without a socket.
//! 4. `watch` checks the traffic between transport and controller, and a well-behaved host (`calm`)
//!    runs at the same time.
//! 5. A test, `every_pointer`, sends each kind of SGL descriptor with each command once.
//! 6. cargo-fuzz searches for bytes that fail (`fuzz` in this repository). A test passes all inputs
//!    that it has kept to the same functions.
//!
//! # Guarantees
//! A run panics unless all of this holds:
//! - Each command is answered once, or not at all if its queue has ended.
//! - Answers have a status. They have data only with a success, and at most as much as the host has
//!   room for.
//! - The target's PDUs follow the protocol.
//! - The well-behaved host gets its data, though attackers use the same keys in their namespace.
//! - A message of [`vfio_user`] has the reply that it wants, and its client gets its data.
//! - When all hosts have disconnected, no connection, association, queue or task is left.
//!
//! Equal bytes are equal runs.
//!
//! # Trusts
//! Virtual time: a run that never ends while no time passes hangs visibly.
//!
//! # Not here
//! Real sockets and memory (tests of `node`), data of commands under faults (`sim`).

mod calm;
mod device;
mod entry;
#[cfg(test)]
mod every_pointer;
mod fit;
mod input;
mod line;
mod peer;
mod targets;
mod watch;
mod world;

pub use targets::{admin, capsule, io, pcie, pointer, resp, stream, vfio_user};

/// A target: a run determined by bytes.
pub type Run = fn(&[u8]);

/// All targets, by the names of their folders of inputs.
pub const TARGETS: [(&str, Run); 8] = [
    ("stream", stream),
    ("capsule", capsule),
    ("admin", admin),
    ("io", io),
    ("pointer", pointer),
    ("resp", resp),
    ("pcie", pcie),
    ("vfio_user", vfio_user),
];

//! Hosts that send anything at all, made of bytes, and the checks that nothing is harmed by them.
//!
//! # How it works
//! 1. A target is a function of bytes: [`stream`], [`capsule`], [`admin`], [`io`], [`pointer`] and
//!    [`resp`]. The bytes are choices (`input`), of which a list of actions is made: commands
//!    (`entry`, `fit`), PDUs (`peer`), time that passes, connections that go. What a client of
//!    [`resp`] says is bytes as they are.
//! 2. A run (`world`) has a device in memory with namespaces of each kind (`device`), reached by
//!    NVMe/TCP on a simulated network and in the process, all in virtual time.
//! 3. What is between transport and controller is watched (`watch`), and a host that does nothing
//!    wrong stands beside (`calm`).
//! 4. Each kind of SGL descriptor meets each command once (`every_pointer`, a test).
//! 5. cargo-fuzz looks for bytes that fail (`fuzz` in this repository), and a test gives all those
//!    that it has kept to the same functions.
//!
//! # Guarantees
//! A run panics unless each command is answered once, or not at all where its queue is over;
//! answers have a status, and data only with a success and as much as the host has room for; what
//! the target says keeps the protocol; the host beside gets its data, though others use the same
//! keys in their namespace; and all is gone when all hosts are gone: connections, associations,
//! queues, tasks. Equal bytes are equal runs.
//!
//! # Trusts
//! Virtual time: what never ends while no time passes is seen by whoever runs it.
//!
//! # Not here
//! Real sockets and memory (tests of `node`), what the data of commands becomes under faults
//! (`sim`).

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

pub use targets::{admin, capsule, io, pointer, resp, stream};

/// A run that is made of bytes.
pub type Run = fn(&[u8]);

/// Every target, by the name of its folder of inputs.
pub const TARGETS: [(&str, Run); 6] = [
    ("stream", stream),
    ("capsule", capsule),
    ("admin", admin),
    ("io", io),
    ("pointer", pointer),
    ("resp", resp),
];

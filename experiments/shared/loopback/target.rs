//! A server of this process, on a core of its own.

use crate::loopback::connect::{Connected, connect};
use crate::loopback::core;
use crate::loopback::exchange::Kind;
use crate::loopback::reactor_thread::ReactorThread;
use crate::loopback::work::Work;
use node::server::{Doorbells, SerialNumber, Served, ServedSubsystem, Server, ServerConfig};
use node::{MemoryKind, Profile};
use std::net::SocketAddr;
use std::num::NonZero;
use std::path::Path;

/// The place of the pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// `mem:`.
    InMemory,
    /// The profile `ideal`, without delays.
    OnIdealFlash,
}

/// The profile of a drive of blocks on the flash of `ideal`.
pub const IDEAL_BLOCKS: &str = include_str!("ideal-blocks.toml");

/// A server of one reactor, which has the server's core.
pub struct Target {
    server: Server,
    thread: ReactorThread,
}

/// The name of its subsystem.
pub const NQN: &str = "nqn.2014-08.org.nvmexpress:uuid:a0b1c2d3-0000-8000-8000-000000000002";

impl Target {
    /// Serves a drive without delays.
    pub fn start(kept: Kept, kind: Kind) -> Self {
        Self::serve(served(kept, kind))
    }

    /// Serves a drive without delays also to virtual machines: at one vfio-user socket with trapped
    /// doorbells, and at another one with mapped ones.
    pub fn start_for_guests(kept: Kept, kind: Kind, [trapped, mapped]: [&Path; 2]) -> Self {
        let mut config = config(served(kept, kind));
        let first = &mut config.subsystems[0];
        let second = ServedSubsystem {
            nqn: "nqn.2026-11.org.example:mapped".to_owned(),
            serial: SerialNumber::Given("2".to_owned()),
            device: first.device,
            vfio_user: vec![mapped.to_owned()],
            doorbells: Doorbells::Mapped,
        };
        first.vfio_user = vec![trapped.to_owned()];
        config.subsystems.push(second);
        Self::launch(config)
    }

    /// Serves a drive.
    pub fn serve(served: Served) -> Self {
        Self::launch(config(served))
    }

    fn launch(config: ServerConfig) -> Self {
        // A thread starts on the core of the thread that spawns it.
        core::pin(core::SERVER);
        let (server, thread) = ReactorThread::of(|| Server::start(config));
        core::pin(core::CLIENT);
        Self { server: server.expect("loopback has a free port"), thread }
    }

    /// Returns the address where hosts connect.
    pub fn address(&self) -> SocketAddr {
        self.server.addresses()[0]
    }

    /// Connects a host.
    pub fn connect(&self) -> Connected {
        connect(self.address(), NQN)
    }

    /// Returns what its reactor has done so far.
    pub fn work(&self) -> Work {
        Work::new(self.server.loads()[0], &self.thread)
    }

    /// Stops the target. Returns the bytes of values copied in addition to the kernel's copies.
    pub fn stop(self) -> u64 {
        let report = self.server.stop().expect("the server served");
        report.reactors.iter().map(|reactor| reactor.moved.copied).sum()
    }
}

fn served(kept: Kept, kind: Kind) -> Served {
    match kept {
        Kept::InMemory => {
            Served::Memory { size_bytes: 1 << 30, kind: in_memory(kind), reactors: 1 }
        }
        Kept::OnIdealFlash => Served::Emulated(Box::new(ideal(kind).without_delays())),
    }
}

fn config(served: Served) -> ServerConfig {
    let address = ([127, 0, 0, 1], 0).into();
    ServerConfig::of_one(served, NQN, address, NonZero::<u16>::MIN)
}

fn in_memory(kind: Kind) -> MemoryKind {
    if kind.is_of_blocks() { MemoryKind::Block } else { MemoryKind::Kv }
}

/// Returns the profile, or one of the same flash with a namespace of blocks.
fn ideal(kind: Kind) -> Profile {
    if kind.is_of_blocks() {
        return Profile::parse("ideal.toml", IDEAL_BLOCKS).expect("the file is a profile");
    }
    Profile::load("ideal").expect("ideal is built in")
}

//! A device offered to NVMe hosts on a network: which thread runs what.
//!
//! With one reactor, device and connections share it, and no command leaves its core. With more, an
//! emulated device has the first to itself, and the connections are dealt out to the others; their
//! commands go over by [`bridge`].

mod bridge;
mod connections;
mod drive;
mod reactors;
mod report;

pub use self::drive::Served;
pub use self::report::{Moved, ReactorReport, ServerReport};

use self::reactors::{Plan, Ready, start};
use controller::SubsystemConfig;
use reactor::{Remote, RingError};
use spec::QUALIFIED_NAME_BYTES_MAX;
use std::io;
use std::net::SocketAddr;
use std::num::NonZero;
use std::sync::mpsc;
use std::thread::JoinHandle;

/// What is served, and where.
#[derive(Debug)]
pub struct ServerConfig {
    /// The device.
    pub served: Served,
    /// Decides its random choices.
    pub seed: u64,
    /// The name by which hosts connect.
    pub nqn: String,
    /// The serial number: at most 20 printable ASCII characters.
    pub serial: String,
    /// Where NVMe/TCP hosts connect; port 0 is any that is free.
    pub nvme_tcp: SocketAddr,
    /// How many reactors there are: a thread each.
    pub reactors: NonZero<u16>,
}

/// Why nothing can be served.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The name is none.
    #[error(
        "{0:?} is no NVMe Qualified Name: use at most 223 bytes that begin with \"nqn.\", as in \
         nqn.2026-11.com.example:disk1, and not the name of discovery"
    )]
    Name(String),
    /// Nobody can listen there.
    #[error("nothing can listen at {address}: {error}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why not.
        error: io::Error,
    },
    /// The machine does not give what a reactor needs.
    #[error("a reactor cannot start: {0}")]
    Reactor(#[from] RingError),
    /// It has no thread or file descriptor left.
    #[error("the machine gives no more threads or files: {0}")]
    Machine(#[from] io::Error),
    /// The device cannot be put together.
    #[error(transparent)]
    Device(#[from] crate::DeviceError),
}

/// A device that hosts can use.
#[derive(Debug)]
pub struct Server {
    nqn: String,
    address: SocketAddr,
    remotes: Vec<Remote>,
    threads: Vec<JoinHandle<Result<ReactorReport, ServerError>>>,
}

impl Server {
    /// Puts the device together, listens, and returns when hosts can connect.
    pub fn start(config: ServerConfig) -> Result<Self, ServerError> {
        check_name(&config.nqn)?;
        let nqn = config.nqn.clone();
        let count = usize::from(config.reactors.get());
        let remotes = (0..count).map(|_| Remote::new()).collect::<io::Result<Vec<_>>>()?;
        let (ready, is_ready) = mpsc::channel();
        let plan = Plan { config, remotes: remotes.clone() };
        let threads = start(plan, &ready)?;
        drop(ready);
        let mut server = Self { nqn, address: SocketAddr::from(([0; 4], 0)), remotes, threads };
        match server.wait_until_ready(&is_ready) {
            Some(address) => server.address = address,
            None => return Err(server.stop().expect_err("a reactor that is not ready has failed")),
        }
        Ok(server)
    }

    /// The address once every reactor is ready; `None` if one fails.
    fn wait_until_ready(&self, ready: &mpsc::Receiver<Ready>) -> Option<SocketAddr> {
        let mut address = None;
        for _ in 0..self.threads.len() {
            match ready.recv().ok()? {
                Ready::Listening(at) => address = Some(at),
                Ready::Serving => {}
                Ready::Failed => return None,
            }
        }
        address
    }

    /// Where hosts connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The name by which they do.
    pub fn nqn(&self) -> &str {
        &self.nqn
    }

    /// The target as Kvasir's own hosts name it.
    pub fn uri(&self) -> String {
        format!("nvme-tcp://{}/{}", self.address, self.nqn)
    }

    /// Stops the server from another thread: [`Self::join`] then returns.
    pub fn stopper(&self) -> Stopper {
        Stopper(self.remotes.clone())
    }

    /// Ends all connections, writes to the flash what was answered from memory, and says how it
    /// was.
    pub fn stop(self) -> Result<ServerReport, ServerError> {
        self.stopper().stop();
        self.join()
    }

    /// Waits until the server has been stopped, or has failed.
    pub fn join(self) -> Result<ServerReport, ServerError> {
        let mut reports = Vec::with_capacity(self.threads.len());
        let mut failure = None;
        for thread in self.threads {
            match thread.join() {
                Ok(Ok(report)) => reports.push(report),
                Ok(Err(error)) => failure = failure.or(Some(error)),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        failure.map_or(Ok(ServerReport { reactors: reports }), Err)
    }
}

/// Stops a [`Server`].
#[derive(Clone, Debug)]
pub struct Stopper(Vec<Remote>);

impl Stopper {
    /// As [`Server::stop`], without waiting for it.
    pub fn stop(&self) {
        self.0.iter().for_each(Remote::stop);
    }
}

fn check_name(nqn: &str) -> Result<(), ServerError> {
    let is_name = nqn.starts_with("nqn.")
        && nqn.len() <= QUALIFIED_NAME_BYTES_MAX
        && nqn.bytes().all(|byte| byte.is_ascii_graphic())
        && nqn != spec::QualifiedName::DISCOVERY;
    if is_name { Ok(()) } else { Err(ServerError::Name(nqn.to_owned())) }
}

impl ServerConfig {
    fn subsystem(&self, flash: Box<dyn Fn() -> controller::FlashFigures>) -> SubsystemConfig {
        SubsystemConfig {
            nqn: self.nqn.clone(),
            serial: self.serial.clone(),
            firmware: env!("CARGO_PKG_VERSION").to_owned(),
            flash,
        }
    }
}

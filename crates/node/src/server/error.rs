use crate::DiskError;
use crate::state::Problem;
use reactor::RingError;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Why a server cannot start or has failed.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The name is not a valid NQN.
    #[error(
        "{0:?} is no NVMe Qualified Name of a subsystem: use nqn.YYYY-MM.REVERSE.DOMAIN:NAME, as \
         in nqn.2026-11.com.example:disk1, of at most 223 bytes, and not the name of discovery"
    )]
    Name(String),
    /// The server cannot bind a listener to the address.
    #[error("cannot listen at {address}: {error}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        error: io::Error,
    },
    /// The server cannot bind a vfio-user socket.
    #[error("{}: {}", path.display(), why_not_bound(error))]
    VfioUser {
        /// The path of the socket.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The machine lacks a resource that a reactor needs.
    #[error("the event loop (io_uring) cannot start: {0}")]
    Reactor(#[from] RingError),
    /// The machine has no thread or file descriptor left.
    #[error("cannot create a thread or open a file: {0}")]
    Machine(#[from] io::Error),
    /// This process may not use a processor that a thread is to run on.
    #[error("this server cannot run on processor {processor}, only on {allowed}")]
    Processor {
        /// The processor.
        processor: u16,
        /// Those that it may use, as a list.
        allowed: String,
    },
    /// A device with a state file cannot start.
    #[error("the state {} {problem}", path.display())]
    State {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: Problem,
    },
    /// A device could not be saved at the stop.
    #[error("the state {} {problem}, and what it held is lost", path.display())]
    Unsaved {
        /// The file.
        path: PathBuf,
        /// The error.
        problem: Problem,
    },
    /// Only emulated drives have state files.
    #[error("only an emulated device can have a state: serve a profile, or leave the state out")]
    NoState,
    /// The path of a drive cannot be opened as a disk.
    #[error("{}{}", .0, made_by_format(.0))]
    NoDisk(#[from] disk::OpenError),
    /// The drive on a disk cannot be used.
    #[error("{}: {problem}{}", path.display(), because(path, failure.as_deref()))]
    Disk {
        /// The file or device.
        path: PathBuf,
        /// What is wrong with it.
        problem: DiskError,
        /// The disk's error, if it failed.
        failure: Option<String>,
    },
    /// Another program shortened or removed the file of a drive.
    #[error("{}: the file {loss}: {}", path.display(), after_loss(*loss, path))]
    Lost {
        /// The file or device.
        path: PathBuf,
        /// What happened to it.
        loss: disk::Loss,
    },
    /// The Redis protocol needs a device of keys and values.
    #[error(
        "Redis clients need a device of keys and values: leave resp out, or serve another device"
    )]
    NoPairs,
    /// The Redis service cannot read its hashes, lists, sets or other structures.
    #[error("the Redis data of the device cannot be read: {0}")]
    Resp(engine::Error),
    /// The device cannot be built.
    #[error(transparent)]
    Device(#[from] crate::DeviceError),
}

/// Returns the advice for a file that does not exist.
fn made_by_format(error: &disk::OpenError) -> &'static str {
    match error {
        disk::OpenError::Failed { source, .. } if source.kind() == ErrorKind::NotFound => {
            "; make it with kvasir format"
        }
        _ => "",
    }
}

/// Returns why a socket cannot be bound, and the advice for it.
fn why_not_bound(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::AddrInUse => {
            "another process serves this socket: stop it, or use another path".to_owned()
        }
        ErrorKind::NotFound => {
            "cannot listen at this socket: its folder does not exist: create it".to_owned()
        }
        _ => format!("cannot listen at this socket: {error}"),
    }
}

/// Returns the error of a failed disk and the advice for it.
fn because(path: &Path, failure: Option<&str>) -> String {
    let path = path.display();
    failure.map_or_else(String::new, |failure| {
        format!(
            " ({failure}): the kernel log says what is wrong with the disk; once it works, kvasir \
             check {path} says what the drive holds"
        )
    })
}

/// Returns the advice for a lost file.
fn after_loss(loss: disk::Loss, path: &Path) -> String {
    let path = path.display();
    match loss {
        disk::Loss::Shortened { from, .. } => format!(
            "pairs beyond its end are lost, and stores failed since; restore a copy, or give it \
             its length again (truncate -s {from} {path}) and run kvasir check {path}"
        ),
        disk::Loss::Removed => {
            "its content is gone; restore a copy, or make a new drive with kvasir format".to_owned()
        }
    }
}

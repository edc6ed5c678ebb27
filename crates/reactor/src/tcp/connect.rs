use crate::driver;
use crate::tcp::{TcpStream, socket};
use base::Nanos;
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{Shutdown, connect, shutdown, sockopt};
use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;

/// Why there is no connection to an address.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The address did not answer within the limit.
    #[error("{address} did not answer within {limit}")]
    TimedOut {
        /// What was connected to.
        address: SocketAddr,
        /// How long that was tried.
        limit: Nanos,
    },
    /// The peer or the machine refused.
    #[error("cannot connect to {address}: {source}")]
    Failed {
        /// What was connected to.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
}

struct Attempt {
    fd: OwnedFd,
    is_late: Cell<bool>,
}

impl TcpStream {
    /// Connects to `address`, or gives up after `limit`.
    pub async fn connect(address: SocketAddr, limit: Nanos) -> Result<Self, ConnectError> {
        match attempt(address, limit).await {
            Ok(Some(stream)) => Ok(stream),
            Ok(None) => Err(ConnectError::TimedOut { address, limit }),
            Err(source) => Err(ConnectError::Failed { address, source }),
        }
    }
}

/// `None`: it took too long.
async fn attempt(address: SocketAddr, limit: Nanos) -> io::Result<Option<TcpStream>> {
    let fd = socket(&address)?;
    match connect(&fd, &address) {
        Ok(()) => return TcpStream::new(fd).map(Some),
        Err(Errno::INPROGRESS) => {}
        Err(error) => return Err(error.into()),
    }
    let attempt = Rc::new(Attempt { fd, is_late: Cell::new(false) });
    let late = Rc::downgrade(&attempt);
    clock::spawn_at(clock::host_now() + limit, async move || {
        if let Some(attempt) = late.upgrade() {
            attempt.is_late.set(true);
            // Lets the attempt go on, which is over if it is not ready by now.
            let _ = shutdown(&attempt.fd, Shutdown::Both);
        }
    });
    driver::wait_until_ready(attempt.fd.as_fd(), PollFlags::OUT).await;
    if attempt.is_late.get() {
        return Ok(None);
    }
    sockopt::socket_error(&attempt.fd)??;
    let Attempt { fd, .. } =
        Rc::into_inner(attempt).expect("the limit holds an attempt only while it is late");
    TcpStream::new(fd).map(Some)
}

use crate::accept::{AcceptError, BACKLOG, ignore_passing};
use crate::driver;
use crate::retry_busy::retry_busy;
use crate::tcp::{FLAGS, TcpStream, ip_address, socket};
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{Shutdown, acceptfrom_with, bind, getsockname, listen, shutdown, sockopt};
use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};

/// Where TCP connections come in. Dropping it closes it.
#[derive(Debug)]
pub struct TcpListener {
    fd: OwnedFd,
    is_closed: Cell<bool>,
}

impl TcpListener {
    /// Listens at `address`; at port 0, where the system likes. An address whose last connections
    /// are still closing can be used again.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let is_taken = |fd: &io::Result<_>| {
            fd.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse)
        };
        let fd = retry_busy(|| listening(address), is_taken)?;
        Ok(Self { fd, is_closed: Cell::new(false) })
    }

    /// Where it listens.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        ip_address(getsockname(&self.fd)?)
    }

    /// The next connection, and where it comes from.
    pub async fn accept(&self) -> Result<(TcpStream, SocketAddr), AcceptError> {
        loop {
            if self.is_closed.get() {
                return Err(AcceptError::Closed);
            }
            match acceptfrom_with(&self.fd, FLAGS) {
                Ok((fd, address)) => {
                    // A connection that is gone already is not worth mentioning.
                    let address = address.and_then(|address| ip_address(address).ok());
                    if let (Ok(stream), Some(address)) = (TcpStream::new(fd), address) {
                        return Ok((stream, address));
                    }
                }
                Err(Errno::AGAIN) => {
                    driver::wait_until_ready(self.fd.as_fd(), PollFlags::IN).await;
                }
                Err(error) => ignore_passing(error)?,
            }
        }
    }

    /// Stops listening and wakes the task in [`Self::accept`].
    pub fn close(&self) {
        if !self.is_closed.replace(true) {
            // It can only be that it does not listen.
            let _ = shutdown(&self.fd, Shutdown::Both);
        }
    }
}

fn listening(address: SocketAddr) -> io::Result<OwnedFd> {
    let fd = socket(&address)?;
    sockopt::set_socket_reuseaddr(&fd, true)?;
    bind(&fd, &address)?;
    listen(&fd, BACKLOG)?;
    Ok(fd)
}

impl Drop for TcpListener {
    /// The address is free now, also when a ring that is about to go still watches the socket.
    fn drop(&mut self) {
        self.close();
    }
}

use crate::driver;
use net::{Broken, Stream};
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown};
use std::cell::Cell;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};

/// A TCP connection. It may be sent to another reactor as long as no task waits for it. Dropping it
/// shuts it down.
#[derive(Debug)]
pub struct TcpStream {
    fd: OwnedFd,
    is_shut: Cell<bool>,
    /// How often in a row it was waited for and had nothing to read.
    misses: Cell<u32>,
    calls: Cell<u64>,
    bytes: Cell<u64>,
}

/// Parts that the kernel takes in one call.
const PARTS_MAX: usize = 1_024;

/// After so many tries in a row that found nothing, the ring watches the socket.
const MISSES_MAX: u32 = 256;

impl TcpStream {
    /// Wraps a connected socket, and sets it to non-blocking and `TCP_NODELAY`.
    pub fn new(fd: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&fd, true)?;
        rustix::net::sockopt::set_tcp_nodelay(&fd, true)?;
        Ok(Self::of(fd, false))
    }

    fn of(fd: OwnedFd, is_shut: bool) -> Self {
        Self {
            fd,
            is_shut: Cell::new(is_shut),
            misses: Cell::default(),
            calls: Cell::default(),
            bytes: Cell::default(),
        }
    }

    /// Returns another handle on the connection, for another reactor, and turns this one into that
    /// of a connection which is shut down: dropping it does not shut the other one down. No task
    /// waits for this one. Fails if the process has no free descriptor, and changes nothing then.
    pub fn hand_over(&self) -> io::Result<Self> {
        let fd = self.fd.try_clone()?;
        Ok(Self::of(fd, self.is_shut.replace(true)))
    }

    /// Returns the number of reads and writes that moved something, and the bytes that they moved.
    /// A reactor reads a hot socket in vain while it is idle, so such reads are no cost of it. A
    /// handle on the connection for another reactor counts anew.
    pub fn traffic(&self) -> (u64, u64) {
        (self.calls.get(), self.bytes.get())
    }

    #[inline]
    fn count(&self, moved: usize) {
        self.calls.set(self.calls.get() + 1);
        self.bytes.set(self.bytes.get() + moved as u64);
    }

    /// The address of the other end. Fails when the connection is gone.
    pub fn peer_address(&self) -> io::Result<SocketAddr> {
        let address = rustix::net::getpeername(&self.fd)?;
        super::ip_address(address.ok_or(io::ErrorKind::NotConnected)?)
    }

    /// The address of this end.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        super::ip_address(rustix::net::getsockname(&self.fd)?)
    }
}

impl Stream for TcpStream {
    #[inline]
    fn try_read(&self, into: &mut [IoSliceMut<'_>]) -> Result<Option<usize>, Broken> {
        if self.is_shut.get() {
            return Ok(Some(0));
        }
        let flags = RecvFlags::DONTWAIT;
        let read = match into {
            [part] => rustix::net::recv(&self.fd, &mut part[..], flags).map(|(read, _)| read),
            parts => {
                let parts_max = parts.len().min(PARTS_MAX);
                let mut control = RecvAncillaryBuffer::default();
                rustix::net::recvmsg(&self.fd, &mut parts[..parts_max], &mut control, flags)
                    .map(|message| message.bytes)
            }
        };
        let read = unless_blocked(read)?;
        if let Some(read) = read {
            self.count(read);
            self.misses.set(0);
            driver::count_read();
        }
        Ok(read)
    }

    #[inline]
    fn try_write(&self, parts: &[IoSlice<'_>]) -> Result<Option<usize>, Broken> {
        if self.is_shut.get() {
            return Err(Broken);
        }
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let written = match parts {
            [part] => rustix::net::send(&self.fd, part, flags),
            parts => {
                let parts = &parts[..parts.len().min(PARTS_MAX)];
                rustix::net::sendmsg(&self.fd, parts, &mut SendAncillaryBuffer::default(), flags)
            }
        };
        let written = unless_blocked(written)?;
        if let Some(written) = written {
            self.count(written);
        }
        Ok(written)
    }

    async fn readable(&self) {
        if !self.is_shut.get() {
            let misses = self.misses.get();
            self.misses.set(misses.saturating_add(1));
            driver::wait_to_read(self.fd.as_fd(), misses < MISSES_MAX).await;
        }
    }

    fn may_read(&self) -> bool {
        let flags = RecvFlags::DONTWAIT | RecvFlags::PEEK;
        let peeked = || rustix::net::recv(&self.fd, &mut [0; 1], flags);
        self.is_shut.get() || peeked() != Err(Errno::AGAIN)
    }

    async fn writable(&self) {
        if !self.is_shut.get() {
            driver::wait_until_ready(self.fd.as_fd(), PollFlags::OUT).await;
        }
    }

    fn shut_down(&self) {
        if !self.is_shut.replace(true) {
            // A connection that is gone is shut down already.
            let _ = rustix::net::shutdown(&self.fd, Shutdown::Both);
        }
    }
}

impl Drop for TcpStream {
    /// The peer learns of it now, also when a ring that is about to go still watches the socket.
    fn drop(&mut self) {
        self.shut_down();
    }
}

/// `None` when the call had nothing to move. Whatever else goes wrong ends the connection: none of
/// it goes away by trying again.
#[inline]
fn unless_blocked(moved: rustix::io::Result<usize>) -> Result<Option<usize>, Broken> {
    match moved {
        Ok(moved) => Ok(Some(moved)),
        Err(Errno::AGAIN | Errno::INTR) => Ok(None),
        Err(_) => Err(Broken),
    }
}

use crate::driver;
use crate::unix::PassedFds;
use net::Broken;
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, Shutdown,
};
use std::cell::Cell;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A connection through a Unix socket, which carries file descriptors beside bytes. Dropping it
/// shuts it down.
#[derive(Debug)]
pub struct UnixStream {
    fd: OwnedFd,
    is_shut: Cell<bool>,
    /// How often in a row it was waited for and had nothing to read.
    misses: Cell<u32>,
}

/// Bytes of control messages with the descriptors that a receiver keeps.
const CONTROL_BYTES: usize = rustix::cmsg_space!(ScmRights(PassedFds::MAX));

/// After so many tries in a row that found nothing, the ring watches the socket. The tries take
/// about as long as a peer that waits for each answer takes to send again. A virtual machine in the
/// middle of I/O sends one message for hundreds of commands.
const MISSES_MAX: u32 = 64;

impl UnixStream {
    /// Wraps a connected stream socket, and sets it to non-blocking.
    pub fn new(fd: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&fd, true)?;
        Ok(Self { fd, is_shut: Cell::new(false), misses: Cell::new(0) })
    }

    /// Waits for bytes, and moves as many into `into`, which has room, as have arrived and fit.
    /// Adds the file descriptors that came with them to `fds`, close-on-exec. Returns the number
    /// of bytes: 0 if the peer ended its side or [`Self::shut_down`] was called.
    ///
    /// The kernel delivers descriptors with the first byte of the call that sent them, and never
    /// bytes after those of that call at once.
    pub async fn receive(&self, into: &mut [u8], fds: &mut PassedFds) -> Result<usize, Broken> {
        loop {
            if self.is_shut.get() {
                return Ok(0);
            }
            match self.try_receive(into, fds) {
                Ok(received) => {
                    self.misses.set(0);
                    driver::count_read();
                    return Ok(received);
                }
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(_) => return Err(Broken),
            }
            let misses = self.misses.get();
            self.misses.set(misses.saturating_add(1));
            driver::wait_to_read(self.fd.as_fd(), misses < MISSES_MAX).await;
        }
    }

    fn try_receive(&self, into: &mut [u8], fds: &mut PassedFds) -> rustix::io::Result<usize> {
        let mut space = [MaybeUninit::uninit(); CONTROL_BYTES];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        let parts = &mut [IoSliceMut::new(into)];
        let message = rustix::net::recvmsg(&self.fd, parts, &mut control, flags)?;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(passed) = message {
                passed.for_each(|fd| fds.add(fd));
            }
        }
        if message.flags.contains(ReturnFlags::CTRUNC) {
            fds.note_closed_by_kernel();
        }
        Ok(message.bytes)
    }

    /// Sends all of `bytes`, and a copy of `fd` with the first of them. Waits while the peer does
    /// not read.
    pub async fn send(&self, mut bytes: &[u8], fd: Option<BorrowedFd<'_>>) -> Result<(), Broken> {
        let mut unsent = fd.as_slice();
        while !bytes.is_empty() {
            if self.is_shut.get() {
                return Err(Broken);
            }
            match self.try_send(bytes, unsent) {
                Ok(sent) => {
                    bytes = &bytes[sent..];
                    unsent = &[];
                }
                Err(Errno::AGAIN) => {
                    driver::wait_until_ready(self.fd.as_fd(), PollFlags::OUT).await;
                }
                Err(Errno::INTR) => {}
                Err(_) => return Err(Broken),
            }
        }
        Ok(())
    }

    fn try_send(&self, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> rustix::io::Result<usize> {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() {
            let is_added = control.push(SendAncillaryMessage::ScmRights(fds));
            assert!(is_added, "there is space for one");
        }
        rustix::net::sendmsg(&self.fd, &[IoSlice::new(bytes)], &mut control, flags)
    }

    /// Ends both directions: wakes waiting tasks; later sends break and later receives find the
    /// end.
    pub fn shut_down(&self) {
        if !self.is_shut.replace(true) {
            // A connection that is gone is shut down already.
            let _ = rustix::net::shutdown(&self.fd, Shutdown::Both);
        }
    }

    /// True after [`Self::shut_down`].
    pub fn is_shut_down(&self) -> bool {
        self.is_shut.get()
    }
}

impl Drop for UnixStream {
    /// The peer learns of it now, also when a ring that is about to go still watches the socket.
    fn drop(&mut self) {
        self.shut_down();
    }
}

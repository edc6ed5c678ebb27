use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// An eventfd by which other threads wake a reactor that sleeps in its ring.
#[derive(Debug)]
pub(crate) struct Event(OwnedFd);

impl Event {
    /// Fails when the process has no file descriptor left.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// Wakes the reactor. Async-signal-safe.
    #[inline]
    pub(crate) fn set(&self) {
        // A full counter is an event as well, and no other error can happen to an open one.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// Returns whether it was set, and forgets that.
    #[inline]
    pub(crate) fn clear(&self) -> bool {
        rustix::io::read(&self.0, &mut [0; 8]).is_ok()
    }

    pub(crate) fn descriptor(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};
use rustix::event::PollFlags;
use rustix::io::Errno;
use std::collections::VecDeque;
use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

/// What a reactor sleeps on: an `io_uring` in which nothing but readiness is asked for.
pub(crate) struct Ring {
    ring: IoUring,
    /// Asked for and not yet given to the kernel.
    asked: VecDeque<squeue::Entry>,
}

/// The kernel gives a reactor no ring to sleep on.
#[derive(Debug, thiserror::Error)]
#[error(
    "this machine gives no io_uring to wait for sockets with: it takes Linux 6.1 or later, and \
     neither /proc/sys/kernel/io_uring_disabled nor the seccomp profile of a container may forbid \
     it ({0})"
)]
pub struct RingError(#[source] pub(crate) io::Error);

/// Entries given to the kernel in one call. More wait for the next.
const ENTRIES: u32 = 256;

impl Ring {
    /// A ring for this thread alone. Completions are worked on only when the thread asks for them,
    /// and a flag in memory says when that is worth a call.
    pub(crate) fn new() -> Result<Self, RingError> {
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_coop_taskrun()
            .setup_taskrun_flag()
            .build(ENTRIES)
            .map_err(RingError)?;
        if !ring.params().is_feature_ext_arg() {
            return Err(RingError(io::ErrorKind::Unsupported.into()));
        }
        Ok(Self { ring, asked: VecDeque::new() })
    }

    /// Has `token` come out of [`Self::next`] once, when `fd` is ready for `what` or broken. It
    /// stays open until then.
    pub(crate) fn watch(&mut self, fd: RawFd, what: PollFlags, token: u64) {
        let poll = opcode::PollAdd::new(Fd(fd), u32::from(what.bits()));
        self.asked.push_back(poll.build().user_data(token));
    }

    /// Gives the kernel what was asked for and takes what it has; no system call if there is
    /// neither.
    pub(crate) fn pass(&mut self) {
        let queue = self.ring.submission();
        if self.asked.is_empty() && queue.is_empty() && !queue.taskrun() && !queue.cq_overflow() {
            return;
        }
        drop(queue);
        self.fill();
        accept(self.ring.submit());
    }

    /// As [`Self::pass`], and returns when something has come or after `limit`; sooner when the
    /// kernel has not yet been given all that was asked for.
    pub(crate) fn sleep(&mut self, limit: Option<Duration>) {
        self.fill();
        if !self.asked.is_empty() {
            accept(self.ring.submit());
            return;
        }
        let result = match limit.map(Timespec::from) {
            Some(limit) => {
                self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&limit))
            }
            None => self.ring.submit_and_wait(1),
        };
        accept(result);
    }

    /// The next token that has come.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<u64> {
        self.ring.completion().next().map(|entry| entry.user_data())
    }

    fn fill(&mut self) {
        let mut queue = self.ring.submission();
        while let Some(entry) = self.asked.front() {
            // SAFETY: what must outlive the operation is all that the entry points to, and a
            // PollAdd points to nothing: it holds a number of a file, bits and a token. Were the
            // file closed too early the kernel would report that, or watch another one.
            #[expect(unsafe_code, reason = "the one entry that a ring is given")]
            let pushed = unsafe { queue.push(entry) };
            if pushed.is_err() {
                return;
            }
            self.asked.pop_front();
        }
    }
}

/// Not to have waited, or to have waited for nothing, is no failure: the caller looks again.
fn accept(result: io::Result<usize>) {
    let Err(error) = result else { return };
    let is_passing = [Errno::TIME, Errno::INTR, Errno::AGAIN, Errno::BUSY]
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()));
    assert!(is_passing, "the kernel does not serve a ring that it made: {error}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{EventfdFlags, eventfd};
    use std::os::fd::AsRawFd;

    #[test]
    fn a_ring_takes_more_than_it_has_entries_and_tells_each_once() {
        let mut ring = Ring::new().unwrap();
        let ready = eventfd(1, EventfdFlags::CLOEXEC).unwrap();
        let other = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        let count = u64::from(ENTRIES) * 3 + 5;
        ring.watch(other.as_raw_fd(), PollFlags::IN, count);
        for token in 0..count {
            ring.watch(ready.as_raw_fd(), PollFlags::IN, token);
        }
        let mut seen = Vec::new();
        while seen.len() < usize::try_from(count).unwrap() {
            ring.pass();
            while let Some(token) = ring.next() {
                seen.push(token);
            }
        }
        seen.sort_unstable();
        assert!(seen.into_iter().eq(0..count));
        ring.sleep(Some(Duration::from_millis(1)));
        assert_eq!(ring.next(), None);
        rustix::io::write(&other, &1u64.to_ne_bytes()).unwrap();
        ring.sleep(None);
        assert_eq!((ring.next(), ring.next()), (Some(count), None));
    }

    #[test]
    fn nobody_sleeps_before_all_is_watched() {
        let mut ring = Ring::new().unwrap();
        let ready = eventfd(1, EventfdFlags::CLOEXEC).unwrap();
        let other = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        for token in 0..u64::from(ENTRIES) {
            ring.watch(other.as_raw_fd(), PollFlags::IN, token);
        }
        ring.watch(ready.as_raw_fd(), PollFlags::IN, u64::MAX);
        ring.sleep(None);
        ring.sleep(None);
        assert_eq!((ring.next(), ring.next()), (Some(u64::MAX), None));
    }
}

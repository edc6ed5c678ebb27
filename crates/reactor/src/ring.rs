use crate::operation::{Operation, Operations};
use clock::{BusyStage, TaskId, enter_busy_stage};
use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};
use rustix::event::PollFlags;
use rustix::io::Errno;
use std::collections::VecDeque;
use std::io;
use std::mem::{self, ManuallyDrop};
use std::os::fd::RawFd;
use std::time::Duration;

/// What a reactor sleeps on: an `io_uring` that is asked which sockets are ready, and to read and
/// write files.
pub(crate) struct Ring {
    uring: IoUring,
    /// Asked for and not yet given to the kernel. Each was made by [`Self::watch`], or of an
    /// operation in `operations`.
    asked: VecDeque<squeue::Entry>,
    operations: Operations,
}

/// What has come out of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// What was watched with this token is ready.
    Ready(u64),
    /// The operation for which this task waits has ended.
    Ended(TaskId),
}

/// Tokens of what is watched are below this. Those of operations are their places, and this.
pub(crate) const TOKENS: u64 = 1 << 63;

/// The kernel gives a reactor no ring to sleep on.
#[derive(Debug, thiserror::Error)]
#[error(
    "this machine gives no io_uring to wait for sockets and files with: it takes Linux 6.1 or \
     later, and neither /proc/sys/kernel/io_uring_disabled nor the seccomp profile of a container \
     may forbid it ({0})"
)]
pub struct RingError(#[source] pub(crate) io::Error);

/// Entries given to the kernel in one call. More wait for the next.
const ENTRIES: u32 = 256;

/// Operations that are given to the kernel in one call while a turn still asks for more: the disk
/// would stand still until all of a turn are made, and a call for each costs more than it wins.
const TOGETHER: usize = 8;

impl Ring {
    /// A ring for this thread alone. Completions are worked on only when the thread asks for them,
    /// and a flag in memory says when that is worth a call.
    pub(crate) fn new() -> Result<Self, RingError> {
        let uring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_coop_taskrun()
            .setup_taskrun_flag()
            .build(ENTRIES)
            .map_err(RingError)?;
        if !uring.params().is_feature_ext_arg() {
            return Err(RingError(io::ErrorKind::Unsupported.into()));
        }
        Ok(Self { uring, asked: VecDeque::new(), operations: Operations::default() })
    }

    /// Has `token` come out of [`Self::next`] once, when `fd` is ready for `what` or broken. It
    /// stays open until then.
    pub(crate) fn watch(&mut self, fd: RawFd, what: PollFlags, token: u64) {
        assert!(token < TOKENS, "other tokens are of operations");
        let poll = opcode::PollAdd::new(Fd(fd), u32::from(what.bits()));
        self.asked.push_back(poll.build().user_data(token));
    }

    /// Has the kernel do `operation`, whose end comes out of [`Self::next`] once, for `task`.
    /// Returns the place from where it is taken then.
    pub(crate) fn start(&mut self, operation: Operation, task: TaskId) -> usize {
        let (place, entry) = self.operations.start(operation, task);
        self.asked.push_back(entry.user_data(TOKENS | place as u64));
        if self.asked.len() >= TOGETHER {
            let _stage = enter_busy_stage(BusyStage::Submit);
            self.fill();
            accept(self.uring.submit());
        }
        place
    }

    /// The operation of `place`, which has ended, and what the kernel said.
    pub(crate) fn take(&mut self, place: usize) -> (Operation, i32) {
        self.operations.take(place)
    }

    /// Gives the kernel what was asked for and takes what it has; no system call if there is
    /// neither. Returns true if something was asked for.
    pub(crate) fn pass(&mut self) -> bool {
        let queue = self.uring.submission();
        let is_asked = !self.asked.is_empty() || !queue.is_empty();
        if !is_asked && !queue.taskrun() && !queue.cq_overflow() {
            return false;
        }
        drop(queue);
        let _stage = is_asked.then(|| enter_busy_stage(BusyStage::Submit));
        self.fill();
        accept(self.uring.submit());
        is_asked
    }

    /// As [`Self::pass`], and returns when something has come or after `limit`; sooner when the
    /// kernel has not yet been given all that was asked for.
    pub(crate) fn sleep(&mut self, limit: Option<Duration>) {
        self.fill();
        if !self.asked.is_empty() {
            accept(self.uring.submit());
            return;
        }
        let result = match limit.map(Timespec::from) {
            Some(limit) => {
                self.uring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&limit))
            }
            None => self.uring.submit_and_wait(1),
        };
        accept(result);
    }

    /// What has come next.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Event> {
        let entry = self.uring.completion().next()?;
        let token = entry.user_data();
        if token < TOKENS {
            return Some(Event::Ready(token));
        }
        let place = usize::try_from(token - TOKENS).expect("it is a place");
        Some(Event::Ended(self.operations.end(place, entry.result())))
    }

    fn fill(&mut self) {
        let mut queue = self.uring.submission();
        while let Some(entry) = self.asked.front() {
            // SAFETY: all that an entry points to must stay, unchanged by others, until the kernel
            // is done with it. A PollAdd points to nothing: it holds a number of a file, bits and
            // a token; were the file closed too early the kernel would report that, or watch
            // another one. Every other entry was made of an `Operation` in `self.operations`, and
            // points to the heap memory that this owns: the list of its parts, bytes of `Buf`s,
            // which never change while a handle exists, and those of a `BufMut`, which is its
            // only owner and is not touched there. `Operations::take` gives an operation away only
            // after its end has come out of the ring, nothing else removes one, and `Ring::drop`
            // waits for all of them or lets none go.
            #[expect(unsafe_code, reason = "the one entry that a ring is given")]
            let pushed = unsafe { queue.push(entry) };
            if pushed.is_err() {
                return;
            }
            self.asked.pop_front();
        }
    }
}

impl Drop for Ring {
    /// Returns when the kernel is done with all operations. It would go on with them without the
    /// ring, in memory that is others' by then.
    fn drop(&mut self) {
        // If the ring fails here the buffers leak; freeing them while the kernel may still write
        // would be worse.
        let operations = ManuallyDrop::new(mem::take(&mut self.operations));
        let mut left = operations.under_way();
        while left > 0 {
            self.sleep(None);
            while let Some(entry) = self.uring.completion().next() {
                left -= usize::from(entry.user_data() >= TOKENS);
            }
        }
        drop(ManuallyDrop::into_inner(operations));
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
            while let Some(event) = ring.next() {
                let Event::Ready(token) = event else { panic!("nothing else was asked for") };
                seen.push(token);
            }
        }
        seen.sort_unstable();
        assert!(seen.into_iter().eq(0..count));
        ring.sleep(Some(Duration::from_millis(1)));
        assert_eq!(ring.next(), None);
        rustix::io::write(&other, &1u64.to_ne_bytes()).unwrap();
        ring.sleep(None);
        assert_eq!((ring.next(), ring.next()), (Some(Event::Ready(count)), None));
    }

    #[test]
    fn a_ring_tells_whether_the_kernel_was_given_something() {
        let mut ring = Ring::new().unwrap();
        assert!(!ring.pass());
        let other = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        ring.watch(other.as_raw_fd(), PollFlags::IN, 1);
        assert_eq!((ring.pass(), ring.next(), ring.pass()), (true, None, false));
        rustix::io::write(&other, &1u64.to_ne_bytes()).unwrap();
        // A call only for what the kernel has.
        assert_eq!((ring.pass(), ring.next()), (false, Some(Event::Ready(1))));
    }

    #[test]
    fn the_ring_sleeps_only_after_all_is_watched() {
        let mut ring = Ring::new().unwrap();
        let ready = eventfd(1, EventfdFlags::CLOEXEC).unwrap();
        let other = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        for token in 0..u64::from(ENTRIES) {
            ring.watch(other.as_raw_fd(), PollFlags::IN, token);
        }
        ring.watch(ready.as_raw_fd(), PollFlags::IN, TOKENS - 1);
        ring.sleep(None);
        ring.sleep(None);
        assert_eq!((ring.next(), ring.next()), (Some(Event::Ready(TOKENS - 1)), None));
    }
}

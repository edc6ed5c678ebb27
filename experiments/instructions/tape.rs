use crate::aside::aside;
use clock::Notify;
use net::{Broken, Stream};
use std::cell::{Cell, RefCell};
use std::io::{IoSlice, IoSliceMut};

/// A connection whose other end sends requests in one piece and waits for all of their replies. Its
/// own work, and that of its other end, is not counted.
#[derive(Debug, Default)]
pub(crate) struct Tape {
    requests: RefCell<Requests>,
    replies: RefCell<Vec<u8>>,
    /// Bytes of replies that the other end waits for.
    expected: Cell<usize>,
    is_shut: Cell<bool>,
    arrived: Notify,
    replied: Notify,
}

#[derive(Debug, Default)]
struct Requests {
    bytes: Vec<u8>,
    read: usize,
}

impl Tape {
    /// Sends `requests` and waits for `expected` bytes of replies, which `check` looks at.
    pub(crate) async fn exchange(
        &self,
        requests: impl FnOnce(&mut Vec<u8>),
        expected: usize,
        check: impl FnOnce(&[u8]),
    ) {
        aside(|| {
            let mut state = self.requests.borrow_mut();
            assert_eq!(state.read, state.bytes.len(), "the last requests were read");
            state.bytes.clear();
            state.read = 0;
            requests(&mut state.bytes);
            self.replies.borrow_mut().clear();
            self.expected.set(expected);
        });
        self.arrived.notify();
        self.replied.wait().await;
        aside(|| {
            let replies = self.replies.borrow();
            assert_eq!(replies.len(), expected, "all of the replies have arrived");
            check(&replies);
        });
    }
}

impl Stream for Tape {
    fn try_read(&self, into: &mut [IoSliceMut<'_>]) -> Result<Option<usize>, Broken> {
        aside(|| {
            let mut state = self.requests.borrow_mut();
            let before = state.read;
            for part in into {
                let len = part.len().min(state.bytes.len() - state.read);
                part[..len].copy_from_slice(&state.bytes[state.read..][..len]);
                state.read += len;
            }
            let read = state.read - before;
            Ok((read > 0 || self.is_shut.get()).then_some(read))
        })
    }

    fn try_write(&self, parts: &[IoSlice<'_>]) -> Result<Option<usize>, Broken> {
        let (written, is_whole) = aside(|| {
            let mut replies = self.replies.borrow_mut();
            let before = replies.len();
            for part in parts {
                replies.extend_from_slice(part);
            }
            (replies.len() - before, replies.len() >= self.expected.get())
        });
        if is_whole {
            self.replied.notify();
        }
        Ok(Some(written))
    }

    async fn readable(&self) {
        let is_empty = aside(|| {
            let state = self.requests.borrow();
            state.read == state.bytes.len() && !self.is_shut.get()
        });
        if is_empty {
            self.arrived.wait().await;
        }
    }

    async fn writable(&self) {}

    fn shut_down(&self) {
        self.is_shut.set(true);
        self.arrived.notify();
    }
}

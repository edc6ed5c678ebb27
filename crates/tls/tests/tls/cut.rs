use net::{Broken, Stream};
use std::cell::Cell;
use std::io::{IoSlice, IoSliceMut};

/// What becomes of what is sent behind a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// It is another piece.
    Apart,
    /// It is never sent: the end leaves.
    Gone,
    /// It is never sent: the end is silent.
    Silence,
}

/// An end of a connection of which something becomes behind its first so many bytes.
pub(crate) struct Cut<S> {
    end: S,
    left: Cell<usize>,
    after: After,
}

impl<S> Cut<S> {
    pub(crate) fn new(end: S, at: usize, after: After) -> Self {
        Self { end, left: Cell::new(at), after }
    }
}

impl<S: Stream> Stream for Cut<S> {
    fn try_read(&self, into: &mut [IoSliceMut<'_>]) -> Result<Option<usize>, Broken> {
        self.end.try_read(into)
    }

    fn try_write(&self, parts: &[IoSlice<'_>]) -> Result<Option<usize>, Broken> {
        let bytes: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
        let left = self.left.get();
        if left == 0 {
            match self.after {
                After::Apart => self.left.set(usize::MAX),
                After::Gone => self.end.shut_down(),
                After::Silence => return Ok(Some(bytes.len())),
            }
            return self.end.try_write(parts);
        }
        let taken = self.end.try_write(&[IoSlice::new(&bytes[..bytes.len().min(left)])])?;
        self.left.set(left - taken.unwrap_or(0));
        Ok(taken)
    }

    async fn readable(&self) {
        self.end.readable().await;
    }

    async fn writable(&self) {
        self.end.writable().await;
    }

    fn shut_down(&self) {
        self.end.shut_down();
    }
}

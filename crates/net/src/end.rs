use crate::stream::{Broken, Stream};
use crate::wire::Wire;
use std::io::{IoSlice, IoSliceMut};
use std::rc::Rc;

/// One end of a connection in a simulated [`Network`](crate::Network). Dropping it shuts it down.
#[derive(Debug)]
pub struct End {
    wire: Rc<Wire>,
    /// Which end this is, and so which pipe it writes.
    end: usize,
}

impl End {
    pub(crate) fn both(wire: &Rc<Wire>) -> (Self, Self) {
        (Self { wire: wire.clone(), end: 0 }, Self { wire: wire.clone(), end: 1 })
    }

    /// The number of the connection in its network, counted from 0 in the order in which they were
    /// made.
    pub fn number(&self) -> u64 {
        self.wire.number
    }

    fn is_shut(&self) -> bool {
        self.wire.is_shut[self.end].get()
    }

    fn peer(&self) -> usize {
        1 - self.end
    }
}

impl Stream for End {
    fn try_read(&self, into: &mut [IoSliceMut<'_>]) -> Result<Option<usize>, Broken> {
        if self.is_shut() {
            return Ok(Some(0));
        }
        let read = self.wire.pipes[self.peer()].borrow_mut().read(into, clock::now())?;
        if read.is_some_and(|len| len > 0) {
            self.wire.notifies[self.peer()].writer.notify();
        }
        Ok(read)
    }

    fn try_write(&self, parts: &[IoSlice<'_>]) -> Result<Option<usize>, Broken> {
        if self.is_shut() {
            return Err(Broken);
        }
        let mut arrivals = Vec::new();
        let mut pipe = self.wire.pipes[self.end].borrow_mut();
        let written = pipe.write(parts, clock::now(), &mut arrivals);
        arrivals.dedup();
        for at in arrivals {
            self.wire.notify_reader_at(self.end, at);
        }
        written
    }

    async fn readable(&self) {
        let is_readable =
            || self.is_shut() || self.wire.pipes[self.peer()].borrow().is_readable(clock::now());
        if !is_readable() {
            self.wire.notifies[self.peer()].reader.wait().await;
        }
    }

    async fn writable(&self) {
        let is_writable = || self.is_shut() || self.wire.pipes[self.end].borrow().is_writable();
        if !is_writable() {
            self.wire.notifies[self.end].writer.wait().await;
        }
    }

    fn shut_down(&self) {
        self.wire.shut_down(self.end);
    }
}

impl Drop for End {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.wire.shut_down(self.end);
        }
    }
}

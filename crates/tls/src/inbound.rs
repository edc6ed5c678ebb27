use net::{Broken, Stream};
use rustls::Connection;
use std::io::{self, IoSliceMut};

/// Bytes that are read while little comes.
const READ_BYTES: usize = 4 << 10;
/// Bytes that are read at once when more and more comes: four records of the longest.
const READ_AHEAD_BYTES: usize = 64 << 10;

/// Bytes read from the stream that the session has not taken yet. The session takes 4 KiB at a
/// time; this buffer keeps each of those from being a system call.
#[derive(Debug, Default)]
pub(crate) struct Inbound {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    was_full: bool,
}

impl Inbound {
    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Whether the stream had as much as was asked for, and so may have more.
    pub(crate) fn was_full(&self) -> bool {
        self.was_full
    }

    /// Takes in what `stream` has, as [`Stream::try_read`] says. To be called when nothing is left.
    pub(crate) fn read(&mut self, stream: &impl Stream) -> Result<Option<usize>, Broken> {
        let room = if self.was_full { READ_AHEAD_BYTES } else { READ_BYTES };
        self.bytes.resize(room, 0);
        self.bytes.shrink_to(room);
        let read = stream.try_read(&mut [IoSliceMut::new(&mut self.bytes)])?;
        self.was_full = read == Some(room);
        (self.start, self.end) = (0, read.unwrap_or(0));
        Ok(read)
    }

    /// Gives `session` the next bytes that are there, or tells it that nothing more comes.
    pub(crate) fn give(&mut self, session: &mut Connection) -> io::Result<()> {
        let taken = session.read_tls(&mut &self.bytes[self.start..self.end])?;
        self.start += taken;
        Ok(())
    }
}

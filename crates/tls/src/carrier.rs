use net::{Broken, Stream};
use std::io::{self, ErrorKind, IoSlice, Write};

/// Takes from a session what is to go: it wants to be told of a stream as of a file.
pub(crate) struct Carrier<'a, S>(pub(crate) &'a S);

impl<S: Stream> Write for Carrier<'_, S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match self.0.try_write(parts) {
            Ok(Some(taken)) => Ok(taken),
            Ok(None) => Err(ErrorKind::WouldBlock.into()),
            Err(Broken) => Err(ErrorKind::BrokenPipe.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

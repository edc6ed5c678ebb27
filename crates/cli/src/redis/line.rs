use net::{Broken, Stream};
use reactor::TcpStream;
use std::io::{IoSlice, IoSliceMut};
use std::rc::Rc;
use tls::TlsStream;

/// A connection to a server, plain or over TLS.
pub(crate) enum Line {
    Plain(TcpStream),
    Tls(Rc<TlsStream<TcpStream>>),
}

impl Stream for Line {
    fn try_read(&self, into: &mut [IoSliceMut<'_>]) -> Result<Option<usize>, Broken> {
        match self {
            Self::Plain(stream) => stream.try_read(into),
            Self::Tls(stream) => stream.try_read(into),
        }
    }

    fn try_write(&self, parts: &[IoSlice<'_>]) -> Result<Option<usize>, Broken> {
        match self {
            Self::Plain(stream) => stream.try_write(parts),
            Self::Tls(stream) => stream.try_write(parts),
        }
    }

    async fn readable(&self) {
        match self {
            Self::Plain(stream) => stream.readable().await,
            Self::Tls(stream) => stream.readable().await,
        }
    }

    async fn writable(&self) {
        match self {
            Self::Plain(stream) => stream.writable().await,
            Self::Tls(stream) => stream.writable().await,
        }
    }

    fn shut_down(&self) {
        match self {
            Self::Plain(stream) => stream.shut_down(),
            Self::Tls(stream) => stream.shut_down(),
        }
    }
}

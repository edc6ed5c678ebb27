use crate::doorbells::MappedDoorbells;
use crate::memory::UnsharedMemory;
use crate::session::Session;
use pcie::{HostMemory, Interrupts, PciFunction};
use reactor::{PassedFds, UnixStream};
use std::fmt;
use std::rc::Rc;

/// Why a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The client disconnected between messages.
    ClientLeft,
    /// The client disconnected in the middle of a message, or before it read a reply.
    ClientBroke,
    /// The client sent a header with a size that no message has.
    ImpossibleSize(u32),
    /// The server shut the stream down.
    ShutDown,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ClientLeft => f.write_str("the client disconnected"),
            Self::ClientBroke => {
                f.write_str("the client disconnected in the middle of a message or reply")
            }
            Self::ImpossibleSize(bytes) => {
                write!(f, "the client sent a vfio-user message of {bytes} bytes, which none has")
            }
            Self::ShutDown => f.write_str("the server ended the session"),
        }
    }
}

/// Messages after which other tasks run, though more have arrived.
const BURST: u32 = 16;

/// Serves a client with the function that `make` returns, and with `doorbells` that the client may
/// map and the function reads, if they are given. Ends when the client disconnects, breaks the
/// framing of the protocol, or the stream is shut down. Calls `tell` if the function does not reach
/// memory that the client has to share. Before it returns, it closes the function,
/// unmaps the client's memory, closes its eventfds and shuts the stream down.
pub async fn serve(
    stream: &UnixStream,
    doorbells: Option<Rc<MappedDoorbells>>,
    tell: impl Fn(UnsharedMemory) + 'static,
    make: impl FnOnce(Rc<dyn HostMemory>, Rc<dyn Interrupts>) -> Rc<dyn PciFunction>,
) -> Ended {
    let mut session = Session::new(doorbells, tell, make);
    let ended = match serve_messages(stream, &mut session).await {
        _ if stream.is_shut_down() => Ended::ShutDown,
        Err(ended) => ended,
        Ok(never) => match never {},
    };
    stream.shut_down();
    ended
}

enum Never {}

async fn serve_messages(stream: &UnixStream, session: &mut Session) -> Result<Never, Ended> {
    let (mut message, mut fds) = (Vec::new(), PassedFds::default());
    let mut handled: u32 = 0;
    loop {
        receive_message(stream, &mut message, &mut fds).await?;
        handled = handled.wrapping_add(1);
        if handled.is_multiple_of(BURST) {
            clock::give_way().await;
        } else {
            clock::catch_up().await;
        }
        let reply = session.handle(&message, &mut fds);
        stream.send(reply.bytes, reply.file).await.map_err(|_| Ended::ClientBroke)?;
    }
}

/// Receives a message with the file descriptors that came with any of its bytes.
async fn receive_message(
    stream: &UnixStream,
    message: &mut Vec<u8>,
    fds: &mut PassedFds,
) -> Result<(), Ended> {
    let mut header = [0; Session::HEADER_BYTES];
    if fill(stream, &mut header, fds).await? == 0 {
        return Err(Ended::ClientLeft);
    }
    let bytes = Session::message_bytes(header).map_err(Ended::ImpossibleSize)?;
    message.clear();
    message.reserve_exact(bytes);
    message.extend_from_slice(&header);
    message.resize(bytes, 0);
    let body = &mut message[header.len()..];
    let (expected, received) = (body.len(), fill(stream, body, fds).await?);
    if received < expected { Err(Ended::ClientBroke) } else { Ok(()) }
}

/// Receives as many bytes as `into` has, or none if the client has disconnected before the first.
async fn fill(stream: &UnixStream, into: &mut [u8], fds: &mut PassedFds) -> Result<usize, Ended> {
    let mut filled = 0;
    while filled < into.len() {
        match stream.receive(&mut into[filled..], fds).await {
            Ok(0) if filled == 0 => return Ok(0),
            Ok(0) | Err(_) => return Err(Ended::ClientBroke),
            Ok(received) => filled += received,
        }
    }
    Ok(filled)
}

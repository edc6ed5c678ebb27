//! The controller's end of a connection.

mod admission;
mod budget;
mod connection;
mod deadline;
mod fused;
mod reader;
mod transfers;
mod writer;

pub use budget::Budget;

use crate::framing::{Counters, Fault};
use crate::pdu::FatalError;
use base::{BufPool, Nanos};
use connection::Connection;
use controller::Port;
use net::Stream;
use reader::Reader;
use std::rc::Rc;

/// MAXH2CDATA: maximum bytes of data in one `H2CData`. Such a PDU blocks other PDUs of the
/// connection for 40 us at 6.5 GB/s.
pub const H2C_DATA_MAX: u32 = 256 << 10;

/// Timeout for a host to connect (until its first command succeeds, which is a Connect), to finish
/// a PDU that it has begun, and to close the connection.
pub const TIMEOUT: Nanos = Nanos::from_secs(30);

/// Commands on a connection at a time, from their arrival until their response is sent. No queue
/// has more entries. If a host sends more, the reader pauses until the first are done.
pub const COMMANDS_MAX: usize = 1024;

/// Data of this many bytes and more is never copied between the stream and its buffer, and counts
/// for the connection's [`Budget`]: smaller data is bounded by [`COMMANDS_MAX`].
pub const LARGE: u32 = 16 << 10;

/// Resources shared by connections.
#[derive(Clone, Debug)]
pub struct Config {
    /// The pool of buffers for data of hosts.
    pub pool: BufPool,
    /// The counters of the connections.
    pub counters: Rc<Counters>,
}

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Ended {
    /// The stream ended or broke.
    #[error("the host has left")]
    ByHost,
    /// The controller ended the queue.
    #[error("the controller has done with the connection")]
    ByController,
    /// The host violated the protocol.
    #[error(transparent)]
    ByFault(#[from] Fault),
    /// The host reported a protocol violation of this end.
    #[error("the host terminated the connection: {0}")]
    Terminated(FatalError),
    /// The host exceeded the commands of a connection while it owed data.
    #[error("the host sent more commands than a queue has, and not their data")]
    Flooded,
    /// See [`TIMEOUT`].
    #[error("the host was silent for too long")]
    Silent,
}

/// Serves the host at the other end of `stream` from `port` until the connection is over. No other
/// connection shares its `budget`.
pub async fn serve<S: Stream>(
    stream: Rc<S>,
    port: Rc<dyn Port>,
    config: Config,
    budget: Rc<Budget>,
) -> Ended {
    let connection = Rc::new(Connection::new(stream, config, budget));
    connection.set_deadline(Some(clock::host_now() + TIMEOUT));
    clock::spawn(writer::write_all(connection.clone()));
    Reader::new(connection.clone(), port).read_all().await;
    connection.leave().await;
    connection.reason()
}

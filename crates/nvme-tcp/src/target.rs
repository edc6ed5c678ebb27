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

/// MAXH2CDATA: bytes of data that a host may put into one `H2CData`. Nothing else comes on the
/// connection meanwhile: 40 us at 6.5 GB/s.
pub const H2C_DATA_MAX: u32 = 256 << 10;

/// How long a host may take to connect (until a command succeeds, which before a Connect none
/// does), stop in the middle of a PDU, or take to end.
pub const PATIENCE: Nanos = Nanos::from_secs(30);

/// Commands on a connection at a time, from their arrival until their response is sent. No queue
/// has more entries; whoever sends more is not read until the first are done.
pub const COMMANDS_MAX: usize = 1024;

/// Data of this many bytes and more is never copied between the stream and its buffer, and counts
/// for the connection's [`Budget`]: smaller data is bounded by [`COMMANDS_MAX`].
pub const LARGE: u32 = 16 << 10;

/// What connections share.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where buffers for data that hosts send come from.
    pub pool: BufPool,
    /// Counts what the connections do.
    pub counters: Rc<Counters>,
}

/// Why a connection is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Ended {
    /// The stream ended or broke.
    #[error("the host has left")]
    ByHost,
    /// The queue asked for it.
    #[error("the controller has done with the connection")]
    ByController,
    /// The host broke the protocol.
    #[error(transparent)]
    ByFault(#[from] Fault),
    /// The host said that this end broke the protocol.
    #[error("the host terminated the connection: {0}")]
    Terminated(FatalError),
    /// It sent more commands than a connection takes, and no data for those before.
    #[error("the host sent more commands than a queue has, and not their data")]
    Flooded,
    /// See [`PATIENCE`].
    #[error("the host was silent for too long")]
    Silent,
}

/// Serves the host at the other end of `stream` from `port`, until the connection is over. Nobody
/// else has its `budget`.
pub async fn serve<S: Stream>(
    stream: Rc<S>,
    port: Rc<dyn Port>,
    config: Config,
    budget: Rc<Budget>,
) -> Ended {
    let connection = Rc::new(Connection::new(stream, config, budget));
    connection.set_deadline(Some(clock::host_now() + PATIENCE));
    clock::spawn(writer::write_all(connection.clone()));
    Reader::new(connection.clone(), port).read_all().await;
    connection.leave().await;
    connection.reason()
}

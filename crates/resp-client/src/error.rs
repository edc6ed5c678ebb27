use crate::replies::NoReply;
use base::Nanos;

/// Why a client could not connect to a server, or lost the connection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// This end closed the connection.
    #[error("the connection was closed")]
    Closed,
    /// The server ended the connection.
    #[error("the server ended the connection")]
    Ended,
    /// The connection broke.
    #[error("the connection to the server broke")]
    Broken,
    /// No answer came in time.
    #[error("the server did not answer within {0}")]
    Silent(Nanos),
    /// The server's bytes are no answer.
    #[error("the server is no Redis server, or a broken one: {0}")]
    NoReply(#[from] NoReply),
    /// The server sent an answer without a request.
    #[error("the server is no Redis server, or a broken one: it answers what was not asked")]
    Unasked,
    /// The server refused a request of the handshake.
    #[error("the server refuses {request}: {said}")]
    Refused {
        /// The name of the request.
        request: &'static str,
        /// The server's message.
        said: String,
    },
}

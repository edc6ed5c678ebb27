use crate::replies::NoReply;
use base::Nanos;

/// Why a client and a server do not come together, or came apart.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// This end closed the connection.
    #[error("the connection was closed")]
    Closed,
    /// The server ended the connection.
    #[error("the server ended the connection")]
    Ended,
    /// The connection is gone.
    #[error("the connection to the server broke")]
    Broken,
    /// No answer came in time.
    #[error("the server did not answer within {0}")]
    Silent(Nanos),
    /// What the server sent is no answer.
    #[error("the server is no Redis server, or a broken one: {0}")]
    NoReply(#[from] NoReply),
    /// An answer came that nobody had asked for.
    #[error("the server is no Redis server, or a broken one: it answers what was not asked")]
    Unasked,
    /// The server does not do what has to come first.
    #[error("the server refuses {request}: {said}")]
    Refused {
        /// The name of the request.
        request: &'static str,
        /// The server's words.
        said: String,
    },
}

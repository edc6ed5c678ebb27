/// Why bytes are no request. The connection ends: no later byte can be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// The number of arguments is none, or too great.
    #[error("Protocol error: invalid multibulk length")]
    Count,
    /// The length of an argument is none, or too great.
    #[error("Protocol error: invalid bulk length")]
    Length,
    /// The number of arguments is too great for a stranger.
    #[error("Protocol error: unauthenticated multibulk length")]
    StrangeCount,
    /// The length of an argument is too great for a stranger.
    #[error("Protocol error: unauthenticated bulk length")]
    StrangeLength,
    /// The number of arguments has no end.
    #[error("Protocol error: too big mbulk count string")]
    LongCount,
    /// The length of an argument has no end.
    #[error("Protocol error: too big bulk count string")]
    LongLength,
    /// A typed line has no end.
    #[error("Protocol error: too big inline request")]
    LongLine,
    /// Something else stands where an argument should begin.
    #[error("Protocol error: expected '$', got '{}'", char::from(*.0))]
    NoArgument(u8),
    /// A quote has no end.
    #[error("Protocol error: unbalanced quotes in request")]
    Quotes,
    /// The request takes more memory than one may.
    #[error("Protocol error: a request takes at most {0} bytes")]
    TooMuch(usize),
}

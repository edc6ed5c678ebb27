use crate::pdu::FatalError;

/// The peer broke the protocol: what a termination tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the peer broke the protocol: {error} ({information:X}h)")]
pub struct Fault {
    /// FES.
    pub error: FatalError,
    /// FEI: see [`TermReq::information`](crate::pdu::TermReq::information).
    pub information: u32,
}

impl Fault {
    /// The field at this offset of the header is not what it has to be.
    pub const fn field(at: u32) -> Self {
        Self { error: FatalError::INVALID_HEADER_FIELD, information: at }
    }

    /// The field at this offset of the header asks for what there is not.
    pub const fn unsupported(at: u32) -> Self {
        Self { error: FatalError::UNSUPPORTED_PARAMETER, information: at }
    }

    /// Anything whose header is right in itself.
    pub const fn of(error: FatalError) -> Self {
        Self { error, information: 0 }
    }
}

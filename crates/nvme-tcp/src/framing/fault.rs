use crate::pdu::FatalError;

/// A protocol violation of the peer, as a termination reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the peer broke the protocol: {error} ({information:X}h)")]
pub struct Fault {
    /// FES.
    pub error: FatalError,
    /// FEI: see [`TermReq::information`](crate::pdu::TermReq::information).
    pub information: u32,
}

impl Fault {
    /// Returns the fault of an invalid header field at this offset.
    pub const fn field(at: u32) -> Self {
        Self { error: FatalError::INVALID_HEADER_FIELD, information: at }
    }

    /// Returns the fault of an unsupported parameter at this offset of the header.
    pub const fn unsupported(at: u32) -> Self {
        Self { error: FatalError::UNSUPPORTED_PARAMETER, information: at }
    }

    /// Returns a fault whose header has no invalid field.
    pub const fn of(error: FatalError) -> Self {
        Self { error, information: 0 }
    }
}
